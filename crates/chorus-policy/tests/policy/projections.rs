//! Partitions, scores and mappings, by numbers worked out by hand.

use crate::recipes::*;
use chorus_policy::{Evidence, Observation, Scope};
use chorus_spec::{
    Calibration, InputSource, Mapping, MappingMethod, MappingOutput, NumericPredicate, OnAbsent, Partition,
    PartitionSemantics, Place, Recipe, Score, ScoreInput, ValueSource,
};

fn partition(semantics: PartitionSemantics, members: &str, default: Option<&str>) -> Partition {
    Partition {
        name: "group".to_owned(),
        semantics,
        members: members.split_whitespace().map(key).collect(),
        default: default.map(key),
        place: Place::default(),
    }
}

fn domains(semantics: PartitionSemantics) -> Recipe {
    let mut recipe = recipe("domain:a domain:b domain:c", [decision("b", 1, leaf("domain:b"))]);
    recipe.projections.partitions =
        vec![partition(semantics, "domain:a domain:b domain:c", Some("domain:c"))];
    recipe
}

fn matched(recipe: &Recipe, evidence: &Evidence) -> Vec<(String, f64)> {
    let verdict = done(compile(recipe).explain(evidence, &Scope::All));
    verdict.matched.into_iter().map(|(key, confidence)| (key.to_string(), confidence)).collect()
}

fn three(a: Observation, b: Observation, c: Observation) -> Evidence {
    evidence([("domain:a", a), ("domain:b", b), ("domain:c", c)])
}

#[test]
fn exclusive_keeps_the_best_member_as_it_is() {
    let recipe = domains(PartitionSemantics::Exclusive);
    let one = |name: &str, c: f64| vec![(name.to_owned(), c)];
    assert_eq!(matched(&recipe, &three(yes(0.4), yes(0.6), no())), one("domain:b", 0.6));
    assert_eq!(
        matched(&recipe, &three(yes(0.6), yes(0.6), no())),
        one("domain:a", 0.6),
        "ties: listed first"
    );
    assert_eq!(matched(&recipe, &three(no(), no(), no())), one("domain:c", 0.0), "default");
}

#[test]
fn softmax_gives_the_winner_its_share() {
    let recipe = domains(PartitionSemantics::SoftmaxExclusive { temperature: 0.1 });
    let two = matched(&recipe, &three(yes(0.4), yes(0.6), no()));
    // e^6 / (e^4 + e^6) = 1 / (1 + e^-2)
    assert_eq!(two.len(), 1);
    assert!((two[0].1 - 0.880_797_077_977_882_4).abs() < 1e-12, "{two:?}");
    assert_eq!(
        matched(&recipe, &three(no(), yes(0.6), no())),
        [("domain:b".to_owned(), 0.6)],
        "alone: its own"
    );
}

#[test]
fn the_partition_is_traced() {
    let recipe = domains(PartitionSemantics::SoftmaxExclusive { temperature: 0.1 });
    let verdict = done(compile(&recipe).explain(&three(yes(0.4), yes(0.6), no()), &Scope::All));
    let it = &verdict.projections.partitions[0];
    assert_eq!((it.winner.as_deref(), it.raw_winner_score, it.default_used), (Some("b"), Some(0.6), false));
    let names: Vec<_> = it.contenders.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    // tanh(1): the difference of the two shares
    assert!((it.margin.unwrap() - 0.761_594_155_955_765).abs() < 1e-12);
    let lone = done(compile(&recipe).explain(&three(no(), no(), no()), &Scope::All));
    assert!(lone.projections.partitions[0].default_used);
}

#[test]
fn a_member_needs_the_whole_partition() {
    let policy = compile(&domains(PartitionSemantics::Exclusive));
    let want = ["domain:a", "domain:b", "domain:c"];
    assert_eq!(asked(&policy.decide(&Evidence::default(), &Scope::All)), want);
    let partly = evidence([("domain:b", yes(0.6))]);
    assert_eq!(asked(&policy.decide(&partly, &Scope::All)), ["domain:a", "domain:c"]);
    // What did not match cannot win a partition, whatever the others say (unless it is the default).
    let missed = done(policy.decide(&evidence([("domain:b", no())]), &Scope::All));
    assert_eq!(winner(&missed), None);
}

#[test]
fn a_missing_member_could_have_won() {
    let policy = compile(&domains(PartitionSemantics::Exclusive));
    let failure = done(policy.decide(&three(failed(), yes(0.6), no()), &Scope::All));
    assert_eq!((winner(&failure), &failure.blocked), (None, &None));
    let missing = done(policy.decide(&three(unsupported(), yes(0.6), no()), &Scope::All));
    assert_eq!(missing.blocked.map(|b| b.missing), Some(vec![key("domain:a")]));
    let unrelated = done(policy.decide(&three(unsupported(), no(), no()), &Scope::All));
    assert_eq!(unrelated.blocked, None);
}

fn input(source: InputSource, weight: f64, value: ValueSource) -> ScoreInput {
    ScoreInput { source, weight, value }
}

fn score(name: &str, inputs: Vec<ScoreInput>) -> Score {
    Score { name: name.to_owned(), inputs, place: Place::default() }
}

fn of(text: &str) -> InputSource {
    InputSource::Signal(key(text))
}

fn mapping(
    source: &str,
    method: MappingMethod,
    slope: Option<f64>,
    bands: &[(&str, NumericPredicate)],
) -> Mapping {
    Mapping {
        name: format!("{source}_bands"),
        source: source.to_owned(),
        method,
        calibration: slope.map(|slope| Calibration { slope }),
        outputs: bands
            .iter()
            .map(|(name, band)| MappingOutput { name: (*name).to_owned(), band: *band })
            .collect(),
        place: Place::default(),
    }
}

fn from(gte: f64) -> NumericPredicate {
    NumericPredicate { gte: Some(gte), ..NumericPredicate::default() }
}

fn below(lt: f64) -> NumericPredicate {
    NumericPredicate { lt: Some(lt), ..NumericPredicate::default() }
}

const BINARY: ValueSource = ValueSource::Binary { matched: 1.0, miss: 0.0 };

/// difficulty = 0.5·[k] + 0.4·conf(e) + 0.01·raw(c) − 0.2·{l: 1 or 0.5}; total = 2·difficulty
fn difficulty(method: MappingMethod, slope: Option<f64>) -> Recipe {
    let mut recipe = recipe(
        "keyword:k embedding:e context:c keyword:l",
        [decision("tough", 5, leaf("projection:tough")), decision("else", 1, None)],
    );
    recipe.projections.scores = vec![
        score(
            "difficulty",
            vec![
                input(of("keyword:k"), 0.5, BINARY),
                input(of("embedding:e"), 0.4, ValueSource::Confidence),
                input(of("context:c"), 0.01, ValueSource::Raw),
                input(of("keyword:l"), -0.2, ValueSource::Binary { matched: 1.0, miss: 0.5 }),
            ],
        ),
        score("total", vec![input(InputSource::Score("difficulty".to_owned()), 2.0, ValueSource::Score)]),
    ];
    let bands = [("easy", below(1.0)), ("tough", from(1.0)), ("extreme", from(1.5))];
    recipe.projections.mappings = vec![mapping("total", method, slope, &bands)];
    recipe
}

fn hard_request() -> Evidence {
    // 0.5 + 0.4·0.75 + 0.01·20 − 0.2·0.5 = 0.9; total 1.8
    evidence([
        ("keyword:k", yes(0.3)),
        ("embedding:e", yes(0.75)),
        ("context:c", raw(20.0)),
        ("keyword:l", no()),
    ])
}

#[test]
fn scores_add_up_and_bands_name_them() {
    let recipe = difficulty(MappingMethod::ThresholdBands, None);
    let verdict = done(compile(&recipe).decide(&hard_request(), &Scope::All));
    assert_eq!(winner(&verdict), Some("tough"));
    let totals: Vec<_> = verdict.projections.scores.iter().map(|s| s.total).collect();
    assert!((totals[0] - 0.9).abs() < 1e-12 && (totals[1] - 1.8).abs() < 1e-12, "{totals:?}");
    let parts: Vec<_> =
        verdict.projections.scores[0].inputs.iter().map(|p| (p.name.as_str(), p.value)).collect();
    assert_eq!(parts, [("k", 1.0), ("e", 0.75), ("c", 20.0), ("l", 0.5)]);
    let mapped = &verdict.projections.mappings[0];
    assert_eq!((mapped.selected_output.as_deref(), mapped.confidence), (Some("tough"), Some(1.0)));
    let hits: Vec<_> = mapped.outputs.iter().map(|o| o.matched).collect();
    assert_eq!(hits, [false, true, false], "the first band only");
}

#[test]
fn multi_emit_emits_every_band() {
    let recipe = difficulty(MappingMethod::MultiEmit, Some(2.0));
    let verdict = done(compile(&recipe).decide(&hard_request(), &Scope::All));
    let emitted: Vec<_> =
        verdict.matched.iter().filter(|(k, _)| k.to_string().starts_with("projection")).collect();
    let names: Vec<_> = emitted.iter().map(|(k, _)| k.name()).collect();
    assert_eq!(names, ["extreme", "tough"]);
    // 1/(1+e^-(2·0.3)) and 1/(1+e^-(2·0.8))
    assert!((emitted[0].1 - 0.645_656_306_225_795_4).abs() < 1e-9, "{emitted:?}");
    assert!((emitted[1].1 - 0.832_018_385_133_924_1).abs() < 1e-9, "{emitted:?}");
}

#[test]
fn a_band_without_bounds_has_distance_one() {
    let mut recipe = difficulty(MappingMethod::ThresholdBands, None);
    let open = [("tough", NumericPredicate::default())];
    recipe.projections.mappings = vec![mapping("total", MappingMethod::ThresholdBands, Some(12.0), &open)];
    let verdict = done(compile(&recipe).decide(&hard_request(), &Scope::All));
    let mapped = &verdict.projections.mappings[0];
    assert_eq!(mapped.boundary_distance, Some(1.0));
    assert!((mapped.confidence.unwrap() - 0.999_993_855_8).abs() < 1e-9);
}

#[test]
fn a_projection_is_computed_only_when_a_decision_depends_on_it() {
    let mut recipe = difficulty(MappingMethod::ThresholdBands, None);
    recipe.decisions.push(decision("first", 9, leaf("keyword:k")));
    let policy = compile(&recipe);
    let world = World { recipe: &recipe, all: hard_request() };
    let (verdict, rounds) = world.decide(&policy, &Scope::All);
    assert_eq!(winner(&verdict), Some("first"));
    assert!(rounds.iter().flatten().all(|ask| cost(ask.family) < 3), "no encoder: {rounds:?}");
    assert!(verdict.projections.scores.is_empty());
}

#[test]
fn an_absent_term_leaves_unknown_the_bands_that_it_could_change() {
    let recipe = difficulty(MappingMethod::ThresholdBands, None);
    let policy = compile(&recipe);
    let mut broken = hard_request();
    // Without the keyword the total is somewhere in 0.8..=1.8.
    broken.insert(key("keyword:k"), failed());
    let failure = done(policy.decide(&broken, &Scope::All));
    assert_eq!((winner(&failure), &failure.blocked), (Some("else"), &None));
    broken.insert(key("keyword:k"), unsupported());
    let missing = done(policy.decide(&broken, &Scope::All));
    assert_eq!(
        missing.blocked.map(|b| (b.decision, b.missing)),
        Some(("tough".into(), vec![key("keyword:k")]))
    );
    // Without the example's nearness it is in 1.2..=2.0: tough, whatever the nearness would have been.
    for absent in [failed(), unsupported()] {
        let mut sure = hard_request();
        sure.insert(key("embedding:e"), absent);
        let verdict = done(policy.decide(&sure, &Scope::All));
        assert_eq!((winner(&verdict), &verdict.blocked), (Some("tough"), &None));
        assert_eq!(verdict.projections.scores, [], "no total is made up");
    }
}

#[test]
fn a_raw_term_that_is_absent_leaves_every_band_unknown() {
    let policy = compile(&difficulty(MappingMethod::ThresholdBands, None));
    let mut broken = hard_request();
    broken.insert(key("context:c"), failed());
    assert_eq!(winner(&done(policy.decide(&broken, &Scope::All))), Some("else"));
}

#[test]
fn a_band_that_words_settle_asks_for_no_encoder() {
    for slope in [None, Some(12.0)] {
        let mut recipe = difficulty(MappingMethod::ThresholdBands, slope);
        recipe.decisions[0].rules = all_of([leaf("keyword:k"), leaf("projection:tough")]).into();
        let policy = compile(&recipe);
        let world = World { recipe: &recipe, all: hard_request() };
        let (verdict, rounds) = world.decide(&policy, &Scope::All);
        assert_eq!(winner(&verdict), Some("tough"));
        assert!(rounds.iter().flatten().all(|ask| cost(ask.family) < 3), "{rounds:?}");
        let won = verdict.winner.unwrap();
        assert!(!won.confidence_complete);
        let full = done(policy.explain(&hard_request(), &Scope::All)).winner.unwrap();
        assert!(won.confidence <= full.confidence && full.confidence_complete);
    }
}

#[test]
fn a_test_of_an_exact_total_waits_for_it() {
    let mut recipe = difficulty(MappingMethod::ThresholdBands, None);
    recipe.decisions[0].rules = tested("projection:tough", Some(1.5), OnAbsent::Unknown).into();
    let policy = compile(&recipe);
    let partly = evidence([("keyword:k", yes(0.3)), ("context:c", raw(20.0)), ("keyword:l", no())]);
    assert_eq!(asked(&policy.decide(&partly, &Scope::All)), ["embedding:e"]);
    assert_eq!(winner(&done(policy.decide(&hard_request(), &Scope::All))), Some("tough"));
}

#[test]
fn a_knowledge_base_metric_is_asked_for_and_read_as_it_is() {
    let mut recipe = difficulty(MappingMethod::ThresholdBands, None);
    let metric = InputSource::KbMetric { kb: "docs".to_owned(), metric: "private".to_owned() };
    recipe.projections.scores[0].inputs.push(input(metric, -1.0, ValueSource::Score));
    let policy = compile(&recipe);
    let mut known = hard_request();
    assert_eq!(asked(&policy.decide(&known, &Scope::All)), ["kb:docs.private"]);
    // Twice (0.9 less the margin): a margin may be negative, and a metric never matches.
    known.insert(key("kb:docs.private"), raw(0.4));
    let verdict = done(policy.decide(&known, &Scope::All));
    assert!((verdict.projections.scores[1].total - 1.0).abs() < 1e-12, "{:?}", verdict.projections);
    known.insert(key("kb:docs.private"), raw(0.5));
    assert_eq!(winner(&done(policy.decide(&known, &Scope::All))), Some("else"));
    known.insert(key("kb:docs.private"), failed());
    let broken = done(policy.decide(&known, &Scope::All));
    assert_eq!((winner(&broken), &broken.blocked), (Some("else"), &None));
    known.insert(key("kb:docs.private"), unsupported());
    let missing = done(policy.decide(&known, &Scope::All));
    assert_eq!(missing.blocked.map(|b| b.missing), Some(vec![key("kb:docs.private")]));
}

#[test]
fn a_score_may_read_the_output_of_a_mapping() {
    let mut recipe = difficulty(MappingMethod::ThresholdBands, None);
    recipe.projections.scores.push(score("alarm", vec![input(of("projection:tough"), 3.0, BINARY)]));
    recipe.projections.mappings.push(mapping(
        "alarm",
        MappingMethod::ThresholdBands,
        None,
        &[("loud", from(3.0))],
    ));
    recipe.decisions = vec![decision("loud", 1, leaf("projection:loud"))];
    let policy = compile(&recipe);
    assert_eq!(asked(&policy.decide(&Evidence::default(), &Scope::All)), ["context:c"]);
    assert_eq!(winner(&done(policy.decide(&hard_request(), &Scope::All))), Some("loud"));
}
