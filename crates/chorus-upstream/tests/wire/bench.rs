//! A client, a scripted backend, and the words of the tests.

use bytes::Bytes;
use chorus_testkit::{Script, ScriptedUpstream};
use chorus_upstream::{ChunkStream, ClientOptions, Target, Timeouts, Upstream, UpstreamFault};
use chorus_wire::{ChatReply, Chunk};
use futures_util::StreamExt;
use serde_json::json;

pub(crate) struct Bench {
    pub(crate) backend: ScriptedUpstream,
    pub(crate) client: Upstream,
    pub(crate) target: Target,
    pub(crate) limits: Timeouts,
}

impl Bench {
    pub(crate) async fn new(script: Script) -> Self {
        let backend = ScriptedUpstream::start().await.unwrap();
        backend.on("m", script);
        let target = Target::builder(&backend.base_url()).build().unwrap();
        let client = Upstream::new(&ClientOptions::default()).unwrap();
        Self { backend, client, target, limits: Timeouts::default() }
    }

    pub(crate) async fn complete(&self) -> Result<ChatReply, UpstreamFault> {
        self.client.complete(&self.target, ask(false), &[], &self.limits).await
    }

    pub(crate) async fn stream(&self) -> Result<ChunkStream, UpstreamFault> {
        self.client.stream(&self.target, ask(true), &[], &self.limits).await
    }
}

pub(crate) fn ask(stream: bool) -> Bytes {
    let body = json!({
        "model": "m", "stream": stream, "messages": [{"role": "user", "content": "hi"}],
        "stream_options": {"include_usage": true}
    });
    Bytes::from(body.to_string())
}

/// Text of choice 0, and how the stream ended.
pub(crate) async fn drain(stream: ChunkStream) -> (String, Option<UpstreamFault>) {
    let (mut text, mut fault) = (String::new(), None);
    let mut stream = stream;
    while let Some(item) = stream.next().await {
        assert!(fault.is_none(), "an item after the fault");
        match item {
            Ok(chunk) => text.push_str(&said(&chunk)),
            Err(error) => fault = Some(error),
        }
    }
    (text, fault)
}

pub(crate) fn said(chunk: &Chunk) -> String {
    chunk.choices.iter().filter_map(|choice| choice.content.clone()).collect()
}

pub(crate) fn piece(text: &str) -> String {
    chorus_testkit::openai::chunk("m", &json!({"content": text})).to_string()
}

pub(crate) fn stop() -> String {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}).to_string()
}
