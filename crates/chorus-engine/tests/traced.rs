//! What backends are told of the trace that a call is a part of.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use chorus_engine::trace_context::call_span_id;
use chorus_engine::{Engine, Env, Inbound, Options, TraceParent, Tracing};
use chorus_testkit::{Script, ScriptedUpstream};
use chorus_wire::{ChatRequest, Message, Role};

const FILE: &str = r#"
version: v0.3
providers:
  defaults: { default_model: small }
  models:
    - name: small
      backend_refs: [{ name: main, base_url: "${UP}" }, { name: other, base_url: "${UP}" }]
"#;

/// The `traceparent` of every call that a request makes, and the run's id.
async fn calls(tracing: Option<Tracing>) -> (Vec<Option<String>>, String) {
    let up = ScriptedUpstream::start().await.unwrap();
    up.on_each("small", [Script::error(500, "no"), Script::reply("hi")]);
    let options = Options::bare(Env::having(&[("UP", &up.base_url())]));
    let engine = Engine::new(chorus_spec::read(FILE).spec.unwrap(), options).unwrap();
    let request = ChatRequest::new("small", vec![Message::new(Role::User, "hello")]);
    let mut run = engine.run(Inbound { tracing, ..Inbound::of(request) });
    while run.next().await.is_some() {}
    let sent = up.requests();
    assert!(sent.iter().all(|it| it.header("baggage").is_none() && it.header("tracestate").is_none()));
    (sent.iter().map(|it| it.header("traceparent").map(str::to_owned)).collect(), run.id.clone())
}

#[tokio::test]
async fn each_attempt_is_a_span_of_the_client_s_trace_and_nothing_is_told_where_nothing_is_traced() {
    let parent = TraceParent::read("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    let (told, run) = calls(Some(Tracing { parent, rate: 0.0 })).await;
    let want = |call| Some(format!("00-0af7651916cd43dd8448eb211c80319c-{}-01", call_span_id(&run, call)));
    assert_eq!(told, [want(0), want(1)]);
    let (told, run) = calls(Some(Tracing { parent: None, rate: 0.0 })).await;
    let own = format!("00-{}-{}-00", run.trim_start_matches("run_"), call_span_id(&run, 0));
    assert_eq!(told.first(), Some(&Some(own)), "of its own trace, which nobody keeps");
    assert_eq!(calls(None).await.0, [None, None]);
}
