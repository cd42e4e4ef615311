//! What a looper is said to have used: the sum over its attempts, whatever became of each of them.

use crate::loopers::house_of;
use crate::support::{House, ask};
use chorus_store::{CallStatus, RunRecord};
use chorus_testkit::{ChatAnswer, Received, Script};
use chorus_wire::Usage;
use serde_json::json;

const LOOPERS: [(&str, &str); 6] = [
    ("confidence", "{ type: confidence, confidence: { escalation_order: declared } }"),
    ("ratings", "{ type: ratings, ratings: { raters: peers, aggregate: best } }"),
    ("remom", "{ type: remom, remom: { breadth_schedule: [3, 2], model_distribution: equal } }"),
    ("fusion", "{ type: fusion, fusion: { model: judge, on_error: skip } }"),
    ("poll", "{ type: poll, poll: { alternatives: 3 } }"),
    (
        "workflows",
        "{ type: workflows, workflows: { roles: [{ name: solver, models: [a, b] }, { name: verifier, models: [c] }], final: { model: a }, on_error: skip } }",
    ),
];

/// Requests of each looper.
const SEEDS: usize = 12;

/// What an answered call of that model takes.
fn takes(model: &str) -> (u64, u64) {
    match model {
        "a" => (101, 11),
        "b" => (103, 13),
        "c" => (107, 17),
        _ => (109, 19),
    }
}

/// Answers, refusals and silence, by the number in the question and the model.
fn script(request: &Received) -> Script {
    let text = request.json().to_string();
    let seed: usize = text.split_once("case ").map_or(0, |(_, rest)| {
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    });
    let at = request.model.bytes().next().map_or(0, usize::from);
    let (prompt, completion) = takes(&request.model);
    match (seed * 7 + at * 5 + seed * at) % 6 {
        0 => Script::error(500, "no"),
        1 => Script::chat(ChatAnswer::text(" ").usage(prompt, completion)),
        fate => {
            let answer = format!("Because of {fate}. ANSWER: {}", ["A", "B"][fate % 2]);
            Script::chat(ChatAnswer::text(&answer).usage(prompt, completion))
        }
    }
}

/// Records agree with themselves, and with what the backend has said.
fn adds_up(record: &RunRecord, at: &str) {
    let mut sum = Usage::default();
    let mut cost = 0;
    for call in &record.calls {
        if call.status == CallStatus::Ok {
            let told = (call.usage.prompt_tokens, call.usage.completion_tokens);
            assert_eq!(told, takes(&call.model), "{at}");
        }
        sum.prompt_tokens += call.usage.prompt_tokens;
        sum.completion_tokens += call.usage.completion_tokens;
        sum.total_tokens += call.usage.total_tokens;
        sum.estimated |= call.usage.estimated;
        cost += call.cost_micro_usd;
    }
    assert_eq!((record.usage, record.cost_micro_usd), (sum, cost), "{at}");
}

#[tokio::test]
async fn g17_the_sum_of_all_attempts_is_told_whatever_became_of_them() {
    for (name, algorithm) in LOOPERS {
        let house = House::open(&house_of(algorithm)).await;
        house.up.otherwise(script);
        let (mut answered, mut failed) = (0, 0);
        for seed in 0..SEEDS {
            let before = house.up.requests().len();
            let answer = house.chat(&ask("vllm-sr/auto", &format!("think deeply: case {seed}"))).await;
            let record = house.record(answer.header("x-vsr-replay-id")).await;
            let at = format!("{name}, case {seed}");
            assert_eq!(record.calls.len(), house.up.requests().len() - before, "{at}: every attempt");
            adds_up(&record, &at);
            if answer.status == 200 {
                answered += 1;
                assert_eq!(answer.json()["usage"], json!(record.usage), "{at}");
            } else {
                failed += 1;
            }
        }
        assert!(answered > 0 && answered + failed == SEEDS, "{name}: nothing was answered");
    }
}
