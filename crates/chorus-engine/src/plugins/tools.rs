//! `tools`: keep, filter or remove the client's tools on a route.
//!
//! `filtered` keeps tools named in `allow_tools` (all when empty) and drops those in `block_tools`; `none` removes
//! `tools` and `tool_choice`, and with `strip_tool_history` also turns past tool traffic into plain text, in whole
//! pairs (case B24). Source: contract §1.10.

use crate::fault::{Code, Fault};
use chorus_spec::{ToolsMode, ToolsPlugin};
use chorus_wire::{ChatRequest, Message, Role};
use serde_json::Value;

/// Applies the filter.
///
/// # Errors
/// When `tool_choice` forces a tool that the route does not allow.
pub fn apply(plugin: &ToolsPlugin, request: &mut ChatRequest) -> Result<(), Fault> {
    match plugin.mode {
        ToolsMode::Passthrough => Ok(()),
        ToolsMode::None => {
            ["tools", "tool_choice", "parallel_tool_calls"].iter().for_each(|field| request.remove(field));
            if plugin.strip_tool_history {
                let plain = request.messages().iter().map(without_tool_traffic).collect();
                request.set_messages(plain);
            }
            Ok(())
        }
        ToolsMode::Filtered => filter(plugin, request),
    }
}

fn filter(plugin: &ToolsPlugin, request: &mut ChatRequest) -> Result<(), Fault> {
    let Some(tools) = request.body().read::<Vec<Value>>("tools").ok().flatten() else {
        return Ok(());
    };
    let name_of = |tool: &Value| tool.pointer("/function/name").and_then(Value::as_str).map(str::to_owned);
    let allowed = |name: &str| {
        (plugin.allow.is_empty() || plugin.allow.iter().any(|a| a == name))
            && !plugin.block.iter().any(|b| b == name)
    };
    let kept: Vec<&Value> = tools.iter().filter(|t| name_of(t).is_none_or(|name| allowed(&name))).collect();
    let forced =
        request.body().read::<Value>("tool_choice").ok().flatten().and_then(|choice| name_of(&choice));
    if let Some(name) = forced.filter(|name| !allowed(name)) {
        let text = format!("the route does not allow the tool `{name}` that tool_choice asks for");
        return Err(Fault::new(Code::InvalidRequest, text).at("tool_choice"));
    }
    if kept.is_empty() {
        ["tools", "tool_choice", "parallel_tool_calls"].iter().for_each(|field| request.remove(field));
    } else if kept.len() < tools.len() {
        request.set("tools", &kept);
    }
    Ok(())
}

fn without_tool_traffic(message: &Message) -> Message {
    if message.role == Role::Tool {
        return Message::new(Role::User, &format!("Result of an earlier tool call:\n{}", message.text));
    }
    if message.tool_calls.is_empty() {
        return message.clone();
    }
    let calls = message.tool_calls.iter().map(|call| format!("{}({})", call.name, call.arguments));
    let said = Some(message.text.clone()).filter(|text| !text.is_empty());
    let lines: Vec<String> = said.into_iter().chain(calls.map(|c| format!("Called the tool {c}"))).collect();
    Message::new(Role::Assistant, &lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::RequestLimits;

    fn request(rest: &str) -> ChatRequest {
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"q"}},
            {{"role":"assistant","content":null,"tool_calls":[{{"id":"c1","type":"function","function":{{"name":"a","arguments":"{{}}"}}}}]}},
            {{"role":"tool","tool_call_id":"c1","content":"8C"}}],
            "tools":[{{"type":"function","function":{{"name":"a"}}}},{{"type":"function","function":{{"name":"b"}}}}]{rest}}}"#
        );
        ChatRequest::parse(body.as_bytes(), &RequestLimits::default()).unwrap()
    }

    fn plugin(mode: ToolsMode, block: &[&str]) -> ToolsPlugin {
        let block = block.iter().map(|b| (*b).to_owned()).collect();
        ToolsPlugin { mode, allow: Vec::new(), block, strip_tool_history: true }
    }

    #[test]
    fn filtered_drops_blocked_tools_and_keeps_order() {
        let mut request = request("");
        apply(&plugin(ToolsMode::Filtered, &["a"]), &mut request).unwrap();
        assert_eq!(
            request.body().get("tools").unwrap().get(),
            r#"[{"type":"function","function":{"name":"b"}}]"#
        );
    }

    #[test]
    fn forcing_a_blocked_tool_is_refused() {
        let mut request = request(r#","tool_choice":{"type":"function","function":{"name":"a"}}"#);
        let fault = apply(&plugin(ToolsMode::Filtered, &["a"]), &mut request).unwrap_err();
        assert_eq!((fault.code, fault.param.as_deref()), (Code::InvalidRequest, Some("tool_choice")));
    }

    #[test]
    fn b24_none_turns_history_into_text_in_whole_pairs() {
        let mut request = request("");
        apply(&plugin(ToolsMode::None, &[]), &mut request).unwrap();
        assert!(request.body().get("tools").is_none());
        let texts: Vec<&str> = request.messages().iter().map(|m| m.text.as_str()).collect();
        assert_eq!(texts, ["q", "Called the tool a({})", "Result of an earlier tool call:\n8C"]);
        assert!(request.messages().iter().all(|m| m.tool_calls.is_empty() && m.role != Role::Tool));
    }
}
