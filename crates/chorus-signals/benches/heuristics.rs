//! All heuristic families on requests of 1 and 3 KiB, and the whole way from a request to its verdict with the recipe that
//! the server's own benchmarks serve. Targets: 100 µs for all families of 1 KiB, 8 µs for the verdict, median.
//!
//! It knows no encoder: learned families are measured where the weights are. Run: `cargo bench -p chorus-signals`.

use chorus_policy::{Ask, Evidence, Policy, Progress, Scope};
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

/// What a person writes: no rule of either recipe but `en` and `constrained` finds anything in it.
const PROSE: &str = "Our nightly job at the warehouse has slowed down since the last release; it must end within an hour. \
    The first half reads what the shops have sold, and the second writes the lists that the drivers take with them. \
    I have looked at the queries that run for longest, but they are the same as in spring, when all of this went well. \
    Please tell me where you would look next, and which figures you would want to see before you change anything. ";

fn request(bytes: usize) -> ChatRequest {
    let text: String = PROSE.chars().cycle().take(bytes).collect();
    ChatRequest::new("vllm-sr/auto", vec![Message::new(Role::User, &text)])
}

#[expect(clippy::expect_used, reason = "a benchmark over a broken fixture must stop")]
fn heuristics(c: &mut Criterion) {
    let recipe = recipe();
    let extractor = Extractor::prepare(&recipe, &Global::default(), None).expect("the recipe is sound");
    let asks: Vec<Ask> = recipe.signals.iter().map(|s| Ask::new(s.family(), s.name.as_str())).collect();
    let mut run = |name: &str, request: &ChatRequest, asks: &[Ask]| {
        c.bench_function(name, |b| {
            b.iter(|| {
                let mut evidence = Evidence::default();
                let subject = Subject::of(black_box(request));
                black_box(extractor.extract(asks, &subject, &mut SharedPass::new(), &mut evidence));
                evidence
            });
        });
    };
    for kib in [1, 3] {
        let request = request(kib * 1024);
        run(&format!("all heuristic families, {kib} KiB"), &request, &asks);
        for family in
            [Family::Context, Family::Conversation, Family::Keyword, Family::Structure, Family::Language]
        {
            let some: Vec<Ask> = asks.iter().filter(|ask| ask.family == family).cloned().collect();
            run(&format!("{family}, {kib} KiB"), &request, &some);
        }
    }
}

/// From a request to its verdict, as the engine goes: ask the policy, answer it, until the winner is certain.
#[expect(clippy::expect_used, reason = "a benchmark over a broken fixture must stop")]
fn verdict(c: &mut Criterion) {
    let file =
        include_str!("../../chorus-server/benches/heuristics.yaml").replace("${UP}", "http://127.0.0.1:1");
    let spec = chorus_spec::read(&file).spec.expect("the served recipe is sound");
    let recipe = spec.recipes.first().expect("there is a recipe");
    let extractor = Extractor::prepare(recipe, &spec.global, None).expect("the recipe is sound");
    let policy = Policy::compile(recipe, &chorus_signals::cost_in(recipe));
    for kib in [1, 3] {
        let request = request(kib * 1024);
        c.bench_function(&format!("from request to verdict, {kib} KiB"), |b| {
            b.iter(|| {
                let (mut evidence, mut pass) = (Evidence::default(), SharedPass::new());
                loop {
                    match policy.decide(&evidence, &Scope::All) {
                        Progress::Done(verdict) => break (verdict, evidence),
                        Progress::Need(asks) => {
                            let subject = Subject::of(black_box(&request));
                            black_box(extractor.extract(&asks, &subject, &mut pass, &mut evidence));
                        }
                    }
                }
            });
        });
    }
}

criterion_group!(benches, heuristics, verdict);
criterion_main!(benches);
