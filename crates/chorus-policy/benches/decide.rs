//! One look at the evidence of a large recipe: 60 signals, 14 decisions, projections.
//!
//! Target: a full `decide` under 20 µs. `cargo bench -p chorus-policy`.

use chorus_policy::{Evidence, Observation, Policy, Progress, Scope};
use chorus_spec::{
    Condition, Decision, DomainSignal, Family, InputSource, KeywordMethod, KeywordOperator, KeywordSignal,
    Mapping, MappingMethod, MappingOutput, NumericPredicate, Partition, PartitionSemantics, Place, Recipe,
    Score, ScoreInput, Signal, SignalKey, SignalKind, ValueSource,
};
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;

const DOMAINS: usize = 14;
const KEYWORDS: usize = 46;
const DECISIONS: usize = 14;

fn signal(name: String, kind: SignalKind) -> Signal {
    Signal { name, description: String::new(), kind, place: Place::default() }
}

fn keyword(index: usize) -> SignalKey {
    SignalKey::new(Family::Keyword, format!("keyword_markers_{index}"))
}

fn domain(index: usize) -> SignalKey {
    SignalKey::new(Family::Domain, format!("domain_{index}"))
}

fn signals() -> Vec<Signal> {
    let keywords = (0..KEYWORDS).map(|index| {
        let kind = KeywordSignal {
            operator: KeywordOperator::Or,
            keywords: Vec::new(),
            case_sensitive: false,
            method: KeywordMethod::Literal,
        };
        signal(keyword(index).name().to_owned(), SignalKind::Keyword(kind))
    });
    let domains = (0..DOMAINS).map(|index| {
        let kind = DomainSignal { mmlu_categories: Vec::new(), model_scores: Vec::new() };
        signal(domain(index).name().to_owned(), SignalKind::Domain(kind))
    });
    keywords.chain(domains).collect()
}

fn band(index: usize) -> MappingOutput {
    let low = index as f64;
    let band = NumericPredicate { gte: Some(low), lt: Some(low + 2.0), ..NumericPredicate::default() };
    MappingOutput { name: format!("band_{index}"), band }
}

fn decision(index: usize) -> Decision {
    let leaf = |i: usize| Condition::Signal(keyword(i % KEYWORDS));
    let rules = Condition::And(vec![
        Condition::Or((0..4).map(|i| leaf(index * 4 + i)).collect()),
        Condition::Or(vec![Condition::Signal(domain(index % DOMAINS)), leaf(index * 7 + 1)]),
        Condition::Not(Box::new(leaf(index * 5 + 2))),
        Condition::Signal(SignalKey::new(Family::Projection, format!("band_{}", index % 3))),
    ]);
    Decision {
        name: format!("decision_{index}"),
        priority: 100 - (index / 2) as i64,
        rules: Some(rules),
        ..Decision::default()
    }
}

fn recipe() -> Recipe {
    let mut recipe = Recipe { signals: signals(), ..Recipe::default() };
    recipe.decisions = (0..DECISIONS).map(decision).collect();
    recipe.projections.partitions.push(Partition {
        name: "domains".to_owned(),
        semantics: PartitionSemantics::SoftmaxExclusive { temperature: 0.1 },
        members: (0..DOMAINS).map(domain).collect(),
        default: Some(domain(0)),
        place: Place::default(),
    });
    let input = |i| ScoreInput {
        source: InputSource::Signal(keyword(i)),
        weight: 0.5,
        value: ValueSource::Binary { matched: 1.0, miss: 0.0 },
    };
    recipe.projections.scores.push(Score {
        name: "difficulty".to_owned(),
        inputs: (0..12).map(input).collect(),
        place: Place::default(),
    });
    recipe.projections.mappings.push(Mapping {
        name: "difficulty_band".to_owned(),
        source: "difficulty".to_owned(),
        method: MappingMethod::ThresholdBands,
        calibration: Some(chorus_spec::Calibration { slope: 12.0 }),
        outputs: (0..3).map(band).collect(),
        place: Place::default(),
    });
    recipe
}

fn evidence() -> Evidence {
    let mut evidence = Evidence::default();
    let keys = (0..KEYWORDS).map(keyword).chain((0..DOMAINS).map(domain));
    for (index, key) in keys.enumerate() {
        let observation = match index % 3 {
            0 => Observation::Matched { confidence: 0.5 + index as f64 / 200.0, raw: None },
            _ => Observation::Unmatched { raw: Some(0.1) },
        };
        evidence.insert(key, observation);
    }
    evidence
}

fn decide(c: &mut Criterion) {
    let policy = Policy::compile(&recipe(), &|family| u8::from(family == Family::Domain));
    let (full, empty) = (evidence(), Evidence::default());
    assert!(matches!(policy.decide(&full, &Scope::All), Progress::Done(_)));
    assert!(matches!(policy.decide(&empty, &Scope::All), Progress::Need(_)));
    c.bench_function("decide/full", |b| {
        b.iter(|| policy.decide(black_box(&full), &Scope::All));
    });
    c.bench_function("decide/first_look", |b| {
        b.iter(|| policy.decide(black_box(&empty), &Scope::All));
    });
    c.bench_function("explain/full", |b| {
        b.iter(|| policy.explain(black_box(&full), &Scope::All));
    });
}

criterion_group!(benches, decide);
criterion_main!(benches);
