//! Learned signals on the real encoder and the built-in heads.
//!
//! It knows the crate's public functions only. Invariant: only ignored tests read `CHORUS_MODELS`, a folder laid out as
//! the model store: `$CHORUS_MODELS/all-minilm-l6-v2/model.safetensors` and `tokenizer.json` beside it. Run them with
//! `CHORUS_MODELS=… cargo test -p chorus-signals --test real_weights -- --ignored --nocapture`.

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
    ComplexitySignal, DomainSignal, Family, Global, Place, Recipe, Signal, SignalKey, SignalKind,
};
use chorus_wire::{ChatRequest, Message, Role};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// The categories that the tests ask for, each as a rule of its own.
const CATEGORIES: [&str; 4] = ["biology", "health", "law", "math"];

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

/// What a person might write: five examples a side, none of them near the texts below.
fn recipe() -> Recipe {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let complexity = ComplexitySignal {
        threshold: 0.05,
        easy_certainty: ComplexitySignal::EASY_CERTAINTY,
        hard: owned(&[
            "Derive the result step by step and state every assumption",
            "Analyse the trade-offs of this architecture under heavy load",
            "Critically compare these two theories and say which is better supported",
            "Debug this race condition and explain why it happens",
            "Work out the differential diagnosis from these findings",
        ]),
        easy: owned(&[
            "What is the capital of France?",
            "Say hello in Spanish",
            "What time is it?",
            "Thanks, that helps",
            "Tell me a joke",
        ]),
        composer: None,
    };
    let domain = |name: &&str| {
        signal(
            name,
            SignalKind::Domain(DomainSignal { mmlu_categories: Vec::new(), model_scores: Vec::new() }),
        )
    };
    let mut signals: Vec<Signal> = CATEGORIES.iter().map(domain).collect();
    signals.push(signal("needs", SignalKind::Complexity(complexity)));
    Recipe { signals, ..Recipe::default() }
}

fn observe(request: &ChatRequest) -> Evidence {
    let recipe = recipe();
    let extractor = Extractor::prepare(&recipe, &Global::default(), Some(encoder())).unwrap();
    let asks: Vec<Ask> = recipe.signals.iter().map(|s| Ask::new(s.family(), s.name.as_str())).collect();
    let mut evidence = Evidence::default();
    extractor.extract(&asks, &Subject::of(request), &mut SharedPass::new(), &mut evidence);
    evidence
}

fn user(text: &str) -> ChatRequest {
    ChatRequest::new("m", vec![Message::new(Role::User, text)])
}

fn of<'e>(evidence: &'e Evidence, family: Family, name: &str) -> &'e Observation {
    evidence.get(&SignalKey::new(family, name)).unwrap()
}

fn matches(evidence: &Evidence, family: Family, name: &str) -> bool {
    matches!(of(evidence, family, name), Observation::Matched { .. })
}

/// The label of the complexity rule, after a line for people.
fn tier(evidence: &Evidence, text: &str) -> &'static str {
    let labels = ["easy", "medium", "hard"];
    let label = labels.into_iter().find(|l| matches(evidence, Family::Complexity, &format!("needs:{l}")));
    println!("{label:?} {:?} {text}", of(evidence, Family::Complexity, "needs:hard"));
    label.unwrap()
}

#[test]
#[ignore = "needs model files"]
fn d13_hard_prompts_without_trigger_words_are_not_easy() {
    for text in [
        "Show that every group of order 15 is cyclic.",
        "Ein Mieter kündigt seine Wohnung vor Ablauf der Befristung: welche Fristen gelten?",
        "58-jährige Patientin, CK-MB erhöht, EKG mit Senkungen in V4 bis V6: nächster Schritt?",
    ] {
        assert_ne!(tier(&observe(&user(text)), text), "easy", "{text}");
    }
    for text in ["What is the capital of Peru?", "hi", "Tell me a riddle"] {
        assert_eq!(tier(&observe(&user(text)), text), "easy", "{text}");
    }
}

#[test]
#[ignore = "needs model files"]
fn d14_an_assent_keeps_the_tier_of_its_task() {
    let task = "Derive the convergence rate of stochastic gradient descent for strongly convex functions.";
    let turns = [(Role::User, task), (Role::Assistant, "A long plan. Shall I?"), (Role::User, "yes")];
    let request = ChatRequest::new("m", turns.map(|(role, text)| Message::new(role, text)).to_vec());
    assert_eq!(tier(&observe(&user(task)), task), "hard");
    assert_eq!(observe(&request), observe(&user(task)));
    assert_eq!(tier(&observe(&user("yes")), "yes"), "easy");
}

#[test]
#[ignore = "needs model files"]
fn a_short_everyday_question_matches_its_domain_at_the_default_threshold() {
    let text = "What process do plants use to turn sunlight into energy?";
    let evidence = observe(&user(text));
    println!("{:?} {text}", of(&evidence, Family::Domain, "biology"));
    assert!(matches(&evidence, Family::Domain, "biology"));
    assert!(!matches(&evidence, Family::Domain, "law"));
}

/// One letter in ten of a text swapped with its neighbour, the same ones on every machine.
fn misspelt(text: &str) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    let mut state = 7_u32;
    for at in 1..letters.len() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let inside = letters.get(at - 1..=at).is_some_and(|pair| pair.iter().all(|c| c.is_alphabetic()));
        if (state >> 16).is_multiple_of(10) && inside {
            letters.swap(at - 1, at);
        }
    }
    letters.into_iter().collect()
}

/// The floor is what a person would still call robust; the figure is printed.
#[test]
#[ignore = "needs model files"]
fn d23_spelling_mistakes_rarely_flip_the_category() {
    let texts = [
        "Why do leaves turn red in autumn?",
        "How do vaccines train the immune system?",
        "What is the role of enzymes in digestion?",
        "How do whales breathe while they sleep?",
        "Can my employer read my private messages at work?",
        "What makes a contract invalid?",
        "How long does a patent last?",
        "What happens to a tenancy when the landlord dies?",
        "What is the derivative of a square root?",
        "How many ways can six people sit in a row?",
        "How do I factor a quadratic equation?",
        "What is the area of a circle with radius three?",
        "What helps against a blocked nose at night?",
        "How much water should an adult drink a day?",
        "Which vaccines does a newborn need?",
        "What are the symptoms of anaemia?",
        "Is it dangerous to take ibuprofen for a week?",
        "How do bees find their way home?",
        "What is the difference between a virus and a bacterium?",
        "How does a court appoint a guardian?",
        "What is the probability of two sixes in a row?",
        "How do I compute a compound interest rate by hand?",
        "What does a high cholesterol level mean?",
        "How do plants survive in the desert?",
        "Can I be fined for a garden that is too wild?",
        "What is a matrix used for?",
        "Why does a cut heal faster when it is kept clean?",
        "How do genes switch on and off?",
        "What counts as defamation?",
        "How do I prove that two triangles are alike?",
    ];
    let category = |text: &str| {
        let evidence = observe(&user(text));
        CATEGORIES.into_iter().find(|name| matches(&evidence, Family::Domain, name))
    };
    let agree = texts.iter().filter(|text| category(text) == category(&misspelt(text))).count();
    println!("{agree} of {} prompts keep their category with one letter in ten misplaced", texts.len());
    assert!(agree * 10 >= texts.len() * 7, "{agree}");
}

/// The encoder is an English one. What it makes of other languages is printed, not required; the docs say so.
#[test]
#[ignore = "needs model files"]
fn everyday_questions_in_other_languages_are_reported() {
    for (text, category) in [
        ("Darf mein Vermieter die Miete ohne Begründung erhöhen?", "law"),
        ("Wie gewinnen Pflanzen Energie aus Licht?", "biology"),
        ("¿Cómo se resuelve una ecuación de segundo grado?", "math"),
        ("¿Qué puedo hacer contra la fiebre alta?", "health"),
    ] {
        let evidence = observe(&user(text));
        for name in CATEGORIES {
            let observation = of(&evidence, Family::Domain, name);
            println!("{text} ({category}): {name} {observation:?}");
            assert!(!matches!(observation, Observation::Absent(_)));
        }
    }
}

#[test]
#[ignore = "needs model files"]
fn b02_parts_and_one_string_give_the_same_evidence() {
    let request = |content: &str| {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":{content}}}]}}"#);
        ChatRequest::parse(body.as_bytes(), &Default::default()).unwrap()
    };
    let parts = r#"[{"type":"text","text":"Prove that sqrt(2) "},{"type":"text","text":"is irrational"}]"#;
    let string = r#""Prove that sqrt(2) is irrational""#;
    assert_eq!(observe(&request(parts)), observe(&request(string)));
    assert!(matches(&observe(&request(parts)), Family::Domain, "math"));
}
