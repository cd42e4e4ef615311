//! `request_params`: block, cap or strip fields of a request.
//!
//! `strip_unknown` keeps every field that the chat completions API defines, among them `max_completion_tokens`,
//! `stream_options` and `parallel_tool_calls`, which the peer drops (contract §7.1.8). Source: contract §1.10.

use chorus_spec::RequestParams;
use chorus_wire::ChatRequest;

/// Fields of `POST /v1/chat/completions`. Source: OpenAI API description 2.3.0, `CreateChatCompletionRequest`.
const DEFINED: [&str; 38] = [
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
    "chat_template_kwargs",
    "top_k",
    "min_p",
];

/// `model`, `messages` and `stream` are the request itself; blocking them is ignored.
const NEEDED: [&str; 3] = ["model", "messages", "stream"];

/// Applies the limits.
pub fn apply(params: &RequestParams, request: &mut ChatRequest) {
    for field in params.blocked.iter().filter(|field| !NEEDED.contains(&field.as_str())) {
        request.remove(field);
    }
    if params.strip_unknown {
        let unknown: Vec<String> = request
            .body()
            .iter()
            .map(|(key, _)| key.to_owned())
            .filter(|k| !DEFINED.contains(&k.as_str()))
            .collect();
        unknown.iter().for_each(|field| request.remove(field));
    }
    if let Some(limit) = params.max_tokens_limit {
        cap(request, "max_tokens", limit);
        cap(request, "max_completion_tokens", limit);
    }
    if let Some(limit) = params.max_n {
        cap(request, "n", limit);
    }
}

fn cap(request: &mut ChatRequest, field: &str, limit: u64) {
    if let Ok(Some(value)) = request.body().read::<u64>(field)
        && value > limit
    {
        request.set(field, &limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(params: &RequestParams, fields: &str) -> String {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}],{fields}}}"#);
        let mut request =
            ChatRequest::parse(body.as_bytes(), &chorus_wire::RequestLimits::default()).unwrap();
        apply(params, &mut request);
        let body = String::from_utf8(request.to_bytes()).unwrap();
        body.split_once("}],").map_or(String::new(), |(_, rest)| rest.trim_end_matches('}').to_owned())
    }

    #[test]
    fn caps_blocks_and_keeps_what_the_api_defines() {
        let params = RequestParams {
            blocked: vec!["logprobs".into(), "messages".into()],
            max_tokens_limit: Some(100),
            max_n: Some(1),
            strip_unknown: true,
        };
        let got = after(
            &params,
            r#""logprobs":true,"n":4,"max_completion_tokens":500,"max_tokens":50,"x_custom":1,"parallel_tool_calls":false"#,
        );
        assert_eq!(got, r#""n":1,"max_completion_tokens":100,"max_tokens":50,"parallel_tool_calls":false"#);
    }
}
