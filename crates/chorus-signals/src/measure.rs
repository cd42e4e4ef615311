//! What answers asks: one measure for a rule alone, or for all rules of a family together.
//!
//! It knows no family. **Invariant:** a measure puts an observation into the evidence for every key that its rules emit.

use crate::lexicon::{Lexicon, Seen};
use crate::pass::SharedPass;
use crate::subject::Subject;
use chorus_infer::TextEncoder;
use chorus_policy::{Evidence, Observation};
use chorus_spec::SignalKey;

/// What a measure may look at: the request, and the encoder with the passes made so far.
pub(crate) struct Look<'l, 's> {
    /// The encoder of learned signals, if one is loaded.
    pub(crate) encoder: Option<&'l dyn TextEncoder>,
    /// The request.
    pub(crate) subject: &'l Subject<'s>,
    /// The encoder passes of this request.
    pub(crate) pass: &'l mut SharedPass,
    lexicon: &'l Lexicon,
    seen: Option<Seen>,
}

impl<'l, 's> Look<'l, 's> {
    /// Nothing has been looked at.
    pub(crate) fn new(
        encoder: Option<&'l dyn TextEncoder>,
        lexicon: &'l Lexicon,
        subject: &'l Subject<'s>,
        pass: &'l mut SharedPass,
    ) -> Self {
        Self { encoder, subject, pass, lexicon, seen: None }
    }

    /// Which words of the recipe's rules occur in the last user message; looked for once.
    pub(crate) fn seen(&mut self) -> &Seen {
        self.seen.get_or_insert_with(|| self.lexicon.look(self.subject))
    }
}

/// Rules, prepared.
pub(crate) trait Measure: Send + Sync {
    /// Says something about every key that the rules emit.
    fn measure(&self, look: &mut Look<'_, '_>, evidence: &mut Evidence);

    /// Encodes examples now, so that no request waits for it.
    fn warm(&self, _encoder: &dyn TextEncoder) {}
}

/// A rule that emits its own name and nothing else.
pub(crate) struct Alone<R> {
    /// The key.
    pub(crate) key: SignalKey,
    /// The rule.
    pub(crate) rule: R,
    /// What the rule says of a request.
    pub(crate) observe: fn(&R, &mut Look<'_, '_>) -> Observation,
}

impl<R: Send + Sync> Measure for Alone<R> {
    fn measure(&self, look: &mut Look<'_, '_>, evidence: &mut Evidence) {
        let observation = (self.observe)(&self.rule, look);
        evidence.insert(self.key.clone(), observation);
    }
}
