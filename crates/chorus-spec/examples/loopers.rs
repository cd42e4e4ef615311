//! Brings the tables of parameters in a folder's pages of loopers up to date:
//! `cargo run -p chorus-spec --example loopers -- docs`.
//!
//! It knows files; the tables come from [`chorus_spec::looper_page`].

use std::io::{Error, ErrorKind};
use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "docs".to_owned());
    for looper in chorus_spec::documented_loopers() {
        let path = Path::new(&folder).join(format!("loopers/{}.md", looper.as_str()));
        let page = std::fs::read_to_string(&path)?;
        let unmarked = || Error::new(ErrorKind::InvalidData, format!("{} has no marks", path.display()));
        let page = chorus_spec::looper_page::with_parameters(&page, looper).ok_or_else(unmarked)?;
        std::fs::write(&path, page)?;
    }
    Ok(())
}
