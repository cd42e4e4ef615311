//! From a recipe to what answers its asks: which family's file measures which kind of rule.
//!
//! It knows every family and no request. Families that answer for all of their rules at once do so because one
//! detection, one pass or a competition between the rules is a fact of the family.
//!
//! **Invariant:** every signal of the recipe has one measure, or a problem.

use crate::authz::Roles;
use crate::classifier::Classifier;
use crate::complexity::Complexity;
use crate::context::Contexts;
use crate::domain::Domains;
use crate::embedding::Embeddings;
use crate::equipment::Equipment;
use crate::event::Event;
use crate::fact_check::FactChecks;
use crate::fault::{PrepareFault, Problem};
use crate::jailbreak::Jailbreak;
use crate::kb::Knowledge;
use crate::keyword::Keyword;
use crate::knowledge::KnowledgeUse;
use crate::language::Languages;
use crate::lexicon::{Lexicon, LexiconBuilder};
use crate::measure::{Alone, Look, Measure};
use crate::modality::Modalities;
use crate::pii::Pii;
use crate::preference::Preferences;
use crate::reask::Reasks;
use crate::structure::Structure;
use crate::user_feedback::Feedbacks;
use crate::{conversation, metadata};
use chorus_infer::TextEncoder;
use chorus_policy::{AbsentReason, Ask, Evidence, Observation};
use chorus_spec::{Family, Global, Place, Recipe, Signal, SignalKey, SignalKind};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The rule of a measure that answers for its whole family.
pub(crate) const WHOLE_FAMILY: &str = "*";

/// What answers the asks of one recipe.
#[derive(Default)]
pub(crate) struct Prepared {
    /// Measures, each with the rule that it is for.
    pub(crate) measures: Vec<(Arc<str>, Box<dyn Measure>)>,
    /// Which measure answers an ask.
    pub(crate) answers: BTreeMap<Ask, usize>,
    /// What rules look for in the user's words.
    pub(crate) lexicon: Lexicon,
    /// Where knowledge came from.
    pub(crate) knowledge: Vec<KnowledgeUse>,
    families: BTreeMap<Family, usize>,
}

impl Prepared {
    /// Prepares every rule of a recipe.
    pub(crate) fn of(recipe: &Recipe, global: &Global, with: &Equipment) -> Result<Self, PrepareFault> {
        let (mut prepared, mut problems) = (Self::default(), Vec::new());
        let mut lexicon = LexiconBuilder::default();
        for signal in &recipe.signals {
            let ask = Ask::new(signal.family(), signal.name.as_str());
            match alone(signal, global, with, &mut lexicon) {
                Ok(Some(measure)) => prepared.add(vec![ask], &signal.name, measure),
                Ok(None) => prepared.join(ask, recipe, global, with),
                Err(message) => {
                    let (rule, place) = (signal.name.clone(), signal.place);
                    problems.push(Problem { rule, place, message });
                }
            }
        }
        prepared.add_knowledge(recipe, global, with, &mut problems);
        match lexicon.build() {
            Ok(lexicon) => prepared.lexicon = lexicon,
            Err(message) => {
                let (rule, place) = (WHOLE_FAMILY.to_owned(), Place::default());
                problems.push(Problem { rule, place, message });
            }
        }
        if problems.is_empty() { Ok(prepared) } else { Err(PrepareFault { problems }) }
    }

    fn add(&mut self, asks: Vec<Ask>, rule: &str, measure: Box<dyn Measure>) {
        let at = self.measures.len();
        self.answers.extend(asks.into_iter().map(|ask| (ask, at)));
        self.measures.push((rule.into(), measure));
    }

    /// Leaves an ask to its family's measure, which is made with the family's first rule.
    fn join(&mut self, ask: Ask, recipe: &Recipe, global: &Global, with: &Equipment) {
        let known = self.families.get(&ask.family).copied();
        let at = known.or_else(|| {
            self.add(Vec::new(), WHOLE_FAMILY, together(ask.family, recipe, global, with)?);
            self.measures.len().checked_sub(1)
        });
        if let Some(at) = at {
            self.families.insert(ask.family, at);
            self.answers.insert(ask, at);
        }
    }

    /// Knowledge bases answer for their rules, and for metrics that only projections read.
    fn add_knowledge(
        &mut self,
        recipe: &Recipe,
        global: &Global,
        with: &Equipment,
        problems: &mut Vec<Problem>,
    ) {
        let (knowledge, uses, wrong) = Knowledge::prepare(recipe, &global.knowledge_bases, &with.folders);
        problems.extend(wrong);
        self.knowledge = uses;
        let rules = recipe.signals.iter().filter(|signal| signal.family() == Family::Kb);
        let rules = rules.map(|signal| Ask::new(Family::Kb, signal.name.as_str()));
        let asks: Vec<Ask> = rules.chain(knowledge.metric_asks()).collect();
        if !asks.is_empty() {
            self.add(asks, WHOLE_FAMILY, Box::new(knowledge));
        }
    }
}

/// The measure of a rule that answers alone; `None` where its family answers for it.
fn alone(
    signal: &Signal,
    global: &Global,
    with: &Equipment,
    lexicon: &mut LexiconBuilder,
) -> Result<Option<Box<dyn Measure>>, String> {
    let encoder = with.encoder.as_deref();
    Ok(match &signal.kind {
        SignalKind::Keyword(rule) => single(signal, Keyword::prepare(rule, lexicon)?, Keyword::observe),
        SignalKind::Structure(rule) => single(signal, Structure::prepare(rule, lexicon)?, Structure::observe),
        SignalKind::Conversation(rule) => {
            single(signal, rule.clone(), |rule, look| conversation::observe(rule, look.subject))
        }
        SignalKind::Event(rule) => {
            single(signal, Event::prepare(rule)?, |rule, look| rule.observe(look.subject))
        }
        SignalKind::Metadata(rule) => {
            single(signal, rule.clone(), |rule, look| metadata::observe(rule, look.subject))
        }
        SignalKind::Pii(rule) => {
            single(signal, Pii::prepare(rule, global.pii_threshold), |rule, look| rule.observe(look.subject))
        }
        SignalKind::Jailbreak(rule) => {
            let guard = Jailbreak::prepare(rule, global.prompt_guard_threshold, with.heads.injection);
            Some(Box::new(Guarded(SignalKey::new(Family::Jailbreak, &signal.name), guard)))
        }
        SignalKind::Complexity(rule) => {
            let (scoring, head) = (global.complexity_prototypes, with.heads.complexity);
            Some(Box::new(Complexity::prepare(&signal.name, rule, scoring, head)))
        }
        SignalKind::Classifier(rule) => {
            Some(Box::new(Classifier::prepare(&signal.name, rule, encoder, &with.folders)?))
        }
        SignalKind::Context(_)
        | SignalKind::Language(_)
        | SignalKind::Embedding(_)
        | SignalKind::Domain(_)
        | SignalKind::Reask(_)
        | SignalKind::Preference(_)
        | SignalKind::Authz(_)
        | SignalKind::FactCheck(_)
        | SignalKind::UserFeedback(_)
        | SignalKind::Modality(_)
        | SignalKind::Kb(_) => None,
        SignalKind::Unsupported(_) => Some(Box::new(Unsupported::of(signal))),
    })
}

fn single<R: Send + Sync + 'static>(
    signal: &Signal,
    rule: R,
    observe: fn(&R, &mut Look<'_, '_>) -> Observation,
) -> Option<Box<dyn Measure>> {
    let key = SignalKey::new(signal.family(), &signal.name);
    Some(Box::new(Alone { key, rule, observe }))
}

/// The measure of a whole family.
fn together(family: Family, recipe: &Recipe, global: &Global, with: &Equipment) -> Option<Box<dyn Measure>> {
    Some(match family {
        Family::Context => Box::new(Contexts::prepare(recipe, with.vocabularies.clone())),
        Family::Language => Box::new(Languages::prepare(recipe)),
        Family::Embedding => Box::new(Embeddings::prepare(recipe, global)),
        Family::Domain => Box::new(Domains::prepare(recipe, global.domain_threshold, with.heads.domain)),
        Family::Reask => Box::new(Reasks::prepare(recipe)),
        Family::Preference => Box::new(Preferences::prepare(recipe, global.embedding_prototypes)),
        Family::FactCheck => {
            Box::new(FactChecks::prepare(recipe, global.fact_check_threshold, with.heads.fact_check))
        }
        Family::UserFeedback => {
            Box::new(Feedbacks::prepare(recipe, global.feedback_threshold, with.heads.user_feedback))
        }
        Family::Modality => {
            Box::new(Modalities::prepare(recipe, global.modality_method, with.heads.modality))
        }
        Family::Authz => Box::new(Roles::prepare(recipe, global.identity.fail_open)),
        _ => return None,
    })
}

/// Rules of a family that this version does not run.
struct Unsupported(Vec<SignalKey>);

impl Unsupported {
    fn of(signal: &Signal) -> Self {
        Self(signal.emits().into_iter().map(|name| SignalKey::new(signal.family(), name)).collect())
    }
}

impl Measure for Unsupported {
    fn measure(&self, _: &mut Look<'_, '_>, evidence: &mut Evidence) {
        for key in &self.0 {
            evidence.insert(key.clone(), Observation::Absent(AbsentReason::Unsupported));
        }
    }
}

/// A jailbreak rule with its key.
struct Guarded(SignalKey, Jailbreak);

impl Measure for Guarded {
    fn measure(&self, look: &mut Look<'_, '_>, evidence: &mut Evidence) {
        let observation = self.1.observe(look.encoder, look.subject, look.pass);
        evidence.insert(self.0.clone(), observation);
    }

    fn warm(&self, encoder: &dyn TextEncoder) {
        self.1.warm(encoder);
    }
}

impl Measure for Languages {
    fn measure(&self, look: &mut Look<'_, '_>, evidence: &mut Evidence) {
        self.observe(look.subject.text(), evidence);
    }
}

impl Measure for Embeddings {
    fn measure(&self, look: &mut Look<'_, '_>, evidence: &mut Evidence) {
        self.observe(look.encoder, look.subject.text(), look.pass, evidence);
    }

    fn warm(&self, encoder: &dyn TextEncoder) {
        self.warm(encoder);
    }
}

impl Measure for Domains {
    fn measure(&self, look: &mut Look<'_, '_>, evidence: &mut Evidence) {
        self.observe(look.encoder, look.subject.task(), look.pass, evidence);
    }
}

impl Measure for Complexity {
    fn measure(&self, look: &mut Look<'_, '_>, evidence: &mut Evidence) {
        self.observe(look.encoder, look.subject.task(), look.pass, evidence);
    }

    fn warm(&self, encoder: &dyn TextEncoder) {
        self.warm(encoder);
    }
}

impl Measure for FactChecks {
    fn measure(&self, look: &mut Look<'_, '_>, evidence: &mut Evidence) {
        self.observe(look.encoder, look.subject, look.pass, evidence);
    }
}

impl Measure for Feedbacks {
    fn measure(&self, look: &mut Look<'_, '_>, evidence: &mut Evidence) {
        self.observe(look.encoder, look.subject, look.pass, evidence);
    }
}

impl Measure for Modalities {
    fn measure(&self, look: &mut Look<'_, '_>, evidence: &mut Evidence) {
        self.observe(look.encoder, look.subject, look.pass, evidence);
    }
}
