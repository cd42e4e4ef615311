//! Laws of the policy algebra, over random recipes and random requests.

use crate::recipes::*;
use chorus_policy::{Evidence, Observation, Progress, Scope, Truth};
use chorus_spec::{
    Calibration, Condition, InputSource, Mapping, MappingMethod, MappingOutput, NumericPredicate, OnAbsent,
    Partition, PartitionSemantics, Place, Recipe, Score, ScoreInput, Strategy as Ranking, ValueSource,
};
use proptest::prelude::*;

const SIGNALS: &str =
    "keyword:a keyword:b context:c embedding:d embedding:e embedding:f complexity:g kb:h classifier:i";
const LEAVES: [&str; 11] = [
    "keyword:a",
    "keyword:b",
    "context:c",
    "embedding:d",
    "embedding:e",
    "embedding:f",
    "complexity:g:hard",
    "kb:h",
    "classifier:i:spam",
    "projection:low",
    "projection:high",
];

/// How many of the leaves are measured; the others come out of a score.
const MEASURED: usize = LEAVES.len() - 2;

/// Rules whose leaves say all of what an absent fact counts as.
fn condition() -> impl Strategy<Value = Condition> {
    rules_of(vec![OnAbsent::Unknown, OnAbsent::NoMatch, OnAbsent::Match])
}

/// Rules that leave an absent fact unknown.
fn plain_condition() -> impl Strategy<Value = Condition> {
    rules_of(vec![OnAbsent::Unknown])
}

fn rules_of(absent: Vec<OnAbsent>) -> impl Strategy<Value = Condition> {
    let test = (prop::sample::select(&LEAVES[..]), prop::option::of(0.0..1.0), prop::sample::select(absent));
    let leaf = prop_oneof![
        3 => prop::sample::select(&LEAVES[..]).prop_map(leaf),
        1 => test.prop_map(|(key, least, on_absent)| tested(key, least, on_absent)),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Condition::And),
            prop::collection::vec(inner.clone(), 1..4).prop_map(Condition::Or),
            inner.prop_map(not),
        ]
    })
}

fn observation() -> impl Strategy<Value = Observation> {
    prop_oneof![
        4 => prop::sample::select(&[0.0, 0.25, 0.5, 0.75, 1.0][..]).prop_map(certain),
        3 => Just(no()),
        1 => (0.0..1.0).prop_map(raw),
        1 => Just(failed()),
        1 => Just(unsupported()),
    ]
}

fn certain(confidence: f64) -> Observation {
    Observation::Matched { confidence, raw: Some(confidence) }
}

/// Every signal of [`SIGNALS`] measured; exactly one complexity label matches, unless the rule is absent.
fn request() -> impl Strategy<Value = Evidence> {
    let plain = prop::collection::vec(observation(), 9);
    (plain, observation(), 0..3_usize).prop_map(|(plain, complexity, which)| {
        let names = [
            "keyword:a",
            "keyword:b",
            "context:c",
            "embedding:d",
            "embedding:e",
            "embedding:f",
            "kb:h",
            "classifier:i:spam",
            "classifier:i:ham",
        ];
        let mut evidence = Evidence::default();
        for (name, observation) in names.iter().zip(plain) {
            evidence.insert(key(name), observation);
        }
        for (at, label) in ["hard", "medium", "easy"].iter().enumerate() {
            let said = match &complexity {
                Observation::Absent(_) => complexity.clone(),
                _ if at == which => yes(0.5),
                _ => no(),
            };
            evidence.insert(key(&format!("complexity:g:{label}")), said);
        }
        evidence
    })
}

fn partition(softmax: bool, default: bool) -> Partition {
    let semantics = if softmax {
        PartitionSemantics::SoftmaxExclusive { temperature: 0.5 }
    } else {
        PartitionSemantics::Exclusive
    };
    Partition {
        name: "p".to_owned(),
        semantics,
        members: ["embedding:d", "embedding:e"].map(key).to_vec(),
        default: default.then(|| key("embedding:e")),
        place: Place::default(),
    }
}

fn projections(recipe: &mut Recipe, inputs: &[usize], bound: f64) {
    let binary = ValueSource::Binary { matched: 1.0, miss: 0.0 };
    let input = |at: &usize| ScoreInput {
        source: InputSource::Signal(key(LEAVES[*at])),
        weight: 0.5,
        value: if at.is_multiple_of(2) { binary } else { ValueSource::Confidence },
    };
    recipe.projections.scores = vec![Score {
        name: "s".to_owned(),
        inputs: inputs.iter().map(input).collect(),
        place: Place::default(),
    }];
    let (lt, gte) = (Some(bound), Some(bound));
    recipe.projections.mappings = vec![Mapping {
        name: "m".to_owned(),
        source: "s".to_owned(),
        method: MappingMethod::ThresholdBands,
        calibration: (bound > 0.25).then_some(Calibration { slope: 6.0 }),
        outputs: vec![
            MappingOutput {
                name: "low".to_owned(),
                band: NumericPredicate { lt, ..NumericPredicate::default() },
            },
            MappingOutput {
                name: "high".to_owned(),
                band: NumericPredicate { gte, ..NumericPredicate::default() },
            },
        ],
        place: Place::default(),
    }];
}

fn policy() -> impl Strategy<Value = Recipe> {
    let route =
        (0..3_i64, prop_oneof![3 => Just(0_i64), 1 => 1..3_i64], prop::option::weighted(0.9, condition()));
    let decisions = prop::collection::vec(route, 1..6);
    let partition = prop::option::of((any::<bool>(), any::<bool>()).prop_map(|(s, d)| partition(s, d)));
    let score = (prop::collection::vec(0..8_usize, 1..4), prop::sample::select(&[0.25, 0.5, 1.0][..]));
    let composer = prop::option::of(condition());
    (decisions, partition, score, composer, any::<bool>()).prop_map(
        |(decisions, partition, score, composer, ranking)| {
            let mut recipe = recipe(SIGNALS, []);
            recipe.strategy = if ranking { Ranking::Priority } else { Ranking::Confidence };
            recipe.signals[6].kind = complexity(composer);
            recipe.projections.partitions.extend(partition);
            projections(&mut recipe, &score.0, score.1);
            let named = |(at, (priority, tier, rules)): (usize, (i64, i64, Option<Condition>))| {
                chorus_spec::Decision { tier, ..decision(&format!("d{at}"), priority, rules) }
            };
            recipe.decisions = decisions.into_iter().enumerate().map(named).collect();
            recipe
        },
    )
}

/// The proof of a lone rule over a fully known request.
fn prove(rules: Condition, all: &Evidence) -> (Truth, f64) {
    let mut recipe = recipe(SIGNALS, [decision("d", 1, rules)]);
    projections(&mut recipe, &[0, 3], 0.5);
    let verdict = done(compile(&recipe).explain(all, &Scope::All));
    (verdict.proofs[0].truth, verdict.proofs[0].confidence)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lazy_and_full_evaluation_agree(recipe in policy(), all in request()) {
        let policy = compile(&recipe);
        let full = done(policy.explain(&all, &Scope::All));
        let world = World { recipe: &recipe, all };
        let (lazy, rounds) = world.decide(&policy, &Scope::All);
        prop_assert_eq!(winner(&lazy), winner(&full));
        let blocked = |v: &chorus_policy::Verdict| v.blocked.as_ref().map(|b| b.decision.clone());
        prop_assert_eq!(blocked(&lazy), blocked(&full));
        if let (Some(lazy), Some(full)) = (&lazy.winner, &full.winner) {
            prop_assert!(full.confidence_complete);
            prop_assert!(lazy.confidence <= full.confidence);
            prop_assert!(!lazy.confidence_complete || lazy.confidence == full.confidence);
        }
        let mut asked: Vec<_> = rounds.concat();
        let count = asked.len();
        asked.sort();
        asked.dedup();
        prop_assert_eq!(asked.len(), count, "nothing is asked twice");
    }

    #[test]
    fn what_was_settled_stays_settled(recipe in policy(), all in request()) {
        let policy = compile(&recipe);
        let full = done(policy.explain(&all, &Scope::All));
        let world = World { recipe: &recipe, all };
        let (lazy, _) = world.decide(&policy, &Scope::All);
        for (early, late) in lazy.proofs.iter().zip(&full.proofs) {
            prop_assert!(early.truth == Truth::Unknown || early.truth == late.truth, "{:?} {:?}", early, late);
            prop_assert!(early.confidence <= late.confidence || early.truth != Truth::True);
        }
    }

    #[test]
    fn the_order_of_decisions_does_not_matter(recipe in policy(), all in request(), turn in 0..6_usize) {
        let mut turned = recipe.clone();
        let places = turned.decisions.len();
        turned.decisions.rotate_left(turn % places);
        turned.signals.reverse();
        let verdict = |recipe| done(compile(recipe).decide(&all, &Scope::All));
        let (one, other) = (verdict(&recipe), verdict(&turned));
        prop_assert_eq!(winner(&one), winner(&other));
        prop_assert_eq!(one.winner.map(|w| w.confidence), other.winner.map(|w| w.confidence));
        prop_assert_eq!(one.blocked, other.blocked);
    }

    #[test]
    fn the_order_of_evidence_does_not_matter(recipe in policy(), all in request(), turn in 0..12_usize, back in any::<bool>()) {
        let policy = compile(&recipe);
        let full = done(policy.explain(&all, &Scope::All));
        let mut facts: Vec<_> = all.iter().map(|(k, o)| (k.clone(), o.clone())).collect();
        facts.rotate_left(turn);
        if back {
            facts.reverse();
        }
        let mut known = Evidence::default();
        for (key, said) in facts {
            known.insert(key, said);
            // Whenever a winner is certain, it is the one that all of the evidence gives.
            if let Progress::Done(verdict) = policy.decide(&known, &Scope::All) {
                prop_assert_eq!(winner(&verdict), winner(&full));
            }
        }
        let last = done(policy.decide(&known, &Scope::All));
        prop_assert_eq!(winner(&last), winner(&full));
    }

    #[test]
    fn absent_never_satisfies_a_guard(rules in plain_condition(), all in request(), which in 0..MEASURED) {
        let guard = leaf(LEAVES[which]);
        let mut known = all.clone();
        known.insert(key(LEAVES[which]), failed());
        for guarded in [guard.clone(), not(guard)] {
            let (truth, confidence) = prove(Condition::And(vec![guarded, rules.clone()]), &known);
            prop_assert_ne!(truth, Truth::True);
            prop_assert_eq!(confidence, 0.0);
        }
        // Knowing less never turns an answer into another one.
        let (less, more) = (prove(rules.clone(), &known).0, prove(rules, &all).0);
        prop_assert!(less == Truth::Unknown || less == more, "{:?} {:?}", less, more);
    }

    #[test]
    fn a_leaf_that_says_what_absence_counts_as_is_never_unknown_for_it(all in request(), which in 0..MEASURED) {
        let mut known = all;
        for absent in [failed(), unsupported()] {
            known.insert(key(LEAVES[which]), absent);
            let truth = |on_absent| prove(tested(LEAVES[which], None, on_absent), &known).0;
            prop_assert_eq!(truth(OnAbsent::NoMatch), Truth::False);
            prop_assert_eq!(truth(OnAbsent::Match), Truth::True);
        }
    }

    #[test]
    fn the_same_evidence_gives_the_same_bytes(recipe in policy(), all in request()) {
        let mut backwards = Evidence::default();
        let facts: Vec<_> = all.iter().map(|(k, o)| (k.clone(), o.clone())).collect();
        facts.into_iter().rev().for_each(|(k, o)| backwards.insert(k, o));
        let bytes = |e| serde_json::to_vec(&done(compile(&recipe).decide(e, &Scope::All))).unwrap();
        prop_assert_eq!(bytes(&all), bytes(&backwards));
    }

    #[test]
    fn not_not_has_the_same_truth(rules in condition(), all in request()) {
        prop_assert_eq!(prove(not(not(rules.clone())), &all).0, prove(rules, &all).0);
    }

    #[test]
    fn de_morgan(a in condition(), b in condition(), all in request()) {
        let left = prove(not(Condition::And(vec![a.clone(), b.clone()])), &all).0;
        prop_assert_eq!(left, prove(Condition::Or(vec![not(a), not(b)]), &all).0);
    }

    #[test]
    fn d10_more_support_under_or_never_lowers_confidence(rules in condition(), more in condition(), all in request()) {
        let (truth, before) = prove(rules.clone(), &all);
        let (wider, after) = prove(Condition::Or(vec![rules, more]), &all);
        prop_assert!(truth != Truth::True || wider == Truth::True);
        prop_assert!(after >= before);
    }
}
