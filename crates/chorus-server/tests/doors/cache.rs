//! Answers that are given again: whose, to which requests, in which shape, and how to be rid of them.

use crate::fusion::judge_or_writer;
use crate::support::{Answer, House, Setup, ask, user};
use chorus_infer::{EncodeFault, TextEncoder};
use chorus_store::SqliteKeys;
use chorus_testkit::{ChatAnswer, Gate, Script, Step};
use serde_json::{Value, json};
use std::sync::Arc;

/// One route with a cache for every mode, chosen by a word.
pub(crate) const CACHED: &str = r#"
version: v0.3
providers:
  defaults: { default_model: m }
  models:
    - { name: m, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - { name: a, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - { name: b, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - { name: judge, backend_refs: [{ name: main, base_url: "${UP}" }] }
routing:
  modelCards: [{ name: m }, { name: a }, { name: b }, { name: judge }]
  signals:
    keywords:
      - { name: exactly, keywords: [exactly] }
      - { name: panel, keywords: [panel] }
      - { name: mine, keywords: [mine] }
  decisions:
    - name: by-panel
      priority: 40
      rules: { type: keyword, name: panel }
      modelRefs: [{ model: a }, { model: b }]
      algorithm: { type: fusion, fusion: { model: judge, analysis_models: [a, b], on_error: skip } }
      plugins: [{ type: response_cache, configuration: { enabled: true } }]
    - name: exact
      priority: 30
      rules: { type: keyword, name: exactly }
      modelRefs: [{ model: m }]
      plugins:
        - { type: response_cache, configuration: { enabled: true, mode: exact, request_controls: { enabled: true } } }
    - name: of-users
      priority: 20
      rules: { type: keyword, name: mine }
      modelRefs: [{ model: m }]
      plugins: [{ type: response_cache, configuration: { enabled: true, scope: user } }]
    - name: alike
      priority: 10
      modelRefs: [{ model: m }]
      plugins:
        - { type: response_cache, configuration: { enabled: true, semantic: { similarity_threshold: 0.8 } } }
"#;

/// Texts are as alike as the words that they share.
pub(crate) struct Words;

impl TextEncoder for Words {
    fn digest(&self) -> &str {
        "sha256:shared words"
    }

    fn dimension(&self) -> usize {
        256
    }

    fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeFault> {
        let vector = |text: &&str| {
            let mut counts = vec![0.0_f32; 256];
            counts[0] = 0.01;
            for word in
                text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
            {
                let place = word.bytes().fold(7_usize, |sum, byte| (sum * 31 + usize::from(byte)) % 255);
                counts[1 + place] += 1.0;
            }
            let length = counts.iter().map(|x| x * x).sum::<f32>().sqrt();
            counts.into_iter().map(|x| x / length).collect()
        };
        Ok(texts.iter().map(vector).collect())
    }

    fn encode_windows(&self, text: &str) -> Result<Vec<Vec<f32>>, EncodeFault> {
        self.encode(&[text])
    }

    fn count_tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
}

async fn house() -> House {
    Setup { encoder: Some(Arc::new(Words)), ..Setup::of(CACHED) }.open().await
}

pub(crate) fn is_hit(answer: &Answer) -> bool {
    answer.header("x-vsr-cache-hit") == Some("true")
}

pub(crate) fn auto(text: &str) -> Value {
    ask("vllm-sr/auto", text)
}

/// A request for the exact cache whose answer would repeat itself.
pub(crate) fn repeating(text: &str, fields: &Value) -> Value {
    let mut body = auto(&format!("exactly: {text}"));
    body["temperature"] = json!(0);
    for (key, value) in fields.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

/// A body without what every answer has of its own.
fn bare(body: &Value) -> Value {
    let mut body = body.clone();
    for field in ["id", "created"] {
        body.as_object_mut().unwrap().remove(field);
    }
    body
}

#[tokio::test]
async fn f01_nobody_is_given_another_users_answer() {
    let keys = SqliteKeys::in_memory().unwrap();
    let mut setup = Setup { encoder: Some(Arc::new(Words)), ..Setup::of(CACHED) };
    setup.keys = Some((keys.clone(), false));
    let house = setup.open().await;
    let of = |user: &str| {
        let (_, key) = keys.create("test", user, &[], 1).unwrap();
        format!("Bearer {}", key.reveal())
    };
    let (t1, t2) = (of("t1"), of("t2"));
    let dentist = auto("When is my next dentist visit?");
    house.up.on_each("m", [Script::reply("14 May, 9:30"), Script::reply("none of yours")]);
    let by =
        async |key: &str, body: &Value| house.chat_with(("authorization", key), body).await.whole().await;
    assert_eq!(by(&t1, &dentist).await.text(), "14 May, 9:30");
    let again = by(&t1, &dentist).await;
    assert_eq!((is_hit(&again), again.text().as_str()), (true, "14 May, 9:30"));
    let other = by(&t2, &dentist).await;
    assert_eq!((is_hit(&other), other.text().as_str()), (false, "none of yours"));
    assert!(!is_hit(&house.chat(&dentist).await), "nobody known is not somebody");
    // A key of the same user leads to the same answers; a name that the client claims keeps apart.
    assert!(is_hit(&by(&of("t1"), &dentist).await));
    let mut claimed = dentist.clone();
    claimed["user"] = json!("somebody");
    assert!(!is_hit(&by(&t1, &claimed).await));
}

#[tokio::test]
async fn f01_where_answers_are_a_users_own_nobody_known_has_none() {
    let house = house().await;
    for _ in 0..2 {
        let answer = house.chat(&auto("which one is mine?")).await;
        assert!(!is_hit(&answer));
        let record = house.record(answer.header("x-vsr-replay-id")).await;
        assert_eq!(record.traces["plugins"]["response_cache"], json!({"skipped": "nobody is known"}));
    }
}

#[tokio::test]
async fn f02_the_opposite_question_is_no_hit_and_the_record_says_how_near_it_was() {
    let house = house().await;
    let first = house.chat(&auto("How do I enable guest access?")).await;
    let opposite = house.chat(&auto("How do I disable guest access?")).await;
    assert!(!is_hit(&opposite));
    let similarity: f64 = opposite.header("x-vsr-cache-similarity").unwrap().parse().unwrap();
    assert!(similarity >= 0.8, "{similarity}");
    let record = house.record(opposite.header("x-vsr-replay-id")).await;
    let refused = &record.traces["plugins"]["response_cache"]["refused"][0];
    assert_eq!(refused["differs"], "polarity");
    assert_eq!(refused["similarity"].as_f64().map(|it| (it - similarity).abs() < 0.001), Some(true));
    let same = house.chat(&auto("how do I enable guest access")).await;
    assert_eq!((is_hit(&same), same.header("x-vsr-cache-kind")), (true, Some("semantic")));
    assert_eq!(same.text(), first.text());
    for (kept, other) in [
        ("Is the port 5432 of the server open?", "Is the port 5432 of the server closed?"),
        ("Is a dose of 10 mg safe for a child?", "Is a dose of 100 mg safe for a child?"),
    ] {
        house.chat(&auto(kept)).await;
        assert!(!is_hit(&house.chat(&auto(other)).await), "{other}");
    }
}

#[tokio::test]
async fn f04_what_changes_an_answer_is_no_hit() {
    let house = house().await;
    let tools = json!([{"type": "function", "function": {"name": "f", "parameters": {}}}]);
    let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}});
    let variants = [
        json!({}),
        json!({"max_tokens": 5}),
        json!({"max_tokens": 500}),
        json!({"stop": ["."]}),
        json!({"n": 2}),
        json!({"seed": 7}),
        json!({"response_format": format}),
        json!({"tools": tools, "tool_choice": "none"}),
        json!({"tools": tools, "tool_choice": "auto"}),
    ];
    for fields in &variants {
        assert!(!is_hit(&house.chat(&repeating("what is it?", fields)).await), "{fields}");
    }
    assert!(is_hit(&house.chat(&repeating("what is it?", &json!({}))).await));
    assert_eq!(house.up.requests().len(), variants.len());
}

#[tokio::test]
async fn f04_an_answer_that_would_not_repeat_itself_is_kept_only_when_asked() {
    let house = house().await;
    let sampled = auto("exactly: a poem");
    for _ in 0..2 {
        assert!(!is_hit(&house.chat(&sampled).await), "an omitted temperature is not 0");
    }
    for hit in [false, true] {
        let asked = house.chat_with(("x-vsr-cache-control", "ttl=60"), &sampled).await.whole().await;
        assert_eq!(is_hit(&asked), hit);
    }
    assert!(!is_hit(&house.chat(&sampled).await), "nobody asked this time");
}

#[tokio::test]
async fn f05_an_error_and_half_an_answer_are_not_stored() {
    let house = house().await;
    house.up.on_each("m", [Script::error(500, "boom"), Script::reply("fine")]);
    let body = repeating("does it work?", &json!({}));
    assert_eq!(house.chat(&body).await.status, 502);
    let second = house.chat(&body).await;
    assert_eq!((is_hit(&second), second.text().as_str()), (false, "fine"));
    assert!(is_hit(&house.chat(&body).await));
    for reason in ["length", "content_filter"] {
        house.up.on("m", Script::chat(ChatAnswer::text("half of").finish_reason(reason)));
        let body = repeating(reason, &json!({}));
        for _ in 0..2 {
            assert!(!is_hit(&house.chat(&body).await), "{reason}");
        }
    }
}

#[tokio::test]
async fn f05_a_degraded_panel_is_not_stored_and_a_whole_one_is() {
    let house = house().await;
    house.up.on_each("a", [Script::error(500, "boom"), Script::reply("a's view of it")]);
    house.up.on_with("judge", judge_or_writer);
    let body = auto("what does the panel say?");
    let answers = [house.chat(&body).await, house.chat(&body).await, house.chat(&body).await];
    assert_eq!(answers.each_ref().map(is_hit), [false, false, true], "{:?}", answers[2].headers);
    let (whole, kept) = (answers[1].json(), answers[2].json());
    assert_eq!(bare(&whole), bare(&kept), "also the trace of the panel");
    assert_eq!(answers[2].header("x-vsr-response-path"), Some("cache"));
    let record = house.record(answers[2].header("x-vsr-replay-id")).await;
    assert!(record.calls.is_empty() && record.usage.total_tokens == 0);
}

#[tokio::test]
async fn f06_a_whole_answer_serves_a_stream_and_the_reverse() {
    let house = house().await;
    let text =
        "A longer answer, so that it comes in pieces and not in one giant chunk of everything at once.";
    house.up.on("m", Script::chat(ChatAnswer::text(text).usage(10, 20)));
    let mut body = repeating("whole first", &json!({}));
    let whole = house.chat(&body).await;
    body["stream_options"] = json!({"include_usage": true});
    let stream = house.stream(&body).await.told().await;
    assert_eq!(stream.header("x-vsr-cache-hit"), Some("true"));
    assert_eq!(stream.is_whole().text, text);
    assert!(stream.chunks.len() > 3, "{:?}", stream.chunks);
    assert_eq!(stream.usage.as_ref(), whole.json().get("usage"));

    let body = repeating("stream first", &json!({}));
    let stream = house.stream(&body).await.told().await;
    assert_eq!((stream.header("x-vsr-cache-hit"), stream.is_whole().text.as_str()), (None, text));
    let whole = house.chat(&body).await;
    assert_eq!((is_hit(&whole), whole.text().as_str()), (true, text));
}

#[tokio::test]
async fn f06_a_stream_that_breaks_off_is_not_stored() {
    let house = house().await;
    let body = repeating("break off", &json!({}));
    let gate = Gate::new();
    let begun = ChatAnswer::text("never to its end").chunks("m", false);
    let half =
        [Step::event(&begun[0].to_string()), Step::event(&begun[1].to_string()), Step::Await(gate.clone())];
    house.up.on_each("m", [Script::sse(half), Script::reply("to its end")]);
    let mut stream = house.stream(&body).await;
    stream.until("never").await;
    drop(stream);
    let record = house.all_records(1).await;
    assert_eq!(record[0].status.as_str(), "cancelled");
    let after = house.chat(&body).await;
    assert_eq!((is_hit(&after), after.text().as_str()), (false, "to its end"));
}

#[tokio::test]
async fn f07_a_hit_has_every_field_of_the_live_answer() {
    let house = house().await;
    let pieces = [
        json!({"role": "assistant", "content": ""}),
        json!({"reasoning_content": "Let me see. "}),
        json!({"reasoning_content": "Yes."}),
        json!({"content": "It "}),
        json!({"content": "is.", "annotations": [{"type": "url_citation", "url_citation": {"url": "https://example.org"}}]}),
        json!({"refusal": "but no more"}),
    ];
    let chunk = |delta: &Value, finish: Value| {
        json!({"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "system_fingerprint": "fp",
            "choices": [{"index": 0, "delta": delta, "logprobs": {"content": [{"token": "t", "logprob": -0.1}]}, "finish_reason": finish}]})
    };
    let mut steps: Vec<Step> =
        pieces.iter().map(|delta| Step::event(&chunk(delta, Value::Null).to_string())).collect();
    steps.push(Step::event(&chunk(&json!({}), json!("stop")).to_string()));
    steps.push(Step::event("[DONE]"));
    house.up.on_each("m", [Script::sse(steps), Script::error(500, "must not be asked again")]);
    let body = repeating("in full", &json!({}));
    let live = house.stream(&body).await.told().await;
    let first = house.chat(&body).await;
    assert!(is_hit(&first));
    let message = &first.json()["choices"][0]["message"];
    assert_eq!(message["reasoning_content"], "Let me see. Yes.");
    assert_eq!(message["annotations"].as_array().map(Vec::len), Some(1));
    assert_eq!((&message["content"], &message["refusal"]), (&json!("It is."), &json!("but no more")));
    assert_eq!(first.json()["choices"][0]["logprobs"]["content"].as_array().map(Vec::len), Some(7));
    assert_eq!(first.json()["system_fingerprint"], "fp");
    let again = house.stream(&body).await.told().await;
    assert_eq!((&again.text, again.header("x-vsr-cache-hit")), (&live.text, Some("true")));
    let second = house.chat(&body).await;
    assert_eq!(bare(&second.json()), bare(&first.json()));
    assert_ne!(second.json()["id"], first.json()["id"], "each answer has an id of its own");
}

#[tokio::test]
async fn f08_requests_that_came_to_nothing_hide_no_good_answer() {
    let house = house().await;
    let body = auto("Where do pending answers go?");
    house.up.on_with("m", |request| {
        if request.seat < 5 { Script::reply("never").first(Step::Stall) } else { Script::reply("nowhere") }
    });
    for n in 1..=5 {
        tokio::select! {
            _ = house.stream(&body) => panic!("the backend does not answer"),
            is_there = house.up.wait(|up| up.requests().len() == n) => assert!(is_there),
        }
    }
    house.all_records(5).await;
    assert_eq!(house.chat(&body).await.text(), "nowhere");
    assert!(is_hit(&house.chat(&body).await));
}

#[tokio::test]
async fn f09_a_wrong_hit_can_be_passed_by_and_taken_out() {
    let house = house().await;
    house.up.on_each("m", [Script::reply("wrong"), Script::reply("right"), Script::reply("another")]);
    let body = repeating("the answer?", &json!({}));
    house.chat(&body).await;
    let hit = house.chat(&body).await;
    assert_eq!((hit.text().as_str(), hit.header("x-vsr-cache-similarity")), ("wrong", Some("1.0000")));
    assert!(hit.header("age").is_some());
    let entry = hit.header("x-vsr-cache-entry").unwrap().to_owned();
    assert!(entry.starts_with("cache_"));
    let passed_by = house.chat_with(("cache-control", "no-store, no-cache"), &body).await.whole().await;
    assert_eq!((is_hit(&passed_by), passed_by.text().as_str()), (false, "right"));
    assert_eq!(house.chat(&body).await.text(), "wrong", "nothing was stored");
    let path = format!("/api/v1/response-cache/entries/{entry}");
    assert_eq!(house.delete(&path).await.status, 200);
    assert_eq!(house.delete(&path).await.status, 404);
    let after = house.chat(&body).await;
    assert_eq!((is_hit(&after), after.text().as_str()), (false, "another"));
}

#[tokio::test]
async fn a_conversation_is_looked_up_as_a_whole() {
    let house = house().await;
    let turns = |earlier: &str, last: &str| json!({"model": "vllm-sr/auto", "messages": [user(earlier), {"role": "assistant", "content": "ok"}, user(last)]});
    house.chat(&turns("I live in Oslo", "Is it cold there now?")).await;
    assert!(is_hit(&house.chat(&turns("I live in Oslo", "Is it cold there now")).await));
    assert!(!is_hit(&house.chat(&turns("I live in Rome", "Is it cold there now?")).await));
}

/// Everything that left for backends or clients of one tenant, as text.
fn holds(bytes: &[u8], secret: &str) -> bool {
    String::from_utf8_lossy(bytes).contains(secret)
}

#[tokio::test]
async fn no_byte_of_one_tenant_reaches_the_others_upstream_or_client() {
    let keys = SqliteKeys::in_memory().unwrap();
    let mut setup = Setup { encoder: Some(Arc::new(Words)), ..Setup::of(CACHED) };
    setup.keys = Some((keys.clone(), true));
    let house = setup.open().await;
    let tenants = ["alpha", "bravo"];
    let bearers = tenants.map(|user| {
        let (_, key) = keys.create("test", user, &[], 1).unwrap();
        format!("Bearer {}", key.reveal())
    });
    // A backend that knows whom it answers by the secret in the conversation alone.
    house.up.otherwise(|request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let whose = ["alpha", "bravo"].into_iter().find(|it| body.contains(&format!("{it}-secret")));
        Script::reply(&format!("the answer of {}", whose.unwrap_or("nobody")))
    });
    let questions =
        ["What is mine?", "what is exactly in it?", "Where do I keep it?", "What does the panel say of it?"];
    for round in 0..2 {
        for (at, tenant) in tenants.into_iter().enumerate() {
            let other = tenants[1 - at];
            for question in questions {
                for stream in [false, true] {
                    let mut body = json!({"model": "vllm-sr/auto", "temperature": 0, "stream": stream, "messages": [user(question)]});
                    if round == 0 {
                        // What is said once must not come back to somebody who asks the same without having said it.
                        body["messages"] = json!([user(&format!("my word is {tenant}-secret")),
                            {"role": "assistant", "content": "noted"}, user(question)]);
                    }
                    let before = house.up.requests().len();
                    let answer = house.chat_with(("authorization", &bearers[at]), &body).await.whole().await;
                    assert!(!holds(&answer.body, other), "{tenant}: {:?}", answer.body);
                    assert!(answer.headers.values().all(|value| !holds(value.as_bytes(), other)));
                    for request in house.up.requests().iter().skip(before) {
                        assert!(!holds(&request.body, other), "{tenant}: {:?}", request.body);
                    }
                }
            }
        }
    }
    // The same words of another tenant were no hit in either round: four questions each, whole and as a stream.
    let stats = house.get("/api/v1/response-cache/stats").await.json();
    assert!(stats["exact_hits"].as_u64() >= Some(12), "{stats}");
}

#[tokio::test]
async fn a_replayed_route_keeps_bodies_in_its_records_and_no_other_does() {
    let house = House::open(REPLAYED).await;
    let kept = house.chat(&auto("please replay this")).await;
    let other = house.chat(&auto("and not that")).await;
    let record = house.record(kept.header("x-vsr-replay-id")).await;
    let content = record.content.unwrap();
    let sent = auto("please replay this").to_string();
    assert_eq!(content.request_body.map(|it| (it.text, it.truncated)), Some((sent[..20].to_owned(), true)));
    assert_eq!(content.response_body.map(|it| (it.text.len(), it.truncated)), Some((20, true)));
    assert_eq!(house.record(other.header("x-vsr-replay-id")).await.content, None);

    let listed = house.managed("/v1/router_replay?decision=replayed", None).await.json();
    let [row] = listed["data"].as_array().unwrap().as_slice() else { panic!("{listed}") };
    assert_eq!((&row["id"], &row["lifecycle_state"]), (&json!(record.id.as_str()), &json!("completed")));
    assert!(row.get("request_body").is_none(), "{row}");
    let detail = house.managed(&format!("/v1/router_replay/{}", record.id), None).await.json();
    assert_eq!(
        (&detail["request_body"], &detail["request_body_truncated"]),
        (&json!(sent[..20]), &json!(true))
    );
    assert_eq!(house.managed("/v1/router_replay/run_0", None).await.status, 404);
    let all = house.managed("/v1/router_replay/aggregate", None).await.json();
    assert_eq!((&all["runs"], &all["by_decision"]["replayed"]), (&json!(2), &json!(1)));
}

/// One route whose bodies are kept.
const REPLAYED: &str = r#"
version: v0.3
providers:
  defaults: { default_model: m }
  models: [{ name: m, backend_refs: [{ name: main, base_url: "${UP}" }] }]
routing:
  modelCards: [{ name: m }]
  signals: { keywords: [{ name: replay, keywords: [replay] }] }
  decisions:
    - name: replayed
      rules: { type: keyword, name: replay }
      modelRefs: [{ model: m }]
      plugins: [{ type: router_replay, configuration: { enabled: true, max_body_bytes: 20 } }]
"#;
