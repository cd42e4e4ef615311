//! Plugins of a decision.
//!
//! It knows one plugin at a time, plus that a type may stand only once. **Invariant:** a plugin that is switched off
//! leaves no trace, also one that this version does not run.

use super::contract::{knows_plugin, plugin_kind, plugin_kinds};
use super::cursor::Cursor;
use super::headers::header_name;
use super::house::House;
use super::nearest::suggest;
use super::{answer_checks, cache, compression, image_gen, memory, rag, tool_selection};
use crate::diagnostic::code;
use crate::{
    HeaderMutation, Plugin, RequestParams, SystemPrompt, SystemPromptMode, Template, ToolsMode, ToolsPlugin,
};
use std::collections::BTreeSet;

/// Reads the `plugins` of a decision, and adds those that the file has switched on for every route.
pub(super) fn read(decision: &Cursor<'_>, name: &str, house: &House) -> Vec<Plugin> {
    let mut seen = BTreeSet::new();
    let written = decision.items("plugins");
    let mut plugins: Vec<Plugin> = written.iter().filter_map(|at| plugin(at, &mut seen, house)).collect();
    let remembers = house.memory.enabled && !house.memory.disabled_routes.iter().any(|route| route == name);
    if remembers && !seen.contains("memory") {
        plugins.push(Plugin::Memory(Box::new(house.memory.defaults.clone())));
    }
    if house.tools.enabled && !seen.contains("tool_selection") {
        plugins.push(Plugin::ToolSelection(Box::new(house.tools.everywhere())));
    }
    plugins
}

fn plugin(at: &Cursor<'_>, seen: &mut BTreeSet<String>, house: &House) -> Option<Plugin> {
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
        "tool_selection" => {
            let settings = tool_selection::plugin(&at.needed("configuration")?, &house.tools);
            Some(Plugin::ToolSelection(Box::new(settings)))
        }
        "memory" => {
            let settings = memory::plugin(&at.needed("configuration")?, &house.memory);
            Some(Plugin::Memory(Box::new(settings)))
        }
        "rag" => rag::read(&at.needed("configuration")?, house).map(|it| Plugin::Rag(Box::new(it))),
        "response_cache" => {
            let settings = configuration.as_ref().map(cache::plugin).unwrap_or_default();
            Some(Plugin::ResponseCache(Box::new(settings)))
        }
        "router_replay" => {
            let settings = configuration.as_ref().map(cache::replay).unwrap_or_default();
            Some(Plugin::RouterReplay(Box::new(settings)))
        }
        "context_compression" => {
            let settings = compression::read(&at.needed("configuration")?);
            Some(Plugin::ContextCompression(Box::new(settings)))
        }
        "hallucination" => Some(Plugin::Hallucination(answer_checks::hallucination(configuration.as_ref()))),
        "response_jailbreak" => {
            Some(Plugin::ResponseJailbreak(answer_checks::response_jailbreak(configuration.as_ref())))
        }
        "image_gen" => image_gen::read(&at.needed("configuration")?).map(|it| Plugin::ImageGen(Box::new(it))),
        // Every type that the table knows stands above.
        _ => None,
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
