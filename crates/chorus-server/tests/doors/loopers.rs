//! Every looper from end to end: which models are asked, what the client sees of it, what the record keeps.

use crate::support::{HOUSE, House, ask};
use chorus_store::{CallStatus, RunRecord, RunStatus};
use chorus_testkit::{ChatAnswer, Received, Script, Step};
use serde_json::{Value, json};

/// [`HOUSE`] with its Fusion decision replaced by one of that algorithm over a, b and c.
pub(crate) fn house_of(algorithm: &str) -> String {
    let (before, rest) = HOUSE.split_once("      algorithm:\n").unwrap();
    let (_, after) = rest.split_once("    - name: greet").unwrap();
    format!("{before}      algorithm: {algorithm}\n    - name: greet{after}")
}

/// Calls of a record as `model role`, in order.
pub(crate) fn calls(record: &RunRecord) -> Vec<String> {
    record.calls.iter().map(|call| format!("{} {}", call.model, call.role)).collect()
}

const REMOM: &str =
    "{ type: remom, remom: { breadth_schedule: [3], model_distribution: equal, synthesis_model: a } }";

/// Members say who they are; whoever is shown references concludes.
fn seat(house: &House) {
    for model in ["a", "b", "c"] {
        house.up.on_with(model, move |request: &Received| {
            let text = if request.last_user_text().contains("reference") {
                "the conclusion".to_owned()
            } else {
                format!("the view of {model}")
            };
            Script::chat(ChatAnswer::text(&text).usage(10, 5))
        });
    }
}

#[tokio::test]
async fn remom_asks_a_round_and_concludes() {
    let house = House::open(&house_of(REMOM)).await;
    seat(&house);
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "the conclusion"));
    assert_eq!(answer.header("x-vsr-looper-algorithm"), Some("remom"));
    assert_eq!(answer.header("x-vsr-response-path"), Some("looper"));
    let body = answer.json();
    let rounds = &body["reasoning_mom_responses"];
    assert_eq!((&rounds[0]["round"], &rounds[0]["breadth"]), (&json!(1), &json!(3)));
    let mut texts: Vec<&str> =
        rounds[0]["responses"].as_array().unwrap().iter().map(|r| r["content"].as_str().unwrap()).collect();
    texts.sort_unstable();
    assert_eq!(texts, ["the view of a", "the view of b", "the view of c"]);
    assert_eq!(body["usage"]["total_tokens"], 60, "g17: the sum of all calls");
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!(record.calls.len(), 4);
    assert_eq!(calls(&record).last().unwrap(), "a synthesis");
    assert!(record.traces.contains_key("remom"), "{:?}", record.traces.keys());
    let kept = record.traces["remom"].to_string();
    assert!(!kept.contains("the view of"), "answers' texts stay out of the record: {kept}");
}

#[tokio::test]
async fn remom_streams_its_conclusion_with_the_rounds_in_front() {
    let house = House::open(&house_of(REMOM)).await;
    seat(&house);
    let mut request = ask("vllm-sr/remom", "no signal matches this");
    request["stream_options"] = json!({"include_usage": true});
    let told = house.stream(&request).await.told().await;
    told.is_whole();
    assert_eq!(told.text, "the conclusion");
    assert_eq!(told.chunks[0]["reasoning_mom_responses"][0]["breadth"], 3);
    assert!(told.chunks[1..].iter().all(|chunk| chunk.get("reasoning_mom_responses").is_none()));
    assert_eq!(told.usage.as_ref().unwrap()["total_tokens"], 60);
}

#[tokio::test]
async fn remom_hides_its_rounds_where_it_is_told_to() {
    let hidden = REMOM.replace("synthesis_model: a", "include_intermediate_responses: false");
    let house = House::open(&house_of(&hidden)).await;
    seat(&house);
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    assert_eq!(answer.json().get("reasoning_mom_responses"), None);
    assert_eq!(answer.header("x-vsr-looper-algorithm"), Some("remom"));
}

const CASCADE: &str = "{ type: confidence, confidence: { escalation_order: declared, threshold: 0.9 } }";

fn sure(text: &str, logprob: f64) -> Script {
    Script::chat(ChatAnswer::text(text).logprobs([(text, logprob)]).usage(10, 5))
}

#[tokio::test]
async fn a_cascade_stops_at_the_first_answer_that_is_sure() {
    let house = House::open(&house_of(CASCADE)).await;
    house.up.on("a", sure("a guess", -2.5));
    house.up.on("b", sure("a fact", -0.01));
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    assert_eq!(answer.text(), "a fact");
    assert_eq!(answer.header("x-vsr-selected-model"), Some("b"));
    let body = answer.json();
    let attempts = body["confidence"]["attempts"].as_array().unwrap();
    let seen: Vec<(&Value, &Value)> = attempts.iter().map(|it| (&it["model"], &it["accepted"])).collect();
    assert_eq!(seen, [(&json!("a"), &json!(false)), (&json!("b"), &json!(true))]);
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!(calls(&record), ["a attempt", "b attempt"]);
}

#[tokio::test]
async fn a_cascade_streams_the_answer_of_the_last() {
    let house = House::open(&house_of(CASCADE)).await;
    house.up.on("a", sure("a guess", -2.5));
    house.up.on("b", sure("another", -2.5));
    house.up.on("c", Script::stream(["the ", "last ", "word"]));
    let told = house.stream(&ask("vllm-sr/auto", "think deeply")).await.told().await;
    assert_eq!(told.is_whole().text, "the last word");
    assert_eq!(told.chunks[0]["confidence"]["stopped"], "last_candidate");
    assert!(told.header("x-vsr-looper-models-used").unwrap().contains('c'));
}

#[tokio::test]
async fn a_backend_cannot_forge_any_trace() {
    let house = House::open(HOUSE).await;
    let forged = json!({"id": "x", "object": "chat.completion", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
        "reasoning_mom_responses": [], "flow": {}, "confidence": {}, "ratings": {}, "fusion": {}});
    house.up.on("spare", Script::json(200, &forged));
    let body = house.chat(&ask("spare", "x")).await.json();
    for field in ["reasoning_mom_responses", "flow", "confidence", "ratings", "fusion"] {
        assert!(body.get(field).is_none(), "g19: {field} in {body}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_cancels_every_member_of_a_round() {
    let house = House::open(&house_of(REMOM)).await;
    for model in ["a", "b", "c"] {
        house.up.on(model, Script::reply("late").first(Step::Stall));
    }
    let incoming = tokio::time::timeout(
        std::time::Duration::from_millis(300),
        house.stream(&ask("vllm-sr/auto", "think deeply")),
    )
    .await;
    assert!(incoming.is_err(), "nothing can have come");
    let [record] = house.all_records(1).await.try_into().unwrap();
    assert_eq!(record.status, RunStatus::Cancelled);
    assert_eq!(record.calls.len(), 3);
    assert!(record.calls.iter().all(|call| call.status == CallStatus::Cancelled), "{:?}", record.calls);
    assert!(record.usage.estimated && record.usage.prompt_tokens > 0, "what was sent is counted");
}

#[tokio::test]
async fn n_above_one_and_audio_are_refused_by_name() {
    let house = House::open(&house_of(REMOM)).await;
    for (field, value) in [("n", json!(2)), ("audio", json!({"voice": "x", "format": "wav"}))] {
        let mut request = ask("vllm-sr/auto", "think deeply");
        request[field] = value;
        let answer = house.chat(&request).await;
        assert_eq!((answer.status, &answer.json()["error"]["param"]), (400, &json!(field)));
    }
    assert!(house.up.requests().is_empty());
}

#[tokio::test]
async fn an_output_contract_is_told_to_the_author_alone() {
    let file = house_of(REMOM).replace("      priority: 100\n", "      priority: 100\n      output_contract: Answer in French.\n      emits: [{ kind: retention, retention: { drop: false, ttl_turns: 3 } }]\n");
    let house = House::open(&file).await;
    seat(&house);
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    assert_eq!(answer.text(), "the conclusion");
    assert_eq!(answer.header("x-vsr-retention-drop"), Some("false"));
    assert_eq!(answer.header("x-vsr-retention-ttl-turns"), Some("3"));
    assert_eq!(answer.header("x-vsr-retention-keep-current-model"), None);
    let told: Vec<bool> =
        house.up.requests().iter().map(|r| r.json().to_string().contains("Answer in French.")).collect();
    assert_eq!(told, [false, false, false, true]);
}

#[tokio::test]
async fn unrated_candidates_are_choices_of_one_answer() {
    let house = House::open(&house_of("{ type: ratings }")).await;
    seat(&house);
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    let body = answer.json();
    let choices = body["choices"].as_array().unwrap();
    let said: Vec<&str> = choices.iter().map(|it| it["message"]["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["the view of a", "the view of b", "the view of c"]);
    let models: Vec<&str> = choices.iter().map(|it| it["model"].as_str().unwrap()).collect();
    assert_eq!(models, ["a", "b", "c"]);
    assert_eq!(body["ratings"]["raters"], "none");
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!(calls(&record), ["a panel", "b panel", "c panel"]);
    assert!(!record.traces["ratings"].to_string().contains("the view of"));
    let told = house.stream(&ask("vllm-sr/auto", "think deeply")).await.told().await;
    assert!(told.done && told.finishes == ["stop", "stop", "stop"], "{:?}", told.finishes);
}

#[tokio::test]
async fn a_judge_picks_the_best() {
    let file = house_of("{ type: ratings, ratings: { raters: judge, aggregate: best, judge: judge } }");
    let house = House::open(&file).await;
    seat(&house);
    house.up.on("judge", Script::chat(ChatAnswer::text(r#"{"scores": [1, 9, 2]}"#).usage(30, 9)));
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    assert_eq!(answer.status, 200);
    let body = answer.json();
    assert_eq!(body["choices"].as_array().unwrap().len(), 1);
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!(calls(&record).last().unwrap(), "judge rater");
    assert_eq!(body["usage"]["total_tokens"], 3 * 15 + 39);
}

const ROLES: &str = "{ type: workflows, workflows: { roles: [{ name: Thinker, models: [a] }, { name: Solver, models: [b] }], final: { model: c } } }";

#[tokio::test]
async fn a_workflow_follows_its_roles() {
    let house = House::open(&house_of(ROLES)).await;
    for model in ["a", "b", "c"] {
        house.up.on(model, Script::chat(ChatAnswer::text(&format!("{model} has spoken")).usage(10, 5)));
    }
    let answer = house.chat(&ask("vllm-sr/flow", "no signal matches this")).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "c has spoken"));
    let body = answer.json();
    let steps = body["flow"]["steps"].as_array().unwrap();
    let ids: Vec<&str> = steps.iter().map(|step| step["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["thinker", "solver"]);
    assert_eq!(steps[0]["responses"][0]["content"], "a has spoken");
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!(calls(&record), ["a worker", "b worker", "c synthesis"]);
    let told = house.stream(&ask("vllm-sr/auto", "think deeply")).await.told().await;
    assert_eq!(told.is_whole().text, "c has spoken");
    assert_eq!(told.chunks[0]["flow"]["mode"], "static");
}

#[tokio::test]
async fn a_workers_tool_call_goes_to_the_client_and_comes_back_to_the_same_worker() {
    let house = House::open(&house_of(ROLES)).await;
    house.up.on_with("a", |request: &Received| {
        let answered = request.json().to_string().contains("the tool's result");
        let answer = if answered {
            ChatAnswer::text("a knows")
        } else {
            ChatAnswer::text("").tool_call("t1", "look", "{}")
        };
        Script::chat(answer.usage(10, 5))
    });
    for model in ["b", "c"] {
        house.up.on(model, Script::chat(ChatAnswer::text(&format!("{model} has spoken")).usage(10, 5)));
    }
    let mut request = ask("vllm-sr/auto", "think deeply");
    request["tools"] =
        json!([{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]);
    let first = house.chat(&request).await.json();
    let message = first["choices"][0]["message"].clone();
    let id = message["tool_calls"][0]["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("flowtool_") && id.ends_with("__t1"), "{id}");
    assert_eq!(first["choices"][0]["finish_reason"], "tool_calls");
    let messages = request["messages"].as_array_mut().unwrap();
    messages.push(message);
    messages.push(json!({"role": "tool", "tool_call_id": id, "content": "the tool's result"}));
    let second = house.chat(&request).await;
    assert_eq!((second.status, second.text().as_str()), (200, "c has spoken"));
    assert_eq!(house.up.requests_for("a").len(), 2);
    // The run is over: the same results a second time fit nothing.
    let third = house.chat(&request).await;
    assert_eq!((third.status, third.error().0.as_str()), (400, "invalid_request"));
}

#[tokio::test]
async fn a_verifiers_word_counts_for_a_cascade() {
    let cascade = "{ type: confidence, confidence: { confidence_method: automix_entailment, verifier_server_url: '${UP}', escalation_order: declared } }";
    let house = House::open(&house_of(cascade)).await;
    seat(&house);
    house.up.otherwise(|request: &Received| {
        assert!(request.path.ends_with("/verify"), "{}", request.path);
        let sure = if request.json()["answer"] == "the view of b" { 0.95 } else { 0.2 };
        Script::json(200, &json!({"confidence": sure, "should_escalate": sure < 0.7}))
    });
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    assert_eq!(answer.text(), "the view of b");
    let attempts = answer.json()["confidence"]["attempts"].clone();
    assert_eq!((&attempts[0]["confidence"], &attempts[1]["confidence"]), (&json!(0.2), &json!(0.95)));
}

#[tokio::test]
async fn g18_cost_is_booked_under_the_models_that_made_it() {
    let house = House::open(&house_of(REMOM)).await;
    seat(&house);
    let answer = house.chat(&ask("vllm-sr/remom", "think")).await;
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert!(record.calls.iter().all(|call| ["a", "b", "c"].contains(&call.model.as_str())));
    // Only `a` has a price: 10 read at 1 and 5 written at 2 dollars a million, twice.
    let costs: Vec<u64> = record.calls.iter().map(|call| call.cost_micro_usd).collect();
    assert_eq!((costs.iter().sum::<u64>(), record.cost_micro_usd), (40, 40));
    let by = record.traces["budget"]["by"].as_array().unwrap();
    let paid: Vec<&Value> = by.iter().filter(|row| row["micro_usd"] != 0).map(|row| &row["model"]).collect();
    assert_eq!(paid, ["a", "a"], "as a member and as the writer");
}

#[tokio::test]
async fn g24_each_step_has_its_own_receipt() {
    let file = ROLES.replace("{ roles:", "{ on_error: skip, round_timeout_seconds: 1, roles:");
    let house = House::open(&house_of(&file)).await;
    for model in ["a", "c"] {
        house.up.on(model, Script::chat(ChatAnswer::text(&format!("{model} has spoken")).usage(10, 5)));
    }
    house.up.on("b", Script::error(500, "down"));
    let answer = house.chat(&ask("vllm-sr/flow", "think")).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "c has spoken"));
    let flow = answer.json()["flow"].clone();
    let usable: Vec<&Value> = flow["steps"].as_array().unwrap().iter().map(|step| &step["usable"]).collect();
    assert_eq!(usable, [&json!(1), &json!(0)]);
    assert_eq!(
        (&flow["failed_models"][0]["model"], &flow["failed_models"][0]["step_id"]),
        (&json!("b"), &json!("solver"))
    );
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    let receipts: Vec<(&str, CallStatus)> =
        record.calls.iter().map(|call| (call.model.as_str(), call.status)).collect();
    assert_eq!(receipts, [("a", CallStatus::Ok), ("b", CallStatus::Failed), ("c", CallStatus::Ok)]);
}
