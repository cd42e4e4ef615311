//! Where every value of a YAML text stands, in bytes.
//!
//! It knows no key and no value. It is asked about texts that the reader has taken, whose size and depth are bounded.
//! **Invariant:** a range begins and ends at a character, and a value's range lies within that of the value that holds it.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use std::ops::Range;

/// A value's place.
#[derive(Debug)]
pub(super) struct Laid {
    /// From its first character to behind its last; empty where nothing is written. Comments behind it are outside.
    pub(super) range: Range<usize>,
    /// What it holds.
    pub(super) parts: Parts,
}

/// What a value holds.
#[derive(Debug)]
pub(super) enum Parts {
    /// A mapping in block style: each key's range, and its value.
    Map(Vec<(Range<usize>, Laid)>),
    /// A list in block style.
    Seq(Vec<Laid>),
    /// A mapping in braces or a list in brackets: the values in order.
    Flow(Vec<Laid>),
    /// A single value, an alias, or what has an anchor or a tag.
    Whole,
}

/// The places of a text's values; `None` for a text that is not YAML.
pub(super) fn layout(text: &str) -> Option<Laid> {
    let mut bytes: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    bytes.push(text.len());
    let mut surveyor = Surveyor { text, bytes, open: Vec::new(), root: None };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.ok()?;
        surveyor.take(&event, span)?;
    }
    surveyor.root
}

struct Open {
    is_map: bool,
    start: usize,
    parts: Vec<Laid>,
}

struct Surveyor<'t> {
    text: &'t str,
    /// The byte of each character.
    bytes: Vec<usize>,
    open: Vec<Open>,
    root: Option<Laid>,
}

impl Surveyor<'_> {
    fn take(&mut self, event: &Event<'_>, span: Span) -> Option<()> {
        let range = *self.bytes.get(span.start.index())?..*self.bytes.get(span.end.index())?;
        match event {
            Event::Scalar(_, ScalarStyle::Literal | ScalarStyle::Folded, ..) => {
                self.put(self.block(range.start)?);
            }
            Event::Scalar(..) | Event::Alias(_) => {
                let written = self.text.get(range.clone())?.trim_end();
                self.put(range.start..range.start + written.len());
            }
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                let is_map = matches!(event, Event::MappingStart(..));
                self.open.push(Open { is_map, start: range.start, parts: Vec::new() });
            }
            Event::MappingEnd | Event::SequenceEnd => self.close(range.end)?,
            _ => {}
        }
        Some(())
    }

    /// From a block scalar's sign to the end of its last line that is not empty, given a place in its text. Blanks alone may be
    /// text too, where they are deeper than the line that opens it.
    fn block(&self, inside: usize) -> Option<Range<usize>> {
        let line = self.text.get(..inside)?.rfind('\n')?;
        let above = self.text.get(..line)?.trim_end();
        let opening = above.rfind('\n').map_or(0, |at| at + 1);
        let head = above.get(opening..)?;
        let start = opening + sign(head)?;
        // The lines of the value are deeper than the line that opens it.
        let base = head.find(|c: char| c != ' ')?;
        let mut end = start + self.text.get(start..)?.find('\n').unwrap_or(self.text.len() - start);
        let mut at = end + 1;
        while let Some(line) = self.text.get(at..).filter(|rest| !rest.is_empty()) {
            let line = line.split('\n').next().unwrap_or_default();
            let is_deeper = line.find(|c: char| c != ' ').unwrap_or(line.len()) > base;
            if !is_deeper && !line.trim().is_empty() {
                break;
            }
            if is_deeper {
                end = at + line.len();
            }
            at += line.len() + 1;
        }
        Some(start..end)
    }

    fn put(&mut self, range: Range<usize>) {
        self.add(Laid { range, parts: Parts::Whole });
    }

    fn add(&mut self, laid: Laid) {
        match self.open.last_mut() {
            Some(open) => open.parts.push(laid),
            None => self.root = Some(laid),
        }
    }

    fn close(&mut self, end: usize) -> Option<()> {
        let Open { is_map, start, parts } = self.open.pop()?;
        let first = parts.first().map(|it| it.range.start);
        let last = parts.last().map_or(end, |it| it.range.end);
        let sign = self.text.as_bytes().get(start).copied();
        let pairs = |parts: Vec<Laid>| {
            let mut parts = parts.into_iter();
            let pair = || Some((parts.next()?.range, parts.next()?));
            std::iter::from_fn(pair).collect::<Vec<_>>()
        };
        let laid = match (is_map, sign) {
            (true, Some(b'{')) => {
                let values = pairs(parts).into_iter().map(|(_, value)| value).collect();
                Laid { range: start..end, parts: Parts::Flow(values) }
            }
            (false, Some(b'[')) => Laid { range: start..end, parts: Parts::Flow(parts) },
            (true, _) if first == Some(start) => Laid { range: start..last, parts: Parts::Map(pairs(parts)) },
            // A list that is no deeper than its key begins behind its first dash, for the parser.
            (false, sign) if !matches!(sign, Some(b'&' | b'!')) => {
                let dash =
                    self.text.get(..first?)?.trim_end_matches([' ', '\n', '\r']).len().checked_sub(1)?;
                Laid { range: start.min(dash)..last, parts: Parts::Seq(parts) }
            }
            _ => Laid { range: start..last.max(start), parts: Parts::Whole },
        };
        self.add(laid);
        Some(())
    }
}

/// Where the sign of a block scalar stands that ends a line, a comment aside.
fn sign(line: &str) -> Option<usize> {
    let ends = |after: &str| {
        let rest = after.trim_start_matches(|c: char| matches!(c, '+' | '-') || c.is_ascii_digit());
        rest.trim().is_empty() || rest.trim_start().starts_with('#') && rest.starts_with(' ')
    };
    let found = |(at, _): &(usize, &str)| line.get(at + 1..).is_some_and(ends);
    line.match_indices(['|', '>']).find(found).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written<'t>(text: &'t str, laid: &Laid) -> &'t str {
        text.get(laid.range.clone()).unwrap()
    }

    #[test]
    fn values_stand_where_they_are_written() {
        let text =
            "a: über # c\nb:\n  - 'x'\n  - {k: [1, 2], l: z}\n# e\nt: |\n  one\n\n  two\n\n# f\nn:\nz: 1\n";
        let root = layout(text).unwrap();
        let Parts::Map(entries) = &root.parts else { panic!("{root:?}") };
        let found: Vec<(&str, &str)> = entries
            .iter()
            .map(|(key, value)| (text.get(key.clone()).unwrap(), written(text, value)))
            .collect();
        assert_eq!(
            found,
            [
                ("a", "über"),
                ("b", "- 'x'\n  - {k: [1, 2], l: z}"),
                ("t", "|\n  one\n\n  two"),
                ("n", ""),
                ("z", "1")
            ]
        );
        let Parts::Seq(items) = &entries[1].1.parts else { panic!("{entries:?}") };
        let Parts::Flow(values) = &items[1].parts else { panic!("{items:?}") };
        assert_eq!(values.iter().map(|it| written(text, it)).collect::<Vec<_>>(), ["[1, 2]", "z"]);
    }

    #[test]
    fn what_has_an_anchor_is_one_piece() {
        let text = "a: &x\n  k: 1\nb: *x\nc: &y {k: 1}\n";
        let root = layout(text).unwrap();
        let Parts::Map(entries) = &root.parts else { panic!("{root:?}") };
        assert_eq!(entries.len(), 3);
        assert!(matches!(entries[1].1.parts, Parts::Whole));
        assert!(layout("a: [").is_none());
    }
}
