//! A documented estimate of token counts, for where no tokenizer is at hand. It knows no model.

use crate::chat::ChatRequest;
use crate::message::Message;
use crate::quarters::quarters;

/// Tokens that one image counts for.
const PER_IMAGE: u64 = 8192;
/// Tokens that every message counts for, besides its text.
const PER_MESSAGE: u64 = 4;
/// Tokens that every tool call and tool definition counts for, besides its JSON.
const PER_TOOL: u64 = 8;

/// Tokens of a text: a quarter of its UTF-8 bytes, and a quarter more for each Han, Kana or Hangul character, so that
/// such a character of three bytes is a token; rounded up. Source: contract §1.4 (`context`) for the quarter. A token a
/// dense character lies between a large multilingual vocabulary (Qwen2.5: 0.6 to 0.9) and a small English one (SmolLM2:
/// 1.8 to 2.6), as the test `token_estimate` of chorus-signals measures.
#[must_use]
pub fn of_text(text: &str) -> u64 {
    quarters(text).div_ceil(4)
}

/// [`of_text`] of a message's text.
#[must_use]
pub fn of_message(message: &Message) -> u64 {
    message.text_quarters.div_ceil(4)
}

/// Tokens of a whole request: text, plus 8,192 an image, 4 a message, 8 a tool call and a tool definition (and its
/// JSON by [`of_text`]), plus the output it reserves. Source: contract §1.4 (`context`).
#[must_use]
pub fn of_request(request: &ChatRequest) -> u64 {
    let text: u64 = request.messages().iter().map(|message| message.text_quarters).sum();
    text.div_ceil(4).saturating_add(besides_text(request))
}

/// Tokens of a whole request, its texts counted by `count` and the rest as in [`of_request`].
#[must_use]
pub fn of_request_by(request: &ChatRequest, count: &dyn Fn(&str) -> u64) -> u64 {
    let text: u64 = request.messages().iter().map(|message| count(&message.text)).sum();
    text.saturating_add(besides_text(request))
}

/// What a request holds besides its messages' text.
fn besides_text(request: &ChatRequest) -> u64 {
    let messages: u64 = request.messages().iter().map(besides_its_text).sum();
    let tools: u64 = request.tool_definitions().iter().map(|tool| PER_TOOL + of_text(tool)).sum();
    (messages + tools).saturating_add(request.max_output_tokens().unwrap_or(0))
}

fn besides_its_text(message: &Message) -> u64 {
    let calls: u64 = message
        .tool_calls
        .iter()
        .map(|call| PER_TOOL + (quarters(&call.name) + quarters(&call.arguments)).div_ceil(4))
        .sum();
    PER_MESSAGE + PER_IMAGE * message.images as u64 + calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_quarter_of_its_bytes_or_a_token_a_dense_character() {
        for (text, want) in [
            ("", 0),
            ("abcd", 1),
            ("abcde", 2),
            ("日本語のテキスト", 8),
            ("한국어", 3),
            ("привет", 3),
            ("naïve", 2),
        ] {
            assert_eq!(of_text(text), want, "{text}");
        }
    }

    #[test]
    fn everything_is_in_the_count_of_a_request() {
        let body = br#"{"model":"m","max_tokens":100,"tools":[{"type":"function"}],"messages":[
            {"role":"user","content":[{"type":"text","text":"abcdefgh"},
                {"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]},
            {"role":"assistant","content":null,"tool_calls":[
                {"id":"c","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}}]}]}"#;
        let request = ChatRequest::parse(body, &Default::default()).unwrap();
        let text = 2;
        let messages = 2 * PER_MESSAGE + PER_IMAGE;
        let (call, tool) = (PER_TOOL + 3, PER_TOOL + of_text(r#"{"type":"function"}"#));
        assert_eq!(of_request(&request), text + messages + call + tool + 100);
        let by_words = |text: &str| text.split_whitespace().count() as u64;
        assert_eq!(of_request_by(&request, &by_words), of_request(&request) - 1);
    }
}
