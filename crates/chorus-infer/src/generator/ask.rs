//! What a caller asks of a generator and what comes back: turns, sampling parameters, events.
//!
//! Plain values. They know no queue, no tensor and no wire format; the ranges written here are what the engine
//! accepts, and [`SamplingParams::check`] is the one place that holds them.

use std::time::Duration;

use serde_json::Value;

use super::fault::GenerateFault;

/// Most alternatives that can be asked for per token. Source: OpenAI chat completions, `top_logprobs` 0–20.
pub const MAX_TOP_LOGPROBS: usize = 20;

/// One turn of a conversation, as a chat template sees it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChatTurn {
    /// `system`, `user`, `assistant` or `tool`; whatever else the file's template knows.
    pub role: String,
    /// Plain text. Special tokens spelled in it are text, never control.
    pub content: String,
    /// Tool calls of an assistant turn, in the OpenAI shape, for templates that render them.
    pub tool_calls: Option<Value>,
}

impl ChatTurn {
    /// A turn of plain text.
    #[must_use]
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into(), tool_calls: None }
    }
}

/// How the next token is chosen, and when to end.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingParams {
    /// 0 is greedy; else logits are divided by it. 0–2 is usual.
    pub temperature: f32,
    /// Nucleus: the smallest set of tokens whose probability reaches this. In (0, 1]; 1 keeps all.
    pub top_p: f32,
    /// Keep this many most likely tokens; 0 keeps all.
    pub top_k: usize,
    /// Drop tokens less likely than this share of the most likely one. In [0, 1]; 0 keeps all.
    pub min_p: f32,
    /// Divides positive and multiplies negative logits of tokens seen in prompt or answer; > 0, 1 is off.
    pub repetition_penalty: f32,
    /// Subtracted once from the logit of a token that the answer already holds; −2–2.
    pub presence_penalty: f32,
    /// Subtracted from a token's logit for each time the answer holds it; −2–2.
    pub frequency_penalty: f32,
    /// Same seed, same prompt, same weights: same answer. `None` draws a fresh one.
    pub seed: Option<u64>,
    /// Most tokens to generate; `None` is as many as the context window has room for.
    pub max_tokens: Option<usize>,
    /// Texts that end the answer; the stop text itself is not part of it.
    pub stop: Vec<String>,
    /// Whether every token comes with its log-probability.
    pub logprobs: bool,
    /// Most likely alternatives per token, 0–20; needs `logprobs`.
    pub top_logprobs: usize,
}

impl Default for SamplingParams {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_p: 1.0,
            top_k: 0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            seed: None,
            max_tokens: None,
            stop: Vec::new(),
            logprobs: false,
            top_logprobs: 0,
        }
    }
}

impl SamplingParams {
    /// Checks every range.
    ///
    /// # Errors
    /// [`GenerateFault::Params`] naming the first parameter out of range.
    pub fn check(&self) -> Result<(), GenerateFault> {
        let rules = [
            ("temperature", self.temperature.is_finite() && self.temperature >= 0.0),
            ("top_p", self.top_p > 0.0 && self.top_p <= 1.0),
            ("min_p", (0.0..=1.0).contains(&self.min_p)),
            ("repetition_penalty", self.repetition_penalty.is_finite() && self.repetition_penalty > 0.0),
            ("presence_penalty", self.presence_penalty.is_finite()),
            ("frequency_penalty", self.frequency_penalty.is_finite()),
            ("max_tokens", self.max_tokens != Some(0)),
            ("top_logprobs", self.top_logprobs <= MAX_TOP_LOGPROBS),
            ("stop", self.stop.iter().all(|stop| !stop.is_empty())),
        ];
        match rules.iter().find(|(_, holds)| !holds) {
            Some((name, _)) => Err(GenerateFault::Params((*name).to_owned())),
            None => Ok(()),
        }
    }
}

/// One completion to generate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GenerateRequest {
    /// The conversation, oldest first; at least one turn.
    pub messages: Vec<ChatTurn>,
    /// Tool definitions in the OpenAI shape, given to the chat template.
    pub tools: Option<Value>,
    /// How to sample.
    pub params: SamplingParams,
    /// Whose turn it takes: the queue is fair between callers.
    pub caller: u64,
}

/// A token with its log-probability under the model's own distribution (before temperature and penalties).
#[derive(Debug, Clone, PartialEq)]
pub struct TokenLogprob {
    /// The token's text, with U+FFFD for bytes that are not whole code points.
    pub token: String,
    /// Its exact bytes.
    pub bytes: Vec<u8>,
    /// Natural logarithm of its probability; ≤ 0.
    pub logprob: f32,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The model ended its turn, or a stop text appeared.
    Stop,
    /// `max_tokens` or the context window was reached.
    Length,
}

impl Finish {
    /// The OpenAI `finish_reason`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
        }
    }
}

/// Exact counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of the rendered prompt, reused ones too.
    pub prompt_tokens: usize,
    /// Tokens of the prompt that were not computed again.
    pub reused_tokens: usize,
    /// Tokens sampled, the end-of-turn token included.
    pub completion_tokens: usize,
}

/// Where the time went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timings {
    /// Waiting for the engine.
    pub queued: Duration,
    /// Computing the prompt.
    pub prefill: Duration,
    /// Generating.
    pub decode: Duration,
}

/// What a stream yields, in this order: one `Started`, any number of `Token`, one `Done`.
#[derive(Debug, Clone, PartialEq)]
pub enum GenerateEvent {
    /// The engine took the request up.
    Started {
        /// Tokens of the rendered prompt.
        prompt_tokens: usize,
        /// How many of them were cached.
        reused_tokens: usize,
    },
    /// One sampled token, or text held back until it was certain.
    Token {
        /// New text; whole code points, possibly empty.
        text: String,
        /// The token, when log-probabilities were asked for.
        logprob: Option<TokenLogprob>,
        /// Most likely alternatives, best first.
        top: Vec<TokenLogprob>,
    },
    /// The answer is complete.
    Done {
        /// Why it ended.
        finish: Finish,
        /// Exact counts.
        usage: Usage,
        /// Where the time went.
        timings: Timings,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_out_of_range_is_named() {
        let cases: [(&str, SamplingParams); 7] = [
            ("temperature", SamplingParams { temperature: -0.1, ..Default::default() }),
            ("temperature", SamplingParams { temperature: f32::NAN, ..Default::default() }),
            ("top_p", SamplingParams { top_p: 0.0, ..Default::default() }),
            ("min_p", SamplingParams { min_p: 1.5, ..Default::default() }),
            ("max_tokens", SamplingParams { max_tokens: Some(0), ..Default::default() }),
            ("top_logprobs", SamplingParams { top_logprobs: 21, ..Default::default() }),
            ("stop", SamplingParams { stop: vec![String::new()], ..Default::default() }),
        ];
        for (name, params) in cases {
            assert_eq!(params.check(), Err(GenerateFault::Params(name.to_owned())));
        }
        assert_eq!(SamplingParams::default().check(), Ok(()));
    }
}
