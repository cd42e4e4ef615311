//! One number for a model's price.

use chorus_spec::Model;

/// Prompt and completion averaged, in US dollars per million tokens.
pub(super) fn usd_per_1m(model: &Model) -> f64 {
    const MICRO: f64 = 1_000_000.0;
    let pricing = model.pricing;
    (pricing.prompt_micro_usd_per_1m as f64 + pricing.completion_micro_usd_per_1m as f64) / 2.0 / MICRO
}
