//! Input items of the protocol → messages of a chat.
//!
//! Calls of one turn follow each other as items and stand together in one message of a chat.

use crate::body::{RawObject, object};
use crate::content::text;
use crate::fault::RequestFault;
use crate::loss::Losses;
use crate::raw::{Raw, elements, quoted, raw_or_null};

/// The items of `input`: a string is one message of the user.
///
/// # Errors
/// [`RequestFault`] when it is neither a string nor a list.
pub(super) fn items(input: &str) -> Result<Vec<Raw>, RequestFault> {
    if text(input).is_some() {
        let part = object([("type", quoted("input_text")), ("text", Raw::checked(input))]);
        let message = object([
            ("type", quoted("message")),
            ("role", quoted("user")),
            ("content", raw_or_null(&[part])),
        ]);
        return Ok(vec![raw_or_null(&message)]);
    }
    let fault = || RequestFault::of("input", "`input` must be a string or a list of items");
    Ok(elements(input).ok_or_else(fault)?.into_iter().map(Raw::checked).collect())
}

/// The messages of items. `at` is where the client's own items begin; those before come from the store.
///
/// # Errors
/// [`RequestFault`] at the item that cannot be translated.
pub(super) fn messages(items: &[Raw], at: usize, losses: &mut Losses) -> Result<Vec<Raw>, RequestFault> {
    let mut said: Vec<Raw> = Vec::with_capacity(items.len());
    let mut turn = Turn::default();
    for (n, raw) in items.iter().enumerate() {
        let place = format!("input[{}]", n.saturating_sub(at));
        let fault = |problem: &str| RequestFault::of(&*place, format!("`{place}` {problem}"));
        let item = RawObject::parse(raw.as_bytes()).map_err(|why| fault(&format!("is no item: {why}")))?;
        let word = |field: &str| item.get(field).and_then(|raw| text(raw));
        match word("type").as_deref() {
            None | Some("message") => {
                let role = word("role").ok_or_else(|| fault("needs a string `role`"))?;
                let content = item.get_set("content").ok_or_else(|| fault("needs `content`"))?;
                let content = content_of(content, &place, losses)?;
                turn.end(&mut said);
                if role == "assistant" {
                    turn.text = Some(content);
                } else {
                    said.push(raw_or_null(&object([("role", quoted(&role)), ("content", content)])));
                }
            }
            Some("function_call") => {
                let needed =
                    |field: &str| word(field).ok_or_else(|| fault(&format!("needs a string `{field}`")));
                turn.call(&needed("call_id")?, &needed("name")?, &needed("arguments")?);
            }
            Some("function_call_output") => {
                turn.end(&mut said);
                let id = word("call_id").ok_or_else(|| fault("needs a string `call_id`"))?;
                let output = item.get_set("output").ok_or_else(|| fault("needs `output`"))?;
                let content = content_of(output, &place, losses)?;
                let message =
                    object([("role", quoted("tool")), ("tool_call_id", quoted(&id)), ("content", content)]);
                said.push(raw_or_null(&message));
            }
            Some("item_reference") => return Err(fault("refers to an item; send the item itself")),
            // What a model thought before is no part of what it is asked now.
            Some(other) => losses.add_of("item", other),
        }
    }
    turn.end(&mut said);
    Ok(said)
}

/// What the assistant said and called in one turn, until somebody else speaks.
#[derive(Default)]
struct Turn {
    text: Option<Raw>,
    calls: Vec<Raw>,
}

impl Turn {
    fn call(&mut self, id: &str, name: &str, arguments: &str) {
        let function = object([("name", quoted(name)), ("arguments", quoted(arguments))]);
        let call =
            object([("id", quoted(id)), ("type", quoted("function")), ("function", raw_or_null(&function))]);
        self.calls.push(raw_or_null(&call));
    }

    fn end(&mut self, said: &mut Vec<Raw>) {
        let Self { text, calls } = std::mem::take(self);
        if text.is_none() && calls.is_empty() {
            return;
        }
        let content = text.unwrap_or_else(|| raw_or_null(&()));
        let mut message = object([("role", quoted("assistant")), ("content", content)]);
        if !calls.is_empty() {
            message.set("tool_calls", raw_or_null(&calls));
        }
        said.push(raw_or_null(&message));
    }
}

/// A string as it is; parts as the parts of a chat, a single text as a string.
fn content_of(raw: &str, place: &str, losses: &mut Losses) -> Result<Raw, RequestFault> {
    if text(raw).is_some() {
        return Ok(Raw::checked(raw));
    }
    let fault =
        || RequestFault::of(place, format!("the content of `{place}` must be a string or a list of parts"));
    let mut parts = Vec::new();
    for (n, raw) in elements(raw).ok_or_else(fault)?.into_iter().enumerate() {
        parts.extend(part(raw, &format!("{place}.content[{n}]"), losses)?);
    }
    match parts.as_slice() {
        [] => Ok(quoted("")),
        [only] if only.get("type").is_some_and(|kind| kind.get() == "\"text\"") => {
            Ok(only.get("text").cloned().unwrap_or_else(|| quoted("")))
        }
        parts => Ok(raw_or_null(parts)),
    }
}

fn part(raw: &str, at: &str, losses: &mut Losses) -> Result<Option<RawObject>, RequestFault> {
    let fault = |problem: &str| RequestFault::of(at, format!("`{at}` {problem}"));
    let part = RawObject::parse(raw.as_bytes()).map_err(|_| fault("is not an object"))?;
    let needed = |field: &str| {
        part.get_set(field)
            .cloned()
            .ok_or_else(|| fault(&format!("needs `{field}`; files are not kept here")))
    };
    let kind = part.get("type").and_then(|raw| text(raw)).unwrap_or_default();
    Ok(Some(match kind.as_str() {
        "input_text" | "output_text" | "text" | "summary_text" => {
            object([("type", quoted("text")), ("text", needed("text")?)])
        }
        "refusal" => object([("type", quoted("text")), ("text", needed("refusal")?)]),
        "input_image" => {
            let mut image = object([("url", needed("image_url")?)]);
            if let Some(detail) = part.get_set("detail") {
                image.set("detail", detail.clone());
            }
            object([("type", quoted("image_url")), ("image_url", raw_or_null(&image))])
        }
        "input_file" => {
            let mut file = object([("file_data", needed("file_data")?)]);
            if let Some(name) = part.get_set("filename") {
                file.set("filename", name.clone());
            }
            object([("type", quoted("file")), ("file", raw_or_null(&file))])
        }
        "input_audio" => object([("type", quoted("input_audio")), ("input_audio", needed("input_audio")?)]),
        other => {
            losses.add_of("part", other);
            return Ok(None);
        }
    }))
}
