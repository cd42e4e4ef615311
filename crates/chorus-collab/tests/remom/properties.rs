//! What holds for every schedule, every mix of delays and every failure.

use crate::stage::{planned, run};
use crate::support::{Script, Step, ask, body, fails, prompt, says};
use chorus_collab::{CallRole, FaultKind};
use chorus_spec::{Distribution, RemomSettings};
use proptest::prelude::*;

const MODELS: [&str; 3] = ["a", "b", "c"];

/// Answers of one model: marked with its name and turn, at some delay; a few fail.
fn steps(model: &'static str) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0_u64..500, 0_u8..10), 1..12).prop_map(move |drawn| {
        let step = |(turn, (delay, luck)): (usize, (u64, u8))| {
            let step = match luck {
                0 => fails(FaultKind::Status),
                1 => says(" "),
                _ => says(&format!("said-by-{model}-at-{turn}.")),
            };
            step.after_ms(delay)
        };
        drawn.into_iter().enumerate().map(step).collect()
    })
}

fn any_settings() -> impl Strategy<Value = RemomSettings> {
    use Distribution::{Equal, FirstOnly, RoundRobin, Weighted};
    let distribution = prop::sample::select(vec![Weighted, Equal, RoundRobin, FirstOnly]);
    let schedule = prop::collection::vec(1_usize..6, 1..4);
    let (cap, quorum) = (prop::option::of(1_usize..4), prop::option::of(1_usize..4));
    (schedule, distribution, cap, quorum, any::<u64>()).prop_map(
        |(breadth_schedule, distribution, max_concurrent, min_successful_responses, shuffle_seed)| {
            RemomSettings {
                breadth_schedule,
                distribution,
                max_concurrent,
                min_successful_responses,
                shuffle_seed,
                ..RemomSettings::default()
            }
        },
    )
}

/// Runs to its end under a paused clock; gives every call's body, in order.
fn played(settings: &RemomSettings, scripts: &[Vec<Step>; 3]) -> (Vec<String>, Script) {
    let [a, b, c] = scripts.clone();
    let script = Script::new([("a", a), ("b", b), ("c", c)]);
    let fields = r#""tools":[{"type":"function","function":{"name":"f","parameters":{}}}]"#;
    let ask = ask(r#"{"role":"user","content":"q"}"#, fields);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let _ = runtime.block_on(run(&planned(settings, &MODELS), &ask, &script));
    (script.all().iter().map(|call| format!("{} {}", call.model, body(call))).collect(), script)
}

proptest! {
    #[test]
    fn bounds_hold_and_a_seed_gives_one_run(
        settings in any_settings(),
        a in steps("a"), b in steps("b"), c in steps("c"),
    ) {
        let scripts = [a, b, c];
        let (bodies, script) = played(&settings, &scripts);
        let plan = planned(&settings, &MODELS);
        let breadths: usize = settings.breadth_schedule.iter().sum();
        prop_assert!(script.all().len() <= breadths + 1);
        prop_assert_eq!(plan.max_calls(), breadths + 1);
        let widest = settings.breadth_schedule.iter().max().copied().unwrap_or(0);
        prop_assert!(script.peak() <= settings.max_concurrent.unwrap_or(widest));
        for (at, call) in script.all().iter().enumerate() {
            let writes = call.role == CallRole::Synthesis;
            prop_assert_eq!(body(call).get("tools").is_some(), writes, "only the writer sees tools");
            let first_round = settings.min_successful_responses.is_none() && at < settings.breadth_schedule[0];
            prop_assert!(!first_round || writes || !prompt(call).contains("said-by-"));
        }
        prop_assert_eq!(bodies, played(&settings, &scripts).0);
    }
}
