//! The page of bounds, made of what stands at each in the source: a sentence, and a name in backquotes and brackets where
//! messages and files call it by one.
//!
//! It knows how bounds are documented, and none of them. **Invariant:** a number is the source's own: the default of the
//! sentence, else the constant below it; and no constant that is called like a bound is left out.

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
is written by `cargo xtask docs` from the source. A name in capitals is a constant's: it cannot be set, and mostly bounds how much of
something is looked at.

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

/// Crates that serve nobody.
const ASIDE: [&str; 1] = ["chorus-testkit"];

/// Every source file of the crates that serve, in order.
fn sources(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            let below = path.strip_prefix(root_of(&path))?.display().to_string();
            if path.is_dir()
                && !below.contains("/tests")
                && !below.contains("/benches")
                && !ASIDE.contains(&below.as_str())
            {
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
    // A function speaks of a bound; its constant or field is the bound.
    let declared = declared(text).into_iter().filter(|(_, line)| !line.contains("fn "));
    declared.filter_map(|(said, line)| bound(&said, line, file)).collect()
}

/// Lines of code with what is said of each before it; those of tests are left.
fn declared(text: &str) -> Vec<(String, &str)> {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
    let mut declared = Vec::new();
    let mut said = String::new();
    for line in text.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("/// ") {
            said.push_str(words);
            said.push(' ');
        } else if line != "///" && !line.starts_with("#[") {
            declared.push((std::mem::take(&mut said), line));
        }
    }
    declared
}

/// What a line declares, if its documentation makes it a bound: by a name, or, of a constant, by how the sentence begins.
fn bound(said: &str, line: &str, file: &str) -> Option<Bound> {
    let constant = constant(line);
    let (name, default) = match (named(said, constant.is_some()), constant) {
        (Some(named), _) => named,
        (None, Some(constant)) if begins_as_a_bound(said) => (constant.name.to_owned(), None),
        (None, _) => return None,
    };
    let value = default.or_else(|| constant?.value.map(plain)).unwrap_or_else(|| "see there".to_owned());
    Some(Bound { name, value, says: sentence(said), file: file.to_owned() })
}

/// A bound's name and the default beside it: (`name`) or (`name`, default …). A field is one of many; it is a bound where its
/// name says so.
fn named(said: &str, is_constant: bool) -> Option<(String, Option<String>)> {
    let (_, rest) = said.split_once("(`")?;
    let (name, rest) = rest.split_once('`')?;
    let is_bound = name.starts_with("max_") || name.ends_with("_most") || name.ends_with("_timeout");
    let is_name = name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    let (inside, _) = rest.split_once(')')?;
    let default = inside.strip_prefix(", default ").map(str::to_owned);
    let ends = inside.is_empty() || default.is_some();
    ((is_bound || is_constant) && is_name && ends).then(|| (name.to_owned(), default))
}

/// `Most bytes of …`, `Longest …`, `How long … may take`.
fn begins_as_a_bound(said: &str) -> bool {
    let said = sentence(said);
    let first = said.strip_prefix("The ").unwrap_or(&said).split(' ').next().unwrap_or_default();
    let may = (said.starts_with("How long ") || said.starts_with("How old ")) && said.contains(" may ");
    let first = first.to_lowercase();
    ["most", "longest", "largest", "deepest", "greatest", "furthest"].contains(&first.as_str()) || may
}

/// A constant that is a number, a time, or several of them.
#[derive(Debug, Clone, Copy)]
struct Constant<'l> {
    name: &'l str,
    /// `None` where it does not end on its line.
    value: Option<&'l str>,
}

fn constant(line: &str) -> Option<Constant<'_>> {
    let (_, declared) = line.split_once("const ")?;
    let (name, rest) = declared.split_once(": ")?;
    let (kind, value) = rest.split_once(" =")?;
    let kinds = ["usize", "u64", "u32", "u16", "u8", "i64", "Duration"];
    let is_number = kinds.contains(&kind) || kind.starts_with('(');
    is_number.then(|| Constant { name, value: value.trim().strip_suffix(';') })
}

/// A constant's value for people, where that is simple; else as it is written.
fn plain(value: &str) -> String {
    if is_number(value) {
        return grouped(value);
    }
    let time =
        |call: &str, unit: &str| Some(format!("{} {unit}", value.strip_prefix(call)?.strip_suffix(')')?));
    let shifted = |shift: &str, unit: &str| Some(format!("{} {unit}", value.strip_suffix(shift)?));
    time("Duration::from_secs(", "s")
        .or_else(|| time("Duration::from_millis(", "ms"))
        .or_else(|| shifted(" << 10", "KiB").or_else(|| shifted(" * 1024 * 1024 * 1024", "GiB")))
        .or_else(|| shifted(" << 20", "MiB").or_else(|| shifted(" * 1024 * 1024", "MiB")))
        .or_else(|| shifted(" << 30", "GiB").or_else(|| shifted(" * 1024", "KiB")))
        .filter(|told| {
            told.split_once(' ').is_some_and(|(number, unit)| is_number(number) && !unit.contains(' '))
        })
        .unwrap_or_else(|| format!("`{value}`"))
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || b == b'_')
}

/// `4096` and `4_096` as 4,096.
fn grouped(number: &str) -> String {
    let digits: Vec<char> = number.chars().filter(char::is_ascii_digit).collect();
    let groups: Vec<String> = digits.rchunks(3).rev().map(|group| group.iter().collect()).collect();
    groups.join(",")
}

/// The first sentence, without the name and without links.
fn sentence(said: &str) -> String {
    let end = said.find(". ").unwrap_or(said.len());
    let first = said.get(..end).unwrap_or(said);
    let (before, after) = first.split_once("(`").unwrap_or((first, ""));
    let after = after.split_once(')').map_or("", |(_, after)| after);
    format!("{}{after}", before.trim_end())
        .trim()
        .trim_end_matches('.')
        .replace('|', "/")
        .replace("[`", "`")
        .replace("`]", "`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_read_with_its_number() {
        let text = "/// Most messages (`max_messages`, default 4,096).\npub max: usize,\n\
                    /// Longest key, in\n/// characters (`max_key`). More of it.\nconst MAX: usize = 256;\n\
                    /// A word (`other`).\nconst OTHER: usize = 1;\n/// Most (`max_unsaid`); none by default.\nfield: u64,\n";
        let text = &format!(
            "{text}/// Longest name, in characters (see there).\n#[must_use]\nconst LONGEST: u64 = 4096;\n\
             /// How long an answer may take.\nconst TIME: Duration = Duration::from_secs(5);\n\
             /// How long it takes.\nconst TOOK: Duration = Duration::from_secs(5);\n\
             /// Most (`kept_tapes`).\npub const KEPT: usize = 16 << 20;\n/// Most names.\nconst NAMES: &[&str] = &[];\n\
             #[cfg(test)]\nmod tests {{\n/// Most rounds.\nconst ROUNDS: usize = 3;\n"
        );
        let found = bounds(text, "f.rs");
        let rows: Vec<_> =
            found.iter().map(|it| (it.name.as_str(), it.value.as_str(), it.says.as_str())).collect();
        assert_eq!(
            rows,
            [
                ("max_messages", "4,096", "Most messages"),
                ("max_key", "256", "Longest key, in characters"),
                ("other", "1", "A word"),
                ("max_unsaid", "see there", "Most; none by default"),
                ("LONGEST", "4,096", "Longest name, in characters (see there)"),
                ("TIME", "5 s", "How long an answer may take"),
                ("kept_tapes", "16 MiB", "Most"),
            ]
        );
    }

    /// A page that leaves out what is called like a bound is not the page of all of them.
    #[test]
    fn no_constant_that_is_called_like_a_bound_is_left_out() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let words = ["MAX", "MOST", "LONGEST", "LARGEST", "LIMIT", "TIMEOUT"];
        let mut left_out = Vec::new();
        for file in sources(&root.join("crates")).unwrap() {
            let text = std::fs::read_to_string(&file).unwrap();
            for (said, line) in declared(&text) {
                let Some(Constant { name, .. }) = constant(line) else { continue };
                let is_called_so = name.split('_').any(|word| words.contains(&word));
                if is_called_so && bound(&said, line, "").is_none() {
                    left_out.push(format!("{}: {name}", file.display()));
                }
            }
        }
        assert!(left_out.is_empty(), "a sentence that begins with Most or Longest, or a name: {left_out:#?}");
    }

    #[test]
    fn the_page_of_bounds_is_up_to_date() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let written = std::fs::read_to_string(root.join(PAGE)).unwrap_or_default();
        assert!(written == page(root).unwrap(), "run `cargo xtask docs`");
    }
}
