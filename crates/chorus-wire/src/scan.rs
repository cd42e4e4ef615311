//! Where the values of a JSON text begin and end, found in one pass.
//!
//! It knows the grammar (RFC 8259) and no meaning; it copies nothing. **Invariant:** what it accepts, `serde_json`
//! accepts too, at any depth. It has no words for what it refuses: `serde_json` finds them.

use memchr::memchr2;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::ops::Range;

/// The key of a field, as written between its quotation marks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key<'a> {
    written: &'a str,
    escaped: bool,
}

impl<'a> Key<'a> {
    /// Where it stands in the text that it was read from; `None` when it holds escapes.
    pub(crate) fn place(self, text: &str) -> Option<Range<usize>> {
        let start = (self.written.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
        (!self.escaped).then(|| start..start + self.written.len())
    }

    /// The key itself; `None` for half a surrogate pair.
    pub(crate) fn read(self) -> Option<Cow<'a, str>> {
        if !self.escaped {
            return Some(Cow::Borrowed(self.written));
        }
        serde_json::from_str(&format!("\"{}\"", self.written)).ok().map(Cow::Owned)
    }
}

/// Why fields cannot be picked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PickFault {
    /// It is another value, or a list.
    #[error("expected an object")]
    NotAnObject,
    /// Two readers could disagree about it.
    #[error("duplicate field `{0}`")]
    Duplicate(&'static str),
}

/// Fields of an object, each `None` when it is absent or `null`.
pub(crate) type Picked<'a, const N: usize> = Result<[Option<&'a str>; N], PickFault>;

/// Shows every field of an object to `field`; `None` when the text is no object or `field` says so.
pub(crate) fn object<'a>(text: &'a str, field: impl FnMut(Key<'a>, &'a str) -> Option<()>) -> Option<()> {
    let mut scan = Scan::new(text);
    scan.fields(field)?;
    scan.end()
}

/// Those fields of an object.
pub(crate) fn pick<'a, const N: usize>(text: &'a str, names: [&'static str; N]) -> Picked<'a, N> {
    let mut scan = Scan::new(text);
    let picked = scan.picked(names).ok_or(PickFault::NotAnObject)?;
    scan.end().ok_or(PickFault::NotAnObject)?;
    picked
}

/// Shows every element of a list to `row`, and those fields of it; `None` when the text is no list.
pub(crate) fn rows<'a, const N: usize>(
    text: &'a str,
    names: [&'static str; N],
    mut row: impl FnMut(&'a str, Picked<'a, N>),
) -> Option<()> {
    let mut scan = Scan::new(text);
    scan.take(b'[')?;
    let mut more = !scan.ends(b']');
    while more {
        let start = scan.at;
        let picked = if scan.peek() == Some(b'{') {
            scan.picked(names)?
        } else {
            scan.value()?;
            Err(PickFault::NotAnObject)
        };
        row(text.get(start..scan.at)?, picked);
        more = scan.goes_on(b']')?;
    }
    scan.end()
}

/// Shows every element of a list to `element`; `None` when the text is no list.
pub(crate) fn list<'a>(text: &'a str, mut element: impl FnMut(&'a str)) -> Option<()> {
    let mut scan = Scan::new(text);
    scan.take(b'[')?;
    let mut more = !scan.ends(b']');
    while more {
        element(scan.value()?);
        more = scan.goes_on(b']')?;
    }
    scan.end()
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    /// Whether the text holds control characters at all. Between values they are white space, within a string wrong.
    has_control: bool,
}

impl<'a> Scan<'a> {
    /// At the first byte that is no white space.
    fn new(text: &'a str) -> Self {
        let mut scan = Self { text, at: 0, has_control: has_control(text.as_bytes()) };
        scan.space();
        scan
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn take(&mut self, wanted: u8) -> Option<()> {
        (self.next()? == wanted).then_some(())
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Only white space is left.
    fn end(mut self) -> Option<()> {
        self.space();
        self.peek().is_none().then_some(())
    }

    /// Whether a bracket that has just opened closes at once.
    fn ends(&mut self, close: u8) -> bool {
        self.space();
        let ends = self.peek() == Some(close);
        self.at += usize::from(ends);
        ends
    }

    /// Behind a value: whether a comma announces another, or the bracket closes.
    fn goes_on(&mut self, close: u8) -> Option<bool> {
        self.space();
        let next = self.next()?;
        if next == b',' {
            self.space();
            return Some(true);
        }
        (next == close).then_some(false)
    }

    /// A key, its colon and the white space before the value.
    fn key(&mut self) -> Option<Key<'a>> {
        self.take(b'"')?;
        let start = self.at;
        let escaped = self.string()?;
        let written = self.text.get(start..self.at - 1)?;
        self.space();
        self.take(b':')?;
        self.space();
        Some(Key { written, escaped })
    }

    /// An object, field by field.
    fn fields(&mut self, mut field: impl FnMut(Key<'a>, &'a str) -> Option<()>) -> Option<()> {
        self.take(b'{')?;
        let mut more = !self.ends(b'}');
        while more {
            let key = self.key()?;
            field(key, self.value()?)?;
            more = self.goes_on(b'}')?;
        }
        Some(())
    }

    /// Those fields of an object.
    fn picked<const N: usize>(&mut self, names: [&'static str; N]) -> Option<Picked<'a, N>> {
        let mut picked: [Option<&'a str>; N] = [None; N];
        let mut twice = None;
        self.fields(|key, value| {
            let key = key.read()?;
            if let Some((slot, name)) = picked.iter_mut().zip(names).find(|(_, name)| *name == key)
                && slot.replace(value).is_some()
            {
                twice = Some(name);
            }
            Some(())
        })?;
        Some(match twice {
            Some(name) => Err(PickFault::Duplicate(name)),
            None => Ok(picked.map(|value| value.filter(|value| *value != "null"))),
        })
    }

    /// One value of any kind.
    fn value(&mut self) -> Option<&'a str> {
        let start = self.at;
        // The bracket that closes each object and list around the place.
        let mut open: SmallVec<[u8; 64]> = SmallVec::new();
        loop {
            if let Some(close) = self.begin()? {
                open.push(close);
                continue;
            }
            // A value has ended, and so may have those around it.
            loop {
                let Some(close) = open.last().copied() else { return self.text.get(start..self.at) };
                if self.goes_on(close)? {
                    if close == b'}' {
                        self.key()?;
                    }
                    break;
                }
                open.pop();
            }
        }
    }

    /// Reads a scalar or an empty object or list whole; of another, what stands before its first value, and gives the
    /// bracket that will close it.
    fn begin(&mut self) -> Option<Option<u8>> {
        match self.peek()? {
            b'"' => {
                self.at += 1;
                self.string()?;
            }
            b'{' => {
                self.at += 1;
                if !self.ends(b'}') {
                    self.key()?;
                    return Some(Some(b'}'));
                }
            }
            b'[' => {
                self.at += 1;
                if !self.ends(b']') {
                    return Some(Some(b']'));
                }
            }
            b't' => self.word("true")?,
            b'f' => self.word("false")?,
            b'n' => self.word("null")?,
            _ => self.number()?,
        }
        Some(None)
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.text.get(self.at..)?.starts_with(word).then_some(())?;
        self.at += word.len();
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        self.at += usize::from(self.peek() == Some(b'-'));
        match self.next()? {
            b'0' => {}
            b'1'..=b'9' => self.digits(),
            _ => return None,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.some_digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.some_digits()?;
        }
        Some(())
    }

    fn digits(&mut self) {
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
    }

    fn some_digits(&mut self) -> Option<()> {
        let start = self.at;
        self.digits();
        (self.at > start).then_some(())
    }

    /// The rest of a string and its closing mark; whether it holds escapes.
    fn string(&mut self) -> Option<bool> {
        let mut escaped = false;
        loop {
            let rest = self.text.as_bytes().get(self.at..)?;
            let plain = plain(rest)?;
            if self.has_control && has_control(rest.get(..plain)?) {
                return None;
            }
            self.at += plain + 1;
            if rest.get(plain) == Some(&b'"') {
                return Some(escaped);
            }
            escaped = true;
            self.escape()?;
        }
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Option<()> {
        match self.next()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let digits = self.text.as_bytes().get(self.at..self.at + 4)?;
                self.at += 4;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(())
            }
            _ => None,
        }
    }
}

/// Bytes of a string up to which they are looked at one by one: keys and words are shorter.
const WORD: usize = 24;

/// How many bytes stand before the next mark or backslash.
fn plain(rest: &[u8]) -> Option<usize> {
    let (word, beyond) = rest.split_at(rest.len().min(WORD));
    let near = word.iter().position(|byte| matches!(byte, b'"' | b'\\'));
    near.or_else(|| memchr2(b'"', b'\\', beyond).map(|at| word.len() + at))
}

/// Without a way out early, so that many bytes are looked at at once.
fn has_control(bytes: &[u8]) -> bool {
    bytes.iter().fold(false, |seen, byte| seen | (*byte < b' '))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::value::RawValue;
    use std::collections::BTreeMap;

    fn scanned(text: &str) -> Option<BTreeMap<String, String>> {
        let mut fields = BTreeMap::new();
        object(text, |key, value| {
            fields.insert(key.read()?.into_owned(), value.to_owned());
            Some(())
        })?;
        Some(fields)
    }

    fn by_serde(text: &str) -> Option<BTreeMap<String, String>> {
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
        Some(fields.into_iter().map(|(key, value)| (key, value.get().to_owned())).collect())
    }

    #[test]
    fn it_reads_what_serde_json_reads() {
        for value in [
            "0",
            "-0",
            "01",
            "-",
            "1.",
            "1.5",
            ".5",
            "1e",
            "1e5",
            "1E+5",
            "1e-",
            "+1",
            "--1",
            "1e5.0",
            "0x1",
            "true",
            "tru",
            "truee",
            "null",
            "nul",
            "NaN",
            "\"\"",
            "\"a",
            "\"\\n\"",
            "\"\\x\"",
            "\"\\u00e9\"",
            "\"\\u00\"",
            "\"\\ud83d\"",
            "\"\\\"",
            "\"\\\\\"",
            "\"\t\"",
            "\"\u{7f}é\"",
            "\"\u{0}\"",
            "[]",
            "[ ]",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[1,[2,{\"a\":[]}]]",
            "[1}",
            "{}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{,}",
            "{a:1}",
            "{\"a\" : 1 , \"b\":{ }}",
            "{\"\\ud83d\":1}",
            "",
            "[[[[",
            "]]",
            "1,\"b\":2",
            "1}",
            "'a'",
            "/*c*/1",
            "\u{a0}1",
        ] {
            for text in [format!("{{\"k\":{value}}}"), format!(" {{ \"k\"\t: {value}\r\n}} ")] {
                assert_eq!(scanned(&text), by_serde(&text), "{text}");
            }
        }
        for text in
            ["", "{", "{}", " { } ", "{}x", "[]", "null", "\"{}\"", "{\"\\ud83d\":1}", "{\"\\u0062\":1}"]
        {
            assert_eq!(scanned(text), by_serde(text), "{text}");
        }
    }

    #[test]
    fn rows_are_the_objects_of_a_list() {
        let mut rows_read = Vec::new();
        let text = r#"[{"b":1,"a":null}, {"\u0061":[2]} ,7,{"a":1,"a":2},{}]"#;
        assert!(rows(text, ["a", "b"], |row, picked| rows_read.push((row, picked))).is_some());
        let want = [
            (r#"{"b":1,"a":null}"#, Ok([None, Some("1")])),
            (r#"{"\u0061":[2]}"#, Ok([Some("[2]"), None])),
            ("7", Err(PickFault::NotAnObject)),
            (r#"{"a":1,"a":2}"#, Err(PickFault::Duplicate("a"))),
            ("{}", Ok([None, None])),
        ];
        assert_eq!(rows_read, want);
        assert!(["{}", "[1", "[{]", "[] x"].iter().all(|text| rows(text, ["a"], |_, _| ()).is_none()));
        assert_eq!(pick("{} x", ["a"]), Err(PickFault::NotAnObject));
    }

    #[test]
    fn a_list_is_its_elements() {
        let mut elements = Vec::new();
        assert!(list(" [1, \"a,]\" ,[2,3], {\"b\":[]}] ", |element| elements.push(element)).is_some());
        assert_eq!(elements, ["1", "\"a,]\"", "[2,3]", "{\"b\":[]}"]);
        assert!(list("[1,2", |_| ()).is_none() && list("{}", |_| ()).is_none());
    }

    proptest! {
        #[test]
        fn whatever_comes_both_agree(text in r#"\{"[ab\\u0-9]{0,3}":[\[\]{}",:\\ a-f0-9eE.+\-ntrul\x00-\x20é]{0,24}\}"#) {
            prop_assert_eq!(scanned(&text), by_serde(&text));
        }
    }
}
