//! All heuristic families on a 1 KiB request. Target: 100 µs together, median.
//!
//! It knows no encoder: learned families are measured where the weights are. Run: `cargo bench -p chorus-signals`.

use chorus_policy::{Ask, Evidence};
use chorus_signals::{Extractor, SharedPass, Subject};
use chorus_spec::{
    ContextSignal, ConversationFeature, ConversationSignal, ConversationSource, Family, FeatureKind, Global,
    KeywordMethod, KeywordOperator, KeywordSignal, LanguageSignal, NumericPredicate, Place, Recipe, Signal,
    SignalKind, StructureFeature, StructureSignal, StructureSource,
};
use chorus_wire::{ChatRequest, Message, Role};
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;

fn keyword(method: KeywordMethod, keywords: &[&str]) -> SignalKind {
    let keywords = keywords.iter().map(|k| (*k).to_owned()).collect();
    SignalKind::Keyword(KeywordSignal {
        operator: KeywordOperator::Or,
        keywords,
        case_sensitive: false,
        method,
    })
}

fn structure(kind: FeatureKind, source: StructureSource) -> SignalKind {
    let predicate = Some(NumericPredicate { gt: Some(0.08), gte: None, lt: None, lte: None });
    SignalKind::Structure(StructureSignal { feature: StructureFeature { kind, source }, predicate })
}

fn recipe() -> Recipe {
    let constraints = ["at most", "at least", "within", "no more than", "must", "should", "不超过", "至少"];
    let feature =
        ConversationFeature { kind: FeatureKind::Count, source: ConversationSource::Message { role: None } };
    let kinds = [
        (
            "research",
            keyword(KeywordMethod::Literal, &["research, compare, and synthesize", "root cause", "根因分析"]),
        ),
        (
            "debate",
            keyword(KeywordMethod::Literal, &["debate both sides", "adversarial review", "from both sides"]),
        ),
        (
            "code",
            keyword(KeywordMethod::Literal, &["C++", "F#", ".NET", "function", "compiler", "stack trace"]),
        ),
        ("ticket", keyword(KeywordMethod::Regex, &["TKT-[0-9]{4}", r"\bINC\d+\b"])),
        ("long", SignalKind::Context(ContextSignal { min_tokens: 16_000, max_tokens: None })),
        ("turns", SignalKind::Conversation(ConversationSignal { feature, predicate: None })),
        ("en", SignalKind::Language(LanguageSignal { threshold: 0.3 })),
        ("zh", SignalKind::Language(LanguageSignal { threshold: 0.3 })),
        (
            "constrained",
            structure(
                FeatureKind::Density,
                StructureSource::KeywordSet {
                    keywords: constraints.map(str::to_owned).to_vec(),
                    case_sensitive: false,
                },
            ),
        ),
        (
            "questions",
            structure(
                FeatureKind::Density,
                StructureSource::Regex { pattern: "[?？]".to_owned(), case_sensitive: false },
            ),
        ),
    ];
    let signals = kinds.map(|(name, kind)| Signal {
        name: name.to_owned(),
        description: String::new(),
        kind,
        place: Place::default(),
    });
    Recipe { signals: signals.to_vec(), ..Recipe::default() }
}

#[expect(clippy::expect_used, reason = "a benchmark over a broken fixture must stop")]
fn heuristics(c: &mut Criterion) {
    let recipe = recipe();
    let extractor = Extractor::prepare(&recipe, &Global::default(), None).expect("the recipe is sound");
    let sentence = "Our nightly job at the warehouse has slowed down since the last release; it must end within an hour. ";
    let text = sentence.repeat(11);
    let text = text.get(..1024).expect("ASCII");
    let request = ChatRequest::new("vllm-sr/auto", vec![Message::new(Role::User, text)]);
    let asks: Vec<Ask> =
        recipe.signals.iter().map(|s| Ask { family: s.family(), rule: s.name.clone() }).collect();
    let mut run = |name: &str, asks: &[Ask]| {
        c.bench_function(name, |b| {
            b.iter(|| {
                let mut evidence = Evidence::default();
                let subject = Subject::of(black_box(&request));
                black_box(extractor.extract(asks, &subject, &mut SharedPass::new(), &mut evidence));
                evidence
            });
        });
    };
    run("all heuristic families, 1 KiB", &asks);
    for family in
        [Family::Context, Family::Conversation, Family::Keyword, Family::Structure, Family::Language]
    {
        let some: Vec<Ask> = asks.iter().filter(|ask| ask.family == family).cloned().collect();
        run(&format!("{family}, 1 KiB"), &some);
    }
}

criterion_group!(benches, heuristics);
criterion_main!(benches);
