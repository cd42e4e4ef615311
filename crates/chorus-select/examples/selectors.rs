//! Writes the manual's pages of selectors into the folder that is given.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from).unwrap_or_else(|| PathBuf::from("docs"));
    let folder = folder.join("selectors");
    std::fs::create_dir_all(&folder)?;
    for (name, text) in chorus_select::manual::pages() {
        std::fs::write(folder.join(name), text)?;
    }
    Ok(())
}
