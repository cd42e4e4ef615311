//! The configuration that most tests serve, and requests for it.

use serde_json::{Value, json};

/// A panel behind the word "deeply", a fast answer behind "hello", and one small model for the rest.
pub(crate) const HOUSE: &str = r#"
version: v0.3
providers:
  defaults: { default_model: small }
  models:
    - name: small
      provider_model_id: acme/small-fp8
      pricing: { prompt_per_1m: 1, completion_per_1m: 2 }
      backend_refs: [{ name: main, base_url: "${UP}", api_key: "${UP_KEY}" }]
    - name: a
      pricing: { prompt_per_1m: 1, completion_per_1m: 2 }
      backend_refs: [{ name: main, base_url: "${UP}" }]
    - { name: b, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - { name: c, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - { name: judge, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - { name: spare, backend_refs: [{ name: main, base_url: "${UP}" }] }
routing:
  modelCards:
    - { name: small, context_window_size: 32768 }
    - { name: a, context_window_size: 32768 }
    - { name: b, context_window_size: 32768 }
    - { name: c, context_window_size: 32768 }
    - { name: judge, context_window_size: 65536 }
    - { name: spare, context_window_size: 32768 }
  signals:
    keywords:
      - { name: deep, keywords: [deeply] }
      - { name: greeting, keywords: [hello] }
  decisions:
    - name: deep-fusion
      priority: 100
      rules: { type: keyword, name: deep }
      modelRefs: [{ model: a }, { model: b }, { model: c }]
      algorithm:
        type: fusion
        fusion: { model: judge, analysis_models: [a, b, c], max_concurrent: 3, on_error: skip }
    - name: greet
      priority: 50
      rules: { type: keyword, name: greeting }
      plugins: [{ type: fast_response, configuration: { message: Good day. } }]
"#;

/// A request with one user message.
pub(crate) fn ask(model: &str, text: &str) -> Value {
    json!({"model": model, "messages": [user(text)]})
}

/// A user message.
pub(crate) fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}
