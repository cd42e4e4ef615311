//! A chat model in this process: a GGUF file of the Llama or Qwen2 family, one engine thread, a fair queue.
//!
//! It knows model files, tokens and sampling; it knows no HTTP, no router and no other model. Invariant: the logits
//! of a position depend on the tokens before it alone, bit for bit, however its prefix was cut into chunks, cached
//! or spread over threads.

mod ask;
mod counter;
mod engine;
mod fault;
mod gguf;
mod kv;
mod layout;
mod math;
mod model;
mod q8;
mod queue;
mod sampler;
mod template;
#[cfg(test)]
mod tests;
mod text;
mod tokens;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use futures_util::{Stream, StreamExt};
use tokio::sync::mpsc;

pub use ask::{
    ChatTurn, Finish, GenerateEvent, GenerateRequest, MAX_TOP_LOGPROBS, SamplingParams, Timings,
    TokenLogprob, Usage,
};
pub use counter::TokenCounter;
use engine::{Engine, Job};
pub use fault::GenerateFault;
use gguf::Metadata;
use layout::ModelFile;
use model::Model;
use queue::{FairQueue, Refused};
use template::ChatTemplate;
use tokens::Vocabulary;

/// Most threads of a forward pass by default: a model of this size gains little from more.
const DEFAULT_THREADS: usize = 4;

/// How a generator runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratorOptions {
    /// Threads of a forward pass; `None` is one per core, at most four.
    pub threads: Option<usize>,
    /// Requests that may wait; one more is refused as busy.
    pub queue: usize,
    /// Bytes of keys and values kept of recent sequences.
    pub cache_bytes: usize,
    /// Upper bound of the context window, where the file's own is larger.
    pub context_window: Option<usize>,
    /// Whether a file in a slow layout is written once more, beside itself, in the fast one.
    pub requantise: bool,
}

impl Default for GeneratorOptions {
    fn default() -> Self {
        Self {
            threads: None,
            queue: 64,
            cache_bytes: 256 << 20,
            context_window: Some(8192),
            requantise: true,
        }
    }
}

/// What is known about a loaded model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// `general.name` of the file, else the file's name.
    pub name: String,
    /// `general.architecture`: `llama` or `qwen2`.
    pub family: String,
    /// Tokens of prompt and answer together.
    pub context_window: usize,
    /// Number of weights.
    pub parameters: u64,
    /// Bytes of weights in memory.
    pub weight_bytes: u64,
    /// Tokens of the vocabulary.
    pub vocabulary: usize,
    /// Whether the chat template reads `tools`.
    pub supports_tools: bool,
    /// Threads of a forward pass.
    pub threads: usize,
}

/// Events of one request; dropping it cancels the request at the next token. It ends with `Done` or with a fault.
#[derive(Debug)]
pub struct GenerateStream {
    events: mpsc::UnboundedReceiver<Result<GenerateEvent, GenerateFault>>,
    ended: bool,
}

impl GenerateStream {
    fn new(events: mpsc::UnboundedReceiver<Result<GenerateEvent, GenerateFault>>) -> Self {
        Self { events, ended: false }
    }

    /// The next event; `None` after the last one.
    pub async fn next_event(&mut self) -> Option<Result<GenerateEvent, GenerateFault>> {
        self.next().await
    }
}

impl Stream for GenerateStream {
    type Item = Result<GenerateEvent, GenerateFault>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let event = ready!(self.events.poll_recv(context)).unwrap_or(Err(GenerateFault::Stopped));
        self.ended = matches!(event, Ok(GenerateEvent::Done { .. }) | Err(_));
        Poll::Ready(Some(event))
    }
}

/// A loaded model with its engine thread; dropping it ends the thread and frees the memory.
#[derive(Debug)]
pub struct Generator {
    info: ModelInfo,
    vocabulary: Arc<Vocabulary>,
    template: Option<ChatTemplate>,
    queue: Arc<FairQueue<Job>>,
    /// Holds the engine's loop and the threads that help it.
    _threads: rayon::ThreadPool,
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl Generator {
    /// Loads a GGUF file and starts its engine thread. Blocks while it reads; run it on a thread that may.
    ///
    /// # Errors
    /// [`GenerateFault::File`], [`GenerateFault::Unsupported`], or [`GenerateFault::Template`] for a template that
    /// does not compile.
    pub fn load(path: &Path, options: &GeneratorOptions) -> Result<Self, GenerateFault> {
        let mut file = if options.requantise { ModelFile::open_fast(path)? } else { ModelFile::open(path)? };
        let metadata = Metadata(&file.content);
        let vocabulary = Arc::new(Vocabulary::read(metadata)?);
        let template = metadata.text("tokenizer.chat_template");
        let template =
            template.map(|source| ChatTemplate::compile(source, vocabulary.bos(), vocabulary.eos()));
        let template = template.transpose()?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let name = metadata.text("general.name").map_or_else(|| stem.into_owned(), str::to_owned);
        let model = Model::read(&file.content, &mut file.reader)?;
        if model.vocabulary() < vocabulary.len() {
            return Err(GenerateFault::File(
                "the vocabulary has more tokens than the embedding has rows".to_owned(),
            ));
        }
        let threads = options.threads.unwrap_or_else(default_threads).max(1);
        let info = ModelInfo {
            name,
            family: model.shape().family.clone(),
            context_window: model.shape().context_window.min(options.context_window.unwrap_or(usize::MAX)),
            parameters: model.parameters(),
            weight_bytes: model.weight_bytes(),
            vocabulary: model.vocabulary(),
            supports_tools: template.as_ref().is_some_and(ChatTemplate::supports_tools),
            threads,
        };
        let queue = Arc::new(FairQueue::new(options.queue));
        let engine = Engine::new(model, Arc::clone(&vocabulary), Arc::clone(&queue), options.cache_bytes);
        Ok(Self { info, vocabulary, template, queue, _threads: start(engine, threads)? })
    }

    /// What is known about the model.
    #[must_use]
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// Puts a request into the queue.
    ///
    /// # Errors
    /// [`GenerateFault::Params`], [`GenerateFault::Template`], [`GenerateFault::ContextLengthExceeded`],
    /// [`GenerateFault::Busy`] or [`GenerateFault::Stopped`], all before any tensor was touched.
    pub fn generate(&self, ask: GenerateRequest) -> Result<GenerateStream, GenerateFault> {
        ask.params.check()?;
        let bytes: usize = ask.messages.iter().map(|turn| turn.content.len()).sum();
        self.check_room(self.vocabulary.fewest_tokens(bytes))?;
        let rendered = self.render_disarmed(&ask.messages, ask.tools.as_ref())?;
        let prompt = self.vocabulary.encode_prompt(&rendered)?;
        if prompt.is_empty() {
            return Err(GenerateFault::Template("the prompt is empty".to_owned()));
        }
        let room = self.check_room(prompt.len())?;
        let room = ask.params.max_tokens.map_or(room, |most| most.min(room));
        let (sender, events) = mpsc::unbounded_channel();
        let seed = RandomState::new().build_hasher().finish();
        let job = Job { prompt, params: ask.params, room, seed, arrived: Instant::now(), events: sender };
        match self.queue.push(ask.caller, job) {
            Ok(()) => Ok(GenerateStream::new(events)),
            Err(Refused::Full) => Err(GenerateFault::Busy),
            Err(Refused::Closed) => Err(GenerateFault::Stopped),
        }
    }

    /// Tokens that are left for the answer; at least one.
    fn check_room(&self, prompt_tokens: usize) -> Result<usize, GenerateFault> {
        let context_window = self.info.context_window;
        match context_window.checked_sub(prompt_tokens) {
            None | Some(0) => Err(GenerateFault::ContextLengthExceeded { prompt_tokens, context_window }),
            Some(room) => Ok(room),
        }
    }

    /// Tokens of a text; special tokens spelled in it count as text.
    #[must_use]
    pub fn count_tokens(&self, text: &str) -> usize {
        self.vocabulary.count(text)
    }

    /// The prompt as the file's own chat template renders it, open for the assistant's turn.
    ///
    /// # Errors
    /// [`GenerateFault::Template`].
    pub fn render_prompt(
        &self,
        messages: &[ChatTurn],
        tools: Option<&serde_json::Value>,
    ) -> Result<String, GenerateFault> {
        match &self.template {
            Some(template) => template.render(messages, tools),
            None => Err(GenerateFault::Template("the model file has none: it is no chat model".to_owned())),
        }
    }

    /// The prompt with whatever the conversation itself spells of special tokens made plain text.
    fn render_disarmed(
        &self,
        messages: &[ChatTurn],
        tools: Option<&serde_json::Value>,
    ) -> Result<String, GenerateFault> {
        let disarm = |value: &serde_json::Value| disarm_json(value, &self.vocabulary);
        let turn = |turn: &ChatTurn| ChatTurn {
            role: self.vocabulary.disarm(&turn.role),
            content: self.vocabulary.disarm(&turn.content),
            tool_calls: turn.tool_calls.as_ref().map(disarm),
        };
        let messages: Vec<_> = messages.iter().map(turn).collect();
        self.render_prompt(&messages, tools.map(disarm).as_ref())
    }
}

/// The same value with every text in it disarmed.
fn disarm_json(value: &serde_json::Value, vocabulary: &Vocabulary) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::String(text) => Value::String(vocabulary.disarm(text)),
        Value::Array(values) => values.iter().map(|value| disarm_json(value, vocabulary)).collect(),
        Value::Object(fields) => {
            let field =
                |(key, value): (&String, &Value)| (vocabulary.disarm(key), disarm_json(value, vocabulary));
            Value::Object(fields.iter().map(field).collect())
        }
        other => other.clone(),
    }
}

fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(DEFAULT_THREADS)
}

/// Starts the engine's loop on a pool of that many threads, of which it is one.
fn start(engine: Engine, threads: usize) -> Result<rayon::ThreadPool, GenerateFault> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("generator-{index}"))
        .panic_handler(|_| tracing::error!("an engine thread panicked"))
        .build()
        .map_err(|fault| GenerateFault::Inference(fault.to_string()))?;
    pool.spawn(move || engine.run());
    Ok(pool)
}
