//! How much one text looks like an attempt: the head over windows and decodings, and the rule families.
//!
//! Short texts are read whole by the head, with the encoder's vector that other signals share. Windows and decodings are
//! first looked at without a vector; only the few that look worse than the whole get one ([`MOST_ENCODED`]). A rule that
//! hits stands for [`RULE_SCORE`]. It knows no threshold. Source: cases E01, E12.
//!
//! **Invariant:** the cost is linear in the text, plus at most [`MOST_ENCODED`] short passes of the encoder; every byte
//! is read by the rules, and by the head up to [`MOST_WINDOWS`] windows.

use super::decode::{payloads, reversed, rot13, turned, undisguised};
use super::family::RuleFamily;
use super::features::features;
use super::plain::plain;
use super::rules::families;
use super::segment::{Provenance, Segment};
use super::window::windows;
use crate::pass::SharedPass;
use chorus_infer::{MixedHead, TextEncoder};

/// Most windows and decodings of one text that get a vector of their own.
pub const MOST_ENCODED: usize = 3;

/// Most windows of one text that the head looks at, evenly spaced where there are more: about 400 KB of prose.
pub const MOST_WINDOWS: usize = 4096;

/// Longest text in bytes that the head reads whole: one window of the encoder.
const WHOLE_BYTES: usize = 1024;

/// Longest text in bytes that is also read by rot13 and backwards.
const TURNED_BYTES: usize = 16 * 1024;

/// What a rule that hits stands for: what the head says of attempts that leave no doubt.
const RULE_SCORE: f64 = 0.97;

/// Probability without a vector below which a window is not worth one.
const SUSPECT: f64 = 0.3;

/// How much a text looks like an attempt, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Who wrote it.
    pub provenance: Provenance,
    /// 0..=1, before the stricter measure for foreign text.
    pub score: f64,
    /// Rule families that hit, in the text or behind a disguise.
    pub families: Vec<RuleFamily>,
    /// Whether the encoder could be asked; without it, a low score says little.
    pub complete: bool,
}

/// What scores are made with.
pub(super) struct Judge<'a> {
    pub(super) head: Option<&'static MixedHead>,
    pub(super) encoder: Option<&'a dyn TextEncoder>,
}

impl Judge<'_> {
    /// Looks at one segment.
    pub(super) fn find(&self, segment: &Segment<'_>, pass: &mut SharedPass) -> Finding {
        let text = segment.text;
        let plain = plain(text);
        let hidden = hidden(text, &plain);
        let foreign = segment.provenance.is_foreign();
        let mut families = rule_hits(&plain, &hidden);
        families.retain(|family| foreign || !family.only_foreign());
        let rules = if families.is_empty() { 0.0 } else { RULE_SCORE };
        let (score, complete) = match self.head {
            None => (rules, false),
            // A certain hit needs no encoder.
            Some(_) if rules > 0.0 => (rules, true),
            Some(head) => self.read(head, text, &plain, &hidden, pass),
        };
        Finding { provenance: segment.provenance, score, families, complete }
    }

    /// The head's worst opinion of the whole, its windows and what it hides; and whether the encoder was asked.
    fn read(
        &self,
        head: &MixedHead,
        text: &str,
        plain: &str,
        hidden: &[String],
        pass: &mut SharedPass,
    ) -> (f64, bool) {
        let mut whole = 0.0;
        let mut complete = true;
        if text.len() <= WHOLE_BYTES {
            let features = features(plain);
            whole = head.probability_alone(&features);
            match self.vector(text, pass) {
                Some(vector) => whole = head.probability(&vector, &features),
                None => complete = false,
            }
        }
        let mut suspects = suspects(head, plain, hidden);
        suspects.retain(|(alone, window)| *alone > whole.max(SUSPECT) && (whole == 0.0 || *window != plain));
        // What is left over keeps its score without a vector: decoys must not shield an attempt.
        let mut worst = suspects.get(MOST_ENCODED).map_or(whole, |(alone, _)| alone.max(whole));
        for (alone, window) in suspects.into_iter().take(MOST_ENCODED) {
            let score = match self.vector(window, pass) {
                Some(vector) => head.probability(&vector, &features(window)),
                None => alone,
            };
            worst = f64::max(worst, score);
        }
        (worst, complete && self.fits(head))
    }

    fn fits(&self, head: &MixedHead) -> bool {
        self.encoder.is_some_and(|encoder| encoder.digest() == head.card().encoder_digest)
    }

    /// The vector of a text of one window, from an encoder that the head knows.
    fn vector(&self, text: &str, pass: &mut SharedPass) -> Option<Vec<f32>> {
        let encoder = self.encoder.filter(|_| self.head.is_some_and(|head| self.fits(head)))?;
        pass.encode(encoder, text).ok().map(|encoded| encoded.mean.clone())
    }
}

/// What the text hides: its undisguised form, payloads, and prose that was turned.
fn hidden(text: &str, plain_text: &str) -> Vec<String> {
    let mut found: Vec<String> = undisguised(plain_text).into_iter().collect();
    found.extend(payloads(text).iter().map(|payload| plain(payload)));
    if plain_text.len() <= TURNED_BYTES {
        found.extend(windows(plain_text).into_iter().flat_map(turned));
    }
    found
}

/// Families of the text, of what it hides, and of its turned forms.
fn rule_hits(plain: &str, hidden: &[String]) -> Vec<RuleFamily> {
    let mut found = families(plain);
    hidden.iter().for_each(|text| found.extend(families(text)));
    if plain.len() <= TURNED_BYTES && plain.is_ascii() {
        let turned = [rot13(plain), reversed(plain)];
        if turned.iter().any(|text| !families(text).is_empty()) {
            found.push(RuleFamily::Encoding);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Windows of the text and of what it hides with the head's opinion without a vector, worst first.
fn suspects<'t>(head: &MixedHead, plain: &'t str, hidden: &'t [String]) -> Vec<(f64, &'t str)> {
    let cut = std::iter::once(plain).chain(hidden.iter().map(String::as_str)).flat_map(windows);
    let all: Vec<&str> = cut.map(str::trim).filter(|window| !window.is_empty()).collect();
    let step = all.len().div_ceil(MOST_WINDOWS).max(1);
    let mut judged: Vec<(f64, &str)> = all
        .into_iter()
        .step_by(step)
        .map(|window| (head.probability_alone(&features(window)), window))
        .collect();
    judged.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    judged
}
