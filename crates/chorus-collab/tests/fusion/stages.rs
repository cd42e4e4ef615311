//! The run as a whole: its stages, its prompts, its trace, and who is told.

use crate::support::{
    ANALYSIS, Script, ask, fails, judge, judged_by, prompt, question, run, says, settings, text,
};
use chorus_collab::fusion::{Degradation, KeptPanel, StageStatus, fusion_follow_up};
use chorus_collab::{
    CallRole, FaultKind, FusionOverlay, FusionPlan, FusionTrace, LoopEvent, LoopEvents, LoopFault, fusion,
};
use chorus_spec::{FusionSettings, OnError};
use serde_json::{Value, json};
use std::sync::Mutex;

#[tokio::test(start_paused = true)]
async fn three_stages_make_one_answer() {
    let script = Script::trio();
    let (answer, trace) = run(&judged_by("j", &["a", "b"]), &question("q?"), &script).await;
    assert_eq!(text(&answer.unwrap()), "final");
    let judge = script.only(CallRole::Judge);
    assert!(["q?", "alpha", "beta"].iter().all(|part| prompt(&judge).contains(part)));
    let writer = script.only(CallRole::Synthesis);
    assert_eq!(writer.ask.messages()[0].text, "q?");
    assert!(prompt(&writer).contains("\"consensus\"") && prompt(&writer).contains("alpha"));
    assert!(!trace.degraded);
    assert_eq!(
        serde_json::to_value(trace.shown(true, false)).unwrap(),
        json!({
            "analysis": serde_json::from_str::<Value>(ANALYSIS).unwrap(),
            "judge_model": "j",
            "analysis_models": ["a", "b"],
            "prompt_version": "fusion-v1",
            "prompt_digest": trace.prompt_digest,
            "quorum": {"wanted": 1, "got": 2},
            "degraded": false,
            "stages": [
                {"stage": "panel", "status": "ok"},
                {"stage": "judge", "model": "j", "status": "ok"},
                {"stage": "synthesis", "model": "j", "status": "ok"},
            ],
        })
    );
    assert_eq!(
        serde_json::to_value(&trace.shown(false, true).responses).unwrap(),
        json!([
            {"model": "a", "seat": 0, "label": "A", "content": "alpha", "finish_reason": "stop"},
            {"model": "b", "seat": 1, "label": "B", "content": "beta", "finish_reason": "stop"},
        ])
    );
    assert!(trace.shown(false, true).analysis.is_none());
}

#[tokio::test(start_paused = true)]
async fn prompts_as_they_are_sent() {
    let script = Script::trio();
    let messages = r#"{"role":"system","content":"Be brief."},{"role":"user","content":"What is 6 × 7?"}"#;
    run(&judged_by("j", &["a", "b"]), &ask(messages, ""), &script).await.0.unwrap();
    insta::assert_snapshot!("judge_prompt", prompt(&script.only(CallRole::Judge)));
    insta::assert_snapshot!("synthesis_prompt", prompt(&script.only(CallRole::Synthesis)));
    insta::assert_snapshot!("panel_system_message", script.asked(CallRole::Panel)[0].ask.messages()[0].text);
}

#[tokio::test(start_paused = true)]
async fn own_templates_are_filled() {
    let script = Script::trio();
    let settings = FusionSettings {
        analysis_template: Some("J|{{original}}|{{responses}}".to_owned()),
        synthesis_template: Some("S|{{original}}|{{analysis}}".to_owned()),
        ..judged_by("j", &["a", "b"])
    };
    run(&settings, &question("{{responses}}"), &script).await.0.unwrap();
    let judge = script.only(CallRole::Judge);
    assert!(prompt(&judge).starts_with("J|{{responses}}|2 of 2 models gave an answer."));
    let writer = script.only(CallRole::Synthesis);
    assert!(prompt(&writer).starts_with("S|{{responses}}|<comparison-"));
    assert!(!prompt(&writer).contains("alpha"));
}

#[tokio::test(start_paused = true)]
async fn g03_one_survivor_still_goes_through_judge_and_synthesis() {
    let script =
        Script::new([("a", vec![says("alpha")]), ("b", vec![fails(FaultKind::Timeout)]), ("j", judge())]);
    let (answer, trace) = run(&judged_by("j", &["a", "b"]), &question("q"), &script).await;
    assert_eq!(text(&answer.unwrap()), "final");
    assert_eq!(trace.degraded_by, [Degradation::MemberFailed, Degradation::SingleAnswer]);
    assert!(trace.stages.iter().all(|row| row.status == StageStatus::Ok));
    assert_eq!(trace.stages.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn g03_one_survivor_is_handed_through_where_the_policy_says_so() {
    let script = Script::new([("a", vec![says("alpha")]), ("b", vec![fails(FaultKind::Timeout)])]);
    let settings = FusionSettings { single_answer_passthrough: true, ..judged_by("j", &["a", "b"]) };
    let (answer, trace) = run(&settings, &question("q"), &script).await;
    assert_eq!(text(&answer.unwrap()), "alpha");
    let statuses: Vec<_> = trace.stages.iter().map(|row| row.status).collect();
    assert_eq!(statuses, [StageStatus::Ok, StageStatus::SkippedSingle, StageStatus::SkippedSingle]);
}

#[tokio::test(start_paused = true)]
async fn on_error_fail_makes_each_stage_s_fault_the_error() {
    let panel = || [("a", vec![says("x")]), ("b", vec![says("y")])];
    let with_judge = |steps| {
        let [a, b] = panel();
        Script::new([a, b, ("j", steps)])
    };
    let is_member = |fault: &LoopFault| matches!(fault, LoopFault::Member(_));
    for (script, is_expected) in [
        (
            Script::new([("a", vec![says("x")]), ("b", vec![fails(FaultKind::Status)])]),
            is_member as fn(&LoopFault) -> bool,
        ),
        (with_judge(vec![fails(FaultKind::Timeout)]), |fault| matches!(fault, LoopFault::Judge(_))),
        (with_judge(vec![says(ANALYSIS), fails(FaultKind::Transport)]), |fault| {
            matches!(fault, LoopFault::Synthesis(_))
        }),
    ] {
        let settings = FusionSettings { on_error: OnError::Fail, ..judged_by("j", &["a", "b"]) };
        let (outcome, trace) = run(&settings, &question("q"), &script).await;
        let fault = outcome.err().unwrap();
        assert!(is_expected(&fault), "{fault}");
        assert!(fault.call().is_some());
        assert_eq!(trace.stages.last().unwrap().status, StageStatus::Failed, "{fault}");
    }
}

#[derive(Default)]
struct Watcher(Mutex<Vec<String>>);

impl LoopEvents for Watcher {
    fn tell(&self, event: LoopEvent<'_>) {
        let line = match event {
            LoopEvent::RoundStarted { seats, .. } => format!("panel {}", seats.join(",")),
            LoopEvent::RoundFinished { usable, seats, .. } => format!("{usable}/{seats}"),
            LoopEvent::JudgeStarted(model) => format!("judge {model}"),
            LoopEvent::JudgeFinished { analysed, disagreements } => format!("{analysed} {disagreements}"),
            LoopEvent::SynthesisStarted(model) => format!("synthesis {model}"),
            other => format!("{other:?}"),
        };
        self.0.lock().unwrap().push(line);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_sees_the_stages() {
    let plan = FusionPlan::from_settings(&judged_by("j", &["a", "b"]), &[]).unwrap();
    let (mut trace, watcher) = (FusionTrace::default(), Watcher::default());
    fusion(&plan, &question("q"), &Script::trio(), &mut trace, &watcher).await.unwrap();
    assert_eq!(*watcher.0.lock().unwrap(), ["panel a,b", "2/2", "judge j", "true 0", "synthesis j"]);
}

#[tokio::test(start_paused = true)]
async fn a_request_plugin_builds_its_own_panel() {
    let fields = r#""plugins":[{"id":"web"},{"id":"fusion","model":"j","analysis_models":["a","b"]}]"#;
    let ask = ask(r#"{"role":"user","content":"q"}"#, fields);
    let overlay = FusionOverlay::of_request(&ask).unwrap().unwrap();
    let applied = overlay.apply(Some(&settings(&["x"])), &[]).unwrap();
    let (answer, trace) = run(&applied, &ask, &Script::trio()).await;
    assert_eq!(text(&answer.unwrap()), "final");
    assert_eq!(trace.analysis_models, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn g25_a_follow_up_asks_the_writer_alone_with_what_the_panel_said() {
    let script = Script::trio();
    let plan = FusionPlan::from_settings(&judged_by("j", &["a", "b"]), &[]).unwrap();
    let (_, first) = run(&judged_by("j", &["a", "b"]), &question("q?"), &script).await;
    let kept = KeptPanel::of(&first)
        .and_then(|kept| kept.to_text())
        .and_then(|text| KeptPanel::read(&text))
        .unwrap();
    let next = Script::new([("j", vec![says("with the tool's word")])]);
    let mut trace = FusionTrace::default();
    let answer = fusion_follow_up(&plan, &question("q?"), &kept, &next, &mut trace, &()).await.unwrap();
    assert_eq!(text(&answer), "with the tool's word");
    assert_eq!(next.all().len(), 1);
    let told = next.only(CallRole::Synthesis);
    assert!(["alpha", "beta", "\"consensus\""].iter().all(|part| prompt(&told).contains(part)));
    assert_eq!(
        prompt(&told),
        prompt(&script.only(CallRole::Synthesis)),
        "the writer sees what it saw before"
    );
    assert!(
        trace.panel_reused
            && trace.stages.iter().map(|row| row.status).take(2).all(|it| it == StageStatus::Reused)
    );
    let again = KeptPanel::of(&trace).unwrap();
    assert_eq!(again.to_text(), kept.to_text(), "and a third turn finds the same");
}
