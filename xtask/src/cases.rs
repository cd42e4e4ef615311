//! `cargo xtask cases`: which reports of other gateways' users are pinned by which of our tests.
//!
//! A case is a heading `### D03 …` of the collection; a test carries it when its name begins with the case's id, as
//! `d03_…` or `h01_h04_…` do, in Rust, in a data-driven test's file (`### d03_…`) or in an acceptance suite. It knows no
//! test's content. **Invariant:** every case of the collection is listed once.

use crate::say;
use anyhow::{Context, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Where tests stand.
const ROOMS: [&str; 3] = ["crates", "xtask", "acceptance"];

/// Lists every case with its tests; `words` are the flags.
pub(crate) fn run(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    let folder = match words {
        [] => root.join("../shared"),
        ["--data", folder] => root.join(folder),
        _ => bail!("only --data DIR is known"),
    };
    let file = folder.join("cases/user_cases.md");
    let text = std::fs::read_to_string(&file).with_context(|| {
        format!("the collection is not at {}: name its folder with --data", file.display())
    })?;
    let mut carried: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for room in ROOMS {
        gather(&root.join(room), &mut carried)?;
    }
    report(&cases(&text), &carried);
    Ok(())
}

/// Id and title of every case, in order.
fn cases(text: &str) -> Vec<(String, &str)> {
    let heading = |line| str::strip_prefix(line, "### ")?.split_once(' ');
    let is_case = |(id, title): (&str, _)| id_of(id).filter(|it| it.len() == id.len()).map(|id| (id, title));
    text.lines().filter_map(heading).filter_map(is_case).collect()
}

fn report(cases: &[(String, &str)], carried: &BTreeMap<String, BTreeSet<String>>) {
    let mut sections: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (id, title) in cases {
        let tests = carried.get(id);
        let count = sections.entry(id.get(..1).unwrap_or_default()).or_default();
        count.0 += usize::from(tests.is_some());
        count.1 += 1;
        say(&format!("{} {title}", id.to_uppercase()));
        match tests {
            Some(tests) => tests.iter().for_each(|test| say(&format!("    {test}"))),
            None => say("    — no test"),
        }
    }
    for (section, (with, all)) in sections {
        say(&format!("{}: {with} of {all} cases have a test", section.to_uppercase()));
    }
}

/// The tests below a folder, by the cases that their names begin with.
fn gather(folder: &Path, carried: &mut BTreeMap<String, BTreeSet<String>>) -> anyhow::Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
        if path.is_dir() {
            let is_source = !path.ends_with("target") && !path.ends_with("node_modules");
            if is_source {
                gather(&path, carried)?;
            }
        } else if ["rs", "txt", "py", "mjs", "js", "ts"].contains(&extension) {
            for test in std::fs::read_to_string(&path)?.lines().filter_map(test_name) {
                for id in ids_of(test) {
                    carried.entry(id).or_default().insert(test.to_owned());
                }
            }
        }
    }
    Ok(())
}

/// The name of a test that a line begins.
fn test_name(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    let rest = ["fn ", "### ", "def test_", "function "].iter().find_map(|word| line.strip_prefix(word));
    let scripted = || {
        let (_, rest) = line.split_once("test(")?;
        rest.get(1..)
    };
    let rest = rest.or_else(scripted)?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    rest.get(..end)
}

/// The cases that a test's name begins with: `h01_h04_a_refused_text` carries two.
fn ids_of(test: &str) -> Vec<String> {
    let parts = test.split('_');
    parts.map_while(|part| id_of(part).filter(|id| id.len() == part.len())).collect()
}

/// A letter and two digits at the beginning, in small letters.
fn id_of(word: &str) -> Option<String> {
    let id = word.get(..3)?.to_ascii_lowercase();
    let (letter, digits) = id.split_at_checked(1)?;
    let fits = letter.bytes().all(|b| b.is_ascii_lowercase()) && digits.bytes().all(|b| b.is_ascii_digit());
    fits.then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_headings_and_tests_carry_what_their_names_begin_with() {
        let text = "## D. Routing\n### D01 One thing\n- Source: x\n### D02 Another\n### Remarks of mine\n";
        let found: Vec<String> = cases(text).into_iter().map(|(id, _)| id).collect();
        assert_eq!(found, ["d01", "d02"]);
        for (line, ids) in [
            ("    async fn h01_h04_a_refused_text() {", vec!["h01", "h04"]),
            ("### d07_operator_xor", vec!["d07"]),
            ("def test_a03_two_choices(client):", vec!["a03"]),
            ("  test('b02_lists', async () => {", vec!["b02"]),
            ("fn d01x_is_no_case() {", vec![]),
            ("fn of_d01() {", vec![]),
        ] {
            assert_eq!(test_name(line).map(ids_of).unwrap_or_default(), ids, "{line}");
        }
        assert_eq!(test_name("let x = 1;"), None);
    }
}
