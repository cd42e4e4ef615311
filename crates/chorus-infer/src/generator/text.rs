//! Token bytes to text that may be shown: whole code points only, and nothing of a stop text.
//!
//! It knows no tokens. Invariant: the texts given out, put together, are the answer's valid text up to the first stop
//! text, and none of them ever has to be taken back.

/// The end of an answer in the making.
#[derive(Debug)]
pub(super) struct TextStream {
    stops: Vec<String>,
    /// Bytes that do not yet make a code point.
    bytes: Vec<u8>,
    /// Text that may yet turn out to begin a stop text.
    held: String,
}

/// What came of some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Released {
    /// Text that may be shown.
    pub(super) text: String,
    /// Whether a stop text was reached.
    pub(super) stopped: bool,
}

impl TextStream {
    pub(super) fn new(stops: Vec<String>) -> Self {
        Self { stops, bytes: Vec::new(), held: String::new() }
    }

    /// Takes the bytes of the next token.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Released {
        self.bytes.extend_from_slice(bytes);
        self.take_code_points();
        let first = self.stops.iter().filter_map(|stop| self.held.find(stop.as_str())).min();
        if let Some(at) = first {
            self.held.truncate(at);
            return Released { text: std::mem::take(&mut self.held), stopped: true };
        }
        let keep = self.held.len() - self.possible_stop();
        let rest = self.held.split_off(keep);
        Released { text: std::mem::replace(&mut self.held, rest), stopped: false }
    }

    /// What was held back, now that nothing follows; half a code point is dropped.
    pub(super) fn finish(self) -> String {
        self.held
    }

    /// Moves whole code points from the bytes to the text; bytes that can never be one become U+FFFD.
    fn take_code_points(&mut self) {
        let mut taken = 0;
        for chunk in self.bytes.utf8_chunks() {
            self.held.push_str(chunk.valid());
            taken += chunk.valid().len();
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            if taken + invalid.len() == self.bytes.len() && may_grow(invalid) {
                break;
            }
            self.held.push(char::REPLACEMENT_CHARACTER);
            taken += invalid.len();
        }
        self.bytes.drain(..taken);
    }

    /// Length of the longest end of the held text that begins a stop text.
    fn possible_stop(&self) -> usize {
        let longest = |stop: &String| {
            let most = stop.len().saturating_sub(1).min(self.held.len());
            (1..=most).rev().find(|length| {
                stop.is_char_boundary(*length)
                    && self.held.as_bytes().ends_with(stop.as_bytes().split_at(*length).0)
            })
        };
        self.stops.iter().filter_map(longest).max().unwrap_or(0)
    }
}

/// Whether more bytes could make these the beginning of a code point.
fn may_grow(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|fault| fault.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds pieces; gives every released text and whether a stop was reached.
    fn run(stops: &[&str], pieces: &[&[u8]]) -> (Vec<String>, bool) {
        let mut stream = TextStream::new(stops.iter().map(|stop| (*stop).to_owned()).collect());
        let mut texts = Vec::new();
        for piece in pieces {
            let released = stream.push(piece);
            texts.push(released.text);
            if released.stopped {
                return (texts, true);
            }
        }
        texts.push(stream.finish());
        (texts, false)
    }

    #[test]
    fn half_a_code_point_waits_for_the_other_half() {
        assert_eq!(
            run(&[], &[b"a\xF0\x9F", b"\x98\x80b"]),
            (vec!["a".into(), "😀b".into(), String::new()], false)
        );
        assert_eq!(run(&[], &[b"a\xF0\x9F"]), (vec!["a".into(), String::new()], false));
        assert_eq!(run(&[], &[b"a\xFFb"]), (vec!["a\u{FFFD}b".into(), String::new()], false));
    }

    #[test]
    fn a_stop_text_across_tokens_is_never_shown() {
        let (texts, stopped) = run(&["END"], &[b"one E", b"N", b"D two"]);
        assert_eq!((texts.concat().as_str(), stopped), ("one ", true));
        let (texts, stopped) = run(&["END"], &[b"one E", b"N", b"d two"]);
        assert_eq!((texts.concat().as_str(), stopped), ("one ENd two", false));
        assert_eq!(texts[0], "one ", "only the possible beginning is held back");
    }

    #[test]
    fn the_first_of_several_stop_texts_wins() {
        let (texts, stopped) = run(&["\n\n", "b"], &[b"a\nb\n\n"]);
        assert_eq!((texts.concat().as_str(), stopped), ("a\n", true));
    }

    #[test]
    fn what_was_held_comes_out_at_the_end() {
        let (texts, stopped) = run(&["END"], &[b"the E", b"N"]);
        assert_eq!((texts.concat().as_str(), stopped), ("the EN", false));
        let (texts, _) = run(&["é!"], &["caf".as_bytes(), b"\xC3", b"\xA9"]);
        assert_eq!(texts.concat(), "café");
    }
}
