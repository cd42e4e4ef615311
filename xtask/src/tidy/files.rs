//! Files: each opens with `//!`, and none is named after nothing.

use anyhow::Context;
use std::path::{Path, PathBuf};

/// Names that say nothing about what is inside.
const BANNED: [&str; 9] = ["util", "utils", "common", "helper", "helpers", "manager", "misc", "v2", "new"];

/// One parsed source file.
pub(crate) struct Source {
    /// Path from the repository's root.
    pub(crate) path: PathBuf,
    /// Folder of its crate, from the root.
    pub(crate) package: PathBuf,
    /// Its text.
    pub(crate) text: String,
    /// Its syntax.
    pub(crate) syntax: syn::File,
}

/// Every Rust file of the workspace.
pub(crate) fn sources(root: &Path) -> anyhow::Result<Vec<Source>> {
    let mut sources = Vec::new();
    let mut packages: Vec<PathBuf> = vec![PathBuf::from("xtask")];
    for entry in std::fs::read_dir(root.join("crates"))? {
        packages.push(Path::new("crates").join(entry?.file_name()));
    }
    packages.sort();
    for package in packages {
        for folder in ["src", "tests", "benches", "examples"] {
            collect(root, &package, &package.join(folder), &mut sources)?;
        }
    }
    Ok(sources)
}

fn collect(root: &Path, package: &Path, folder: &Path, into: &mut Vec<Source>) -> anyhow::Result<()> {
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
        return Ok(());
    };
    let mut names: Vec<PathBuf> =
        entries.filter_map(|e| e.ok().map(|e| folder.join(e.file_name()))).collect();
    names.sort();
    for path in names {
        if root.join(&path).is_dir() {
            collect(root, package, &path, into)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(root.join(&path))?;
            let syntax =
                syn::parse_file(&text).with_context(|| format!("{} does not parse", path.display()))?;
            into.push(Source { path, package: package.to_path_buf(), text, syntax });
        }
    }
    Ok(())
}

/// Problems of files as such.
pub(crate) fn check(sources: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    for source in sources {
        let path = source.path.display();
        if !source.text.starts_with("//!") {
            problems.push(format!(
                "{path}:1: the file does not open with `//!` (what it is, what it does not know)"
            ));
        }
        let named =
            source.path.iter().filter_map(|part| Path::new(part).file_stem()).filter_map(|s| s.to_str());
        if let Some(name) = named.into_iter().find(|name| BANNED.contains(name)) {
            problems.push(format!("{path}: `{name}` says nothing about what is inside"));
        }
    }
    problems
}
