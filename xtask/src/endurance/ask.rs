//! One request of the endurance run: its number says everything about it, to the client and to the backend.
//!
//! It knows no socket.

use crate::line::Usage;
use serde_json::json;

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The backend resets the connection before it answers.
    Reset,
    /// The backend says nothing more, amid the answer.
    Stall,
    /// The backend answers 429.
    Limited,
    /// The backend closes amid a chunk.
    HalfWritten,
    /// The client hangs up after the first piece.
    ClientLeaves,
}

/// A request by its number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask(pub(super) u64);

impl Ask {
    /// Every other one.
    pub(super) fn streams(self) -> bool {
        self.0 % 2 == 1
    }

    /// One in a hundred of each trouble of a backend, whole answers and streams alike; two in a hundred clients that
    /// leave, all of them streams.
    pub(super) fn trouble(self) -> Option<Trouble> {
        match (self.0 / 2) % 100 {
            11 => Some(Trouble::Reset),
            23 => Some(Trouble::Stall),
            37 => Some(Trouble::Limited),
            53 => Some(Trouble::HalfWritten),
            7 | 32 | 57 | 82 if self.streams() => Some(Trouble::ClientLeaves),
            _ => None,
        }
    }

    /// What an answer to it takes.
    pub(super) fn usage(self) -> Usage {
        Usage { prompt_tokens: 100 + self.0 % 97, completion_tokens: 8 + self.0 % 17 }
    }

    /// Its body, of about 1 KiB; the number stands in the text.
    pub(super) fn body(self) -> String {
        let filler = "The lighthouse keeper counts the ships that pass in the fog. ".repeat(14);
        let text = format!("{filler}#{}", self.0);
        let messages = json!([{"role": "user", "content": text}]);
        let mut body = json!({"model": "vllm-sr/auto", "messages": messages});
        if let (true, Some(fields)) = (self.streams(), body.as_object_mut()) {
            fields.insert("stream".to_owned(), json!(true));
            fields.insert("stream_options".to_owned(), json!({"include_usage": true}));
        }
        body.to_string()
    }

    /// The request whose text that is.
    pub(super) fn of(text: &str) -> Option<Self> {
        text.rsplit_once('#')?.1.parse().ok().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn troubles_are_as_rare_as_announced() {
        let count = |wanted: Trouble| (0..10_000).filter(|n| Ask(*n).trouble() == Some(wanted)).count();
        for trouble in [Trouble::Reset, Trouble::Stall, Trouble::Limited, Trouble::HalfWritten] {
            assert_eq!(count(trouble), 100, "{trouble:?}");
        }
        assert_eq!(count(Trouble::ClientLeaves), 200);
        assert!(Ask::of("counts #17").is_some_and(|ask| ask.0 == 17));
    }
}
