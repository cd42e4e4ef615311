//! Envoy's external processing over gRPC: what goes on, what is answered, and what is recorded of both.

use crate::fusion::seat;
use crate::support::{HOUSE, House, Setup, ask};
use chorus_store::{RunStatus, SqliteKeys};
use chorus_testkit::Script;
use envoy_types::pb::envoy::config::core::v3::{HeaderMap, HeaderValue};
use envoy_types::pb::envoy::extensions::filters::http::ext_proc::v3::processing_mode::BodySendMode;
use envoy_types::pb::envoy::service::ext_proc::v3::body_mutation::Mutation;
use envoy_types::pb::envoy::service::ext_proc::v3::external_processor_client::ExternalProcessorClient;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_request::Request as Tell;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_response::Response as Word;
use envoy_types::pb::envoy::service::ext_proc::v3::streamed_immediate_response::Response as Local;
use envoy_types::pb::envoy::service::ext_proc::v3::{
    CommonResponse, HeaderMutation, HttpBody, HttpHeaders, ImmediateResponse, ProcessingRequest,
    ProtocolConfiguration,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tonic::Streaming;

/// Envoy's side of one exchange.
struct Envoy {
    tell: mpsc::UnboundedSender<ProcessingRequest>,
    words: Streaming<envoy_types::pb::envoy::service::ext_proc::v3::ProcessingResponse>,
}

impl Envoy {
    async fn opens(house: &House, mode: BodySendMode, path: &str, headers: &[(&str, &str)]) -> Self {
        let (tell, told) = mpsc::unbounded_channel();
        let messages =
            futures_util::stream::unfold(told, |mut told: mpsc::UnboundedReceiver<_>| async move {
                told.recv().await.map(|message| (message, told))
            });
        let address = house.bound.envoy.expect("the service for Envoy");
        let mut client = ExternalProcessorClient::connect(format!("http://{address}")).await.unwrap();
        let pseudo = [(":method", "POST"), (":path", path), (":authority", "models")];
        let head = Tell::RequestHeaders(http_headers(pseudo.iter().chain(headers), false));
        let modes = ProtocolConfiguration { request_body_mode: mode.into(), ..Default::default() };
        let first =
            ProcessingRequest { request: Some(head), protocol_config: Some(modes), ..Default::default() };
        tell.send(first).unwrap();
        let words = client.process(messages).await.unwrap().into_inner();
        Self { tell, words }
    }

    fn tells(&self, request: Tell) {
        self.tell.send(ProcessingRequest { request: Some(request), ..Default::default() }).unwrap();
    }

    fn sends(&self, body: &Value) {
        self.tells(Tell::RequestBody(piece(body.to_string().as_bytes(), true)));
    }

    async fn hears(&mut self) -> Option<Word> {
        self.words.message().await.unwrap().map(|message| message.response.unwrap())
    }
}

fn piece(body: &[u8], end_of_stream: bool) -> HttpBody {
    HttpBody { body: body.to_vec(), end_of_stream, ..Default::default() }
}

fn http_headers<'a>(
    pairs: impl IntoIterator<Item = &'a (&'a str, &'a str)>,
    end_of_stream: bool,
) -> HttpHeaders {
    let headers = pairs.into_iter().map(|(key, value)| HeaderValue {
        key: (*key).to_owned(),
        raw_value: value.as_bytes().to_vec(),
        ..Default::default()
    });
    HttpHeaders {
        headers: Some(HeaderMap { headers: headers.collect() }),
        end_of_stream,
        ..Default::default()
    }
}

fn set(mutation: Option<HeaderMutation>, name: &str) -> Option<String> {
    let headers = mutation?.set_headers.into_iter().filter_map(|option| option.header);
    headers.filter(|it| it.key == name).map(|it| String::from_utf8(it.raw_value).unwrap()).next()
}

fn body(common: CommonResponse) -> Value {
    match common.body_mutation.unwrap().mutation.unwrap() {
        Mutation::Body(bytes) => serde_json::from_slice(&bytes).unwrap(),
        Mutation::StreamedResponse(piece) => serde_json::from_slice(&piece.body).unwrap(),
        Mutation::ClearBody(_) => panic!("the body is gone"),
    }
}

async fn immediate(envoy: &mut Envoy) -> (i32, Value, Option<HeaderMutation>) {
    match envoy.hears().await {
        Some(Word::ImmediateResponse(ImmediateResponse { status, headers, body, .. })) => {
            (status.unwrap().code, serde_json::from_slice(&body).unwrap(), headers)
        }
        other => panic!("an answer was awaited: {other:?}"),
    }
}

const CHAT: &str = "/v1/chat/completions";

#[tokio::test]
async fn one_model_s_request_goes_on_and_its_answer_is_recorded() {
    let house = House::open(HOUSE).await;
    let mut envoy = Envoy::opens(&house, BodySendMode::Buffered, CHAT, &[]).await;
    assert!(matches!(envoy.hears().await, Some(Word::RequestHeaders(_))));
    envoy.sends(&ask("a", "hello"));
    let Some(Word::RequestBody(gone_on)) = envoy.hears().await else { panic!("the request goes on") };
    let common = gone_on.response.unwrap();
    assert!(common.clear_route_cache);
    assert_eq!(set(common.header_mutation.clone(), "x-selected-model").as_deref(), Some("a"));
    assert_eq!(body(common)["messages"][0]["content"], "hello");

    envoy.tells(Tell::ResponseHeaders(http_headers(
        &[(":status", "200"), ("content-type", "application/json")],
        false,
    )));
    let Some(Word::ResponseHeaders(head)) = envoy.hears().await else { panic!("the head goes on") };
    let mutation = head.response.unwrap().header_mutation;
    assert_eq!(set(mutation.clone(), "x-vsr-selected-model").as_deref(), Some("a"));
    let reply = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}});
    let reply = reply.to_string();
    let (one, two) = reply.as_bytes().split_at(20);
    for (bytes, last) in [(one, false), (two, true)] {
        envoy.tells(Tell::ResponseBody(piece(bytes, last)));
        assert!(matches!(envoy.hears().await, Some(Word::ResponseBody(_))));
    }
    let record = house.record(set(mutation, "x-vsr-replay-id").as_deref()).await;
    assert_eq!((record.status, record.usage.total_tokens, record.usage.estimated), (RunStatus::Ok, 7, false));
    assert_eq!(record.calls[0].backend.as_deref(), Some("gateway"));
    assert!(house.up.requests_for("a").is_empty());
}

#[tokio::test]
async fn in_full_duplex_the_head_waits_for_the_body() {
    let house = House::open(HOUSE).await;
    let mut envoy = Envoy::opens(&house, BodySendMode::FullDuplexStreamed, CHAT, &[]).await;
    let whole = ask("a", "hello").to_string();
    let (one, two) = whole.as_bytes().split_at(9);
    envoy.tells(Tell::RequestBody(piece(one, false)));
    envoy.tells(Tell::RequestBody(piece(two, true)));
    let Some(Word::RequestHeaders(head)) = envoy.hears().await else { panic!("the head goes on") };
    assert_eq!(set(head.response.unwrap().header_mutation, "x-selected-model").as_deref(), Some("a"));
    let Some(Word::RequestBody(rest)) = envoy.hears().await else { panic!("the body goes on") };
    assert_eq!(body(rest.response.unwrap())["messages"][0]["content"], "hello");
    // Envoy goes away before the answer: nobody knows how it ended.
    drop(envoy);
    let record = &house.all_records(1).await[0];
    assert_eq!((record.status, record.usage.estimated), (RunStatus::Cancelled, true));
}

#[tokio::test]
async fn what_several_models_answer_streams_from_here() {
    let house = House::open(HOUSE).await;
    seat(&house);
    let mut envoy = Envoy::opens(&house, BodySendMode::FullDuplexStreamed, CHAT, &[]).await;
    let mut body = ask("vllm-sr/fusion", "think deeply");
    body["stream"] = true.into();
    envoy.sends(&body);
    let mut text = Vec::new();
    let mut head = None;
    while let Some(Word::StreamedImmediateResponse(part)) = envoy.hears().await {
        match part.response.unwrap() {
            Local::HeadersResponse(headers) => head = Some(headers),
            Local::BodyResponse(piece) if piece.end_of_stream => break,
            Local::BodyResponse(piece) => text.extend(piece.body),
            Local::TrailersResponse(_) => panic!("no trailers"),
        }
    }
    let status = head.unwrap().headers.unwrap().headers.remove(0);
    assert_eq!((status.key.as_str(), status.raw_value.as_slice()), (":status", b"200".as_slice()));
    let text = String::from_utf8(text).unwrap();
    assert!(text.starts_with("data: ") && text.trim_end().ends_with("data: [DONE]"), "{text}");
}

#[tokio::test]
async fn what_is_refused_is_refused_in_the_words_of_the_data_plane() {
    let mut setup = Setup::of(HOUSE);
    setup.door.max_body_bytes = 500;
    let house = setup.open().await;
    let long = "long ".repeat(200);
    for (path, body, status, code) in [
        (CHAT, ask("nobody", "hi"), 404, "model_not_found"),
        (CHAT, json!({"model": "a"}), 400, "invalid_request"),
        (CHAT, ask("a", &long), 413, "body_too_large"),
        ("/v1/unheard/of", json!({}), 404, "not_found"),
    ] {
        let mut envoy = Envoy::opens(&house, BodySendMode::Buffered, path, &[]).await;
        envoy.hears().await.unwrap();
        envoy.sends(&body);
        let (given, answer, _) = immediate(&mut envoy).await;
        assert_eq!((given, answer["error"]["code"].as_str()), (status, Some(code)), "{path}");
    }
    assert!(house.up.requests_for("a").is_empty());
}

#[tokio::test]
async fn where_keys_are_required_nothing_goes_on_without_one() {
    let keys = SqliteKeys::in_memory().unwrap();
    let mut setup = Setup::of(HOUSE);
    setup.keys = Some((keys.clone(), true));
    let house = setup.open().await;
    let (_, key) = keys.create("test", "ada", &[], 1).unwrap();
    let bearer = format!("Bearer {}", key.reveal());
    for (headers, goes_on) in [(&[("authorization", bearer.as_str())][..], true), (&[], false)] {
        let mut envoy = Envoy::opens(&house, BodySendMode::Buffered, CHAT, headers).await;
        envoy.hears().await.unwrap();
        envoy.sends(&ask("a", "hello"));
        let word = envoy.hears().await;
        assert_eq!(matches!(word, Some(Word::RequestBody(_))), goes_on, "{word:?}");
    }
}

/// A model decides the route; one answer is given, one is a model's.
const SORTED: &str = r#"
version: v0.3
providers:
  defaults: { default_model: small }
  models:
    - { name: small, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - { name: sorter, backend_refs: [{ name: main, base_url: "${UP}" }] }
routing:
  modelCards: [{ name: small }]
  signals:
    classifiers: [{ name: area, type: llm, model: sorter, labels: [contract, other], instructions: By area. }]
  decisions:
    - name: no-law
      rules: { type: classifier, name: area, label: contract, predicate: { gte: 0.5 } }
      plugins: [{ type: fast_response, configuration: { message: Ask a lawyer. } }]
global:
  services:
    ratelimit:
      providers:
        - type: local-limiter
          rules: [{ name: two-a-day, match: { model: "vllm-sr/auto" }, requests_per_unit: 2, unit: day }]
"#;

#[tokio::test]
async fn a_request_is_decided_and_counted_once_whoever_answers_it() {
    let house = House::open(SORTED).await;
    house.up.otherwise(|request| {
        let lease = request.json().to_string().contains("lease");
        Script::reply(if lease { r#"{"label": "contract"}"# } else { r#"{"label": "other"}"# })
    });
    let mut envoy = Envoy::opens(&house, BodySendMode::Buffered, CHAT, &[]).await;
    envoy.hears().await.unwrap();
    envoy.sends(&ask("vllm-sr/auto", "May my landlord end the lease early?"));
    let (status, answer, _) = immediate(&mut envoy).await;
    assert_eq!((status, &answer["choices"][0]["message"]["content"]), (200, &"Ask a lawyer.".into()));
    let mut envoy = Envoy::opens(&house, BodySendMode::Buffered, CHAT, &[]).await;
    envoy.hears().await.unwrap();
    envoy.sends(&ask("vllm-sr/auto", "How do I bake bread?"));
    assert!(matches!(envoy.hears().await, Some(Word::RequestBody(_))));
    assert_eq!(house.up.requests_for("sorter").len(), 2);
    drop(envoy);
    let records = house.all_records(2).await;
    let calls = |at: usize| records[at].calls.iter().map(|call| call.model.as_str()).collect::<Vec<_>>();
    assert_eq!((calls(0), calls(1)), (vec!["sorter", "small"], vec!["sorter"]));
}

#[tokio::test]
async fn what_is_not_ours_goes_on_untouched() {
    let house = House::open(HOUSE).await;
    let mut envoy = Envoy::opens(&house, BodySendMode::Buffered, "/login", &[]).await;
    let Some(Word::RequestHeaders(head)) = envoy.hears().await else { panic!("it goes on") };
    assert_eq!(head.response.unwrap().header_mutation, None);
    envoy.sends(&json!({"name": "ada"}));
    let Some(Word::RequestBody(gone_on)) = envoy.hears().await else { panic!("it goes on") };
    assert_eq!(gone_on.response.unwrap(), CommonResponse::default());
}

#[tokio::test]
async fn a_body_mode_that_cannot_be_served_fails_the_request() {
    let house = House::open(HOUSE).await;
    let mut envoy = Envoy::opens(&house, BodySendMode::Streamed, CHAT, &[]).await;
    let status = envoy.words.message().await.unwrap_err();
    assert!(status.message().contains("FULL_DUPLEX_STREAMED"), "{status}");
}
