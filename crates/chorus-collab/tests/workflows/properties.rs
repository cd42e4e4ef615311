//! What holds for every plan, every mix of delays and every failure.

use crate::stage::{ID, NEXT_ID, Shelf, dynamic, fixed, plan, role, run, run_on};
use crate::support::{Script, Step, ask, body, fails, message, prompt, question, says};
use chorus_collab::workflows::WorkflowState;
use chorus_collab::{CallRole, FaultKind, WorkflowStates as _};
use chorus_spec::{OnError, WorkflowSettings};
use proptest::prelude::*;
use serde_json::{Value, json};

fn steps(model: &'static str) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0_u64..500, 0_u8..8), 1..10).prop_map(move |drawn| {
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

/// Planners' plans, sound and unsound.
fn any_plan() -> impl Strategy<Value = Value> {
    let model = || prop::sample::select(vec!["a", "a", "b", "b", "zzz"]);
    let access = prop::option::of(prop::collection::vec(prop::sample::select(vec!["s0", "s1", "s9"]), 0..2));
    let step = (prop::collection::vec(model(), 0..4), access);
    prop::collection::vec(step, 0..5).prop_map(|steps| {
        let step = |(at, (models, access)): (usize, &(Vec<&str>, Option<Vec<&str>>))| {
            json!({"id": format!("s{at}"), "models": models, "access_list": access})
        };
        json!({ "steps": steps.iter().enumerate().map(step).collect::<Vec<_>>() })
    })
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(future)
}

fn played(settings: &WorkflowSettings, planner: &str, a: &[Step], b: &[Step]) -> (Vec<String>, Script) {
    let script = Script::new([
        ("p", vec![says(planner)]),
        ("a", a.to_vec()),
        ("b", b.to_vec()),
        ("w", vec![says("final")]),
    ]);
    let _ = block_on(run(settings, &question("q"), &script));
    (script.all().iter().map(|call| format!("{} {}", call.model, body(call))).collect(), script)
}

proptest! {
    #[test]
    fn bounds_hold_and_a_plan_gives_one_run(
        made in any_plan(), a in steps("a"), b in steps("b"),
        max_steps in 1_usize..4, max_parallel in 1_usize..4, quorum in prop::option::of(1_usize..3),
    ) {
        let settings = WorkflowSettings {
            max_steps, max_parallel, min_successful_responses: quorum, on_error: OnError::Skip, ..dynamic()
        };
        let (bodies, script) = played(&settings, &made.to_string(), &a, &b);
        prop_assert!(script.all().len() <= plan(&settings).max_calls());
        prop_assert!(script.peak() <= max_parallel);
        for call in script.asked(CallRole::Worker) {
            prop_assert!(["a", "b"].contains(&&*call.model));
            prop_assert!(prompt(&call).contains('q'));
        }
        prop_assert_eq!(bodies, played(&settings, &made.to_string(), &a, &b).0);
    }

    #[test]
    fn a_state_reads_back_as_it_was_written(id in "[a-z\"]{1,9}", found in "(?s).{1,40}", user in "(?s).{1,40}") {
        let call = json!([{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}]);
        let calls = message(&json!({"role": "assistant", "content": null, "tool_calls": call}), "tool_calls");
        let script = || Script::new([
            ("a", vec![says(&format!("x{found}"))]),
            ("b", vec![calls.clone(), says("y")]),
            ("w", vec![says("final")]),
        ]);
        let settings = fixed(vec![role("One", &["a"], None), role("Two", &["b"], None)]);
        let fields = r#""tools":[{"type":"function","function":{"name":"f","parameters":{}}}]"#;
        let user = json!({"role": "user", "content": user}).to_string();
        let shown = format!("flowtool_{ID}__1__{id}");
        let result = json!({"role": "tool", "tool_call_id": shown, "content": found}).to_string();
        // One run goes on at once, the other by way of a state that was read and written again.
        let last = |again: bool| block_on(async {
            let (script, shelf) = (script(), Shelf::default());
            run_on(&settings, &ask(&user, fields), &script, &shelf, ID).await.0.unwrap();
            if again {
                let text = shelf.take(ID).await.unwrap().unwrap();
                let state: WorkflowState = serde_json::from_str(&text).unwrap();
                shelf.put(ID, serde_json::to_string(&state).unwrap()).await.unwrap();
            }
            let back = ask(&format!("{user},{result}"), fields);
            run_on(&settings, &back, &script, &shelf, NEXT_ID).await.0.unwrap();
            body(&script.only(CallRole::Synthesis)).to_string()
        });
        prop_assert_eq!(last(false), last(true));
    }
}
