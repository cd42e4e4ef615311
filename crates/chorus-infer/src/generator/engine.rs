//! The loop that answers one request after another: prefill, then a token at a time.
//!
//! It owns weights, buffers and recent sequences; nobody else touches them. Invariant: between two chunks of a prompt
//! and between two tokens it looks whether anybody still listens.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc::UnboundedSender;

use super::ask::{Finish, GenerateEvent, SamplingParams, Timings, TokenLogprob, Usage};
use super::fault::GenerateFault;
use super::kv::{Recent, Sequence};
use super::model::{Model, Scratch};
use super::queue::{FairQueue, Waiting};
use super::sampler::{Sampler, log_probabilities};
use super::text::TextStream;
use super::tokens::Vocabulary;

/// Tokens of a prompt that are computed before listening again.
const CHUNK_TOKENS: usize = 128;

/// A request that passed every check.
#[derive(Debug)]
pub(super) struct Job {
    /// At least one token.
    pub(super) prompt: Vec<u32>,
    pub(super) params: SamplingParams,
    /// Tokens that may be sampled; at least one.
    pub(super) room: usize,
    pub(super) seed: u64,
    pub(super) arrived: Instant,
    pub(super) events: UnboundedSender<Result<GenerateEvent, GenerateFault>>,
}

impl Waiting for Job {
    fn abandoned(&self) -> bool {
        self.events.is_closed()
    }
}

/// Nobody listens any more, or the engine is to stop.
struct Abandoned;

/// A model at work.
pub(super) struct Engine {
    model: Model,
    vocabulary: Arc<Vocabulary>,
    queue: Arc<FairQueue<Job>>,
    scratch: Scratch,
    recent: Recent,
}

impl Engine {
    pub(super) fn new(
        model: Model,
        vocabulary: Arc<Vocabulary>,
        queue: Arc<FairQueue<Job>>,
        cache_bytes: usize,
    ) -> Self {
        Self { model, vocabulary, queue, scratch: Scratch::default(), recent: Recent::new(cache_bytes) }
    }

    /// Serves until the queue is closed. A panic ends one request, not the engine.
    pub(super) fn run(mut self) {
        while let Some(job) = self.queue.pop() {
            if catch_unwind(AssertUnwindSafe(|| self.serve(&job))).is_err() {
                tracing::error!("a generation ended in a panic");
                self.scratch = Scratch::default();
                let fault = GenerateFault::Inference("the computation was cut short".to_owned());
                let _: Result<_, _> = job.events.send(Err(fault));
            }
        }
    }

    fn serve(&mut self, job: &Job) {
        let mut sequence = self.recent.longest_prefix(&job.prompt).unwrap_or_else(|| self.model.sequence());
        // Whoever stopped listening leaves work behind that the next request may share.
        let _: Result<(), Abandoned> = self.answer(job, &mut sequence);
        self.recent.keep(sequence);
    }

    fn answer(&mut self, job: &Job, sequence: &mut Sequence) -> Result<(), Abandoned> {
        let mut timings = Timings { queued: job.arrived.elapsed(), ..Default::default() };
        let reused_tokens = sequence.tokens().len();
        let mut usage = Usage { prompt_tokens: job.prompt.len(), reused_tokens, completion_tokens: 0 };
        self.tell(job, GenerateEvent::Started { prompt_tokens: usage.prompt_tokens, reused_tokens })?;
        let began = Instant::now();
        self.prefill(job, sequence)?;
        timings.prefill = began.elapsed();
        let began = Instant::now();
        let finish = self.decode(job, sequence, &mut usage)?;
        timings.decode = began.elapsed();
        self.tell(job, GenerateEvent::Done { finish, usage, timings })
    }

    fn tell(&self, job: &Job, event: GenerateEvent) -> Result<(), Abandoned> {
        if self.queue.is_closed() {
            return Err(Abandoned);
        }
        job.events.send(Ok(event)).map_err(|_| Abandoned)
    }

    /// Computes what is missing of the prompt, leaving the logits after its last token in the buffers.
    fn prefill(&mut self, job: &Job, sequence: &mut Sequence) -> Result<(), Abandoned> {
        let missing = job.prompt.get(sequence.tokens().len()..).unwrap_or_default();
        for chunk in missing.chunks(CHUNK_TOKENS) {
            if job.abandoned() || self.queue.is_closed() {
                return Err(Abandoned);
            }
            self.model.forward(chunk, sequence, &mut self.scratch);
        }
        Ok(())
    }

    fn decode(&mut self, job: &Job, sequence: &mut Sequence, usage: &mut Usage) -> Result<Finish, Abandoned> {
        let mut sampler = Sampler::new(job.params.clone(), &job.prompt, job.seed);
        let mut text = TextStream::new(job.params.stop.clone());
        loop {
            let logits = self.scratch.logits();
            let token = sampler.choose(logits);
            usage.completion_tokens += 1;
            if self.vocabulary.ends_turn(token) {
                self.tell_rest(job, text)?;
                return Ok(Finish::Stop);
            }
            let (logprob, top) = self.logprobs(&job.params, token);
            let released = text.push(self.vocabulary.answer_bytes(token));
            self.tell(job, GenerateEvent::Token { text: released.text, logprob, top })?;
            if released.stopped {
                return Ok(Finish::Stop);
            }
            if usage.completion_tokens == job.room {
                self.tell_rest(job, text)?;
                return Ok(Finish::Length);
            }
            self.model.forward(&[token], sequence, &mut self.scratch);
        }
    }

    /// Gives out text that was held back.
    fn tell_rest(&self, job: &Job, text: TextStream) -> Result<(), Abandoned> {
        let text = text.finish();
        if text.is_empty() {
            return Ok(());
        }
        self.tell(job, GenerateEvent::Token { text, logprob: None, top: Vec::new() })
    }

    fn logprobs(&self, params: &SamplingParams, token: u32) -> (Option<TokenLogprob>, Vec<TokenLogprob>) {
        if !params.logprobs {
            return (None, Vec::new());
        }
        let (own, top) = log_probabilities(self.scratch.logits(), token, params.top_logprobs);
        let entry = |(token, logprob)| {
            let bytes = self.vocabulary.bytes(token).to_vec();
            TokenLogprob { token: String::from_utf8_lossy(&bytes).into_owned(), bytes, logprob }
        };
        (Some(entry((token, own))), top.into_iter().map(entry).collect())
    }
}
