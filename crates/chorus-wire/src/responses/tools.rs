//! Tools of the protocol → tools of a chat.

use super::fields::string;
use crate::body::{RawObject, object};
use crate::content::text;
use crate::fault::RequestFault;
use crate::loss::Losses;
use crate::raw::{Raw, elements, quoted, raw_or_null};

/// Writes `tools` and `tool_choice`.
///
/// # Errors
/// [`RequestFault`] at the tool that cannot be read.
pub(super) fn translate(
    sent: &RawObject,
    chat: &mut RawObject,
    losses: &mut Losses,
) -> Result<(), RequestFault> {
    let mut tools = Vec::new();
    for (at, raw) in
        sent.get_set("tools").and_then(|raw| elements(raw)).unwrap_or_default().into_iter().enumerate()
    {
        tools.extend(tool(raw, at, losses)?);
    }
    if tools.is_empty() {
        return Ok(());
    }
    chat.set("tools", raw_or_null(&tools));
    let Some(choice) = sent.get_set("tool_choice") else {
        return Ok(());
    };
    if text(choice).is_some() {
        chat.set("tool_choice", choice.clone());
        return Ok(());
    }
    let choice = RawObject::parse(choice.as_bytes())
        .map_err(|_| RequestFault::of("tool_choice", "`tool_choice` must be a word or an object"))?;
    match (string(&choice, "type")?.as_deref(), choice.get_set("name")) {
        (Some("function"), Some(name)) => {
            let function = object([("name", name.clone())]);
            let named = object([("type", quoted("function")), ("function", raw_or_null(&function))]);
            chat.set("tool_choice", raw_or_null(&named));
        }
        (other, _) => losses.add_of("tool_choice", other.unwrap_or("unknown")),
    }
    Ok(())
}

/// A function of the client's. What OpenAI's own servers run has no counterpart.
fn tool(raw: &str, at: usize, losses: &mut Losses) -> Result<Option<Raw>, RequestFault> {
    let place = format!("tools[{at}]");
    let tool = RawObject::parse(raw.as_bytes())
        .map_err(|_| RequestFault::of(&*place, format!("`{place}` must be an object")))?;
    let kind = tool.get("type").and_then(|raw| text(raw)).unwrap_or_default();
    if kind != "function" {
        losses.add_of("tool", &kind);
        return Ok(None);
    }
    if tool.get("name").and_then(|raw| text(raw)).is_none() {
        return Err(RequestFault::of(&*place, format!("`{place}` needs a string `name`")));
    }
    let mut function = tool;
    function.remove("type");
    let tool = object([("type", quoted("function")), ("function", raw_or_null(&function))]);
    Ok(Some(raw_or_null(&tool)))
}
