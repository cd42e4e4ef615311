//! A scripted `ModelCalls` under tokio's paused clock: each model has answers in order (the last one repeats), each
//! with a delay; every call is kept as it was asked.

use chorus_collab::calls::{
    Answer, Call, CallFault, CallRole, Enough, FaultKind, GatherRule, Gathered, Live, Member, ModelCalls,
    Reply,
};
use chorus_collab::{FusionPlan, FusionTrace, LoopFault, fusion};
use chorus_spec::{FusionSettings, ModelId};
use chorus_wire::{ChatReply, ChatRequest, Chunk, RequestLimits};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A judge's answer with all five lists.
pub(crate) const ANALYSIS: &str =
    r#"{"consensus":["c"],"contradictions":[],"partial_coverage":[],"unique_insights":[],"blind_spots":[]}"#;
/// An image part.
pub(crate) const IMAGE: &str = r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}"#;
/// First piece of a streamed tool call.
const TOOL_DELTA: &str = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function",
    "function":{"name":"mark","arguments":"{}"}}]},"finish_reason":null}]}"#;

/// One scripted outcome.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    delay: Duration,
    outcome: Result<String, CallFault>,
}

/// A text answer.
pub(crate) fn says(text: &str) -> Step {
    message(&json!({ "role": "assistant", "content": text }), "stop")
}

/// Any message.
pub(crate) fn message(message: &Value, finish_reason: &str) -> Step {
    message_with(message, &Value::Null, finish_reason)
}

/// Any message with log-probabilities.
pub(crate) fn message_with(message: &Value, logprobs: &Value, finish_reason: &str) -> Step {
    let choice =
        json!({ "index": 0, "message": message, "logprobs": logprobs, "finish_reason": finish_reason });
    let body =
        json!({ "id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice] });
    Step { delay: Duration::ZERO, outcome: Ok(body.to_string()) }
}

/// A failure.
pub(crate) fn fails(kind: FaultKind) -> Step {
    Step { delay: Duration::ZERO, outcome: Err(fault(kind)) }
}

/// A judge that gives an analysis first, and then the final answer.
pub(crate) fn judge() -> Vec<Step> {
    vec![says(ANALYSIS), says("final")]
}

impl Step {
    /// The same, later.
    pub(crate) fn after_ms(mut self, ms: u64) -> Self {
        self.delay = Duration::from_millis(ms);
        self
    }

    /// The same, with tokens read and written.
    pub(crate) fn taking(mut self, read: u64, written: u64) -> Self {
        let usage =
            json!({ "prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written });
        self.outcome = self.outcome.map(|body| {
            let mut body: Value = serde_json::from_str(&body).unwrap();
            body["usage"] = usage;
            body.to_string()
        });
        self
    }
}

/// All models, and what they were asked.
#[derive(Default)]
pub(crate) struct Script {
    steps: Mutex<BTreeMap<String, Vec<Step>>>,
    windows: BTreeMap<String, u64>,
    asked: Mutex<Vec<Call>>,
    streamed: Mutex<Vec<String>>,
    running: AtomicUsize,
    peak: AtomicUsize,
}

/// One call under way; dropping it ends it.
struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Script {
    pub(crate) fn new<const N: usize>(models: [(&str, Vec<Step>); N]) -> Self {
        let steps = models.into_iter().map(|(name, steps)| (name.to_owned(), steps)).collect();
        Self { steps: Mutex::new(steps), ..Self::default() }
    }

    /// Panel `a`, `b` and a judge `j`.
    pub(crate) fn trio() -> Self {
        Self::new([("a", vec![says("alpha")]), ("b", vec![says("beta")]), ("j", judge())])
    }

    pub(crate) fn window(mut self, model: &str, tokens: u64) -> Self {
        self.windows.insert(model.to_owned(), tokens);
        self
    }

    /// The calls of that role, in the order in which they began.
    pub(crate) fn asked(&self, role: CallRole) -> Vec<Call> {
        self.asked.lock().unwrap().iter().filter(|call| call.role == role).cloned().collect()
    }

    /// The only call of that role.
    pub(crate) fn only(&self, role: CallRole) -> Call {
        let calls = self.asked(role);
        assert_eq!(calls.len(), 1, "{role:?} calls");
        calls.into_iter().next().unwrap()
    }

    /// Models that were asked for a stream.
    pub(crate) fn streamed(&self) -> Vec<String> {
        self.streamed.lock().unwrap().clone()
    }

    /// Most calls that were under way at once.
    pub(crate) fn peak(&self) -> usize {
        self.peak.load(Ordering::SeqCst)
    }

    /// Every call, in the order in which they began.
    pub(crate) fn all(&self) -> Vec<Call> {
        self.asked.lock().unwrap().clone()
    }

    fn begin(&self) -> Running<'_> {
        let now = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.peak.fetch_max(now, Ordering::SeqCst);
        Running(&self.running)
    }

    fn next(&self, call: &Call) -> Step {
        self.asked.lock().unwrap().push(call.clone());
        let mut steps = self.steps.lock().unwrap();
        let of_model = steps.get_mut(&call.model).unwrap_or_else(|| panic!("no script for {}", call.model));
        if of_model.len() > 1 { of_model.remove(0) } else { of_model[0].clone() }
    }

    async fn answer(&self, call: Call) -> Result<Reply, CallFault> {
        let _running = self.begin();
        let step = self.next(&call);
        tokio::time::sleep(step.delay).await;
        let reply = ChatReply::parse(step.outcome?.as_bytes()).unwrap();
        if !reply.is_usable() {
            return Err(fault(FaultKind::Empty));
        }
        let usage = reply.usage.unwrap_or_default();
        Ok(Reply { model: call.model, reply, usage })
    }

    async fn panel(&self, calls: Vec<Call>, rule: GatherRule, enough: &Enough) -> Gathered {
        let models: Vec<String> = calls.iter().map(|call| call.model.clone()).collect();
        let mut members: Vec<Member> = Vec::new();
        let mut running = stream::iter(calls.into_iter().enumerate())
            .map(|(seat, call)| {
                let model = call.model.clone();
                self.answer(call).map(move |outcome| Member { seat, model, outcome })
            })
            .buffer_unordered(rule.max_concurrent);
        let collect = async {
            while let Some(member) = running.next().await {
                members.push(member);
                if members.iter().filter(|m| m.outcome.is_ok()).count() == rule.quorum || enough(&members) {
                    break;
                }
            }
        };
        let timeout = rule.timeout.unwrap_or(Duration::from_secs(3600));
        let in_time = tokio::time::timeout(timeout, collect).await.is_ok();
        let late = if in_time { FaultKind::Cancelled } else { FaultKind::Timeout };
        for (seat, model) in models.into_iter().enumerate() {
            if !members.iter().any(|m| m.seat == seat) {
                members.push(Member { seat, model, outcome: Err(fault(late)) });
            }
        }
        members.sort_by_key(|m| m.seat);
        Gathered { members }
    }
}

fn fault(kind: FaultKind) -> CallFault {
    CallFault { kind, public: format!("it failed ({kind:?})"), status: None }
}

impl ModelCalls for Script {
    fn complete(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallFault>> {
        self.answer(call).boxed()
    }

    fn stream(&self, call: Call) -> BoxFuture<'_, Result<Live, CallFault>> {
        async move {
            self.streamed.lock().unwrap().push(call.model.clone());
            let reply = self.answer(call).await?;
            let mut chunks = Vec::new();
            if !reply.reply.tool_calls.is_empty() {
                chunks.push(Ok(Chunk::parse(TOOL_DELTA.as_bytes()).unwrap()));
            }
            chunks.extend(reply.reply.content.split_inclusive(' ').map(|word| Ok(Chunk::content(word))));
            chunks.push(Ok(Chunk::finish("stop")));
            Ok(Live { model: reply.model, chunks: stream::iter(chunks).boxed() })
        }
        .boxed()
    }

    fn gather_until<'a>(
        &'a self,
        calls: Vec<Call>,
        rule: GatherRule,
        enough: &'a Enough,
    ) -> BoxFuture<'a, Gathered> {
        self.panel(calls, rule, enough).boxed()
    }

    fn context_window(&self, model: &str) -> Option<u64> {
        self.windows.get(model).copied()
    }
}

/// Settings with that panel.
pub(crate) fn settings(panel: &[&str]) -> FusionSettings {
    FusionSettings { panel: panel.iter().map(|m| ModelId::new(*m)).collect(), ..FusionSettings::default() }
}

/// Settings with that judge and panel.
pub(crate) fn judged_by(judge: &str, panel: &[&str]) -> FusionSettings {
    FusionSettings { judge: Some(ModelId::new(judge)), ..settings(panel) }
}

/// One run, with nobody watching.
pub(crate) async fn run(
    settings: &FusionSettings,
    ask: &ChatRequest,
    script: &Script,
) -> (Result<Answer, LoopFault>, FusionTrace) {
    let plan = FusionPlan::from_settings(settings, &[]).unwrap();
    let mut trace = FusionTrace::default();
    let outcome = sendable(fusion(&plan, ask, script, &mut trace, &())).await;
    (outcome, trace)
}

/// The engine runs Fusion on whatever thread is free.
fn sendable<F: Future + Send>(future: F) -> F {
    future
}

/// A client's request with those messages and further fields.
pub(crate) fn ask(messages: &str, fields: &str) -> ChatRequest {
    let comma = if fields.is_empty() { "" } else { "," };
    let body = format!("{{\"model\":\"vllm-sr/fusion\",\"messages\":[{messages}]{comma}{fields}}}");
    ChatRequest::parse(body.as_bytes(), &RequestLimits::default()).unwrap()
}

/// A client's request of one user message.
pub(crate) fn question(text: &str) -> ChatRequest {
    ask(&json!({ "role": "user", "content": text }).to_string(), "")
}

/// The text of a finished answer.
pub(crate) fn text(answer: &Answer) -> &str {
    match answer {
        Answer::Finished(reply) => &reply.reply.content,
        Answer::Live(_) => panic!("a stream"),
    }
}

/// The text of a call's last message.
pub(crate) fn prompt(call: &Call) -> &str {
    &call.ask.messages().last().unwrap().text
}

/// A call's body as JSON.
pub(crate) fn body(call: &Call) -> Value {
    serde_json::from_slice(&call.ask.to_bytes()).unwrap()
}
