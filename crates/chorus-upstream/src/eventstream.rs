//! Amazon's binary event stream: length, headers, payload and two checksums a message.
//!
//! It knows nothing of what events carry; each becomes an event whose name is `:event-type` (or `:exception-type`).
//! Source: AWS documentation, "Event stream encoding" (vnd.amazon.eventstream).
//!
//! **Invariant:** a message whose checksum is wrong is never handed on, and no length is believed beyond the bound.

use crate::UpstreamFault;
use chorus_wire::SseEvent;

/// Total length, headers' length, and the checksum of both.
const PRELUDE_BYTES: usize = 12;
/// The checksum behind the payload.
const TRAILER_BYTES: usize = 4;
/// The header type that holds text: two bytes of length, then UTF-8.
const TEXT: u8 = 7;

/// Turns bytes, cut anywhere, into events.
#[derive(Debug)]
pub(crate) struct EventStream {
    max_event_bytes: usize,
    held: Vec<u8>,
}

impl EventStream {
    /// A decoder with that bound on one message.
    pub(crate) fn new(max_event_bytes: usize) -> Self {
        Self { max_event_bytes, held: Vec::new() }
    }

    /// Takes bytes; appends the events they complete to `out`.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<SseEvent>) -> Result<(), UpstreamFault> {
        self.held.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(length) = self.length_at(at)? {
            let Some(message) = self.held.get(at..at + length) else { break };
            out.push(event(message)?);
            at += length;
        }
        self.held.drain(..at);
        Ok(())
    }

    /// The stream has ended.
    pub(crate) fn finish(&self) -> Result<(), UpstreamFault> {
        if self.held.is_empty() {
            Ok(())
        } else {
            Err(UpstreamFault::truncated("the stream ended inside an event"))
        }
    }

    /// The length of the message that begins there, once its prelude has come.
    fn length_at(&self, at: usize) -> Result<Option<usize>, UpstreamFault> {
        let Some(prelude) = self.held.get(at..at + PRELUDE_BYTES) else { return Ok(None) };
        let (lengths, sum) = prelude.split_at(8);
        if crc32fast::hash(lengths) != word(sum, 0)? {
            return Err(damaged());
        }
        let length = size(prelude, 0)?;
        if length > self.max_event_bytes {
            let limit_bytes = self.max_event_bytes;
            return Err(UpstreamFault::TooLarge { bound: "max_event_bytes", limit_bytes });
        }
        if length < PRELUDE_BYTES + TRAILER_BYTES {
            return Err(damaged());
        }
        Ok(Some(length))
    }
}

/// One whole message.
fn event(message: &[u8]) -> Result<SseEvent, UpstreamFault> {
    let end = message.len().checked_sub(TRAILER_BYTES).ok_or_else(damaged)?;
    let (summed, sum) = message.split_at(end);
    if crc32fast::hash(summed) != word(sum, 0)? {
        return Err(damaged());
    }
    let headers_end = PRELUDE_BYTES + size(summed, 4)?;
    let headers = summed.get(PRELUDE_BYTES..headers_end).ok_or_else(damaged)?;
    let data = summed.get(headers_end..).ok_or_else(damaged)?.to_vec();
    Ok(SseEvent { event: name(headers)?, data })
}

/// The value of `:event-type` or `:exception-type`; an exception's name begins with `!`.
fn name(mut headers: &[u8]) -> Result<Option<String>, UpstreamFault> {
    let mut name = None;
    while let Some((length, rest)) = headers.split_first() {
        let (key, rest) = rest.split_at_checked(usize::from(*length)).ok_or_else(damaged)?;
        let (kind, rest) = rest.split_first().ok_or_else(damaged)?;
        let (value, rest) = value(*kind, rest)?;
        match (key, *kind) {
            (b":event-type", TEXT) => name = Some(String::from_utf8_lossy(value).into_owned()),
            (b":exception-type" | b":error-code", TEXT) => {
                name = Some(format!("!{}", String::from_utf8_lossy(value)));
            }
            _ => {}
        }
        headers = rest;
    }
    Ok(name)
}

/// One header's value, and what follows it.
fn value(kind: u8, bytes: &[u8]) -> Result<(&[u8], &[u8]), UpstreamFault> {
    let (length, bytes) = match kind {
        0 | 1 => (0, bytes),
        2 => (1, bytes),
        3 => (2, bytes),
        4 => (4, bytes),
        5 | 8 => (8, bytes),
        9 => (16, bytes),
        6 | TEXT => {
            let (length, rest) = bytes.split_at_checked(2).ok_or_else(damaged)?;
            (length.iter().fold(0, |sum, byte| sum * 256 + usize::from(*byte)), rest)
        }
        _ => return Err(damaged()),
    };
    bytes.split_at_checked(length).ok_or_else(damaged)
}

fn size(bytes: &[u8], at: usize) -> Result<usize, UpstreamFault> {
    usize::try_from(word(bytes, at)?).map_err(|_| damaged())
}

fn word(bytes: &[u8], at: usize) -> Result<u32, UpstreamFault> {
    let four = bytes.get(at..at + 4).and_then(|four| <[u8; 4]>::try_from(four).ok());
    four.map(u32::from_be_bytes).ok_or_else(damaged)
}

fn damaged() -> UpstreamFault {
    UpstreamFault::malformed("an event of its binary stream is damaged")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// One message with text headers.
    pub(crate) fn message(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
        let mut head = Vec::new();
        for (key, value) in headers {
            head.push(u8::try_from(key.len()).unwrap());
            head.extend_from_slice(key.as_bytes());
            head.push(TEXT);
            head.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
            head.extend_from_slice(value.as_bytes());
        }
        let total = PRELUDE_BYTES + head.len() + payload.len() + TRAILER_BYTES;
        let mut message = u32::try_from(total).unwrap().to_be_bytes().to_vec();
        message.extend_from_slice(&u32::try_from(head.len()).unwrap().to_be_bytes());
        message.extend_from_slice(&crc32fast::hash(&message).to_be_bytes());
        message.extend_from_slice(&head);
        message.extend_from_slice(payload);
        message.extend_from_slice(&crc32fast::hash(&message).to_be_bytes());
        message
    }

    fn read(bytes: &[u8], cut: usize) -> Result<Vec<SseEvent>, UpstreamFault> {
        let (mut stream, mut out) = (EventStream::new(1 << 20), Vec::new());
        for piece in bytes.chunks(cut) {
            stream.push(piece, &mut out)?;
        }
        stream.finish()?;
        Ok(out)
    }

    /// Source: the encoding's published test vectors (`empty_message`, `payload_no_headers`).
    #[test]
    fn published_vectors() {
        let empty = [0, 0, 0, 16, 0, 0, 0, 0, 5, 194, 72, 235, 125, 152, 200, 255];
        assert_eq!(read(&empty, 5).unwrap(), [SseEvent { event: None, data: Vec::new() }]);
        let mut plain = vec![0, 0, 0, 29, 0, 0, 0, 0, 253, 82, 140, 90];
        plain.extend_from_slice(b"{'foo':'bar'}");
        plain.extend_from_slice(&[195, 101, 57, 54]);
        assert_eq!(read(&plain, 1).unwrap()[0].data, b"{'foo':'bar'}");
    }

    #[test]
    fn events_do_not_depend_on_the_cut() {
        let mut bytes = message(&[(":event-type", "contentBlockDelta"), (":message-type", "event")], b"{}");
        bytes.extend(message(&[(":exception-type", "throttlingException")], b"{\"message\":\"slow\"}"));
        let whole = read(&bytes, bytes.len()).unwrap();
        assert_eq!(whole[0].event.as_deref(), Some("contentBlockDelta"));
        assert_eq!(whole[1].event.as_deref(), Some("!throttlingException"));
        for cut in 1..40 {
            assert_eq!(read(&bytes, cut).unwrap(), whole, "cut at {cut}");
        }
    }

    #[test]
    fn damaged_endless_and_half_messages_are_refused() {
        let good = message(&[(":event-type", "x")], b"payload");
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x55;
            assert!(read(&bad, 7).is_err(), "byte {at}");
        }
        assert!(matches!(read(&good[..good.len() - 1], 9), Err(UpstreamFault::Truncated { .. })));
        let mut out = Vec::new();
        let fault = EventStream::new(20).push(&good, &mut out).unwrap_err();
        assert!(matches!(fault, UpstreamFault::TooLarge { limit_bytes: 20, .. }), "{fault:?}");
    }
}
