//! Pages of the signals that guard: personal data, attempts to take over.
//!
//! It knows texts only. **Invariant:** each page says what a reader of its signal's file would find.

use super::{Page, key};
use chorus_spec::Family;

pub(super) const PII: Page = Page {
    family: Family::Pii,
    container: "pii",
    is: "Personal data and secrets that the route does not allow.",
    keys: &[
        key("threshold", "global", "least score of a finding, in 0..=1; the default is `modules.classifier.pii.threshold`, .9"),
        key("pii_types_allowed", "[]", "types that may pass, by the contract's names (`EMAIL_ADDRESS`, `PERSON`, …)"),
        key("include_history", "false", "read every message of every role, tool results too"),
    ],
    about: "\
A finding scores at least .9 when a check digit, a form of its own or a word beside it proves it; names, places and dates
without such a proof stay below .85. The rule holds when a finding of a type that is not allowed reaches the threshold.
The whole text is read. Confidence and raw are the best score, raw also where nothing matches.",
    example: "\
pii:
  - name: no_personal_data
    threshold: 0.85
    pii_types_allowed: [EMAIL_ADDRESS]
    include_history: true",
    means: "Holds when any message has a card number, an identity number, a key … but not for an e-mail address.",
};

pub(super) const JAILBREAK: Page = Page {
    family: Family::Jailbreak,
    container: "jailbreak",
    is: "An attempt to take over the model.",
    keys: &[
        key("method", "classifier", "`classifier`, `contrastive` (nearer to known attempts than to harmless requests), or `hybrid` (either)"),
        key("threshold", "global", "least score, in 0..=1; the default is `modules.prompt_guard.threshold`, .7, and .1 for `contrastive`"),
        key("include_history", "false", "also read the turns before"),
        key("jailbreak_patterns", "built in", "known attempts, for `contrastive`"),
        key("benign_patterns", "built in", "harmless requests, for `contrastive`"),
    ],
    about: "\
`classifier` scores by rule families and a trained head over the encoder and character n-grams, after the text has been
brought back to plain letters (width, zero-width characters, look-alikes, spacing, encodings). Tool results and pasted
sources are judged more strictly than the user's own words, a model's earlier turns less; a system or developer message is
the operator's and is not judged. `contrastive` scores by the greatest nearness to an attempt less the greatest nearness to
a harmless request; its threshold is .1 unless written, because a difference of cosines is small. `hybrid` is either: the
threshold is the classifier's. All of the text is scored, in windows; the highest score stands and is raw. How good the
head is: [heads.md](../heads.md).",
    example: "\
jailbreak:
  - name: takeover
    method: hybrid
    threshold: 0.7
    include_history: true",
    means: "Holds when any turn looks like an attempt, by the head or by nearness to known ones.",
};
