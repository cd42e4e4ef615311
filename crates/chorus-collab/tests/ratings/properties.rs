//! What holds for every rated ensemble.

use crate::stage::{plan, run, settings};
use crate::support::{Script, Step, fails, prompt, question, says};
use chorus_collab::{CallRole, FaultKind};
use chorus_spec::{Aggregate, OnError, Raters, RatingsSettings};
use proptest::prelude::*;

const MODELS: [&str; 4] = ["a", "b", "c", "d"];

/// What a candidate says carries its name, so that the test sees who is shown what.
fn answer(model: &'static str) -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..3).prop_map(move |n| says(&format!("by-{model}\nAnswer: {n}"))),
        1 => Just(says(" ")),
        1 => Just(fails(FaultKind::Status)),
        1 => Just(fails(FaultKind::Budget)),
    ]
}

fn ballot() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(says("FINAL RANKING: B > A > C")),
        1 => Just(says("FINAL RANKING: B > A")),
        1 => Just(says("{\"scores\":[1,2,3]}")),
        1 => Just(says("no idea")),
        1 => Just(fails(FaultKind::Budget)),
    ]
}

fn steps(model: &'static str) -> impl Strategy<Value = Vec<Step>> {
    (answer(model), ballot()).prop_map(|(answer, ballot)| vec![answer, ballot])
}

proptest! {
    #[test]
    fn calls_are_bounded_and_nobody_rates_itself(
        raters in prop::sample::select(vec![Raters::None, Raters::Peers, Raters::Judge, Raters::Components]),
        aggregate in prop::sample::select(vec![Aggregate::Choices, Aggregate::Best, Aggregate::Vote]),
        fail in any::<bool>(),
        cap in prop::option::of(1usize..3),
        steps in (steps("a"), steps("b"), steps("c"), steps("d")),
    ) {
        let aggregate = if raters == Raters::None && aggregate == Aggregate::Best { Aggregate::Vote } else { aggregate };
        let on_error = if fail { OnError::Fail } else { OnError::Skip };
        let settings = RatingsSettings { on_error, max_concurrent: cap, ..settings(raters, aggregate) };
        let plan = plan(&settings, &MODELS);
        let script = Script::new([("a", steps.0), ("b", steps.1), ("c", steps.2), ("d", steps.3)]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (outcome, trace) = runtime.block_on(run(&plan, &question("q"), &script));

        let reviews = script.asked(CallRole::Rater);
        prop_assert!(script.asked(CallRole::Panel).len() + reviews.len() <= plan.max_calls());
        for call in script.asked(CallRole::Panel) {
            prop_assert!(!prompt(&call).contains("by-"), "a candidate saw an answer");
        }
        for call in reviews {
            prop_assert!(!prompt(&call).contains(&format!("by-{}", call.model)), "{} saw its own", call.model);
        }
        for ballot in &trace.ballots {
            prop_assert!(ballot.shown.iter().all(|seat| plan.panel[*seat] != ballot.rater));
            prop_assert!(ballot.points.is_empty() || ballot.points.len() == ballot.shown.len());
        }
        let ratings = trace.responses.iter().filter_map(|response| response.rating);
        prop_assert!(ratings.into_iter().all(|rating| (0.0..=1.0).contains(&rating)));
        if outcome.is_ok() {
            prop_assert!(!trace.responses.is_empty());
            prop_assert_eq!(trace.answered_by.is_none(), aggregate == Aggregate::Choices);
        }
    }
}
