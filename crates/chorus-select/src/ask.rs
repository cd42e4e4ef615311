//! What a selector is asked. It knows no selector.

/// One request as a selector sees it.
#[derive(Debug, Clone, Copy)]
pub struct SelectionAsk<'a> {
    /// Who may be picked, in the decision's order; constraints have removed the others.
    pub candidates: &'a [Candidate<'a>],
    /// The request as a unit vector; `None` where no encoder read it.
    pub query: Option<&'a [f32]>,
    /// The most probable category of the request, as the domain head names it.
    pub category: Option<&'a str>,
    /// What draws are made from; equal seeds give equal draws.
    pub seed: u64,
}

/// One candidate.
#[derive(Debug, Clone, Copy, Default)]
pub struct Candidate<'a> {
    /// Its name.
    pub model: &'a str,
    /// The card's `quality_score`, in 0..=1.
    pub quality: Option<f64>,
    /// The score that the request's domain gives it; any scale, greater is better.
    pub domain_score: Option<f64>,
    /// US dollars per million tokens, prompt and completion averaged; 0 where no price is declared.
    pub usd_per_1m: f64,
    /// Nearness of the request to the card's description, in 0..=1; `None` without a description or an encoder.
    pub similarity: Option<f64>,
    /// How much of the conversation its cache is believed to hold, in 0..=1.
    pub warmth: f64,
    /// What live calls have shown.
    pub live: LiveFigures,
}

/// What live calls of a model have shown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LiveFigures {
    /// Milliseconds to the first token, at the percentile that the selector asked for.
    pub ttft_ms: Option<f64>,
    /// Milliseconds per further token, at its percentile.
    pub tpot_ms: Option<f64>,
    /// Calls that have not ended.
    pub in_flight: u32,
    /// Calls that have ended, well or not.
    pub ended: u64,
}

/// What a selector wants to see of a request; who fills a [`SelectionAsk`] leaves out the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// The request as a vector.
    pub query: bool,
    /// Nearness to the cards' descriptions.
    pub similarity: bool,
    /// The card's capabilities are part of its description.
    pub capabilities: bool,
    /// Percentile of the time to the first token, in 1..=100.
    pub ttft_percentile: Option<u8>,
    /// Percentile of the time per token, in 1..=100.
    pub tpot_percentile: Option<u8>,
}
