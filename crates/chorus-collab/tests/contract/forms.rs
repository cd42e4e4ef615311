//! Every form of a contract: what fulfils it, what is mended, and what breaks it.

use chorus_collab::contract::{Applied, Written, apply};
use chorus_spec::{OutputContract, OutputExtract, OutputKind, OutputRender, OutputSource, ReferenceFormat};
use serde_json::json;

fn written(content: &str) -> Written<'_> {
    Written { content, reasoning: None }
}

fn of(kind: OutputKind) -> OutputContract {
    OutputContract {
        kind,
        render: None,
        extract: OutputExtract::default(),
        field_order: Vec::new(),
        defaults: Vec::new(),
        repair: false,
        fallback: None,
        dereference: false,
    }
}

fn choice() -> OutputContract {
    let values = ["A", "B", "C"].map(str::to_owned).into();
    let render = Some(OutputRender::Template("ANSWER: {{choice}}".to_owned()));
    OutputContract { render, ..of(OutputKind::Choice(values)) }
}

fn terminal() -> OutputContract {
    OutputContract {
        defaults: vec![("task_complete".to_owned(), "false".to_owned())],
        ..of(OutputKind::StructuredJson { schema_ref: "terminal_action_v1".to_owned() })
    }
}

fn on(contract: &OutputContract, content: &str, members: &[&str]) -> Applied {
    let members: Vec<Written<'_>> = members.iter().map(|member| written(member)).collect();
    apply(contract, written(content), &members)
}

#[test]
fn a_choice_is_found_and_written_in_the_promised_form() {
    for (content, repaired) in [
        ("ANSWER: B", false),
        ("Both sides have a point.\nThe answer is (B).", true),
        ("<think>Perhaps ANSWER: A</think>\\boxed{B}", true),
    ] {
        let applied = on(&choice(), content, &["ANSWER: A"]);
        assert_eq!((&*applied.text, applied.repaired, applied.by_majority), ("ANSWER: B", repaired, false));
        assert_eq!((applied.value, applied.violated), (Some(json!("B")), None));
    }
}

#[test]
fn the_members_decide_where_the_final_answer_does_not() {
    let applied = on(&choice(), "Hard to say.", &["ANSWER: C", "answer: a", "no idea", "I say A"]);
    assert_eq!((&*applied.text, applied.by_majority, applied.violated), ("ANSWER: A", true, None));
    let tie = on(&choice(), "Hard to say.", &["ANSWER: C", "ANSWER: A"]);
    assert_eq!(tie.text, "ANSWER: C");
}

#[test]
fn a_broken_contract_is_told_and_falls_back() {
    let plain = on(&choice(), "Hard to say.", &[]);
    assert_eq!((&*plain.text, plain.repaired, plain.value), ("Hard to say.", false, None));
    assert_eq!(plain.violated.as_deref(), Some("the answer is not one of A, B, C"));
    let contract = OutputContract { fallback: Some("ANSWER: A".to_owned()), ..choice() };
    let fallen = on(&contract, "Hard to say.", &[]);
    assert_eq!((&*fallen.text, fallen.violated.is_some()), ("ANSWER: A", true));
}

#[test]
fn reasoning_and_objects_are_read_where_the_contract_says() {
    let mut contract = choice();
    contract.extract.sources = vec![OutputSource::Content, OutputSource::ReasoningContent];
    let answer = Written { content: "See above.", reasoning: Some("So it is ANSWER: C") };
    assert_eq!(apply(&contract, answer, &[]).text, "ANSWER: C");
    contract.extract.json_object = true;
    assert_eq!(on(&contract, "```json\n{\"pick\": \"b\", \"why\": \"A sum\",}\n```", &[]).text, "ANSWER: B");
    assert!(on(&contract, "{\"pick\": \"b\", \"other\": \"a\"}", &[]).violated.is_some());
}

#[test]
fn a_terminal_action_is_salvaged_filled_and_ordered() {
    let content = "Sure:\n```json\n{\"plan\":\"list\",\"analysis\":\"idle\",\"commands\":[{\"keystrokes\":\"ls\\n\"}],}\n```";
    let applied = on(&terminal(), content, &[]);
    let want =
        r#"{"analysis":"idle","plan":"list","commands":[{"keystrokes":"ls\n"}],"task_complete":false}"#;
    assert_eq!((&*applied.text, applied.repaired, applied.violated), (want, true, None));
    assert!(!on(&terminal(), want, &[]).repaired);
    for broken in [r#"{"analysis":"a","plan":"p"}"#, r#"{"analysis":"a","plan":"p","commands":["ls"]}"#, "ls"]
    {
        assert!(on(&terminal(), broken, &[]).violated.is_some(), "{broken}");
        assert!(on(&terminal(), broken, &[want]).by_majority, "{broken}");
    }
}

#[test]
fn a_reference_points_at_a_candidate_or_is_broken() {
    let kind =
        |id_format| OutputKind::ReferenceSelection { source: "candidate_responses".to_owned(), id_format };
    let members = ["first", "<think>hm</think>second"];
    for (format, content, want) in [
        (ReferenceFormat::Index, "ANSWER: 1", Some("second")),
        (
            ReferenceFormat::ReferenceNumber,
            "Candidate 2 is best, because 1 errs.\nThe answer is 2.",
            Some("second"),
        ),
        (ReferenceFormat::Index, "0", Some("first")),
        (ReferenceFormat::ReferenceNumber, "0", None),
        (ReferenceFormat::Index, "7", None),
        (ReferenceFormat::Index, "-1", None),
        (ReferenceFormat::Index, "none of them", None),
    ] {
        let applied = on(&OutputContract { dereference: true, ..of(kind(format)) }, content, &members);
        assert_eq!(applied.violated.is_none(), want.is_some(), "{content}");
        assert_eq!(applied.text, want.unwrap_or(content));
    }
    let pointer = on(&of(kind(ReferenceFormat::Index)), "I choose 1", &members);
    assert_eq!((&*pointer.text, pointer.value), ("1", Some(json!(1))));
}
