//! `context`: how large the request is.
//!
//! *Measures:* whether the estimated tokens of the whole request lie within inclusive bounds.
//! *Inputs:* every message, image, tool definition and tool call, and the output that the request reserves.
//! *Cost:* 0, arithmetic over lengths
//! *Fails when:* never; the estimate is bytes / 4, so it can be off by a third for code and by half for some scripts.
//! *Source:* contract §1.4 (`context`).
//!
//! It knows no tokenizer. **Invariant:** raw is the estimate, matched or not.

use crate::doc::SignalDoc;
use crate::subject::Subject;
use chorus_policy::Observation;
use chorus_spec::{ContextSignal, Family};

/// The row of the table.
pub const DOC: SignalDoc = SignalDoc {
    family: Family::Context,
    measures: "whether the estimated tokens of the whole request lie within inclusive bounds.",
    inputs: "every message, image, tool definition and tool call, and the output that the request reserves.",
    cost: 0,
    fails_when: "never; the estimate is bytes / 4, so it can be off by a third for code and by half for some scripts.",
    source: "contract §1.4 (`context`).",
};

/// What the rule says of a request.
pub(crate) fn observe(signal: ContextSignal, subject: &Subject<'_>) -> Observation {
    let tokens = subject.tokens();
    let raw = Some(tokens as f64);
    if tokens >= signal.min_tokens && signal.max_tokens.is_none_or(|most| tokens <= most) {
        Observation::Matched { confidence: 1.0, raw }
    } else {
        Observation::Unmatched { raw }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::{ChatRequest, Message, Role};

    #[test]
    fn bounds_are_inclusive() {
        let request = ChatRequest::new("m", vec![Message::new(Role::User, &"word ".repeat(400))]);
        let subject = Subject::of(&request);
        let tokens = subject.tokens();
        assert!(tokens >= 500);
        for (min_tokens, max_tokens, want) in [
            (tokens, Some(tokens), true),
            (tokens, None, true),
            (tokens + 1, None, false),
            (0, Some(tokens - 1), false),
        ] {
            let raw = Some(tokens as f64);
            let expected = if want {
                Observation::Matched { confidence: 1.0, raw }
            } else {
                Observation::Unmatched { raw }
            };
            assert_eq!(observe(ContextSignal { min_tokens, max_tokens }, &subject), expected);
        }
    }
}
