//! How far the estimate of tokens is from what real vocabularies count, a language at a time.
//!
//! It knows the estimate and the vocabularies of model files. Invariant: only the ignored test reads `CHORUS_MODELS`, a
//! folder laid out as the model store. Run it with
//! `CHORUS_MODELS=… cargo test -p chorus-signals --test token_estimate -- --ignored --nocapture`.

#![expect(clippy::print_stdout, reason = "figures are for people to read")]

use chorus_infer::generator::TokenCounter;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Short texts in 21 languages.
const TEXTS: [&str; 2] = [include_str!("data/language.tsv"), include_str!("data/language_held_out.tsv")];

const VOCABULARIES: [(&str, &str); 2] = [
    ("qwen2.5-coder-0.5b-instruct", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"),
    ("smollm2-135m-instruct", "SmolLM2-135M-Instruct.Q4_1.gguf"),
];

#[test]
#[ignore = "needs model files"]
fn the_estimate_beside_real_vocabularies() {
    let models = PathBuf::from(std::env::var_os("CHORUS_MODELS").unwrap());
    let mut languages: BTreeMap<&str, String> = BTreeMap::new();
    for (code, text) in TEXTS.iter().flat_map(|table| table.lines()).filter_map(|row| row.split_once('\t')) {
        languages.entry(code).or_default().push_str(&format!("{text}\n"));
    }
    languages.insert("rust", include_str!("token_estimate.rs").to_owned());
    for (model, file) in VOCABULARIES {
        let counter = TokenCounter::open(&models.join(model).join(file)).unwrap();
        for (language, text) in &languages {
            let (real, estimate) = (counter.count(text), chorus_wire::tokens::of_text(text));
            println!(
                "{model} {language}: {real} tokens, estimate {estimate}, ratio {:.2}",
                estimate as f64 / real as f64
            );
        }
    }
}
