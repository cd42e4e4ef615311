//! Writes the manual of plugins into a folder: `cargo run -p chorus-engine --example plugins -- docs`.
//!
//! It knows files; the texts come from [`chorus_engine::plugins::manual`].

use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "docs".to_owned());
    for (path, text) in chorus_engine::plugins::manual::files() {
        let file = Path::new(&folder).join(path);
        std::fs::create_dir_all(file.parent().unwrap_or(Path::new(&folder)))?;
        std::fs::write(file, text)?;
    }
    Ok(())
}
