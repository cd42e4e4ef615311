//! A chat request as dialects with turns and blocks read it: instructions apart, two sides that alternate, tools.
//!
//! It knows no API by name. **Invariant:** words are never changed, only moved; what cannot be moved is a fault.

use crate::UpstreamFault;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A chat request, taken apart.
#[derive(Debug)]
pub(crate) struct Chat {
    /// The request as it came.
    pub(crate) body: Value,
    /// The name of the model.
    pub(crate) model: String,
    /// Instructions (`system`, `developer`), in order.
    pub(crate) system: Vec<String>,
    /// The sides in turn; neighbours of one side are one turn.
    pub(crate) turns: Vec<Turn>,
    /// Functions that may be called.
    pub(crate) tools: Vec<Tool>,
    /// Which of them must be.
    pub(crate) choice: Choice,
}

/// What one side says.
#[derive(Debug)]
pub(crate) struct Turn {
    /// Whether the model says it.
    pub(crate) by_model: bool,
    /// What.
    pub(crate) blocks: Vec<Block>,
}

/// One piece of a turn.
#[derive(Debug)]
pub(crate) enum Block {
    /// Words.
    Text(String),
    /// A picture, in base 64.
    Image {
        /// Such as `image/png`.
        media_type: String,
        /// The bytes.
        data: String,
    },
    /// A call that the model asked for.
    Call {
        /// Its id.
        id: String,
        /// The function.
        name: String,
        /// Its arguments, an object.
        arguments: Value,
        /// What the API wants back beside it (`extra_content`).
        extra: Option<Value>,
    },
    /// What a call gave.
    Result {
        /// The call's id.
        id: String,
        /// The function, where the history names it.
        name: String,
        /// What it gave.
        text: String,
    },
}

/// A function that may be called.
#[derive(Debug)]
pub(crate) struct Tool {
    /// Its name.
    pub(crate) name: Value,
    /// What it does.
    pub(crate) description: Option<Value>,
    /// The JSON Schema of its arguments.
    pub(crate) schema: Value,
}

/// Which function must be called.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The model decides.
    Auto,
    /// None.
    None,
    /// Any.
    Any,
    /// This one.
    One(String),
}

impl Chat {
    /// Takes a request apart. `n`, `logprobs` and `audio` have no counterpart: without them the answer would be another
    /// one than was asked for (case B12).
    pub(crate) fn read(body: &[u8]) -> Result<Self, UpstreamFault> {
        let body: Value = serde_json::from_slice(body).map_err(UpstreamFault::untranslatable)?;
        let refused = [
            ("n", body.get("n").and_then(Value::as_u64).is_some_and(|n| n > 1)),
            ("logprobs", body.get("logprobs") == Some(&Value::Bool(true))),
            ("audio", body.get("audio").is_some_and(|audio| !audio.is_null())),
        ];
        if let Some((field, _)) = refused.iter().find(|(_, wanted)| *wanted) {
            return Err(UpstreamFault::untranslatable(format!("`{field}`")));
        }
        let mut chat = Self {
            model: text(&body, "/model"),
            system: Vec::new(),
            turns: Vec::new(),
            tools: elements(&body, "/tools").filter_map(tool).collect(),
            choice: choice(&body),
            body: Value::Null,
        };
        let mut names = BTreeMap::new();
        for message in elements(&body, "/messages") {
            chat.add(message, &mut names)?;
        }
        chat.turns.retain(|turn| !turn.blocks.is_empty());
        Ok(Self { body, ..chat })
    }

    /// The smaller of the two caps of output.
    pub(crate) fn cap(&self) -> Option<u64> {
        let caps = ["max_tokens", "max_completion_tokens"];
        caps.iter().filter_map(|key| self.body.get(key)?.as_u64()).min()
    }

    /// `stop` as a list; none where nothing is given.
    pub(crate) fn stop(&self) -> Option<Value> {
        match self.body.get("stop")? {
            Value::Null => None,
            list @ Value::Array(_) => Some(list.clone()),
            one => Some(json!([one])),
        }
    }

    /// A field that is there and not `null`.
    pub(crate) fn given(&self, key: &str) -> Option<&Value> {
        self.body.get(key).filter(|value| !value.is_null())
    }

    fn add(&mut self, message: &Value, names: &mut BTreeMap<String, String>) -> Result<(), UpstreamFault> {
        let role = text(message, "/role");
        let blocks = match role.as_str() {
            "system" | "developer" => {
                for block in content(message)? {
                    if let Block::Text(text) = block {
                        self.system.push(text);
                    }
                }
                return Ok(());
            }
            "assistant" => {
                let mut blocks = content(message)?;
                for call in elements(message, "/tool_calls") {
                    let (id, name) = (text(call, "/id"), text(call, "/function/name"));
                    names.insert(id.clone(), name.clone());
                    let arguments = arguments(&text(call, "/function/arguments"));
                    blocks.push(Block::Call {
                        id,
                        name,
                        arguments,
                        extra: call.get("extra_content").cloned(),
                    });
                }
                blocks
            }
            "tool" => {
                let id = text(message, "/tool_call_id");
                let name = names.get(&id).cloned().unwrap_or_default();
                let mut said = String::new();
                for block in content(message)? {
                    if let Block::Text(text) = block {
                        said.push_str(&text);
                    }
                }
                vec![Block::Result { id, name, text: said }]
            }
            _ => content(message)?,
        };
        let by_model = role == "assistant";
        match self.turns.last_mut().filter(|last| last.by_model == by_model) {
            Some(turn) => turn.blocks.extend(blocks),
            None => self.turns.push(Turn { by_model, blocks }),
        }
        Ok(())
    }
}

/// The text at a pointer; empty where there is none.
pub(crate) fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The list at a pointer; empty where there is none.
pub(crate) fn elements<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// APIs with objects for arguments take no other text; what a model wrote beside JSON stays readable.
fn arguments(text: &str) -> Value {
    match serde_json::from_str::<Value>(text) {
        Ok(object @ Value::Object(_)) => object,
        _ if text.trim().is_empty() => json!({}),
        _ => json!({"unparsed_arguments": text}),
    }
}

fn content(message: &Value) -> Result<Vec<Block>, UpstreamFault> {
    match message.get("content") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) if text.is_empty() => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![Block::Text(text.clone())]),
        Some(Value::Array(parts)) => parts.iter().map(part).collect(),
        Some(_) => Err(UpstreamFault::untranslatable("content that is neither text nor parts")),
    }
}

fn part(part: &Value) -> Result<Block, UpstreamFault> {
    match text(part, "/type").as_str() {
        "text" => Ok(Block::Text(text(part, "/text"))),
        "refusal" => Ok(Block::Text(text(part, "/refusal"))),
        "image_url" => {
            let url = text(part, "/image_url/url");
            let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
            let (media_type, data) = inline.ok_or_else(|| {
                UpstreamFault::untranslatable("an image by its address; it must be in the request (`data:`)")
            })?;
            Ok(Block::Image { media_type: media_type.to_owned(), data: data.to_owned() })
        }
        other => Err(UpstreamFault::untranslatable(format!("a part of type `{other}`"))),
    }
}

fn tool(tool: &Value) -> Option<Tool> {
    let function = tool.get("function")?;
    let schema = function.get("parameters").filter(|schema| schema.is_object()).cloned();
    Some(Tool {
        name: function.get("name")?.clone(),
        description: function.get("description").filter(|text| text.is_string()).cloned(),
        schema: schema.unwrap_or_else(|| json!({"type": "object", "properties": {}})),
    })
}

fn choice(body: &Value) -> Choice {
    match body.get("tool_choice") {
        Some(Value::String(word)) if word == "none" => Choice::None,
        Some(Value::String(word)) if word == "required" => Choice::Any,
        Some(named @ Value::Object(_)) => Choice::One(text(named, "/function/name")),
        _ => Choice::Auto,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b01_b03_sides_take_turns_and_results_know_their_function() {
        let call =
            json!({"id": "c1", "type": "function", "function": {"name": "sky", "arguments": "{\"at\":1}"}});
        let body = json!({"model": "m", "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "weather?"},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "8C"},
            {"role": "user", "content": [{"type": "text", "text": "and tomorrow?"}]},
        ]});
        let chat = Chat::read(body.to_string().as_bytes()).unwrap();
        assert_eq!(chat.system, ["Be brief."]);
        let sides: Vec<_> = chat.turns.iter().map(|turn| (turn.by_model, turn.blocks.len())).collect();
        assert_eq!(sides, [(false, 1), (true, 1), (false, 2)]);
        assert!(matches!(&chat.turns[2].blocks[0], Block::Result { name, .. } if name == "sky"));
    }

    #[test]
    fn b12_what_would_give_another_answer_is_refused() {
        for body in [
            json!({"n": 2}),
            json!({"logprobs": true}),
            json!({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}),
            json!({"messages": [{"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}]}),
        ] {
            let fault = Chat::read(body.to_string().as_bytes()).unwrap_err();
            assert!(matches!(fault, UpstreamFault::Untranslatable { .. }), "{body}");
        }
        assert!(Chat::read(b"{\"n\":1,\"logprobs\":false}").is_ok());
    }

    #[test]
    fn b11_the_smaller_cap_holds() {
        let chat = Chat::read(b"{\"max_tokens\":50,\"max_completion_tokens\":40}").unwrap();
        assert_eq!(chat.cap(), Some(40));
    }
}
