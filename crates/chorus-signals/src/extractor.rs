//! The signals of one recipe, prepared once, and asked for each request.
//!
//! It knows which family answers an ask; it knows no decision and no cost of waiting: the engine calls it off its
//! runtime's threads when a learned family is asked. Language, embedding and domain answer for all of their rules at
//! once, because one detection, the best few, and the entropy are facts of the family.
//!
//! **Invariant:** after [`Extractor::extract`] every key that an asked rule emits is in the evidence.

use crate::complexity::Complexity;
use crate::domain::Domains;
use crate::embedding::Embeddings;
use crate::fault::{PrepareFault, Problem};
use crate::keyword::Keyword;
use crate::language::Languages;
use crate::pass::SharedPass;
use crate::structure::Structure;
use crate::subject::Subject;
use crate::{context, conversation};
use chorus_infer::{Head, TextEncoder, heads};
use chorus_policy::{AbsentReason, Ask, Evidence, Observation};
use chorus_spec::{ContextSignal, ConversationSignal, Family, Global, Recipe, Signal, SignalKey, SignalKind};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

/// The heads that learned signals use.
#[derive(Debug, Clone, Copy, Default)]
pub struct Heads {
    /// One probability an MMLU-Pro category.
    pub domain: Option<&'static Head>,
    /// Labels `easy` and `hard` at least.
    pub complexity: Option<&'static Head>,
}

impl Heads {
    /// The heads that are built in.
    #[must_use]
    pub fn built_in() -> Self {
        Self { domain: heads::domain(), complexity: heads::complexity() }
    }
}

/// How long one ask took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// The family.
    pub family: Family,
    /// The rule; `*` where the family answers for all of its rules at once.
    pub rule: String,
    /// Wall time in microseconds. An encoder pass counts for the family that needed it first.
    pub micros: u64,
}

/// The signals of one recipe, prepared.
pub struct Extractor {
    rules: BTreeMap<Ask, Prepared>,
    languages: Languages,
    embeddings: Embeddings,
    domains: Domains,
    encoder: Option<Arc<dyn TextEncoder>>,
}

/// A rule that answers alone.
enum Prepared {
    Keyword(Keyword),
    Context(ContextSignal),
    Structure(Structure),
    Conversation(ConversationSignal),
    Complexity(Complexity),
    /// The family answers for it.
    Family,
    /// The keys that nobody can answer.
    Unsupported(Vec<SignalKey>),
}

impl std::fmt::Debug for Extractor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Extractor").field("rules", &self.rules.keys()).finish_non_exhaustive()
    }
}

impl Extractor {
    /// Compiles every rule of a recipe, with the built-in heads. Examples of learned rules are encoded at their first
    /// need, or by [`warm`](Self::warm). Without an encoder, learned signals are absent.
    ///
    /// # Errors
    /// [`PrepareFault`], with every rule that does not compile.
    pub fn prepare(
        recipe: &Recipe,
        global: &Global,
        encoder: Option<Arc<dyn TextEncoder>>,
    ) -> Result<Self, PrepareFault> {
        Self::prepare_with(recipe, global, encoder, Heads::built_in())
    }

    /// [`prepare`](Self::prepare) with other heads.
    ///
    /// # Errors
    /// [`PrepareFault`], with every rule that does not compile.
    pub fn prepare_with(
        recipe: &Recipe,
        global: &Global,
        encoder: Option<Arc<dyn TextEncoder>>,
        heads: Heads,
    ) -> Result<Self, PrepareFault> {
        let (mut rules, mut problems) = (BTreeMap::new(), Vec::new());
        for signal in &recipe.signals {
            let ask = Ask { family: signal.family(), rule: signal.name.clone() };
            match prepare_rule(signal, global, heads) {
                Ok(prepared) => {
                    rules.insert(ask, prepared);
                }
                Err(message) => {
                    let (rule, place) = (signal.name.clone(), signal.place);
                    problems.push(Problem { rule, place, message });
                }
            }
        }
        if !problems.is_empty() {
            return Err(PrepareFault { problems });
        }
        Ok(Self {
            rules,
            languages: Languages::prepare(recipe),
            embeddings: Embeddings::prepare(recipe, global),
            domains: Domains::prepare(recipe, global.domain_threshold, heads.domain),
            encoder,
        })
    }

    /// Whether a recipe has a signal that needs an encoder.
    #[must_use]
    pub fn needs_encoder(recipe: &Recipe) -> bool {
        recipe.signals.iter().any(|signal| needs_encoder(signal.family()))
    }

    /// Encodes the examples of every learned rule now, so that no request waits for it. Without an encoder it does
    /// nothing; an example that cannot be encoded makes its rule absent.
    pub fn warm(&self) {
        let Some(encoder) = self.encoder.as_deref() else {
            return;
        };
        self.embeddings.warm(encoder);
        for rule in self.rules.values() {
            if let Prepared::Complexity(complexity) = rule {
                complexity.warm(encoder);
            }
        }
    }

    /// Answers asks: puts an observation into the evidence for every key that an asked rule emits.
    pub fn extract(
        &self,
        asks: &[Ask],
        subject: &Subject<'_>,
        pass: &mut SharedPass,
        evidence: &mut Evidence,
    ) -> Vec<Timing> {
        let mut timings = Vec::with_capacity(asks.len());
        let mut families = BTreeSet::new();
        for ask in asks {
            let whole = answers_together(ask.family);
            if whole && !families.insert(ask.family) {
                continue;
            }
            let start = Instant::now();
            if whole {
                self.extract_family(ask.family, subject, pass, evidence);
            } else {
                self.extract_rule(ask, subject, pass, evidence);
            }
            let micros = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
            let rule = if whole { "*".to_owned() } else { ask.rule.clone() };
            timings.push(Timing { family: ask.family, rule, micros });
        }
        for ask in asks.iter().filter(|ask| answers_together(ask.family)) {
            unanswered(ask, evidence);
        }
        timings
    }

    fn extract_family(
        &self,
        family: Family,
        subject: &Subject<'_>,
        pass: &mut SharedPass,
        evidence: &mut Evidence,
    ) {
        let encoder = self.encoder.as_deref();
        match family {
            Family::Language => self.languages.observe(subject.text(), evidence),
            Family::Embedding => self.embeddings.observe(encoder, subject.text(), pass, evidence),
            _ => self.domains.observe(encoder, subject.task(), pass, evidence),
        }
    }

    fn extract_rule(&self, ask: &Ask, subject: &Subject<'_>, pass: &mut SharedPass, evidence: &mut Evidence) {
        let observation = match self.rules.get(ask) {
            Some(Prepared::Keyword(rule)) => rule.observe(subject),
            Some(Prepared::Context(rule)) => context::observe(*rule, subject),
            Some(Prepared::Structure(rule)) => rule.observe(subject),
            Some(Prepared::Conversation(rule)) => conversation::observe(rule, subject),
            Some(Prepared::Complexity(rule)) => {
                return rule.observe(self.encoder.as_deref(), subject.task(), pass, evidence);
            }
            Some(Prepared::Unsupported(keys)) => {
                for key in keys {
                    evidence.insert(key.clone(), Observation::Absent(AbsentReason::Unsupported));
                }
                return;
            }
            Some(Prepared::Family) | None => return unanswered(ask, evidence),
        };
        evidence.insert(SignalKey::new(ask.family, &ask.rule), observation);
    }
}

fn prepare_rule(signal: &Signal, global: &Global, heads: Heads) -> Result<Prepared, String> {
    Ok(match &signal.kind {
        SignalKind::Keyword(keyword) => Prepared::Keyword(Keyword::prepare(keyword)?),
        SignalKind::Context(context) => Prepared::Context(*context),
        SignalKind::Structure(structure) => Prepared::Structure(Structure::prepare(structure)?),
        SignalKind::Conversation(conversation) => Prepared::Conversation(conversation.clone()),
        SignalKind::Complexity(complexity) => Prepared::Complexity(Complexity::prepare(
            &signal.name,
            complexity,
            global.complexity_prototypes,
            heads.complexity,
        )),
        SignalKind::Language(_) | SignalKind::Embedding(_) | SignalKind::Domain(_) => Prepared::Family,
        _ => Prepared::Unsupported(
            signal.emits().into_iter().map(|name| SignalKey::new(signal.family(), name)).collect(),
        ),
    })
}

fn answers_together(family: Family) -> bool {
    matches!(family, Family::Language | Family::Embedding | Family::Domain)
}

fn needs_encoder(family: Family) -> bool {
    matches!(family, Family::Embedding | Family::Domain | Family::Complexity)
}

/// Says that nobody answered, if nobody did.
fn unanswered(ask: &Ask, evidence: &mut Evidence) {
    let key = SignalKey::new(ask.family, &ask.rule);
    if evidence.get(&key).is_none() {
        let reason = AbsentReason::Failed(format!("the recipe has no signal `{key}`"));
        evidence.insert(key, Observation::Absent(reason));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{WordBag, head_of_words};
    use chorus_spec::{
        Aggregation, ComplexitySignal, DomainSignal, EmbeddingSignal, KeywordMethod, KeywordOperator,
        KeywordSignal, LanguageSignal, Place,
    };
    use chorus_wire::{ChatRequest, Message, Role};

    fn signal(name: &str, kind: SignalKind) -> Signal {
        Signal { name: name.to_owned(), description: String::new(), kind, place: Place::default() }
    }

    fn keyword(method: KeywordMethod, keywords: &[&str]) -> SignalKind {
        let keywords = keywords.iter().map(|k| (*k).to_owned()).collect();
        SignalKind::Keyword(KeywordSignal {
            operator: KeywordOperator::Or,
            keywords,
            case_sensitive: false,
            method,
        })
    }

    fn recipe() -> Recipe {
        let embedding = EmbeddingSignal {
            threshold: 0.5,
            candidates: vec!["migrate the ledger".to_owned()],
            aggregation: Aggregation::Max,
            query_modality: "text".to_owned(),
        };
        let complexity = ComplexitySignal {
            threshold: 0.1,
            hard: vec!["migrate the whole ledger".to_owned()],
            easy: vec!["yes go on".to_owned()],
            composer: None,
        };
        let domain = DomainSignal { mmlu_categories: Vec::new(), model_scores: Vec::new() };
        let signals = vec![
            signal("greeting", keyword(KeywordMethod::Literal, &["hello"])),
            signal("any", SignalKind::Context(ContextSignal { min_tokens: 0, max_tokens: None })),
            signal("en", SignalKind::Language(LanguageSignal { threshold: 0.3 })),
            signal("de", SignalKind::Language(LanguageSignal { threshold: 0.3 })),
            signal("ledger", SignalKind::Embedding(embedding)),
            signal("business", SignalKind::Domain(domain)),
            signal("needs", SignalKind::Complexity(complexity)),
            signal("leak", SignalKind::Unsupported(Family::Pii)),
        ];
        Recipe { signals, ..Recipe::default() }
    }

    fn asks(recipe: &Recipe) -> Vec<Ask> {
        recipe.signals.iter().map(|s| Ask { family: s.family(), rule: s.name.clone() }).collect()
    }

    fn extractor(recipe: &Recipe, encoder: Option<Arc<dyn TextEncoder>>) -> Extractor {
        let domain = Some(head_of_words(&[("business", "ledger"), ("law", "tenant")]));
        let heads = Heads { domain, complexity: None };
        Extractor::prepare_with(recipe, &Global::default(), encoder, heads).unwrap()
    }

    fn user(text: &str) -> ChatRequest {
        ChatRequest::new("m", vec![Message::new(Role::User, text)])
    }

    fn of<'e>(evidence: &'e Evidence, family: Family, name: &str) -> &'e Observation {
        evidence.get(&SignalKey::new(family, name)).unwrap()
    }

    #[test]
    fn every_key_of_an_asked_rule_is_answered_and_the_encoder_runs_once() {
        let recipe = recipe();
        let (mut pass, mut evidence) = (SharedPass::new(), Evidence::default());
        let request = user("hello, please migrate the ledger");
        let extractor = extractor(&recipe, Some(Arc::new(WordBag)));
        extractor.warm();
        let timings = extractor.extract(&asks(&recipe), &Subject::of(&request), &mut pass, &mut evidence);
        for signal in &recipe.signals {
            for name in signal.emits() {
                assert!(evidence.get(&SignalKey::new(signal.family(), &name)).is_some(), "{name}");
            }
        }
        assert_eq!(pass.runs(), 1);
        // Two languages are one detection.
        assert_eq!(timings.len(), recipe.signals.len() - 1);
        assert!(matches!(of(&evidence, Family::Keyword, "greeting"), Observation::Matched { .. }));
        assert!(matches!(of(&evidence, Family::Domain, "business"), Observation::Matched { .. }));
        assert!(matches!(of(&evidence, Family::Complexity, "needs:hard"), Observation::Matched { .. }));
        assert_eq!(of(&evidence, Family::Pii, "leak"), &Observation::Absent(AbsentReason::Unsupported));
    }

    #[test]
    fn a_signal_that_is_not_asked_is_not_computed() {
        let recipe = recipe();
        let (mut pass, mut evidence) = (SharedPass::new(), Evidence::default());
        let request = user("hello");
        let ask = Ask { family: Family::Keyword, rule: "greeting".to_owned() };
        extractor(&recipe, Some(Arc::new(WordBag))).extract(
            &[ask],
            &Subject::of(&request),
            &mut pass,
            &mut evidence,
        );
        assert_eq!((evidence.iter().count(), pass.runs()), (1, 0));
    }

    #[test]
    fn b02_parts_and_one_string_give_the_same_evidence() {
        let recipe = recipe();
        let extractor = extractor(&recipe, Some(Arc::new(WordBag)));
        let evidence = |content: &str| {
            let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":{content}}}]}}"#);
            let request = ChatRequest::parse(body.as_bytes(), &Default::default()).unwrap();
            let mut evidence = Evidence::default();
            extractor.extract(&asks(&recipe), &Subject::of(&request), &mut SharedPass::new(), &mut evidence);
            evidence
        };
        let parts = r#"[{"type":"text","text":"migrate the "},{"type":"text","text":"ledger"}]"#;
        assert_eq!(evidence(parts), evidence(r#""migrate the ledger""#));
    }

    #[test]
    fn b01_e12_instructions_are_not_the_users_words() {
        let recipe = recipe();
        let mut evidence = Evidence::default();
        let messages = vec![
            Message::new(Role::Developer, "Say hello first"),
            Message::new(Role::User, "Capital of Peru?"),
        ];
        let request = ChatRequest::new("m", messages);
        extractor(&recipe, None).extract(
            &asks(&recipe),
            &Subject::of(&request),
            &mut SharedPass::new(),
            &mut evidence,
        );
        assert!(matches!(of(&evidence, Family::Keyword, "greeting"), Observation::Unmatched { .. }));
        let absent = of(&evidence, Family::Embedding, "ledger");
        assert_eq!(absent, &Observation::Absent(AbsentReason::Failed("no encoder is loaded".to_owned())));
    }

    #[test]
    fn d14_an_assent_keeps_the_tier_of_its_task() {
        let recipe = recipe();
        let mut evidence = Evidence::default();
        let turns = [
            (Role::User, "migrate the ledger"),
            (Role::Assistant, "A plan. Shall I?"),
            (Role::User, "yes, go on"),
        ];
        let request = ChatRequest::new("m", turns.map(|(role, text)| Message::new(role, text)).to_vec());
        extractor(&recipe, Some(Arc::new(WordBag))).extract(
            &asks(&recipe),
            &Subject::of(&request),
            &mut SharedPass::new(),
            &mut evidence,
        );
        assert!(matches!(of(&evidence, Family::Complexity, "needs:hard"), Observation::Matched { .. }));
        assert!(matches!(of(&evidence, Family::Domain, "business"), Observation::Matched { .. }));
    }

    #[test]
    fn all_bad_rules_are_told_at_once_and_unknown_asks_are_absent() {
        let bad = [
            signal("one", keyword(KeywordMethod::Regex, &["([a"])),
            signal("two", keyword(KeywordMethod::Literal, &[" "])),
        ];
        let broken = Recipe { signals: bad.to_vec(), ..Recipe::default() };
        let fault = Extractor::prepare(&broken, &Global::default(), None).unwrap_err();
        assert_eq!(fault.problems.len(), 2);
        assert!(fault.to_string().contains("signal `one`") && fault.to_string().contains("; signal `two`"));

        let recipe = recipe();
        let mut evidence = Evidence::default();
        let request = user("x");
        let asks = [Family::Keyword, Family::Domain].map(|family| Ask { family, rule: "nowhere".to_owned() });
        extractor(&recipe, None).extract(
            &asks,
            &Subject::of(&request),
            &mut SharedPass::new(),
            &mut evidence,
        );
        for family in [Family::Keyword, Family::Domain] {
            assert!(matches!(of(&evidence, family, "nowhere"), Observation::Absent(AbsentReason::Failed(_))));
        }
        assert!(Extractor::needs_encoder(&recipe) && !Extractor::needs_encoder(&broken));
    }
}
