//! Local models as backends: loaded on first use, kept, and spoken to in the words of the wire.
//!
//! It knows the store and the generator; it does not know which algorithm calls.

use chorus_collab::{CallFault, Chunks, FaultKind};
use chorus_infer::generator::{
    ChatTurn, GenerateEvent, GenerateFault, GenerateRequest, GenerateStream, Generator, GeneratorOptions,
    SamplingParams, TokenLogprob,
};
use chorus_wire::{Assembler, ChatReply, ChatRequest, Chunk, StreamIdentity, Usage};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// Most output tokens of a local model where neither the request nor the route says otherwise.
const DEFAULT_MAX_TOKENS: usize = 256;

/// Sampling temperature where nobody says otherwise: small models ramble above it.
const DEFAULT_TEMPERATURE: f32 = 0.3;

/// Finds the file of a local model by its name in the store.
pub type FindFile = Box<dyn Fn(&str) -> Option<PathBuf> + Send + Sync>;

/// The local models of this process.
pub struct LocalModels {
    find: Arc<FindFile>,
    options: GeneratorOptions,
    loaded: BTreeMap<String, Arc<OnceCell<Arc<Generator>>>>,
}

impl LocalModels {
    /// Models of those names, found by `find` when first used.
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = String>, find: FindFile, options: GeneratorOptions) -> Self {
        let loaded = names.into_iter().map(|name| (name, Arc::default())).collect();
        Self { find: Arc::new(find), options, loaded }
    }

    /// Models of other names, for another configuration: what both name is loaded once.
    #[must_use]
    pub fn renamed(&self, names: impl IntoIterator<Item = String>) -> Self {
        let cell = |name: String| {
            let cell = self.loaded.get(&name).cloned().unwrap_or_default();
            (name, cell)
        };
        Self {
            find: Arc::clone(&self.find),
            options: self.options.clone(),
            loaded: names.into_iter().map(cell).collect(),
        }
    }

    /// The file of a local model, if it is here.
    pub(crate) fn file(&self, name: &str) -> Option<PathBuf> {
        (self.find)(name).filter(|file| file.is_file())
    }

    /// One whole answer.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn complete(
        &self,
        name: &str,
        request: &ChatRequest,
        caller: u64,
    ) -> Result<ChatReply, CallFault> {
        let mut chunks = self.stream(name, request, caller).await?;
        let mut whole = Assembler::default();
        while let Some(chunk) = chunks.try_next().await? {
            whole.push(&chunk);
        }
        Ok(whole.finish(&StreamIdentity { id: String::new(), model: name.to_owned(), created: 0 }))
    }

    /// One answer as a stream, once the prompt has been accepted.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn stream(&self, name: &str, request: &ChatRequest, caller: u64) -> Result<Chunks, CallFault> {
        let generator = self.generator(name).await?;
        let events = generator.generate(ask(request, caller)?).map_err(|fault| call_fault(&fault))?;
        // The generator lives as long as its answer, whatever happens to the configuration.
        let state = (events, generator);
        Ok(stream::unfold(state, |(mut events, generator)| async move {
            let item = next_chunk(&mut events).await?;
            Some((item, (events, generator)))
        })
        .flat_map(|item| match item {
            Ok(chunks) => stream::iter(chunks.into_iter().map(Ok).collect::<Vec<_>>()),
            Err(fault) => stream::iter(vec![Err(fault)]),
        })
        .boxed())
    }

    async fn generator(&self, name: &str) -> Result<Arc<Generator>, CallFault> {
        let absent = || {
            misconfigured(format!(
                "the local model `{name}` is not there; `chorus models pull {name}` gets it"
            ))
        };
        let cell = self.loaded.get(name).ok_or_else(absent)?;
        let load = || async {
            let path = (self.find)(name).ok_or_else(absent)?;
            let options = self.options.clone();
            let loaded = tokio::task::spawn_blocking(move || Generator::load(&path, &options)).await;
            let loaded =
                loaded.map_err(|_| misconfigured(format!("the local model `{name}` could not be loaded")))?;
            loaded.map(Arc::new).map_err(|fault| call_fault(&fault))
        };
        cell.get_or_try_init(load).await.cloned()
    }
}

fn ask(request: &ChatRequest, caller: u64) -> Result<GenerateRequest, CallFault> {
    let messages = request.messages().iter().map(|message| {
        let role = match &message.role {
            chorus_wire::Role::Developer => "system".to_owned(),
            role => role.as_str().to_owned(),
        };
        ChatTurn { role, content: message.text.clone(), tool_calls: tool_calls(message) }
    });
    Ok(GenerateRequest {
        messages: messages.collect(),
        tools: request.body().read("tools").ok().flatten(),
        params: params(request),
        caller,
    })
}

fn tool_calls(message: &chorus_wire::Message) -> Option<Value> {
    let calls = message.tool_calls.iter().map(|call| {
        json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
    });
    (!message.tool_calls.is_empty()).then(|| calls.collect())
}

fn params(request: &ChatRequest) -> SamplingParams {
    let body = request.body();
    let number = |key: &str| body.read::<f32>(key).ok().flatten();
    let defaults = SamplingParams::default();
    SamplingParams {
        temperature: number("temperature").unwrap_or(DEFAULT_TEMPERATURE),
        top_p: number("top_p").unwrap_or(defaults.top_p),
        top_k: body.read("top_k").ok().flatten().unwrap_or(defaults.top_k),
        min_p: number("min_p").unwrap_or(defaults.min_p),
        repetition_penalty: number("repetition_penalty").unwrap_or(defaults.repetition_penalty),
        presence_penalty: number("presence_penalty").unwrap_or(defaults.presence_penalty),
        frequency_penalty: number("frequency_penalty").unwrap_or(defaults.frequency_penalty),
        seed: body.read("seed").ok().flatten(),
        max_tokens: Some(
            request.max_output_tokens().and_then(|n| usize::try_from(n).ok()).unwrap_or(DEFAULT_MAX_TOKENS),
        ),
        stop: stop(request),
        logprobs: body.read("logprobs").ok().flatten().unwrap_or(false),
        top_logprobs: body.read("top_logprobs").ok().flatten().unwrap_or(0),
    }
}

/// `stop` is a string or a list of strings.
fn stop(request: &ChatRequest) -> Vec<String> {
    match request.body().read::<Value>("stop").ok().flatten() {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.into_iter().filter_map(|v| v.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}

/// The chunks of the next event that has any.
async fn next_chunk(events: &mut GenerateStream) -> Option<Result<Vec<Chunk>, CallFault>> {
    loop {
        return match events.next_event().await? {
            Ok(GenerateEvent::Started { .. }) => Some(Ok(vec![Chunk::role()])),
            Ok(GenerateEvent::Token { text, logprob, top }) => {
                if text.is_empty() && logprob.is_none() {
                    continue;
                }
                Some(token_chunk(&text, logprob.as_ref(), &top).map(|chunk| vec![chunk]))
            }
            Ok(GenerateEvent::Done { finish, usage, .. }) => {
                let (prompt, completion) = (usage.prompt_tokens as u64, usage.completion_tokens as u64);
                let usage = Usage {
                    prompt_tokens: prompt,
                    completion_tokens: completion,
                    total_tokens: prompt + completion,
                    estimated: false,
                };
                Some(Ok(vec![Chunk::finish(finish.as_str()), Chunk::usage(usage)]))
            }
            Err(fault) => Some(Err(call_fault(&fault))),
        };
    }
}

fn token_chunk(text: &str, logprob: Option<&TokenLogprob>, top: &[TokenLogprob]) -> Result<Chunk, CallFault> {
    let Some(chosen) = logprob else {
        return Ok(Chunk::content(text));
    };
    let entry = |t: &TokenLogprob| json!({"token": t.token, "logprob": t.logprob, "bytes": t.bytes});
    let mut content = entry(chosen);
    if let Some(fields) = content.as_object_mut() {
        fields.insert("top_logprobs".to_owned(), top.iter().map(entry).collect());
    }
    let body = json!({
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {"content": text}, "logprobs": {"content": [content]}, "finish_reason": null}],
    });
    Chunk::parse(body.to_string().as_bytes()).map_err(|fault| misconfigured(fault.to_string()))
}

fn call_fault(fault: &GenerateFault) -> CallFault {
    let (kind, status) = match fault {
        GenerateFault::Busy => (FaultKind::Status, Some(429)),
        GenerateFault::Params(_)
        | GenerateFault::ContextLengthExceeded { .. }
        | GenerateFault::Template(_) => (FaultKind::Status, Some(400)),
        GenerateFault::File(_) | GenerateFault::Unsupported(_) => (FaultKind::Misconfigured, None),
        GenerateFault::Stopped | GenerateFault::Inference(_) => (FaultKind::Transport, None),
    };
    CallFault { kind, public: format!("the local model failed: {fault}"), status }
}

fn misconfigured(public: String) -> CallFault {
    CallFault { kind: FaultKind::Misconfigured, public, status: None }
}
