//! What a model's answer costs: US dollars for a million output tokens, from the price table beside the record.
//!
//! Two models are priced by the task itself. A model that the table does not name is priced as the named one of its size.

use crate::corpus;
use crate::fault::LabFault;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Prices that the task gives, in US dollars for a million output tokens.
const GIVEN: [(&str, f64); 2] = [("gemini-1.5-flash-002", 0.30), ("gemini-1.5-pro-002", 5.00)];

/// Whose row of the table prices a model, and whether that row is the model's own.
const KEYS: [(&str, &str, bool); 27] = [
    ("DeepSeek-Coder-V2", "deepseek-coder", true),
    ("Llama-2-13b-hf", "meta-llama/llama-3-8b-instruct", false),
    ("Llama-2-70b-hf", "meta-llama/Llama-3-70b-chat-hf", false),
    ("Llama-2-7b-hf", "meta-llama/llama-3-8b-instruct", false),
    ("Meta-Llama-3-70B", "meta-llama/Meta-Llama-3-70B-Instruct-Turbo", false),
    ("Meta-Llama-3-8B", "meta-llama/llama-3-8b-instruct", false),
    ("Meta-Llama-3_1-70B", "meta-llama/Meta-Llama-3.1-70B-Instruct-Turbo", false),
    ("Meta-Llama-3_1-70B-Instruct", "meta-llama/Meta-Llama-3.1-70B-Instruct-Turbo", true),
    ("Meta-Llama-3_1-8B", "llama-3-1-8b-instruct", false),
    ("Meta-Llama-3_1-8B-Instruct", "llama-3-1-8b-instruct", true),
    ("Mistral-7B-Instruct-v0.1", "mistralai/mistral-7b-instruct", true),
    ("Mistral-7B-Instruct-v0.2", "mistralai/mistral-7b-instruct", true),
    ("Mistral-7B-v0.1", "mistralai/mistral-7b-instruct", false),
    ("Mistral-7B-v0.2-hf", "mistralai/mistral-7b-instruct", false),
    ("Mixtral-8x7B-Instruct-v0.1", "mistralai/mixtral-8x7b-instruct", true),
    ("Mixtral-8x7B-v0.1", "mistralai/mixtral-8x7b-instruct", false),
    ("Phi-3-mini-4k-instruct", "llama-3-2-3b-instruct", false),
    ("Qwen1.5-110B", "meta-llama/Llama-3-70b-chat-hf", false),
    ("Qwen1.5-72B-Chat", "meta-llama/Llama-3-70b-chat-hf", false),
    ("Qwen1.5-7B-Chat", "mistralai/mistral-7b-instruct", false),
    ("Yi-34B", "mistralai/mixtral-8x7b-instruct", false),
    ("Yi-6B", "mistralai/mistral-7b-instruct", false),
    ("Yi-6b-Chat", "mistralai/mistral-7b-instruct", false),
    ("c4ai-command-r-v01", "mistralai/mixtral-8x7b-instruct", false),
    ("gemma-7b", "mistralai/mistral-7b-instruct", false),
    ("jamba-1.5-large", "llama-3-1-405b-instruct", false),
    ("mathstral-7B", "mistralai/mistral-7b-instruct", false),
];

#[derive(Deserialize)]
struct PriceWire {
    output_token_price_per_million: f64,
}

/// Prices by model.
#[derive(Debug)]
pub(super) struct Prices(BTreeMap<&'static str, f64>);

impl Prices {
    /// `outcomes/routerarena_model_cost.json`.
    pub(super) fn read(data: &Path) -> Result<Self, LabFault> {
        let path = data.join("outcomes/routerarena_model_cost.json");
        let table: BTreeMap<String, PriceWire> = corpus::json(&path)?;
        let mut prices = BTreeMap::from(GIVEN);
        for (model, key, _) in KEYS {
            let row =
                table.get(key).ok_or_else(|| LabFault::content(&path, 1, &format!("no price of {key}")))?;
            prices.insert(model, row.output_token_price_per_million);
        }
        Ok(Self(prices))
    }

    /// The price of a model; 0 of one that is not in the record.
    pub(super) fn of(&self, model: &str) -> f64 {
        self.0.get(model).copied().unwrap_or_default()
    }

    /// A note on where they are from.
    pub(super) fn explained(&self) -> String {
        let own =
            KEYS.iter().filter(|(.., own)| *own).map(|(model, ..)| format!("{model} {}", self.of(model)));
        let given = GIVEN.iter().map(|(model, price)| format!("{model} {price}"));
        let named = given.chain(own).collect::<Vec<_>>().join(", ");
        format!(
            "Prices in USD for a million output tokens: {named}; the other {} models as the named one nearest in \
             size.",
            KEYS.iter().filter(|(.., own)| !own).count()
        )
    }
}
