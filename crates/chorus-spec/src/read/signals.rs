//! Signal rules: every container under `signals`, handed to the reader of its kind.
//!
//! It knows what can be asked, not who asks. **Invariant:** thresholds are in range and patterns compile, so that
//! extraction cannot fail for a reason that stands in the file.

use super::cursor::Cursor;
use super::names::{Answerers, Asker, CONTAINERS, Facts, unique};
use super::order::order;
use super::{envelope, guard, learned, textual};
use crate::diagnostic::code;
use crate::{ComplexitySignal, Condition, Family, Signal, SignalKind};
use std::collections::BTreeSet;

/// Reads the `signals` of a `routing` block.
pub(super) fn read(
    routing: &Cursor<'_>,
    recipe: &str,
    facts: &Facts<'_>,
    answerers: &Answerers<'_>,
) -> Vec<Signal> {
    let Some(signals) = routing.get("signals") else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for (container, family) in CONTAINERS {
        let mut seen = BTreeSet::new();
        for rule in signals.items(container) {
            let Some(name) = rule.required("name") else {
                continue;
            };
            if unique(&mut seen, &rule, &format!("{family} rule"), &name) {
                let description = rule.string("description").unwrap_or_default();
                let asker = Asker { recipe, decision: &name, role: "classifier" };
                let kind = kind(family, &rule, facts, answerers, asker);
                all.extend(kind.map(|kind| Signal { name, description, kind, place: rule.place() }));
            }
        }
    }
    check_composers(&signals, &all);
    all
}

fn kind(
    family: Family,
    rule: &Cursor<'_>,
    facts: &Facts<'_>,
    answerers: &Answerers<'_>,
    asker: Asker<'_>,
) -> Option<SignalKind> {
    let name = asker.decision;
    Some(match family {
        Family::Keyword => SignalKind::Keyword(textual::keyword(rule, name)?),
        Family::Structure => SignalKind::Structure(textual::structure(rule, name)?),
        Family::Context => SignalKind::Context(textual::context(rule)?),
        Family::Language => SignalKind::Language(textual::language(rule)),
        Family::Conversation => SignalKind::Conversation(textual::conversation(rule)?),
        Family::Embedding => SignalKind::Embedding(learned::embedding(rule)?),
        Family::Domain => SignalKind::Domain(learned::domain(rule, name, answerers)),
        Family::Complexity => SignalKind::Complexity(learned::complexity(rule, facts)?),
        Family::FactCheck => SignalKind::FactCheck(learned::fact_check(rule)?),
        Family::UserFeedback => SignalKind::UserFeedback(learned::user_feedback(rule)?),
        Family::Modality => SignalKind::Modality(learned::modality(rule)?),
        Family::Reask => SignalKind::Reask(learned::reask(rule)),
        Family::Preference => SignalKind::Preference(learned::preference(rule)?),
        Family::Kb => SignalKind::Kb(learned::kb(rule, facts)?),
        Family::Classifier => SignalKind::Classifier(learned::classifier(rule, answerers, asker)?),
        Family::Authz => SignalKind::Authz(guard::authz(rule)?),
        Family::Jailbreak => SignalKind::Jailbreak(guard::jailbreak(rule)),
        Family::Pii => SignalKind::Pii(guard::pii(rule)),
        Family::Event => SignalKind::Event(envelope::event(rule)),
        Family::Metadata => SignalKind::Metadata(envelope::metadata(rule)?),
        Family::Projection => return None,
    })
}

/// Composers may ask for other complexity rules, as long as none comes back to itself.
fn check_composers(signals: &Cursor<'_>, all: &[Signal]) {
    let rules: Vec<(&Signal, &ComplexitySignal)> = all
        .iter()
        .filter_map(|signal| match &signal.kind {
            SignalKind::Complexity(it) => Some((signal, it)),
            _ => None,
        })
        .collect();
    let needs: Vec<Vec<usize>> = rules
        .iter()
        .map(|(_, it)| {
            let asked: Vec<_> = it.composer.iter().flat_map(Condition::keys).collect();
            let asks = |signal: &Signal| {
                asked.iter().any(|key| {
                    key.family == Family::Complexity && signal.emits().iter().any(|name| name == key.name())
                })
            };
            (0..rules.len()).filter(|at| rules.get(*at).is_some_and(|(signal, _)| asks(signal))).collect()
        })
        .collect();
    if let Err(circle) = order(&needs) {
        let names: Vec<&str> =
            circle.iter().filter_map(|at| rules.get(*at)).map(|(s, _)| s.name.as_str()).collect();
        let place = signals
            .items("complexity")
            .into_iter()
            .find(|at| at.string("name").as_deref() == names.first().copied());
        place
            .unwrap_or_else(|| signals.clone())
            .error(code::CYCLE, format!("composers ask for each other: {}", names.join(" → ")));
    }
}
