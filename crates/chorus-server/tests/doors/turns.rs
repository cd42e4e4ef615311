//! A panel over several turns of one question, what is told at the end of a stream, and what a panel never does.

use crate::fusion::{ANALYSIS, is_judgement, seat};
use crate::loopers::{calls, house_of};
use crate::support::{HOUSE, House, ask, user};
use chorus_testkit::{ChatAnswer, Received, Script, Step};
use serde_json::{Value, json};

fn piece(text: &str) -> Step {
    Step::event(&json!({"choices": [{"index": 0, "delta": {"content": text}}]}).to_string())
}

fn tools() -> Value {
    json!([{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}])
}

/// The writer calls a tool until it has seen that many results.
fn looks_up(house: &House, wanted: usize) {
    seat(house);
    house.up.on_with("judge", move |request: &Received| {
        if is_judgement(request) {
            return Script::reply(ANALYSIS);
        }
        let body = request.json();
        let results = body["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "tool").count();
        if results < wanted {
            return Script::chat(ChatAnswer::text("").tool_call(&format!("call_{results}"), "look", "{}"));
        }
        Script::reply("High tide is at noon.")
    });
}

/// Goes on with the answer's calls until there are none; the answers, and their traces.
async fn agent(house: &House, streams: bool) -> Vec<Value> {
    let mut request = ask("vllm-sr/fusion", "When is high tide?");
    request["tools"] = tools();
    let mut traces = Vec::new();
    for _ in 0..8 {
        let (message, trace) = if streams {
            let told = house.stream(&request).await.told().await;
            let parts =
                told.chunks.iter().filter_map(|chunk| chunk.pointer("/choices/0/delta/tool_calls/0/id"));
            let call = |id: &Value| json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}});
            let calls: Vec<Value> = parts.map(call).collect();
            (
                json!({"role": "assistant", "content": told.text, "tool_calls": calls}),
                told.chunks[0]["fusion"].clone(),
            )
        } else {
            let answer = house.chat(&request).await.json();
            (answer["choices"][0]["message"].clone(), answer["fusion"].clone())
        };
        traces.push(trace);
        let called = message["tool_calls"].as_array().cloned().unwrap_or_default();
        if called.is_empty() {
            return traces;
        }
        let messages = request["messages"].as_array_mut().unwrap();
        messages.push(message);
        let result = |call: &Value| json!({"role": "tool", "tool_call_id": call["id"], "content": "noon"});
        messages.extend(called.iter().map(result));
    }
    panic!("the agent does not come to an end");
}

#[tokio::test]
async fn g25_a_question_with_three_tool_results_asks_its_panel_once() {
    for streams in [false, true] {
        let house = House::open(HOUSE).await;
        looks_up(&house, 3);
        let traces = agent(&house, streams).await;
        let members = house.up.requests().iter().filter(|request| request.model != "judge").count();
        let judgements = house.up.requests().iter().filter(|request| is_judgement(request)).count();
        assert_eq!((members, judgements, house.up.requests().len()), (3, 1, 3 + 1 + 4), "streams: {streams}");
        let reused: Vec<bool> = traces.iter().map(|trace| trace["panel_reused"] == true).collect();
        assert_eq!(reused, [false, true, true, true], "streams: {streams}");
        assert_eq!(traces[3]["stages"][0], json!({"stage": "panel", "status": "reused"}));
        let records = house.all_records(4).await;
        assert_eq!(calls(&records[0]), ["judge synthesis"], "what a turn cost is what it called");
    }
}

#[tokio::test]
async fn g25_another_question_and_results_of_nobody_ask_the_panel_again() {
    let house = House::open(HOUSE).await;
    looks_up(&house, 1);
    let mut request = ask("vllm-sr/fusion", "When is high tide?");
    request["tools"] = tools();
    let message = house.chat(&request).await.json()["choices"][0]["message"].clone();
    let result = json!({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "noon"});
    for question in ["When is low tide?", "When is high tide?", "When is high tide?"] {
        request["messages"] = json!([user(question), message, result]);
        let before = house.up.requests().len();
        let answer = house.chat(&request).await.json();
        let reused = answer["fusion"]["panel_reused"] == true;
        // The third time it has been taken.
        assert_eq!(house.up.requests().len() - before, if reused { 1 } else { 5 }, "{question}");
    }
    let asked = house.up.requests().iter().filter(|request| request.model == "a").count();
    assert_eq!(asked, 3, "the first turn, the other question, and the one whose panel was taken");
}

#[tokio::test]
async fn g25_a_panel_can_be_asked_in_every_turn() {
    let every = HOUSE.replace("on_error: skip }", "on_error: skip, panel_cadence: every_turn }");
    let house = House::open(&every).await;
    looks_up(&house, 2);
    agent(&house, false).await;
    assert_eq!(house.up.requests().iter().filter(|request| request.model == "a").count(), 3);
}

const DISAGREE: &str = r#"{"consensus": [], "contradictions": [{"topic": "year", "stances": [{"model": "A", "stance": "opened in 1932"}, {"model": "B", "stance": "opened in 1950"}]}], "partial_coverage": [], "unique_insights": [], "blind_spots": ["who paid the builders"]}"#;

#[tokio::test]
async fn the_end_of_a_stream_says_what_became_of_disagreements() {
    let house = House::open(HOUSE).await;
    seat(&house);
    house.up.on_with("judge", |request: &Received| {
        if is_judgement(request) {
            Script::reply(DISAGREE)
        } else {
            Script::stream(["It was opened ", "in 1932."])
        }
    });
    let told = house.stream(&ask("vllm-sr/auto", "think deeply")).await.told().await;
    told.is_whole();
    assert!(told.chunks[0]["fusion"].get("resolution").is_none(), "unknown before the end");
    let last: Vec<&Value> =
        told.chunks.iter().filter(|chunk| chunk["choices"][0]["finish_reason"] == "stop").collect();
    let resolution = &last[0]["fusion"]["resolution"];
    assert_eq!(
        (&resolution["disagreements"][0]["followed"], &resolution["gaps"][0]["remains"]),
        (&json!(0), &json!(true))
    );
    let record = house.all_records(1).await.remove(0);
    let kept = &record.traces["fusion"]["resolution"];
    assert_eq!(kept["disagreements"][0]["followed"], 0);
    assert!(!kept.to_string().contains("opened") && !kept.to_string().contains("builders"), "{kept}");
}

#[tokio::test]
async fn g13_the_minority_reaches_the_judge_with_its_score() {
    let file =
        HOUSE.replace("on_error: skip }", "on_error: skip, grounding: { enabled: true, reference: panel } }");
    let house = House::open(&file).await;
    for (model, year) in [("a", "1912"), ("b", "1912"), ("c", "1914")] {
        house.up.on(model, Script::reply(&format!("The harbour bridge was opened in {year}.")));
    }
    house.up.on("judge", Script::reply("It was 1914."));
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await.json();
    let grounding = &answer["fusion"]["grounding"];
    assert_eq!(grounding["policy"], "weight");
    let scores = grounding["scores"].as_array().unwrap();
    assert!(scores.len() == 3 && scores.iter().all(|score| score["dropped"] == false), "{grounding}");
    assert!(scores[2]["score"].as_f64() < scores[0]["score"].as_f64());
    let judged = house.up.requests_for("judge")[0].last_user_text();
    assert!(judged.contains("1914") && judged.contains("support=\""), "{judged}");
}

#[tokio::test]
async fn a15_a_synthesis_that_breaks_off_is_not_begun_again() {
    let house = House::open(HOUSE).await;
    seat(&house);
    house.up.on_with("judge", |request: &Received| {
        if is_judgement(request) {
            Script::reply(ANALYSIS)
        } else {
            Script::sse([piece("one "), piece("two"), Step::Reset])
        }
    });
    let told = house.stream(&ask("vllm-sr/auto", "think deeply")).await.told().await;
    assert!(!told.text.contains("one twoone"), "{}", told.text);
    told.broken();
    let writers = house
        .up
        .requests()
        .iter()
        .filter(|request| request.model == "judge" && !is_judgement(request))
        .count();
    assert_eq!(writers, 1, "no blind replay once text was sent");
}

#[tokio::test]
async fn a15_a_cascade_whose_last_answer_breaks_off_says_so_and_repeats_nothing() {
    let cascade = "{ type: confidence, confidence: { escalation_order: declared, threshold: 0.9 } }";
    let house = House::open(&house_of(cascade)).await;
    for model in ["a", "b"] {
        house.up.on(model, Script::chat(ChatAnswer::text("unsure").logprobs([("unsure", -2.5)])));
    }
    house.up.on("c", Script::sse([piece("one "), piece("two"), Step::Reset]));
    let told = house.stream(&ask("vllm-sr/auto", "think deeply")).await.told().await;
    assert!(told.text.starts_with("one") && !told.text.contains("unsure"), "{}", told.text);
    told.broken();
    assert_eq!(house.up.requests().len(), 3);
}

#[tokio::test]
async fn a_poll_of_a_file_votes() {
    let poll = "{ type: poll, poll: { alternatives: 4, steps: [{ models: [a, b], accept: 0.6 }, { models: [c] }] } }";
    let house = House::open(&house_of(poll)).await;
    for (model, text) in [("a", "The answer is B."), ("b", "ANSWER: B"), ("c", "ANSWER: C")] {
        house.up.on(model, Script::chat(ChatAnswer::text(text).usage(10, 5)));
    }
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    assert_eq!(answer.header("x-vsr-looper-algorithm"), Some("poll"));
    assert_eq!(answer.json()["poll"]["stopped"], "accepted");
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!(calls(&record), ["a panel", "b panel"]);
    house.up.on("b", Script::chat(ChatAnswer::text("ANSWER: D").usage(10, 5)));
    house.up.on("c", Script::chat(ChatAnswer::text("ANSWER: D").usage(10, 5)));
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    assert_eq!(
        (answer.text().as_str(), &answer.json()["poll"]["stopped"]),
        ("ANSWER: D", &json!("last_step"))
    );
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert!(!record.traces["poll"].to_string().contains("leader"), "{}", record.traces["poll"]);
}

/// For each looper, who is asked for log-probabilities when the client asks for them: whoever may write the answer.
#[tokio::test]
async fn log_probabilities_are_asked_of_whoever_may_write_in_every_looper() {
    let judged = "{ type: fusion, fusion: { model: judge, analysis_models: [a, b] } }";
    let remom =
        "{ type: remom, remom: { breadth_schedule: [2], model_distribution: equal, synthesis_model: c } }";
    let roles =
        "{ type: workflows, workflows: { roles: [{ name: Thinker, models: [a] }], final: { model: c } } }";
    for (algorithm, writers) in [
        (judged, vec!["judge synthesis"]),
        (remom, vec!["c synthesis"]),
        (roles, vec!["c synthesis"]),
        (
            "{ type: ratings, ratings: { raters: components, aggregate: best } }",
            vec!["a panel", "b panel", "c panel"],
        ),
        ("{ type: poll, poll: { steps: [{ models: [a, b, c] }] } }", vec!["a panel", "b panel", "c panel"]),
    ] {
        let house = House::open(&house_of(algorithm)).await;
        for model in ["a", "b", "c", "judge"] {
            house.up.on(model, Script::chat(ChatAnswer::text("ANSWER: B").logprobs([("B", -0.1)])));
        }
        let mut request = ask("vllm-sr/auto", "think deeply");
        request["logprobs"] = true.into();
        let answer = house.chat(&request).await;
        assert_eq!(answer.status, 200, "{algorithm}");
        assert_eq!(answer.json()["choices"][0]["logprobs"]["content"][0]["token"], "B", "{algorithm}");
        let record = house.record(answer.header("x-vsr-replay-id")).await;
        let asked: Vec<String> = calls(&record)
            .into_iter()
            .zip(house.up.requests())
            .filter(|(_, request)| request.json()["logprobs"] == true)
            .map(|(call, _)| call)
            .collect();
        let mut sorted = asked.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, writers, "{algorithm}");
    }
}

#[tokio::test]
async fn several_choices_and_audio_are_refused_in_every_looper() {
    for algorithm in [
        "{ type: fusion, fusion: { model: judge, analysis_models: [a, b] } }",
        "{ type: remom, remom: { breadth_schedule: [2] } }",
        "{ type: workflows, workflows: { roles: [{ name: Thinker, models: [a] }], final: { model: c } } }",
        "{ type: ratings }",
        "{ type: confidence }",
        "{ type: poll }",
    ] {
        let house = House::open(&house_of(algorithm)).await;
        for (field, value) in [
            ("n", json!(2)),
            ("modalities", json!(["text", "audio"])),
            ("audio", json!({"voice": "x", "format": "wav"})),
        ] {
            let mut request = ask("vllm-sr/auto", "think deeply");
            request[field] = value;
            let answer = house.chat(&request).await;
            assert_eq!(
                (answer.status, &answer.json()["error"]["param"]),
                (400, &json!(field)),
                "{algorithm}"
            );
        }
        assert!(house.up.requests().is_empty(), "{algorithm}");
    }
}
