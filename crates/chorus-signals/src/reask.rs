//! `reask`: the user asks again what they asked before.
//!
//! *Measures:* how alike the last user message is to each of the user's turns just before it.
//! *Inputs:* the last user message and the user's earlier ones, as many as the longest `lookback_turns`.
//! *Cost:* 3, one encoder pass a turn that is not the same word for word
//! *Fails when:* no encoder is loaded or it fails; the user asks the same of another thing, in nearly the same words.
//! *Source:* contract §1.4 (`reasks`).
//!
//! Two turns that differ in case, width, white space or punctuation only are alike by 1; else their likeness is the
//! cosine of their vectors, on the contract's scale ([`Calibration`]). A turn that only agrees ("yes", "go on") asks
//! nothing, and is like no other. A rule holds when each of the `lookback_turns` turns before is alike by its threshold.
//! Of the rules that hold, those with the largest lookback stay, because they say the most. Confidence is the least
//! likeness within the lookback. **Invariant:** raw is that likeness, matched or not; 0 where there are fewer turns.

use crate::bank::cosine;
use crate::calibration::Calibration;
use crate::doc::SignalDoc;
use crate::measure::{Look, Measure};
use crate::pass::loaded;
use crate::subject::is_assent;
use crate::text::{Case, comparable};
use chorus_policy::{AbsentReason, Evidence, Observation};
use chorus_spec::{Family, ReaskSignal, Recipe, SignalKey, SignalKind};

/// The row of the table.
pub const DOC: SignalDoc = SignalDoc {
    family: Family::Reask,
    measures: "how alike the last user message is to each of the user's turns just before it.",
    inputs: "the last user message and the user's earlier ones, as many as the longest `lookback_turns`.",
    cost: 3,
    fails_when: "no encoder is loaded or it fails; the user asks the same of another thing, in nearly the same words.",
    source: "contract §1.4 (`reasks`).",
};

/// All reask rules of a recipe.
#[derive(Debug)]
pub(crate) struct Reasks {
    rules: Vec<(SignalKey, ReaskSignal)>,
}

impl Reasks {
    pub(crate) fn prepare(recipe: &Recipe) -> Self {
        let rules = recipe.signals.iter().filter_map(|signal| match &signal.kind {
            SignalKind::Reask(reask) => Some((SignalKey::new(Family::Reask, &signal.name), *reask)),
            _ => None,
        });
        Self { rules: rules.collect() }
    }

    fn lookback(&self) -> usize {
        self.rules.iter().map(|(_, rule)| rule.lookback_turns).max().unwrap_or_default()
    }

    fn judge(&self, likeness: &[f64], evidence: &mut Evidence) {
        let least = |rule: &ReaskSignal| {
            let turns = rule.lookback_turns.max(1);
            let seen = likeness.iter().take(turns).copied().fold(1.0, f64::min);
            if likeness.len() < turns { 0.0 } else { seen }
        };
        let holds =
            |rule: &ReaskSignal| likeness.len() >= rule.lookback_turns && least(rule) >= rule.threshold;
        let longest = self.rules.iter().filter(|(_, rule)| holds(rule)).map(|(_, r)| r.lookback_turns).max();
        for (key, rule) in &self.rules {
            let raw = Some(least(rule));
            let observation = if holds(rule) && longest == Some(rule.lookback_turns) {
                Observation::Matched { confidence: least(rule).clamp(0.0, 1.0), raw }
            } else {
                Observation::Unmatched { raw }
            };
            evidence.insert(key.clone(), observation);
        }
    }
}

impl Measure for Reasks {
    fn measure(&self, look: &mut Look<'_, '_>, evidence: &mut Evidence) {
        match likeness(look, self.lookback()) {
            Ok(likeness) => self.judge(&likeness, evidence),
            Err(why) => {
                for (key, _) in &self.rules {
                    evidence.insert(key.clone(), Observation::Absent(AbsentReason::Failed(why.clone())));
                }
            }
        }
    }
}

/// How alike the last turn is to each turn before it, the newest first, at most `turns` of them.
fn likeness(look: &mut Look<'_, '_>, turns: usize) -> Result<Vec<f64>, String> {
    let mut said = look.subject.user_texts().rev();
    let Some(last) = said.next() else {
        return Ok(Vec::new());
    };
    let words = words(last);
    if is_assent(last) {
        return Ok(said.take(turns).map(|_| 0.0).collect());
    }
    said.take(turns).map(|before| alike(look, last, &words, before)).collect()
}

fn alike(look: &mut Look<'_, '_>, last: &str, words: &str, before: &str) -> Result<f64, String> {
    if self::words(before) == words {
        return Ok(1.0);
    }
    if is_assent(before) {
        return Ok(0.0);
    }
    let encoder = loaded(look.encoder)?;
    let last = look.pass.encode(encoder, last)?;
    let before = look.pass.encode(encoder, before)?;
    Ok(Calibration::of(encoder).apply(cosine(&last.mean, &before.mean)))
}

/// A turn without what does not change a question: case, width, white space, punctuation.
fn words(text: &str) -> String {
    let text = comparable(text, Case::Folded);
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{self, Broken, WordBag};
    use crate::subject::Subject;
    use chorus_infer::TextEncoder;
    use chorus_wire::{ChatRequest, Message, Role};

    fn reasks() -> Reasks {
        let rule = |name: &str, lookback_turns| {
            fake::signal(name, SignalKind::Reask(ReaskSignal { threshold: 0.8, lookback_turns }))
        };
        let signals = vec![rule("once", 1), rule("twice", 2)];
        Reasks::prepare(&Recipe { signals, ..Recipe::default() })
    }

    fn observe(turns: &[&str], encoder: Option<&dyn TextEncoder>) -> (Observation, Observation) {
        let between =
            |text: &&str| [Message::new(Role::User, text), Message::new(Role::Assistant, "An answer.")];
        let mut messages: Vec<Message> = turns.iter().flat_map(between).collect();
        messages.pop();
        let request = ChatRequest::new("m", messages);
        let evidence = fake::measured(&reasks(), encoder, &Subject::of(&request));
        let of = |name: &str| evidence.get(&SignalKey::new(Family::Reask, name)).cloned().unwrap();
        (of("once"), of("twice"))
    }

    #[test]
    fn an_exact_repetition_is_alike_by_one_and_needs_no_encoder() {
        for again in ["why is the sky blue", "Why is the sky blue?", "  WHY is the\nsky ｂｌｕｅ?!"] {
            let (once, twice) = observe(&["Why is the sky blue?", again], None);
            assert_eq!(once, Observation::Matched { confidence: 1.0, raw: Some(1.0) }, "{again}");
            assert_eq!(twice, Observation::Unmatched { raw: Some(0.0) }, "{again}");
        }
    }

    #[test]
    fn only_the_largest_satisfied_lookback_stays() {
        let asked =
            ["why is the sky blue today", "why is the sky so blue today", "why is the sky blue today then"];
        let (once, twice) = observe(&asked, Some(&WordBag));
        assert!(matches!(once, Observation::Unmatched { raw: Some(raw) } if raw >= 0.8), "{once:?}");
        assert!(matches!(twice, Observation::Matched { confidence, .. } if confidence >= 0.8), "{twice:?}");
        // A break in the row leaves the shorter rule.
        let (once, twice) = observe(&["why is the sky blue", "bake bread", "Bake bread!"], Some(&WordBag));
        assert!(matches!((once, twice), (Observation::Matched { .. }, Observation::Unmatched { .. })));
    }

    #[test]
    fn agreeing_again_asks_nothing() {
        let (once, _) = observe(&["Plan the move", "go on", "go on"], Some(&WordBag));
        assert_eq!(once, Observation::Unmatched { raw: Some(0.0) });
        assert_eq!(observe(&["one question only"], None).0, Observation::Unmatched { raw: Some(0.0) });
    }

    #[test]
    fn without_an_encoder_another_wording_is_unknown() {
        let turns = ["why is the sky blue", "what makes the sky blue"];
        for encoder in [None, Some(&Broken as &dyn TextEncoder)] {
            assert!(matches!(observe(&turns, encoder).0, Observation::Absent(AbsentReason::Failed(_))));
        }
    }
}
