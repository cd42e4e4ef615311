//! The families whose heads see words, on the lab's own held-out texts and the real encoder.
//!
//! It knows the crate's public functions only. Invariant: only ignored tests read `CHORUS_MODELS`, a folder laid out as
//! the model store. Run them with
//! `CHORUS_MODELS=… cargo test -p chorus-signals --test held_out -- --ignored --nocapture`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "the tests' own steps: a panic here is a failed test, and figures are for people to read"
)]

use chorus_infer::TextEncoder;
use chorus_infer::encoder::MiniLm;
use chorus_policy::{Ask, Evidence, Observation};
use chorus_signals::{Extractor, SharedPass, Subject};
use chorus_spec::{
    FactCheckSignal, Global, ModalityMethod, ModalitySignal, Place, Recipe, Signal, SignalKind,
    UserFeedbackSignal,
};
use chorus_wire::{ChatRequest, Message, Role};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

const MODALITY: [&str; 2] = [
    include_str!("../../chorus-lab/data/modality_eval.tsv"),
    include_str!("../../chorus-lab/data/modality_last.tsv"),
];
const FACT_CHECK: [&str; 2] = [
    include_str!("../../chorus-lab/data/fact_check_eval.tsv"),
    include_str!("../../chorus-lab/data/fact_check_last.tsv"),
];
const FEEDBACK: [&str; 2] = [
    include_str!("../../chorus-lab/data/feedback_eval.tsv"),
    include_str!("../../chorus-lab/data/feedback_last.tsv"),
];

fn encoder() -> Arc<dyn TextEncoder> {
    static ENCODER: OnceLock<Arc<MiniLm>> = OnceLock::new();
    let load = || {
        let folder = PathBuf::from(std::env::var_os("CHORUS_MODELS").unwrap()).join("all-minilm-l6-v2");
        let files = [folder.join("model.safetensors"), folder.join("tokenizer.json")];
        Arc::new(MiniLm::load(&files[0], &files[1], &folder).unwrap())
    };
    Arc::clone(ENCODER.get_or_init(load)) as Arc<dyn TextEncoder>
}

fn signal(name: &str, kind: SignalKind) -> Signal {
    Signal { name: name.to_owned(), description: String::new(), kind, place: Place::default() }
}

/// `label`, `language`, `text` of every line.
fn rows(files: [&'static str; 2]) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    files.into_iter().flat_map(str::lines).map(|line| {
        let mut fields = line.splitn(3, '\t');
        let mut next = || fields.next().unwrap();
        (next(), next(), next())
    })
}

/// The label that holds, said after `before`.
fn told(extractor: &Extractor, recipe: &Recipe, before: &[(Role, &str)], text: &str) -> Option<String> {
    let asks: Vec<Ask> = recipe.signals.iter().map(|s| Ask::new(s.family(), s.name.as_str())).collect();
    let turns = before.iter().cloned().chain([(Role::User, text)]);
    let request = ChatRequest::new("m", turns.map(|(role, text)| Message::new(role, text)).collect());
    let mut evidence = Evidence::default();
    extractor.extract(&asks, &Subject::of(&request), &mut SharedPass::new(), &mut evidence);
    let mut holding = evidence.iter().filter(|(_, o)| matches!(o, Observation::Matched { .. }));
    holding.next().map(|(key, _)| key.name().to_owned())
}

/// Share of right labels: of English, and of the other languages.
fn accuracy(
    global: &Global,
    recipe: &Recipe,
    before: &[(Role, &str)],
    files: [&'static str; 2],
) -> (f64, f64) {
    let extractor = Extractor::prepare(recipe, global, Some(encoder())).unwrap();
    let (mut english, mut others) = ((0, 0), (0, 0));
    for (label, language, text) in rows(files) {
        let (right, all) = if language == "en" { &mut english } else { &mut others };
        let told = told(&extractor, recipe, before, text);
        *all += 1;
        *right += u32::from(told.as_deref() == Some(label) || (label == "none" && told.is_none()));
    }
    let share = |(right, all)| f64::from(right) / f64::from(all);
    (share(english), share(others))
}

#[test]
#[ignore = "needs model files"]
fn modality_by_each_method() {
    let labels =
        [("AR", ModalitySignal::Text), ("DIFFUSION", ModalitySignal::Image), ("BOTH", ModalitySignal::Both)];
    let signals = labels.map(|(name, label)| signal(name, SignalKind::Modality(label))).to_vec();
    let recipe = Recipe { signals, ..Recipe::default() };
    for modality_method in [ModalityMethod::Classifier, ModalityMethod::Keyword, ModalityMethod::Hybrid] {
        let global = Global { modality_method, ..Global::default() };
        let (english, others) = accuracy(&global, &recipe, &[], MODALITY);
        println!("modality by {modality_method:?}: {english:.3} of English, {others:.3} of other languages");
        assert!(english >= 0.85 && others >= 0.6);
    }
}

#[test]
#[ignore = "needs model files"]
fn facts_at_the_default_threshold() {
    let labels =
        [("needs_fact_check", FactCheckSignal::Needed), ("no_fact_check_needed", FactCheckSignal::NotNeeded)];
    let signals = labels.map(|(name, label)| signal(name, SignalKind::FactCheck(label))).to_vec();
    let recipe = Recipe { signals, ..Recipe::default() };
    let (english, others) = accuracy(&Global::default(), &recipe, &[], FACT_CHECK);
    println!("fact check: {english:.3} of English, {others:.3} of other languages");
    assert!(english >= 0.88 && others >= 0.75);
}

#[test]
#[ignore = "needs model files"]
fn feedback_at_the_default_threshold() {
    let labels = [
        ("satisfied", UserFeedbackSignal::Satisfied),
        ("need_clarification", UserFeedbackSignal::NeedClarification),
        ("wrong_answer", UserFeedbackSignal::WrongAnswer),
        ("want_different", UserFeedbackSignal::WantDifferent),
    ];
    let signals = labels.map(|(name, label)| signal(name, SignalKind::UserFeedback(label))).to_vec();
    let recipe = Recipe { signals, ..Recipe::default() };
    let before = [(Role::User, "Tell me about it."), (Role::Assistant, "Here is what I know.")];
    let (english, others) = accuracy(&Global::default(), &recipe, &before, FEEDBACK);
    println!("feedback: {english:.3} of English, {others:.3} of other languages");
    assert!(english >= 0.6 && others >= 0.4);
}
