//! References and policies.

use crate::support::{Script, ask, judge, judged_by, prompt, question, run, says};
use chorus_collab::CallRole;
use chorus_spec::{FusionSettings, GroundingPolicy, GroundingReference, GroundingSettings};

const TRUE: &str = "The bridge was opened in 1932.";
const FALSE: &str = "The bridge was opened in 1950.";

fn team() -> Script {
    Script::new([("a", vec![says(TRUE)]), ("b", vec![says(FALSE)]), ("j", judge())])
}

fn grounded(policy: GroundingPolicy, min_score: f64, min_keep: usize) -> FusionSettings {
    let grounding = GroundingSettings { policy, min_score, min_keep, ..GroundingSettings::default() };
    FusionSettings { grounding: Some(grounding), ..judged_by("j", &["a", "b"]) }
}

/// A conversation whose tool result knows the year.
fn informed() -> chorus_wire::ChatRequest {
    ask(
        r#"{"role":"user","content":"When was it opened?"},
           {"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},
           {"role":"tool","tool_call_id":"c","content":"Archive: the bridge was opened in 1932 by the premier."}"#,
        "",
    )
}

#[tokio::test(start_paused = true)]
async fn weight_tells_the_score_and_annotate_the_sentences_too() {
    for (policy, told) in [(GroundingPolicy::Weight, false), (GroundingPolicy::Annotate, true)] {
        let script = team();
        let (answer, trace) = run(&grounded(policy, 0.0, 1), &informed(), &script).await;
        answer.unwrap();
        let grounding = trace.grounding.unwrap();
        assert_eq!(grounding.reference_mode, GroundingReference::Context);
        let scores: Vec<_> = grounding.scores.iter().map(|s| (s.score, s.flagged_spans.len())).collect();
        assert_eq!(scores, [(Some(1.0), 0), (Some(0.5), 1)]);
        for role in [CallRole::Judge, CallRole::Synthesis] {
            let call = script.only(role);
            assert!(prompt(&call).contains("support=\"0.50\""));
            assert_eq!(prompt(&call).contains(&format!("not supported: {FALSE}")), told);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn filter_drops_below_the_score_but_keeps_enough() {
    for (min_keep, dropped) in [(1, [false, true]), (2, [false, false])] {
        let script = team();
        let (answer, trace) =
            run(&grounded(GroundingPolicy::Filter, 0.9, min_keep), &informed(), &script).await;
        answer.unwrap();
        let scores = trace.grounding.unwrap().scores;
        assert_eq!(scores.iter().map(|s| s.dropped).collect::<Vec<_>>(), dropped);
        assert_eq!(prompt(&script.only(CallRole::Synthesis)).contains(FALSE), !dropped[1]);
    }
}

#[tokio::test(start_paused = true)]
async fn without_context_the_peers_are_the_reference() {
    let script = Script::new([
        ("a", vec![says(TRUE)]),
        ("b", vec![says("In 1932 the bridge was opened.")]),
        ("c", vec![says(FALSE)]),
        ("j", judge()),
    ]);
    let grounding = Some(GroundingSettings::default());
    let settings = FusionSettings { grounding, ..judged_by("j", &["a", "b", "c"]) };
    let (_, trace) = run(&settings, &question("When was it opened?"), &script).await;
    let grounding = trace.grounding.unwrap();
    assert_eq!(grounding.reference_mode, GroundingReference::Panel);
    let score = |seat: usize| grounding.scores[seat].score.unwrap();
    assert!(score(0) > score(2) && score(1) > score(2), "{grounding:?}");
    assert_eq!(grounding.scores[2].flagged_spans, [FALSE]);
}
