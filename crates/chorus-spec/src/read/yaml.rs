//! YAML text as a tree that remembers where everything was written.
//!
//! It knows no key of the contract. Scalars keep their text as written: `no`, `1e3` and `08` stay what they are until
//! a reader asks for a number or a truth value. **Invariant:** depth and size are bounded before anything recurses.

use super::report::Report;
use crate::Place;
use crate::diagnostic::code;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Largest file, in bytes (the contract's own bound of a packaged `config.yaml`).
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Deepest nesting of lists and mappings.
const MAX_DEPTH: usize = 64;
/// Most nodes, with every alias counted as what it stands for.
const MAX_NODES: usize = 500_000;

/// One value.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// Where it begins.
    pub(crate) place: Place,
    /// What it is.
    pub(crate) kind: Kind,
}

/// What a value is.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// Keys in the order written, each once.
    Map(Vec<Entry>),
    /// Items in order.
    Seq(Vec<Node>),
    /// Text, as written.
    Scalar {
        /// The text, unescaped and unfolded.
        text: String,
        /// Whether it stood bare; only bare text can be a number, a truth value or null.
        plain: bool,
    },
}

/// One key of a mapping.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) place: Place,
    pub(crate) value: Node,
}

impl Node {
    /// Whether it is nothing: `key:`, `~` or `null`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar { text, plain: true } if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The entry of that key.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.kind {
            Kind::Map(entries) => entries.iter().find(|e| e.key == key),
            _ => None,
        }
    }

    /// The bare or quoted text of a scalar that is not null.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar { text, .. } if !self.is_null() => Some(text),
            _ => None,
        }
    }

    /// `text`, a list or a mapping: what a message calls this value.
    pub(crate) fn shape(&self) -> &'static str {
        match &self.kind {
            Kind::Map(_) => "a mapping",
            Kind::Seq(_) => "a list",
            Kind::Scalar { .. } if self.is_null() => "nothing",
            Kind::Scalar { .. } => "a single value",
        }
    }

    fn size(&self) -> usize {
        1 + match &self.kind {
            Kind::Map(entries) => entries.iter().map(|e| e.value.size()).sum(),
            Kind::Seq(items) => items.iter().map(Self::size).sum(),
            Kind::Scalar { .. } => 0,
        }
    }

    fn depth(&self) -> usize {
        1 + match &self.kind {
            Kind::Map(entries) => entries.iter().map(|e| e.value.depth()).max().unwrap_or(0),
            Kind::Seq(items) => items.iter().map(Self::depth).max().unwrap_or(0),
            Kind::Scalar { .. } => 0,
        }
    }
}

/// Reads one document. `None` when the text is not YAML within bounds; the report says why.
pub(crate) fn parse(text: &str, report: &Report) -> Option<Node> {
    let fail = |fault: Fault| {
        report.error(code::YAML, fault.place, &fault.path, fault.message, fault.help.map(str::to_owned));
    };
    if text.len() > MAX_BYTES {
        let message = format!("the file has {} bytes; {MAX_BYTES} are the most", text.len());
        fail(Fault { place: START, path: String::new(), message, help: None });
        return None;
    }
    let mut builder = Builder { report, open: Vec::new(), anchors: BTreeMap::new(), nodes: 0, root: None };
    let mut parser = Parser::new_from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
    while let Some(event) = parser.next_event() {
        let step = match event {
            Ok((event, span)) => builder.take(event, place_of(span.start)),
            Err(error) => {
                let mut fault = builder.fault(place_of(*error.marker()), error.info());
                fault.help =
                    Some("check the indentation, quotes and brackets of this line and the one above it");
                Err(fault)
            }
        };
        if let Err(fault) = step {
            fail(fault);
            return None;
        }
    }
    if builder.root.is_none() {
        fail(Fault {
            place: START,
            path: String::new(),
            message: "the file is empty".to_owned(),
            help: None,
        });
    }
    builder.root
}

const START: Place = Place { line: 1, column: 1 };

fn place_of(marker: Marker) -> Place {
    Place { line: marker.line().max(1), column: marker.col() + 1 }
}

/// Why the text is refused.
struct Fault {
    place: Place,
    path: String,
    message: String,
    help: Option<&'static str>,
}

/// A list or mapping that is not closed yet.
struct Open {
    place: Place,
    anchor: usize,
    filling: Filling,
}

enum Filling {
    Map { entries: Vec<Entry>, key: Option<(String, Place)> },
    Seq(Vec<Node>),
}

struct Builder<'r> {
    report: &'r Report,
    open: Vec<Open>,
    anchors: BTreeMap<usize, Node>,
    nodes: usize,
    root: Option<Node>,
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, place: Place) -> Result<(), Fault> {
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(self.fault(place, "the file holds a second document; one is read"))
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.check_tag(tag.as_ref(), place)?;
                let kind = Kind::Scalar {
                    text: text.into_owned(),
                    plain: style == ScalarStyle::Plain && tag.is_none(),
                };
                self.put(Node { place, kind }, anchor)
            }
            Event::MappingStart(anchor, tag) => {
                self.check_tag(tag.as_ref(), place)?;
                self.begin(place, anchor, Filling::Map { entries: Vec::new(), key: None })
            }
            Event::SequenceStart(anchor, tag) => {
                self.check_tag(tag.as_ref(), place)?;
                self.begin(place, anchor, Filling::Seq(Vec::new()))
            }
            Event::MappingEnd | Event::SequenceEnd => self.end(),
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(node) => {
                    let node = node.clone();
                    if self.open.len() + node.depth() > MAX_DEPTH {
                        return Err(self.fault(place, &format!("nesting is deeper than {MAX_DEPTH}")));
                    }
                    self.nodes += node.size();
                    self.put(node, 0)
                }
                None => Err(self.fault(place, "this alias stands inside the value that it names")),
            },
            _ => Ok(()),
        }
    }

    fn check_tag(&self, tag: Option<&Cow<'_, Tag>>, place: Place) -> Result<(), Fault> {
        match tag {
            Some(tag) if !tag.is_yaml_core_schema() => {
                Err(self.fault(place, &format!("the tag `{tag}` means nothing here")))
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, place: Place, anchor: usize, filling: Filling) -> Result<(), Fault> {
        if self.open.len() >= MAX_DEPTH {
            return Err(self.fault(place, &format!("nesting is deeper than {MAX_DEPTH}")));
        }
        self.open.push(Open { place, anchor, filling });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Fault> {
        let Some(Open { place, anchor, filling }) = self.open.pop() else {
            return Ok(());
        };
        let kind = match filling {
            Filling::Map { entries, .. } => Kind::Map(entries),
            Filling::Seq(items) => Kind::Seq(items),
        };
        self.put(Node { place, kind }, anchor)
    }

    /// Puts a finished value where it belongs: as a key, as a key's value, as an item, or as the document.
    fn put(&mut self, node: Node, anchor: usize) -> Result<(), Fault> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(self.fault(
                node.place,
                &format!("the file holds more than {MAX_NODES} values, aliases expanded"),
            ));
        }
        if anchor > 0 {
            self.nodes += node.size();
            self.anchors.insert(anchor, node.clone());
        }
        let path = self.path();
        match self.open.last_mut().map(|open| &mut open.filling) {
            None => self.root = Some(node),
            Some(Filling::Seq(items)) => items.push(node),
            Some(Filling::Map { entries, key }) => match key.take() {
                None => *key = Some(key_of(node, path)?),
                Some((key, place)) => match entries.iter().find(|e| e.key == key) {
                    None => entries.push(Entry { key, place, value: node }),
                    Some(first) => report_duplicate(self.report, first, place, &path),
                },
            },
        }
        Ok(())
    }

    fn fault(&self, place: Place, message: &str) -> Fault {
        Fault { place, path: self.path(), message: message.to_owned(), help: None }
    }

    /// The dotted path of the value being read.
    fn path(&self) -> String {
        let mut path = String::new();
        for open in &self.open {
            match &open.filling {
                Filling::Map { key: Some((key, _)), .. } => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(key);
                }
                Filling::Map { key: None, .. } => {}
                Filling::Seq(items) => path.push_str(&format!("[{}]", items.len())),
            }
        }
        path
    }
}

fn key_of(node: Node, path: String) -> Result<(String, Place), Fault> {
    let (message, help) = match node.kind {
        Kind::Scalar { text, plain: true } if text == "<<" => {
            ("merge keys are not read", Some("write the keys out, or alias the whole value"))
        }
        Kind::Scalar { text, .. } => return Ok((text, node.place)),
        _ => ("a key must be a single value", None),
    };
    Err(Fault { place: node.place, path, message: message.to_owned(), help })
}

fn report_duplicate(report: &Report, first: &Entry, place: Place, path: &str) {
    let message = format!(
        "`{}` stands twice in this mapping: on line {} and on line {}",
        first.key, first.place.line, place.line
    );
    report.error(code::DUPLICATE_KEY, place, path, message, Some("keep one of them".to_owned()));
}
