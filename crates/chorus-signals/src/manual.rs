//! The manual of signals: one page a family, and the index. `cargo xtask docs` writes them.
//!
//! It knows texts; the facts of a page come from the family's row of the table ([`crate::ALL`]). **Invariant:** every
//! family of the contract has one page, and its example is a configuration that loads (a test reads each).

mod envelope;
mod guard;
mod learned;
mod textual;

use crate::doc::SignalDoc;
use chorus_spec::Family;
use std::fmt::Write;

/// What a page says beyond the family's row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// The family.
    pub family: Family,
    /// The key under `routing.signals` that lists its rules.
    pub container: &'static str,
    /// What the signal is, in a sentence.
    pub is: &'static str,
    /// The keys of a rule, besides `name` and `description`.
    pub keys: &'static [Key],
    /// How it works: thresholds, confidence, raw; paragraphs.
    pub about: &'static str,
    /// Rules as written under `routing.signals`.
    pub example: &'static str,
    /// What the example means.
    pub means: &'static str,
}

/// One key of a rule.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its path in the rule.
    pub path: &'static str,
    /// Its default; `required`, or empty where leaving it out means that it is not used.
    pub default: &'static str,
    /// What it says.
    pub says: &'static str,
}

const fn key(path: &'static str, default: &'static str, says: &'static str) -> Key {
    Key { path, default, says }
}

/// Every page, in the order of [`crate::ALL`].
pub const PAGES: &[Page] = &[
    envelope::AUTHZ,
    textual::CONTEXT,
    textual::CONVERSATION,
    envelope::METADATA,
    envelope::EVENT,
    textual::KEYWORD,
    textual::STRUCTURE,
    textual::LANGUAGE,
    guard::PII,
    learned::EMBEDDING,
    learned::DOMAIN,
    learned::COMPLEXITY,
    learned::KB,
    learned::PREFERENCE,
    learned::REASK,
    learned::CLASSIFIER,
    learned::FACT_CHECK,
    learned::USER_FEEDBACK,
    learned::MODALITY,
    guard::JAILBREAK,
];

/// Every file of the manual, by its path below `docs/`.
#[must_use]
pub fn files() -> Vec<(String, String)> {
    let pages = PAGES.iter().map(|page| (format!("signals/{}.md", page.family), page.render()));
    pages.chain([("signals.md".to_owned(), index())]).collect()
}

const INTRODUCTION: &str = "\
# Signals

A signal is one named fact about a request. A rule in the file gives it a name; decisions, projections and composers
refer to it as `type` and `name`. Each signal is `matched` with a confidence from 0 to 1, `unmatched`, or `absent` with
a reason. Absent is not \"no\": what depends on it is unknown, and an unknown decision never wins.

A live request computes only the signals that its winner depends on, cheapest first. `chorus explain` and
`POST /api/v1/eval` compute all of them.

These pages are generated from the code by `cargo xtask docs`, and a test holds them to it. \"Contract\" is the v0.3
configuration format.
";

const TEXT: &str = "\
## What counts as the user's text

The last user message, its text parts joined. System, developer, assistant and tool text is never part of it, except
where a guard is told to look at the history.

Where a page speaks of \"the task it agrees to\", the signal looks further back when the last message only agrees (\"yes,
go ahead\") and an assistant has spoken: it then reads the newest of the eight user messages before it that says more.

A text of up to 16 KiB is encoded whole, in windows of 256 tokens that overlap by 32. Of a longer one, evenly spaced
excerpts from its first byte to its last are read, so that the cost has a bound and no stretch is ignored.
";

fn index() -> String {
    let mut out = format!("{INTRODUCTION}\n| type | container | measures | cost |\n|---|---|---|---|\n");
    for page in PAGES {
        let measures = page.doc().map_or("", |doc| doc.measures).trim_end_matches('.');
        let (family, container, cost) = (page.family, page.container, crate::cost(page.family));
        let _ = writeln!(out, "| [`{family}`](signals/{family}.md) | `{container}` | {measures} | {cost} |");
    }
    let _ = write!(
        out,
        "\nCost is a tier: 0 free, 1 cheap, 2 some tens of microseconds, 3 an encoder pass, which all signals of a \
         request\nshare. [benchmarks.md](benchmarks.md) has times.\n\n{TEXT}"
    );
    out
}

impl Page {
    fn doc(&self) -> Option<&'static SignalDoc> {
        crate::ALL.iter().find(|doc| doc.family == self.family)
    }

    fn render(&self) -> String {
        let mut out = format!("# {}\n\n{}\n\n", self.family, self.is);
        match self.doc() {
            Some(doc) => {
                for (head, text) in [
                    ("Measures", doc.measures),
                    ("Inputs", doc.inputs),
                    ("Fails when", doc.fails_when),
                    ("Source", doc.source),
                ] {
                    let _ = writeln!(out, "- *{head}:* {text}");
                }
                let _ = writeln!(out, "- *Cost:* tier {} of [the index](../signals.md)", doc.cost);
            }
            None => out.push_str("Known, and not supported by this version.\n"),
        }
        let _ = write!(out, "\n{}\n\n## Keys\n\n`{}[]`:\n\n", self.about.trim(), self.container);
        out.push_str("| key | default | says |\n|---|---|---|\n| `name` | required | what decisions and projections call it |\n");
        for key in self.keys {
            let default = match key.default {
                "" | "required" => key.default.to_owned(),
                default => format!("`{default}`"),
            };
            let _ = writeln!(out, "| `{}` | {default} | {} |", key.path, key.says);
        }
        let _ =
            write!(out, "\n## Example\n\n```yaml\n{}\n```\n\n{}\n", self.example.trim(), self.means.trim());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_a_page_in_the_order_of_the_table() {
        let rules = Family::ALL.iter().filter(|family| **family != Family::Projection);
        for family in rules {
            assert_eq!(PAGES.iter().filter(|page| page.family == *family).count(), 1, "{family}");
        }
        let listed = crate::ALL.iter().map(|doc| doc.family);
        let paged = PAGES
            .iter()
            .map(|page| page.family)
            .filter(|family| crate::cost(*family) < crate::UNSUPPORTED_COST);
        assert!(listed.eq(paged));
    }
}
