//! What answers asks: one measure for a rule alone, or for all rules of a family together.
//!
//! It knows no family. **Invariant:** a measure puts an observation into the evidence for every key that its rules emit.

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
