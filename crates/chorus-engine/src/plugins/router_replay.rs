//! `router_replay`: bodies and steps of tools in the run's record.
//!
//! *When:* once the answer has left. Every run has a record without it; this adds what was said.
//! *Cost:* a copy of both bodies, up to their bounds, and now and then a look for records that lose theirs.
//! *Fails when:* the store of records cannot be written, which the log tells; no answer depends on it.
//! *Source:* contract §1.10, §4.3.
//!
//! **Invariant:** no body is in a record unless the route asks for it, and none is longer than the route allows.

use super::at_work::{Answered, AtWork};
use chorus_spec::ReplaySettings;
use chorus_store::{Content, Excerpt, ToolStep};
use chorus_wire::{ChatReply, ChatRequest, Message, Role, ToolCall};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};

/// After so many requests, older records are looked through for content that has to go.
const TRIM_EVERY: u64 = 32;

/// Records that are looked through then; at the first request of a process all are.
const TRIM_WINDOW: u64 = 4 * TRIM_EVERY;

const KIND: &str = "router_replay";

/// The plugin at work on one request.
pub(crate) struct RouterReplay(ReplaySettings);

impl RouterReplay {
    pub(crate) fn new(settings: ReplaySettings) -> Self {
        Self(settings)
    }

    fn content(&self, request: &ChatRequest, reply: &ChatReply) -> Content {
        let settings = &self.0;
        let body = |bytes: Vec<u8>| Excerpt::of(&String::from_utf8_lossy(&bytes), settings.max_body_bytes);
        let (tool_steps, dropped_tool_steps) = self.steps(request, reply);
        Content {
            request_body: settings.request_body.then(|| body(request.to_bytes())),
            response_body: settings.response_body.then(|| body(reply.to_bytes())),
            tool_steps,
            dropped_tool_steps,
            ..Content::default()
        }
    }

    /// The latest steps within their bounds, oldest first, and how many were left out.
    fn steps(&self, request: &ChatRequest, reply: &ChatReply) -> (Vec<ToolStep>, usize) {
        let earlier = if self.0.request_body { request.messages() } else { &[] };
        let answered = self.0.response_body.then_some(&reply.tool_calls);
        let calls = answered.into_iter().flatten().map(called);
        let all: Vec<(ToolStep, &str)> = earlier.iter().flat_map(steps_of).chain(calls).collect();
        let (mut kept, mut bytes) = (Vec::new(), 0_usize);
        for (step, text) in all.iter().rev() {
            let text = Excerpt::of(text, self.0.max_body_bytes);
            bytes += text.text.len();
            let is_full = self.0.max_tool_trace_bytes > 0 && bytes > self.0.max_tool_trace_bytes;
            if kept.len() >= self.0.max_tool_trace_steps || is_full {
                break;
            }
            kept.push(ToolStep { text, ..step.clone() });
        }
        kept.reverse();
        let dropped = all.len() - kept.len();
        (kept, dropped)
    }

    /// Older records of the route lose their content.
    async fn trim(&self, seen: &Answered<'_>) {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let scene = seen.scene;
        let (Some(records), Some(decision)) = (&scene.mom.records, scene.decision()) else { return };
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        if !count.is_multiple_of(TRIM_EVERY) {
            return;
        }
        let window = if count == 0 { u64::MAX } else { TRIM_WINDOW };
        // This run's own record comes after this.
        let keep = self.0.max_records.saturating_sub(1);
        if let Err(fault) = records.trim_content(decision.name.clone(), keep, window).await {
            tracing::warn!(%fault, "older run records keep their content");
        }
    }
}

impl AtWork for RouterReplay {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn keeps(&self) -> bool {
        self.0.request_body || self.0.response_body
    }

    fn kept<'a>(&'a mut self, reply: &'a ChatReply, seen: &'a mut Answered<'_>) -> BoxFuture<'a, ()> {
        async move {
            if seen.scene.keeps_nothing() {
                return;
            }
            let content = self.content(&seen.scene.asked.request, reply);
            seen.notes.did(
                KIND,
                &json!({
                    "session": seen.scene.routed.sight.session.as_ref().map(|it| it.key.clone()),
                    "request_bytes": content.request_body.as_ref().map(|it| it.text.len()),
                    "response_bytes": content.response_body.as_ref().map(|it| it.text.len()),
                    "tool_steps": content.tool_steps.len(),
                }),
            );
            seen.notes.capture(content);
            self.trim(seen).await;
        }
        .boxed()
    }
}

fn steps_of(message: &Message) -> Vec<(ToolStep, &str)> {
    if message.role == Role::Tool {
        let call_id = message.tool_call_id.clone().unwrap_or_default();
        let step = ToolStep { kind: "result".to_owned(), call_id, ..ToolStep::default() };
        return vec![(step, &message.text)];
    }
    message.tool_calls.iter().map(called).collect()
}

fn called(call: &ToolCall) -> (ToolStep, &str) {
    let step = ToolStep {
        kind: "call".to_owned(),
        tool: call.name.clone(),
        call_id: call.id.clone(),
        ..ToolStep::default()
    };
    (step, &call.arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &str = r#"{"model":"m","messages":[{"role":"user","content":"q"},
        {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},
        {"role":"tool","tool_call_id":"c1","content":"a long result"}]}"#;
    const REPLY: &str = r#"{"choices":[{"message":{"role":"assistant","content":null,
        "tool_calls":[{"id":"c2","type":"function","function":{"name":"g","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;

    fn content(settings: ReplaySettings) -> Content {
        let request = ChatRequest::parse(REQUEST.as_bytes(), &chorus_wire::RequestLimits::default()).unwrap();
        RouterReplay::new(settings).content(&request, &ChatReply::parse(REPLY.as_bytes()).unwrap())
    }

    #[test]
    fn bodies_and_steps_are_kept_within_their_bounds() {
        let all = content(ReplaySettings::default());
        assert_eq!(all.request_body.map(|it| (it.text, it.truncated)), Some((REQUEST.to_owned(), false)));
        let kinds: Vec<&str> = all.tool_steps.iter().map(|step| step.kind.as_str()).collect();
        assert_eq!(kinds, ["call", "result", "call"]);
        let small = content(ReplaySettings {
            max_body_bytes: 6,
            max_tool_trace_steps: 2,
            request_body: true,
            response_body: false,
            ..ReplaySettings::default()
        });
        assert_eq!(small.request_body.map(|it| (it.text.len(), it.truncated)), Some((6, true)));
        assert_eq!((small.response_body, small.tool_steps.len(), small.dropped_tool_steps), (None, 2, 0));
        assert_eq!(small.tool_steps[1].text, Excerpt { text: "a long".to_owned(), truncated: true });
        let bytes = content(ReplaySettings { max_tool_trace_bytes: 4, ..ReplaySettings::default() });
        assert_eq!((bytes.tool_steps.len(), bytes.dropped_tool_steps), (1, 2));
    }
}
