//! A document written into the text that it came from: what differs is put right where it stands, and nothing else moves.
//!
//! It knows no key but `name`, by which items of lists are told apart. Comments, order, quotes and blank lines outside of what
//! differs stay byte for byte; a comment inside a value that is replaced whole goes with it. **Invariant:** the text that
//! comes out is read as the document; where that cannot be had by edits, the document is written anew.

use super::Document;
use super::layout::{Laid, Parts, layout};
use super::write;
use crate::read::yaml::{Entry, Kind, Node};
use std::ops::Range;

/// Most pairs of items that are compared to tell which items of a list stayed.
const MOST_PAIRS: usize = 4_000_000;

impl Document {
    /// The text changed into this document: comments and style outside of what differs are kept.
    #[must_use]
    pub fn rewrite(&self, text: &str) -> String {
        let (mark, body) = text.strip_prefix('\u{feff}').map_or(("", text), |rest| ("\u{feff}", rest));
        let edited =
            self.edit(body).filter(|edited| Self::parse(edited).is_ok_and(|read| same(&read.0, &self.0)));
        edited.map_or_else(|| self.to_yaml(), |edited| format!("{mark}{edited}"))
    }

    fn edit(&self, text: &str) -> Option<String> {
        let old = Self::parse(text).ok()?;
        let laid = layout(text)?;
        let mut edits = Edits { text, found: Vec::new() };
        edits.value(&laid, (&old.0, &self.0), Slot::Root)?;
        edits.apply()
    }
}

/// Whether two values say the same: bare and quoted text is the same where it can be nothing but text.
fn same(left: &Node, right: &Node) -> bool {
    match (&left.kind, &right.kind) {
        (Kind::Map(left), Kind::Map(right)) => {
            let finds =
                |entry: &Entry| right.iter().any(|it| it.key == entry.key && same(&entry.value, &it.value));
            left.len() == right.len() && left.iter().all(finds)
        }
        (Kind::Seq(left), Kind::Seq(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Kind::Scalar { text: left_text, plain }, Kind::Scalar { text, plain: other }) => {
            let alike = left_text == text && (plain == other || write::is_word(text));
            alike || left.is_null() && right.is_null()
        }
        _ => false,
    }
}

/// Where a value stands.
#[derive(Debug, Clone, Copy)]
enum Slot {
    /// It is the document.
    Root,
    /// Behind a key whose colon ends at that byte; the key has so many blanks before it.
    Entry { colon: usize, indent: usize },
    /// Behind a dash at that byte.
    Item { dash: usize },
    /// Within braces or brackets.
    Flow,
}

struct Edits<'t> {
    text: &'t str,
    found: Vec<(Range<usize>, String)>,
}

impl Edits<'_> {
    /// The text with every edit made; `None` where two of them meet.
    fn apply(mut self) -> Option<String> {
        self.found.sort_by_key(|(range, _)| (range.start, range.end));
        let (mut out, mut at) = (String::with_capacity(self.text.len()), 0);
        for (range, fresh) in &self.found {
            out.push_str(self.text.get(at..range.start)?);
            out.push_str(fresh);
            at = range.end;
        }
        out.push_str(self.text.get(at..)?);
        Some(out)
    }

    fn push(&mut self, range: Range<usize>, fresh: String) -> Option<()> {
        self.found.push((range, fresh));
        Some(())
    }

    /// Puts a value right; `None` where that takes more than edits.
    fn value(&mut self, laid: &Laid, (old, new): (&Node, &Node), slot: Slot) -> Option<()> {
        if same(old, new) {
            return Some(());
        }
        let made = self.found.len();
        let inside = match (&laid.parts, &old.kind, &new.kind) {
            (Parts::Map(places), Kind::Map(old), Kind::Map(new)) => self.map(places, old, new),
            (Parts::Seq(places), Kind::Seq(old), Kind::Seq(new)) => self.seq(places, old, new),
            (Parts::Flow(places), Kind::Map(old), Kind::Map(new)) => {
                let keys = |entries: &[Entry]| entries.iter().map(|it| it.key.clone()).collect::<Vec<_>>();
                let values =
                    |entries: &[Entry]| entries.iter().map(|it| it.value.clone()).collect::<Vec<_>>();
                (keys(old) == keys(new))
                    .then_some(())
                    .and_then(|()| self.flow(places, &values(old), &values(new)))
            }
            (Parts::Flow(places), Kind::Seq(old), Kind::Seq(new)) => self.flow(places, old, new),
            _ => None,
        };
        inside.or_else(|| {
            self.found.truncate(made);
            self.put(laid, new, slot)
        })
    }

    fn flow(&mut self, places: &[Laid], old: &[Node], new: &[Node]) -> Option<()> {
        let fits = places.len() == old.len() && old.len() == new.len();
        let mut all = places.iter().zip(old.iter().zip(new)).filter(|_| fits);
        fits.then_some(())?;
        all.try_for_each(|(laid, pair)| self.value(laid, pair, Slot::Flow))
    }

    fn map(&mut self, places: &[(Range<usize>, Laid)], old: &[Entry], new: &[Entry]) -> Option<()> {
        (places.len() == old.len()).then_some(())?;
        let indent = self.column(places.first()?.0.start);
        let mut last = None;
        for ((key, laid), entry) in places.iter().zip(old) {
            let colon = self.colon(key)?;
            let end = laid.range.end.max(colon);
            match new.iter().find(|it| it.key == entry.key) {
                Some(kept) => {
                    self.value(laid, (&entry.value, &kept.value), Slot::Entry { colon, indent })?;
                    last = Some(end);
                }
                None => self.remove(key.start, end)?,
            }
        }
        let place = self.line_end(last?);
        for fresh in new.iter().filter(|it| old.iter().all(|known| known.key != it.key)) {
            let line = write::entry(&fresh.key, &fresh.value);
            self.push(place..place, format!("\n{}{}", blanks(indent), hang(&line, indent)))?;
        }
        Some(())
    }

    fn seq(&mut self, places: &[Laid], old: &[Node], new: &[Node]) -> Option<()> {
        (places.len() == old.len()).then_some(())?;
        let kept = kept(old, new)?;
        let first = kept.first()?.0;
        let dashes: Option<Vec<usize>> = places.iter().map(|laid| self.dash(laid.range.start)).collect();
        let dashes = dashes?;
        for (at, (laid, dash)) in places.iter().zip(&dashes).enumerate() {
            if kept.iter().all(|(from, _)| *from != at) {
                self.remove(*dash, laid.range.end.max(dash + 1))?;
            }
        }
        let indent = self.column(*dashes.get(first)?);
        let mut place = self.line_start(*dashes.get(first)?)?;
        let mut is_before = true;
        let mut stayed = kept.iter().peekable();
        for (to, item) in new.iter().enumerate() {
            if let Some((from, _)) = stayed.next_if(|(_, at)| *at == to) {
                let (laid, dash) = (places.get(*from)?, *dashes.get(*from)?);
                self.value(laid, (old.get(*from)?, item), Slot::Item { dash })?;
                (place, is_before) = (self.line_end(laid.range.end.max(dash + 1)), false);
                continue;
            }
            let line = format!("{}- {}", blanks(indent), hang(&write::block(item), indent + 2));
            let fresh = if is_before { format!("{line}\n") } else { format!("\n{line}") };
            self.push(place..place, fresh)?;
        }
        Some(())
    }

    /// Another value in the place of one.
    fn put(&mut self, laid: &Laid, new: &Node, slot: Slot) -> Option<()> {
        let written = write::block(new);
        match slot {
            Slot::Root => None,
            Slot::Flow => self.push(laid.range.clone(), write::flow(new)),
            Slot::Item { dash } => {
                let start = laid.range.start.max(dash + 1);
                let blank = if laid.range.is_empty() { " " } else { "" };
                let column = if blank.is_empty() { self.column(start) } else { self.column(dash) + 2 };
                self.push(start..laid.range.end.max(start), format!("{blank}{}", hang(&written, column)))
            }
            Slot::Entry { colon, indent } => {
                let end = laid.range.end.max(colon);
                let is_below = self.text.get(colon..laid.range.start.max(colon))?.contains('\n');
                match (write::is_deep(new), is_below && !laid.range.is_empty()) {
                    // Comments between the key and its value stay.
                    (true, true) => {
                        let start = self.line_start(laid.range.start)?;
                        self.push(start..end, deeper(&written, indent + 2))
                    }
                    (true, false) => self.push(colon..end, format!("\n{}", deeper(&written, indent + 2))),
                    (false, _) => self.push(colon..end, format!(" {}", hang(&written, indent + 2))),
                }
            }
        }
    }

    /// Takes whole lines out: those of a key or a dash and its value. `None` where something stands before it on its line.
    fn remove(&mut self, start: usize, end: usize) -> Option<()> {
        let start = self.line_start(start)?;
        let end = (self.line_end(end) + 1).min(self.text.len());
        self.push(start..end, String::new())
    }

    /// Where the line begins on which nothing but blanks stand before that byte.
    fn line_start(&self, at: usize) -> Option<usize> {
        let line = self.text.get(..at)?.rfind('\n').map_or(0, |line| line + 1);
        self.text.get(line..at)?.chars().all(|c| c == ' ').then_some(line)
    }

    fn line_end(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        at + rest.find('\n').unwrap_or(rest.len())
    }

    /// Bytes before that one on its line: what stands there in block style is blanks and dashes.
    fn column(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or_default();
        at - before.rfind('\n').map_or(0, |line| line + 1)
    }

    /// Behind the colon of a key.
    fn colon(&self, key: &Range<usize>) -> Option<usize> {
        let rest = self.text.get(key.end..)?;
        let blanks = rest.len() - rest.trim_start_matches(' ').len();
        rest.get(blanks..)?.starts_with(':').then_some(key.end + blanks + 1)
    }

    /// The dash before an item that begins at that byte.
    fn dash(&self, at: usize) -> Option<usize> {
        let before = self.text.get(..at)?.trim_end_matches([' ', '\n', '\r']);
        before.ends_with('-').then(|| before.len() - 1)
    }
}

/// Which items stay, as pairs of places that rise: equal ones, and ones of the same name, as many as can be.
/// Source: Hirschberg 1975, longest common subsequence, here by the full table.
fn kept(old: &[Node], new: &[Node]) -> Option<Vec<(usize, usize)>> {
    let width = new.len() + 1;
    (old.len() * width <= MOST_PAIRS).then_some(())?;
    let mut best = vec![0_usize; (old.len() + 1) * width];
    let of =
        |best: &[usize], from: usize, to: usize| best.get(from * width + to).copied().unwrap_or_default();
    for (from, left) in old.iter().enumerate().rev() {
        for (to, right) in new.iter().enumerate().rev() {
            let longest = if is_same_item(left, right) {
                of(&best, from + 1, to + 1) + 1
            } else {
                of(&best, from + 1, to).max(of(&best, from, to + 1))
            };
            if let Some(slot) = best.get_mut(from * width + to) {
                *slot = longest;
            }
        }
    }
    let (mut from, mut to, mut found) = (0, 0, Vec::new());
    while let (Some(left), Some(right)) = (old.get(from), new.get(to)) {
        if is_same_item(left, right) {
            found.push((from, to));
            (from, to) = (from + 1, to + 1);
        } else if of(&best, from + 1, to) >= of(&best, from, to + 1) {
            from += 1;
        } else {
            to += 1;
        }
    }
    Some(found)
}

fn is_same_item(left: &Node, right: &Node) -> bool {
    let name = |node: &Node| node.entry("name").and_then(|it| it.value.text()).map(str::to_owned);
    same(left, right) || name(left).is_some_and(|left| name(right) == Some(left))
}

fn blanks(count: usize) -> String {
    " ".repeat(count)
}

/// Every line but the first so much deeper; empty lines stay empty.
fn hang(text: &str, indent: usize) -> String {
    let mut lines = text.split('\n');
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |mut out, line| {
        out.push('\n');
        if !line.is_empty() {
            out.push_str(&blanks(indent));
            out.push_str(line);
        }
        out
    })
}

/// Every line so much deeper.
fn deeper(text: &str, indent: usize) -> String {
    format!("{}{}", blanks(indent), hang(text, indent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    const FILE: &str = "\
# The shop's router.
version: v0.3          # of the contract

providers:
  defaults: { default_model: 'small', level: 0.30 }   # cheap first
  models:
    # runs in the cellar
    - name: small
      backend_refs:
        - endpoint: \"10.0.0.1:8000\"   # port of the proxy
          weight: 1
    # rented
    - name: large
      price: 1e1

routing:
  prompt: |
    One.

      Two: # no comment
  decisions:
  - name: a   # first
    words: [no, yes, 08]
  - name: b

# the end
";

    fn patched(text: &str, patch: &Value) -> String {
        let mut document = Document::parse(text).unwrap();
        document.merge(patch);
        document.rewrite(text)
    }

    /// The file with some of its text replaced, as a person would do it.
    fn by_hand(changes: &[(&str, &str)]) -> String {
        changes.iter().fold(FILE.to_owned(), |text, (from, to)| {
            assert_eq!(text.matches(from).count(), 1, "{from}");
            text.replace(from, to)
        })
    }

    #[test]
    fn an_empty_patch_moves_no_byte() {
        assert_eq!(patched(FILE, &json!({})), FILE);
        assert_eq!(patched(FILE, &json!({"version": "v0.3"})), FILE);
    }

    #[test]
    fn a_patch_changes_what_it_names_and_keeps_comments_order_and_quotes() {
        for (patch, changes) in [
            (json!({"version": "v0.4"}), vec![("v0.3   ", "v0.4   ")]),
            (json!({"providers": {"defaults": {"default_model": "a, b"}}}), vec![("'small'", "\"a, b\"")]),
            (json!({"providers": {"defaults": {"level": 2}}}), vec![("0.30", "2")]),
            (
                json!({"routing": {"prompt": "Three."}}),
                vec![("|\n    One.\n\n      Two: # no comment", "Three.")],
            ),
            (
                json!({"routing": {"prompt": "Three.\nFour.\n"}}),
                vec![("    One.\n\n      Two: # no comment", "    Three.\n    Four.")],
            ),
            (
                json!({"routing": {"strategy": "priority"}}),
                vec![("  - name: b\n", "  - name: b\n  strategy: priority\n")],
            ),
            (json!({"global": {"x": [1]}}), vec![("  - name: b\n", "  - name: b\nglobal:\n  x:\n    - 1\n")]),
            (json!({"version": null}), vec![("version: v0.3          # of the contract\n", "")]),
            (json!({"version": {"a": "b"}}), vec![("version: v0.3 ", "version:\n  a: b ")]),
            (
                json!({"providers": {"models": null}}),
                vec![(
                    "  models:\n    # runs in the cellar\n    - name: small\n      backend_refs:\n        - endpoint: \"10.0.0.1:8000\"   \
                 # port of the proxy\n          weight: 1\n    # rented\n    - name: large\n      price: 1e1\n",
                    "",
                )],
            ),
        ] {
            assert_eq!(patched(FILE, &patch), by_hand(&changes), "{patch}");
        }
    }

    #[test]
    fn items_of_a_list_that_is_replaced_stay_by_their_names() {
        let decisions = |value: Value| json!({"routing": {"decisions": value}});
        let a = json!({"name": "a", "words": ["no", "yes", "08"]});
        let mut words = Document::parse(FILE).unwrap().to_json()["routing"]["decisions"][0].clone();
        words["words"][0] = json!("maybe");
        for (value, changes) in [
            (json!([words, {"name": "b"}]), vec![("[no, yes, 08]", "[maybe, yes, 08]")]),
            (
                json!([words, {"name": "c"}, {"name": "b"}]),
                vec![("[no, yes, 08]", "[maybe, yes, 08]"), ("  - name: b\n", "  - name: c\n  - name: b\n")],
            ),
            (
                json!([{"name": "b", "priority": 1}]),
                vec![
                    ("  - name: a   # first\n    words: [no, yes, 08]\n", ""),
                    ("  - name: b\n", "  - name: b\n    priority: 1\n"),
                ],
            ),
        ] {
            let after = patched(FILE, &decisions(value.clone()));
            // The words of a JSON patch are text, where the file's are bare: they are put in quotes.
            let quoted = |text: String| text.replace("[maybe, yes, 08]", "[maybe, \"yes\", \"08\"]");
            assert_eq!(after, quoted(by_hand(&changes)), "{value}");
        }
        assert!(patched(FILE, &decisions(json!([a]))).contains("name: a   # first"));
    }

    #[test]
    fn a_text_that_ends_in_blanks_keeps_them() {
        let text = "a:\n  a: |-\n    a\n     \nz: 1 # kept\n";
        let after = patched(text, &json!({"a": {"b": 0}}));
        assert_eq!(after, "a:\n  a: |-\n    a\n     \n  b: 0\nz: 1 # kept\n");
    }

    #[test]
    fn what_edits_cannot_do_is_written_anew() {
        // The anchor's value is changed, and what repeats it is not.
        let text = "# c\na: &x {k: 1}\nb: *x\n";
        let after = patched(text, &json!({"a": {"k": 2}}));
        assert_eq!(Document::parse(&after).unwrap().to_json(), json!({"a": {"k": 2}, "b": {"k": 1}}));
        // A whole document of another kind.
        assert_eq!(Document::of_json(&json!([1])).rewrite("a: 1\n"), "- 1\n");
        assert_eq!(Document::of_json(&json!({"a": 2})).rewrite("\u{feff}a: 1 # c\n"), "\u{feff}a: 2 # c\n");
    }

    fn values() -> impl Strategy<Value = Value> {
        let text = prop_oneof!["[a-c]{0,2}", "[ \\n:#|>\"'-]{0,6}", Just("no".to_owned()), "[a-z \\n]{0,9}"];
        let leaf =
            prop_oneof![Just(Value::Null), any::<i8>().prop_map(Value::from), text.prop_map(Value::from)];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[a-d]|name", inner), 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_rewritten_is_read_as_the_document(from in values(), to in values()) {
            let old = Document::of_json(&json!({"a": from, "z": 1})).to_yaml().replace("z: 1", "z: 1 # kept");
            let mut new = Document::parse(&old).unwrap();
            new.merge(&json!({"a": to}));
            let text = new.rewrite(&old);
            prop_assert_eq!(Document::parse(&text).unwrap().to_json(), new.to_json(), "{}", text);
            prop_assert!(text.contains("z: 1 # kept"), "{old}\n->\n{text}");
        }
    }
}
