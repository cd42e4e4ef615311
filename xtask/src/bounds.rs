//! The page of bounds, made of what stands at each in the source: a name in backquotes and brackets, and a sentence.
//!
//! It knows how bounds are documented, and none of them. **Invariant:** a number is the source's own: the default of the
//! sentence, else the constant below it.

use crate::say;
use anyhow::Context;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The page, from the root.
const PAGE: &str = "docs/bounds.md";

const HEAD: &str = "# Bounds

Everything that a request, a backend or an operator can make large, long or many has a bound with a name. What passes one is
refused with the name in the message, or cut where the page of the feature says so; the codes are in [errors](errors.md). This page
is written by `cargo xtask docs` from the source.

Limits of other kinds have pages of their own: [callers](limits.md), [budgets](budgets.md), [backends](upstreams/README.md#bounds-of-a-backend),
[loopers](loopers/options.md).
";

/// One bound.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Bound {
    name: String,
    value: String,
    says: String,
    file: String,
}

/// Writes the page.
pub(crate) fn write(root: &Path) -> anyhow::Result<()> {
    std::fs::write(root.join(PAGE), page(root)?).with_context(|| format!("{PAGE} cannot be written"))?;
    say(&format!("{PAGE} is written"));
    Ok(())
}

fn page(root: &Path) -> anyhow::Result<String> {
    let mut by_room: BTreeMap<String, Vec<Bound>> = BTreeMap::new();
    let crates = root.join("crates");
    for file in sources(&crates)? {
        let text = std::fs::read_to_string(&file)?;
        let below = file.strip_prefix(&crates)?.display().to_string();
        let room = below.split('/').next().unwrap_or_default().to_owned();
        by_room.entry(room).or_default().extend(bounds(&text, &below));
    }
    let mut page = HEAD.to_owned();
    for (room, mut bounds) in by_room.into_iter().filter(|(_, bounds)| !bounds.is_empty()) {
        bounds.sort();
        write!(page, "\n## {room}\n\n| name | default | what it bounds | where |\n|---|---|---|---|\n")?;
        for Bound { name, value, says, file } in bounds {
            let file = file.trim_start_matches(&room).trim_start_matches("/src/");
            writeln!(page, "| `{name}` | {value} | {says} | `{file}` |")?;
        }
    }
    Ok(page)
}

/// Every source file of a crate, in order.
fn sources(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            let below = path.strip_prefix(root_of(&path))?.display().to_string();
            if path.is_dir() && !below.contains("/tests") && !below.contains("/benches") {
                folders.push(path);
            } else if below.contains("/src/") && path.extension().is_some_and(|it| it == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The folder above `crates`.
fn root_of(path: &Path) -> &Path {
    path.ancestors().find(|it| it.file_name().is_some_and(|name| name == "crates")).unwrap_or(path)
}

/// The bounds that a file's documentation names.
fn bounds(text: &str, file: &str) -> Vec<Bound> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut found = Vec::new();
    let mut said = String::new();
    for line in &lines {
        if let Some(words) = line.strip_prefix("/// ") {
            said.push_str(words);
            said.push(' ');
            continue;
        }
        if *line == "///" {
            continue;
        }
        // A function speaks of a bound; its constant or field is the bound.
        if let Some((name, default)) = named(&said).filter(|_| !line.contains("fn ")) {
            let value = default.or_else(|| constant(line)).unwrap_or_else(|| "see there".to_owned());
            found.push(Bound { name, value, says: sentence(&said), file: file.to_owned() });
        }
        said.clear();
    }
    found
}

/// A bound's name and the default beside it: (`name`) or (`name`, default …).
fn named(said: &str) -> Option<(String, Option<String>)> {
    let (_, rest) = said.split_once("(`")?;
    let (name, rest) = rest.split_once('`')?;
    let is_bound = name.starts_with("max_") || name.ends_with("_most") || name.ends_with("_timeout");
    let is_name = name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    let (inside, _) = rest.split_once(')')?;
    let default = inside.strip_prefix(", default ").map(str::to_owned);
    (is_bound && is_name && (inside.is_empty() || default.is_some())).then(|| (name.to_owned(), default))
}

/// The value of a constant.
fn constant(line: &str) -> Option<String> {
    let (declared, value) = line.strip_suffix(';')?.split_once(" = ")?;
    declared.contains("const ").then(|| format!("`{value}`"))
}

/// The first sentence, without the name.
fn sentence(said: &str) -> String {
    let end = said.find(". ").unwrap_or(said.len());
    let first = said.get(..end).unwrap_or(said);
    let (before, after) = first.split_once("(`").unwrap_or((first, ""));
    let after = after.split_once(')').map_or("", |(_, after)| after);
    format!("{}{after}", before.trim_end()).trim().trim_end_matches('.').replace('|', "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_read_with_its_number() {
        let text = "/// Most messages (`max_messages`, default 4,096).\npub max: usize,\n\
                    /// Longest key, in\n/// characters (`max_key`). More of it.\nconst MAX: usize = 256;\n\
                    /// A word (`other`).\nconst OTHER: usize = 1;\n/// Most (`max_unsaid`); none by default.\nfield: u64,\n";
        let found = bounds(text, "f.rs");
        let rows: Vec<_> =
            found.iter().map(|it| (it.name.as_str(), it.value.as_str(), it.says.as_str())).collect();
        assert_eq!(
            rows,
            [
                ("max_messages", "4,096", "Most messages"),
                ("max_key", "`256`", "Longest key, in characters"),
                ("max_unsaid", "see there", "Most; none by default"),
            ]
        );
    }

    #[test]
    fn the_page_of_bounds_is_up_to_date() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let written = std::fs::read_to_string(root.join(PAGE)).unwrap_or_default();
        assert!(written == page(root).unwrap(), "run `cargo xtask docs`");
    }
}
