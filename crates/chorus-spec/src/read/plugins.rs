//! Plugins of a decision.
//!
//! It knows one plugin at a time, plus that a type may stand only once. **Invariant:** a plugin that is switched off
//! leaves no trace, also one that this version does not run.

use super::contract::{knows_plugin, plugin_kind, plugin_kinds};
use super::cursor::Cursor;
use super::nearest::suggest;
use crate::diagnostic::code;
use crate::{
    HeaderMutation, Plugin, RequestParams, SystemPrompt, SystemPromptMode, Template, ToolsMode, ToolsPlugin,
};
use std::collections::BTreeSet;

/// Reads the `plugins` of a decision.
pub(super) fn read(decision: &Cursor<'_>) -> Vec<Plugin> {
    let mut seen = BTreeSet::new();
    decision.items("plugins").iter().filter_map(|at| plugin(at, &mut seen)).collect()
}

fn plugin(at: &Cursor<'_>, seen: &mut BTreeSet<String>) -> Option<Plugin> {
    let written = at.required("type")?;
    let kind = plugin_kind(&written);
    let named = at.get("type")?;
    if !knows_plugin(kind) {
        let help = suggest(kind, &plugin_kinds(), "");
        named.error_help(code::BAD_VALUE, format!("`{written}` is not a type of plugin"), help);
        return None;
    }
    if !seen.insert(kind.to_owned()) {
        named.error(code::DUPLICATE_NAME, format!("a second `{kind}` plugin stands in this decision"));
        return None;
    }
    let configuration = at.get("configuration");
    let is_off = configuration.as_ref().and_then(|it| it.boolean("enabled")) == Some(false);
    if is_off {
        return None;
    }
    match kind {
        "system_prompt" => system_prompt(&at.needed("configuration")?),
        "header_mutation" => header_mutation(&at.needed("configuration")?),
        "fast_response" => {
            Some(Plugin::FastResponse { message: at.needed("configuration")?.required("message")? })
        }
        "request_params" => Some(request_params(&at.needed("configuration")?)),
        "tools" => Some(tools(&at.needed("configuration")?)),
        _ => {
            named.warn(code::NOT_SUPPORTED_YET, format!("the plugin `{kind}` is known, not supported yet"));
            Some(Plugin::Unsupported { kind: kind.to_owned(), place: at.place() })
        }
    }
}

fn system_prompt(at: &Cursor<'_>) -> Option<Plugin> {
    const MODES: [(&str, SystemPromptMode); 2] =
        [("replace", SystemPromptMode::Replace), ("insert", SystemPromptMode::Insert)];
    let mode = at.word("mode", &MODES).unwrap_or_default();
    Some(Plugin::SystemPrompt(SystemPrompt { text: at.required("system_prompt")?, mode }))
}

fn header_mutation(at: &Cursor<'_>) -> Option<Plugin> {
    let delete = at.strings("delete");
    for name in at.items("delete") {
        header_name(&name);
    }
    Some(Plugin::HeaderMutation(HeaderMutation {
        add: pairs(at, "add"),
        update: pairs(at, "update"),
        delete,
    }))
}

fn pairs(at: &Cursor<'_>, key: &str) -> Vec<(String, Template)> {
    let pair = |item: &Cursor<'_>| {
        let name = item.required("name");
        let value = item.needed("value").and_then(|value| value.text());
        header_name(&item.get("name")?)?;
        Some((name?, Template::new(value?)))
    };
    at.items(key).iter().filter_map(pair).collect()
}

/// The name of a header that this text is; reports what cannot be one.
///
/// Source: RFC 9110 §5.6.2, the characters of a token.
pub(super) fn header_name(at: &Cursor<'_>) -> Option<String> {
    let name = at.node().text()?;
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        at.error(code::BAD_VALUE, format!("`{name}` cannot name a header"));
        return None;
    }
    Some(name.to_owned())
}

fn request_params(at: &Cursor<'_>) -> Plugin {
    Plugin::RequestParams(RequestParams {
        blocked: at.strings("blocked_params"),
        max_tokens_limit: at.count("max_tokens_limit"),
        max_n: at.count("max_n"),
        strip_unknown: at.boolean("strip_unknown").unwrap_or(false),
    })
}

fn tools(at: &Cursor<'_>) -> Plugin {
    const MODES: [(&str, ToolsMode); 3] = [
        ("passthrough", ToolsMode::Passthrough),
        ("filtered", ToolsMode::Filtered),
        ("none", ToolsMode::None),
    ];
    let mode = at.word("mode", &MODES).unwrap_or_default();
    let strip_tool_history = at.boolean("strip_tool_history").unwrap_or(false);
    if strip_tool_history && mode != ToolsMode::None {
        at.warn(code::UNUSED, "`strip_tool_history` has an effect with `mode: none` only");
    }
    let (allow, block) = (at.strings("allow_tools"), at.strings("block_tools"));
    if mode != ToolsMode::Filtered && !(allow.is_empty() && block.is_empty()) {
        at.warn(code::UNUSED, "`allow_tools` and `block_tools` have an effect with `mode: filtered` only");
    }
    Plugin::Tools(ToolsPlugin { mode, allow, block, strip_tool_history })
}
