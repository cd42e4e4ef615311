//! `image_gen`: a server of images behind a chat route.

use crate::loopers::calls;
use crate::support::{House, KEY, ask};
use chorus_testkit::Script;
use serde_json::{Value, json};

const PNG: &str = "iVBORw0KGgo=";

fn file(backend: &str, settings: &str, rest: &str) -> String {
    format!(
        "version: v0.3
providers:
  models:
    - {{ name: small, backend_refs: [{{ base_url: '${{UP}}' }}] }}
routing:
  decisions:
    - name: draw
      modelRefs: [{{ model: small }}]
      plugins: [{{ type: image_gen, configuration: {{ enabled: true, backend: {backend}, {settings} }} }}]
{rest}"
    )
}

const OPENAI: &str = "backend_config: { api_key: '${UP_KEY}', base_url: '${UP}', model: painter }, default_width: 512, default_height: 256";

fn drawn() -> Script {
    Script::json(
        200,
        &json!({"created": 1, "data": [{"b64_json": PNG}], "usage": {"input_tokens": 7, "output_tokens": 900, "total_tokens": 907}}),
    )
}

fn prompt() -> Value {
    ask("vllm-sr/auto", "A lighthouse at dusk, as a watercolour.")
}

#[tokio::test]
async fn the_last_user_message_becomes_an_image_whole_and_as_a_stream() {
    let house = House::open(&file("openai", OPENAI, "")).await;
    house.up.on("painter", drawn());
    let answer = house.chat(&prompt()).await;
    assert_eq!((answer.status, answer.text()), (200, format!("![image](data:image/png;base64,{PNG})")));
    assert_eq!(answer.header("x-vsr-response-path"), Some("image_generation"));
    assert_eq!(answer.json()["usage"]["total_tokens"], 907);
    let told = house.stream(&prompt()).await.told().await;
    assert_eq!(told.is_whole().text, format!("![image](data:image/png;base64,{PNG})"));

    let asked = &house.up.requests()[0];
    assert_eq!(
        (asked.path.as_str(), asked.header("authorization")),
        ("/v1/images/generations", Some(&*format!("Bearer {KEY}")))
    );
    assert_eq!(
        asked.json(),
        json!({"model": "painter", "prompt": "A lighthouse at dusk, as a watercolour.", "n": 1, "size": "512x256"})
    );
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!(calls(&record), ["painter direct"]);
    assert_eq!(record.usage.total_tokens, 907);
    assert_eq!(record.traces["plugins"]["image_gen"]["size"], "512x256");
    let kept = serde_json::to_string(&record).unwrap();
    assert!(!kept.contains("lighthouse") && !kept.contains(KEY) && !kept.contains(PNG));
}

#[tokio::test]
async fn vllm_omni_gets_its_steps_and_an_address_is_passed_on() {
    let settings = "max_inference_steps: 30, backend_config: { base_url: '${UP}', model: painter, num_inference_steps: 50, seed: 7 }";
    let house = House::open(&file("vllm_omni", settings, "")).await;
    house.up.on("painter", Script::json(200, &json!({"data": [{"url": "https://images.example/1.png"}]})));
    let answer = house.chat(&prompt()).await;
    assert_eq!(answer.text(), "![image](https://images.example/1.png)");
    let asked = house.up.requests()[0].json();
    assert_eq!((&asked["num_inference_steps"], &asked["seed"]), (&json!(30), &json!(7)));
    assert_eq!(asked["size"], "1024x1024");
}

#[tokio::test]
async fn a_server_that_fails_or_draws_nothing_is_an_error_without_its_words() {
    let house = House::open(&file("openai", OPENAI, "")).await;
    house.up.on_each(
        "painter",
        [
            Script::error(500, "secret trouble"),
            Script::json(200, &json!({"data": []})),
            Script::error(400, "bad size"),
        ],
    );
    for (status, code) in [(502, "upstream_failed"), (502, "upstream_failed"), (400, "upstream_rejected")] {
        let answer = house.chat(&prompt()).await;
        assert_eq!((answer.status, answer.error().0.as_str()), (status, code));
        assert!(!answer.error().1.contains("secret"));
    }
    let empty = house.chat(&ask("vllm-sr/auto", " ")).await;
    assert_eq!((empty.status, empty.error().0.as_str()), (400, "invalid_request"));
    assert_eq!(house.up.requests().len(), 3);
}

#[tokio::test]
async fn with_modality_detection_only_who_wants_an_image_gets_one() {
    let settings = format!("{OPENAI}, modality_detection: {{}}");
    let rest = "global: { model_catalog: { modules: { modality_detector: { method: keyword } } } }\n";
    let house = House::open(&file("openai", &settings, rest)).await;
    house.up.on("painter", drawn());
    house.up.on("small", Script::reply("Paris."));
    let answer = house.chat(&ask("vllm-sr/auto", "Draw a picture of a lighthouse.")).await;
    assert!(answer.text().starts_with("![image]"));
    let answer = house.chat(&ask("vllm-sr/auto", "What is the capital of France?")).await;
    assert_eq!((answer.text().as_str(), answer.header("x-vsr-response-path")), ("Paris.", Some("upstream")));
}
