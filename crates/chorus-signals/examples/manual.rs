//! Writes the manual of signals into a folder: `cargo run -p chorus-signals --example manual -- docs`.
//!
//! It knows files; the texts come from [`chorus_signals::manual`].

use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "docs".to_owned());
    for (path, text) in chorus_signals::manual::files() {
        let file = Path::new(&folder).join(path);
        std::fs::create_dir_all(file.parent().unwrap_or(Path::new(&folder)))?;
        std::fs::write(file, text)?;
    }
    Ok(())
}
