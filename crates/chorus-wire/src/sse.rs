//! Server-sent events over bytes, by the WHATWG grammar: `\n`, `\r\n` and `\r` end lines, a colon starts a comment,
//! the space after a field's colon is optional, an event ends at a blank line or at the end of the stream.
//!
//! It knows nothing of what events carry. **Invariant:** the events do not depend on where the bytes were cut, and
//! every byte is looked at once.

use crate::body::RawObject;
use bytes::Bytes;
use memchr::{memchr, memchr2};

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// Value of `event:`, if any.
    pub event: Option<String>,
    /// All `data:` lines joined by `\n`; events without data are dropped.
    pub data: Vec<u8>,
}

/// Why a stream cannot be read on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SseFault {
    /// An event is longer than `max_event_bytes`.
    #[error("an event is longer than {limit} bytes (max_event_bytes)")]
    TooLong {
        /// The bound.
        limit: usize,
    },
    /// The stream ended inside a UTF-8 sequence, or an event is not UTF-8.
    #[error("the stream is not UTF-8")]
    NotUtf8,
}

/// Longest event of a stream, in bytes (`max_event_bytes`).
pub const MAX_EVENT_BYTES: usize = 16 << 20;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Turns bytes, cut anywhere, into events.
///
/// The bound holds for the lines of one event together, without their ends; comments count only while they are read.
#[derive(Debug)]
pub struct SseDecoder {
    max_event_bytes: usize,
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// Lengths of the event's finished lines.
    event_bytes: usize,
    /// The last byte was a `\r`: a `\n` that follows ends no second line.
    after_cr: bool,
    /// Before the first line, which a byte order mark may open.
    at_start: bool,
    name: Vec<u8>,
    /// The event's data, with one `\n` after each line.
    data: Vec<u8>,
}

impl SseDecoder {
    /// A decoder with that bound.
    #[must_use]
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            max_event_bytes,
            line: Vec::new(),
            event_bytes: 0,
            after_cr: false,
            at_start: true,
            name: Vec::new(),
            data: Vec::new(),
        }
    }

    /// Takes bytes; appends the events they complete to `out`.
    ///
    /// # Errors
    /// [`SseFault`]; the decoder is of no use afterwards.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<SseEvent>) -> Result<(), SseFault> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_cr)
                && let Some(after) = rest.strip_prefix(b"\n")
            {
                rest = after;
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', rest) else {
                return self.keep(rest);
            };
            let (piece, tail) = rest.split_at(end);
            self.after_cr = tail.first() == Some(&b'\r');
            rest = tail.get(1..).unwrap_or_default();
            out.extend(self.end_line(piece)?);
        }
        Ok(())
    }

    /// The stream has ended: the last event, if no blank line followed it.
    ///
    /// # Errors
    /// [`SseFault::NotUtf8`].
    pub fn finish(&mut self) -> Result<Option<SseEvent>, SseFault> {
        if !self.line.is_empty() {
            self.end_line(&[])?;
        }
        self.dispatch()
    }

    fn bound(&self, piece: &[u8]) -> Result<(), SseFault> {
        if self.event_bytes + self.line.len() + piece.len() > self.max_event_bytes {
            return Err(SseFault::TooLong { limit: self.max_event_bytes });
        }
        Ok(())
    }

    fn keep(&mut self, piece: &[u8]) -> Result<(), SseFault> {
        self.bound(piece)?;
        self.line.extend_from_slice(piece);
        Ok(())
    }

    /// Reads the line that `piece` ends; one that begins with it too is read where it stands.
    fn end_line(&mut self, piece: &[u8]) -> Result<Option<SseEvent>, SseFault> {
        if self.line.is_empty() {
            self.bound(piece)?;
            return self.line(piece);
        }
        self.keep(piece)?;
        let mut buffer = std::mem::take(&mut self.line);
        let event = self.line(&buffer)?;
        buffer.clear();
        self.line = buffer;
        Ok(event)
    }

    fn line(&mut self, mut line: &[u8]) -> Result<Option<SseEvent>, SseFault> {
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch();
        }
        self.field(line);
        Ok(None)
    }

    fn field(&mut self, line: &[u8]) {
        let colon = memchr(b':', line).unwrap_or(line.len());
        if colon == 0 {
            return;
        }
        self.event_bytes += line.len();
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                self.data.reserve(value.len() + 1);
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.name = value.to_vec(),
            // `id` and `retry` serve reconnection, which a completion does not have.
            _ => {}
        }
    }

    fn dispatch(&mut self) -> Result<Option<SseEvent>, SseFault> {
        self.event_bytes = 0;
        let name = std::mem::take(&mut self.name);
        let mut data = std::mem::take(&mut self.data);
        data.pop();
        if data.is_empty() {
            return Ok(None);
        }
        if std::str::from_utf8(&data).is_err() {
            return Err(SseFault::NotUtf8);
        }
        let name = String::from_utf8(name).map_err(|_| SseFault::NotUtf8)?;
        Ok(Some(SseEvent { event: Some(name).filter(|name| !name.is_empty()), data }))
    }
}

/// `data: …` and a blank line. A line break in `data` (a backend's pretty-printed value) begins a further `data:`
/// line, so that what is decoded is the same JSON.
#[must_use]
pub fn encode(data: &[u8]) -> Bytes {
    encode_lines(DATA, data)
}

/// [`encode`] of an object, written once.
#[must_use]
pub fn encode_object(object: &RawObject) -> Bytes {
    let mut out = Vec::with_capacity(DATA.len() + object.written_bytes() + 2);
    out.extend_from_slice(DATA);
    object.write_to(&mut out);
    let written = out.get(DATA.len()..).unwrap_or_default();
    if memchr2(b'\n', b'\r', written).is_some() {
        return encode(written);
    }
    out.extend_from_slice(b"\n\n");
    out.into()
}

/// An event with a name: `event: …`, then its data. A client that does not know the name ignores it (WHATWG HTML,
/// §9.2.6).
#[must_use]
pub fn encode_named(name: &str, data: &[u8]) -> Bytes {
    let mut out = format!("event: {name}\n").into_bytes();
    out.extend_from_slice(&encode_lines(DATA, data));
    out.into()
}

/// `: …` and a blank line; a line break in `text` begins a further comment line.
#[must_use]
pub fn encode_comment(text: &str) -> Bytes {
    encode_lines(b": ", text.as_bytes())
}

/// What begins a line of data.
const DATA: &[u8] = b"data: ";

fn encode_lines(prefix: &[u8], text: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(prefix.len() + text.len() + 2);
    let mut rest = Some(text);
    while let Some(text) = rest {
        let end = memchr2(b'\n', b'\r', text);
        out.extend_from_slice(prefix);
        out.extend_from_slice(text.get(..end.unwrap_or(text.len())).unwrap_or_default());
        out.push(b'\n');
        rest = end.and_then(|end| text.get(end + 1..));
    }
    out.push(b'\n');
    out.into()
}

/// The payload that ends a stream.
pub const DONE: &[u8] = b"[DONE]";
