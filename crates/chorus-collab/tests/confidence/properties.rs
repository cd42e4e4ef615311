//! What holds for every cascade.

use crate::stage::{plan, run, settings, weighed};
use crate::support::{Script, Step, fails, question, says};
use chorus_collab::{CallRole, FaultKind};
use chorus_spec::{ConfidenceMethod, ConfidenceSettings, OnError};
use proptest::prelude::*;

const METHODS: [ConfidenceMethod; 8] = [
    ConfidenceMethod::AvgLogprob,
    ConfidenceMethod::Margin,
    ConfidenceMethod::Hybrid,
    ConfidenceMethod::QuantileLogprob,
    ConfidenceMethod::Learned,
    ConfidenceMethod::SelfVerify,
    ConfidenceMethod::AutomixEntailment,
    ConfidenceMethod::Agreement,
];
const MODELS: [&str; 3] = ["a", "b", "c"];

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (-4.0..0.0, 0.0..6.0).prop_map(|token| weighed("answer", &[token])),
        2 => Just(says("no numbers")),
        1 => Just(says("{\"confidence\": 0.9} VERDICT: SUPPORTED")),
        1 => Just(says("VERDICT: SUPPORTED")),
        1 => Just(fails(FaultKind::Status)),
        1 => Just(fails(FaultKind::Budget)),
    ]
}

fn steps() -> impl Strategy<Value = [Vec<Step>; 3]> {
    let of_model = || prop::collection::vec(step(), 1..6);
    [of_model(), of_model(), of_model()]
}

proptest! {
    #[test]
    fn calls_are_bounded_and_only_evidence_is_accepted(
        method in prop::sample::select(METHODS.to_vec()),
        threshold in prop::option::of(0.0..=1.0),
        hopeless in prop::option::of(0.0..0.2),
        fail in any::<bool>(),
        steps in steps(),
    ) {
        let on_error = if fail { OnError::Fail } else { OnError::Skip };
        let hopeless = hopeless.filter(|h| threshold.is_none_or(|t| *h <= t));
        let settings = ConfidenceSettings { threshold, hopeless, on_error, ..settings(method) };
        let plan = plan(&settings, &MODELS);
        let [a, b, c] = steps;
        let script = Script::new([("a", a), ("b", b), ("c", c)]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (outcome, trace) = runtime.block_on(run(&plan, &question("q"), &script));

        let asked = script.asked(CallRole::Attempt).len() + script.asked(CallRole::Verifier).len();
        prop_assert!(asked <= plan.max_calls());
        prop_assert!(trace.attempts.len() <= MODELS.len());
        for attempt in trace.attempts.iter().filter(|attempt| attempt.accepted) {
            let trusted = attempt.confidence.is_some_and(|confidence| confidence >= plan.threshold);
            prop_assert!(trusted || attempt.model == plan.last, "{attempt:?}");
        }
        for confidence in trace.attempts.iter().filter_map(|attempt| attempt.confidence) {
            prop_assert!((0.0..=1.0).contains(&confidence));
        }
        prop_assert_eq!(outcome.is_ok(), trace.answered_by.is_some());
    }
}
