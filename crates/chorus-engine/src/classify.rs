//! The built-in classifiers, asked apart from any policy: what the classification endpoints answer with.
//!
//! They are signals of a recipe that no file holds, prepared by the same extractor with the file's thresholds, so that
//! they cannot disagree with a policy that asks the same (case D01). It knows no decision.

pub use chorus_signals::jailbreak::RuleFamily;
pub use chorus_signals::pii::{Finding, Redacted};

use crate::fault::{Code, Fault};
use chorus_infer::{Head, TextEncoder, heads};
use chorus_policy::{AbsentReason, Ask, Evidence, Observation};
use chorus_signals::jailbreak::Jailbreak;
use chorus_signals::{Extractor, PrepareFault, SharedPass, SignalDoc, Subject, pii};
use chorus_spec::{
    DomainSignal, FactCheckSignal, Family, Global, JailbreakMethod, JailbreakSignal, ModalitySignal,
    PiiSignal, Place, Recipe, Signal, SignalKey, SignalKind, UserFeedbackSignal,
};
use chorus_wire::ChatRequest;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The name of the built-in jailbreak rule.
pub const JAILBREAK: &str = "jailbreak";

/// The name of the built-in rule that allows no personal data.
pub const PII: &str = "pii";

/// The name of the built-in rule for everything that is about to leave: every text of a request, whoever wrote it.
const OUTBOUND: &str = "outbound";

/// The names of the built-in modality rules: the contract's labels.
pub(crate) const TEXT: &str = "AR";
pub(crate) const IMAGE: &str = "DIFFUSION";
pub(crate) const TEXT_AND_IMAGE: &str = "BOTH";

/// The built-in classifiers, and the encoder for its own sake.
pub struct Classifiers {
    extractor: Arc<Extractor>,
    asks: Vec<Ask>,
    encoder: Option<Arc<dyn TextEncoder>>,
    encoder_gate: Arc<Semaphore>,
}

impl Classifiers {
    pub(crate) fn prepare(
        global: &Global,
        encoder: Option<Arc<dyn TextEncoder>>,
        encoder_gate: Arc<Semaphore>,
    ) -> Result<Self, PrepareFault> {
        let recipe = recipe();
        let asks = recipe.signals.iter().map(|s| Ask::new(s.family(), s.name.as_str())).collect();
        let extractor = Extractor::prepare(&recipe, global, encoder.clone())?;
        extractor.warm();
        Ok(Self { extractor: Arc::new(extractor), asks, encoder, encoder_gate })
    }

    /// What these families say of a request: domain, fact check, user feedback, jailbreak, pii.
    ///
    /// # Errors
    /// [`Code::Internal`] when a classifier panics.
    pub async fn observe(&self, families: &[Family], request: ChatRequest) -> Result<Evidence, Fault> {
        let is_asked = |ask: &&Ask| families.contains(&ask.family) && *ask.rule != *OUTBOUND;
        let asks: Vec<Ask> = self.asks.iter().filter(is_asked).cloned().collect();
        let extractor = Arc::clone(&self.extractor);
        self.blocking(move || {
            let mut evidence = Evidence::default();
            extractor.extract(&asks, &Subject::of(&request), &mut SharedPass::new(), &mut evidence);
            evidence
        })
        .await
    }

    /// Whether any text of a request is an attack, whoever wrote it.
    ///
    /// # Errors
    /// [`Code::Internal`] when the classifier panics.
    pub async fn outbound(&self, request: ChatRequest) -> Result<Observation, Fault> {
        let ask = Ask::new(Family::Jailbreak, OUTBOUND);
        let key = SignalKey::new(Family::Jailbreak, OUTBOUND);
        let extractor = Arc::clone(&self.extractor);
        let evidence = self.blocking(move || {
            let mut evidence = Evidence::default();
            extractor.extract(&[ask], &Subject::of(&request), &mut SharedPass::new(), &mut evidence);
            evidence
        });
        let missing = || Observation::Absent(AbsentReason::Failed("it was not looked at".to_owned()));
        Ok(evidence.await?.get(&key).cloned().unwrap_or_else(missing))
    }

    /// The families of attempts that a text shows by its words, also behind a disguise; the head has none to show.
    ///
    /// # Errors
    /// [`Code::Internal`] when the recogniser panics.
    pub async fn attempts(&self, request: ChatRequest) -> Result<Vec<RuleFamily>, Fault> {
        self.blocking(move || {
            let guard = Jailbreak::prepare(&jailbreak(), 1.0, None);
            let found = guard.inspect(None, &Subject::of(&request), &mut SharedPass::new());
            let mut families: Vec<RuleFamily> = found.into_iter().flat_map(|it| it.families).collect();
            families.sort_unstable();
            families.dedup();
            families
        })
        .await
    }

    /// Every place of a text that is taken to be personal data, and the text with placeholders for those of at least
    /// that score and of these types; all types when none is named.
    ///
    /// # Errors
    /// [`Code::Internal`] when the recogniser panics.
    pub async fn personal_data(
        &self,
        text: String,
        least_score: f64,
        types: Vec<String>,
    ) -> Result<(Vec<Finding>, Redacted), Fault> {
        self.blocking(move || {
            let mut found = pii::find(&text);
            found.retain(|finding| {
                let asked = types.is_empty() || types.iter().any(|name| finding.entity.is_called(name));
                asked && finding.score >= least_score
            });
            let redacted = pii::redact(&text, &found);
            (found, redacted)
        })
        .await
    }

    /// The encoder's digest and the length of its vectors, where one is loaded.
    #[must_use]
    pub fn encoder(&self) -> Option<(&str, usize)> {
        self.encoder.as_deref().map(|encoder| (encoder.digest(), encoder.dimension()))
    }

    /// One unit vector a text.
    ///
    /// # Errors
    /// [`Code::NotLoaded`] without an encoder.
    pub async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, Fault> {
        let Some(encoder) = self.encoder.clone() else {
            return Err(no_encoder());
        };
        let encoded = self.blocking(move || {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            encoder.encode(&texts)
        });
        encoded.await?.map_err(|fault| Fault::new(Code::Internal, fault.to_string()))
    }

    /// Tokens of each text, by the encoder's own count.
    ///
    /// # Errors
    /// [`Code::NotLoaded`] without an encoder.
    pub async fn count_tokens(&self, texts: Vec<String>) -> Result<Vec<u64>, Fault> {
        let encoder = self.encoder.clone().ok_or_else(no_encoder)?;
        self.blocking(move || texts.iter().map(|text| encoder.count_tokens(text) as u64).collect()).await
    }

    /// The encoder, where one is loaded.
    pub(crate) fn shared_encoder(&self) -> Option<Arc<dyn TextEncoder>> {
        self.encoder.clone()
    }

    /// One pass a core at a time, off the runtime's own threads.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let _permit = self.encoder_gate.acquire().await;
        let work = tokio::task::spawn_blocking(work).await;
        work.map_err(|_| Fault::new(Code::Internal, "a classifier failed badly; see the log"))
    }
}

fn no_encoder() -> Fault {
    Fault::new(Code::NotLoaded, "no encoder is loaded, because no signal of the served policy needs one")
}

/// Every family of signals that this version evaluates, cheapest first.
#[must_use]
pub fn families() -> &'static [SignalDoc] {
    chorus_signals::ALL
}

/// The built-in heads with labels: each one's name and labels.
#[must_use]
pub fn heads() -> Vec<HeadInfo> {
    let built_in = [
        ("domain", heads::of_default().domain),
        ("complexity", heads::of_default().complexity),
        ("fact_check", heads::of_default().fact_check),
        ("user_feedback", heads::of_default().user_feedback),
        ("modality", heads::of_default().modality),
    ];
    let shown = |(name, head): (&'static str, Option<&'static Head>)| {
        head.map(|head| HeadInfo { name, labels: head.labels().to_vec() })
    };
    built_in.into_iter().filter_map(shown).collect()
}

/// A built-in head.
#[derive(Debug, Clone, serde::Serialize)]
pub struct HeadInfo {
    /// Its name.
    pub name: &'static str,
    /// Its labels.
    pub labels: Vec<String>,
}

fn jailbreak() -> JailbreakSignal {
    JailbreakSignal {
        method: JailbreakMethod::default(),
        threshold: None,
        include_history: false,
        jailbreak_patterns: Vec::new(),
        benign_patterns: Vec::new(),
    }
}

/// Every built-in classifier as a rule.
fn recipe() -> Recipe {
    let categories = heads::of_default().domain.map(Head::labels).unwrap_or_default();
    let outbound = JailbreakSignal { include_history: true, ..jailbreak() };
    let pii = PiiSignal { threshold: None, allowed: Vec::new(), include_history: false };
    let others = [
        ("needs_fact_check", SignalKind::FactCheck(FactCheckSignal::Needed)),
        ("no_fact_check_needed", SignalKind::FactCheck(FactCheckSignal::NotNeeded)),
        ("satisfied", SignalKind::UserFeedback(UserFeedbackSignal::Satisfied)),
        ("need_clarification", SignalKind::UserFeedback(UserFeedbackSignal::NeedClarification)),
        ("wrong_answer", SignalKind::UserFeedback(UserFeedbackSignal::WrongAnswer)),
        ("want_different", SignalKind::UserFeedback(UserFeedbackSignal::WantDifferent)),
        (TEXT, SignalKind::Modality(ModalitySignal::Text)),
        (IMAGE, SignalKind::Modality(ModalitySignal::Image)),
        (TEXT_AND_IMAGE, SignalKind::Modality(ModalitySignal::Both)),
        (JAILBREAK, SignalKind::Jailbreak(jailbreak())),
        (PII, SignalKind::Pii(pii)),
        (OUTBOUND, SignalKind::Jailbreak(outbound)),
    ];
    let domain = DomainSignal { mmlu_categories: Vec::new(), model_scores: Vec::new() };
    let domains = categories.iter().map(|name| (name.as_str(), SignalKind::Domain(domain.clone())));
    let signals = domains.chain(others).map(|(name, kind)| Signal {
        name: name.to_owned(),
        description: String::new(),
        kind,
        place: Place::default(),
    });
    Recipe { name: "built-in classifiers".to_owned(), signals: signals.collect(), ..Recipe::default() }
}
