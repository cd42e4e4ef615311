//! The tools that a request offers, as its client wrote them.

use chorus_recall::tools::ToolCard;
use chorus_wire::{ChatRequest, Raw};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// One tool of a request.
#[derive(Debug, Clone)]
pub(super) struct OfferedTool {
    /// Its place in the request.
    pub(super) place: usize,
    pub(super) card: ToolCard,
}

/// The tools that a request offers.
#[derive(Debug)]
pub(super) struct Offered {
    tools: Vec<Raw>,
    /// Those with a name, which a filter can judge.
    named: Vec<OfferedTool>,
    choice: Choice,
    /// Names that the conversation has calls of.
    called: BTreeSet<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Choice {
    /// Nothing is said.
    Unsaid,
    None,
    Auto,
    Required,
    Named(BTreeSet<String>),
}

#[derive(Deserialize)]
struct DefinitionWire {
    function: Option<FunctionWire>,
}

#[derive(Deserialize)]
struct FunctionWire {
    #[serde(default)]
    name: String,
    #[serde(default)]
    description: Option<String>,
}

impl Offered {
    pub(super) fn of(request: &ChatRequest) -> Self {
        let tools: Vec<Raw> = request.body().read("tools").ok().flatten().unwrap_or_default();
        let named = tools.iter().enumerate().filter_map(|(place, raw)| {
            let wire: DefinitionWire = serde_json::from_str(raw.get()).ok()?;
            let FunctionWire { name, description } = wire.function.filter(|it| !it.name.is_empty())?;
            let description = description.unwrap_or_default();
            Some(OfferedTool { place, card: ToolCard { name, description, ..ToolCard::default() } })
        });
        let calls = request.messages().iter().flat_map(|message| &message.tool_calls);
        Self {
            named: named.collect(),
            choice: choice(request),
            called: calls.map(|call| call.name.clone()).collect(),
            tools,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Whether the client forbids calls.
    pub(super) fn forbidden(&self) -> bool {
        self.choice == Choice::None
    }

    /// Whether the model has to call a tool.
    pub(super) fn must_call(&self) -> bool {
        self.choice == Choice::Required
    }

    /// Whether the client asks for tools without naming any.
    pub(super) fn asks_for_tools(&self) -> bool {
        self.tools.is_empty() && self.choice == Choice::Auto
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.named.iter().any(|tool| tool.card.name == name)
    }

    /// The tools that may go: neither named by `tool_choice` nor called before.
    pub(super) fn free(&self) -> Vec<&OfferedTool> {
        let is_bound = |name: &String| {
            self.called.contains(name) || matches!(&self.choice, Choice::Named(names) if names.contains(name))
        };
        self.named.iter().filter(|tool| !is_bound(&tool.card.name)).collect()
    }

    /// Writes the tools and others behind them.
    pub(super) fn write_with(&self, added: Vec<&Raw>, request: &mut ChatRequest) {
        if !added.is_empty() {
            let all: Vec<&Raw> = self.tools.iter().chain(added).collect();
            request.set("tools", &all);
        }
    }

    /// Writes the tools of the places that stay; how many those are, and the names of the others.
    pub(super) fn write_where(
        &self,
        stays: &dyn Fn(usize) -> bool,
        request: &mut ChatRequest,
    ) -> (usize, Vec<String>) {
        let kept: Vec<&Raw> =
            self.tools.iter().enumerate().filter(|(place, _)| stays(*place)).map(|(_, raw)| raw).collect();
        let gone = self.named.iter().filter(|tool| !stays(tool.place));
        let gone: Vec<String> = gone.map(|tool| tool.card.name.clone()).collect();
        if kept.is_empty() {
            ["tools", "tool_choice", "parallel_tool_calls"].iter().for_each(|field| request.remove(field));
        } else if !gone.is_empty() {
            request.set("tools", &kept);
        }
        (kept.len(), gone)
    }
}

fn choice(request: &ChatRequest) -> Choice {
    let value = request.body().read::<Value>("tool_choice").ok().flatten();
    match value {
        None | Some(Value::Null) => Choice::Unsaid,
        Some(Value::String(word)) => match word.as_str() {
            "none" => Choice::None,
            "required" => Choice::Required,
            _ => Choice::Auto,
        },
        Some(value) => {
            let mut names = BTreeSet::new();
            collect_names(&value, &mut names);
            Choice::Named(names)
        }
    }
}

/// Every `name` below a choice: `{"function": {"name"}}`, and `{"allowed_tools": {"tools": […]}}`.
fn collect_names(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_names(item, names)),
        Value::Object(fields) => {
            names.extend(fields.get("name").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| collect_names(value, names));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::RequestLimits;

    fn request(choice: &str) -> ChatRequest {
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"q"}},
            {{"role":"assistant","content":null,"tool_calls":[{{"id":"c","type":"function","function":{{"name":"b","arguments":"{{}}"}}}}]}},
            {{"role":"tool","tool_call_id":"c","content":"8"}}],
            "tools":[{{"type":"function","function":{{"name":"a"}}}},{{"type":"function","function":{{"name":"b"}}}},
            {{"type":"custom","custom":{{"name":"x"}}}}]{choice}}}"#
        );
        ChatRequest::parse(body.as_bytes(), &RequestLimits::default()).unwrap()
    }

    fn free(choice: &str) -> Vec<String> {
        Offered::of(&request(choice)).free().iter().map(|tool| tool.card.name.clone()).collect()
    }

    #[test]
    fn what_was_called_or_chosen_is_bound() {
        assert_eq!(free(""), ["a"], "b was called");
        let named = r#","tool_choice":{"type":"function","function":{"name":"a"}}"#;
        assert!(free(named).is_empty());
        let allowed = r#","tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"a"}}]}}"#;
        assert!(free(allowed).is_empty());
    }

    #[test]
    fn b18_tools_stay_in_their_order_and_as_they_were_written() {
        let mut it = request("");
        let before = it.body().get("tools").unwrap().get().to_owned();
        let offered = Offered::of(&it);
        assert_eq!(offered.write_where(&|_| true, &mut it), (3, vec![]));
        assert_eq!(it.body().get("tools").unwrap().get(), before);
        assert_eq!(offered.write_where(&|place| place != 0, &mut it), (2, vec!["a".to_owned()]));
        assert!(
            it.body()
                .get("tools")
                .unwrap()
                .get()
                .starts_with(r#"[{"type":"function","function":{"name":"b"}}"#)
        );
        offered.write_where(&|_| false, &mut it);
        assert!(it.body().get("tools").is_none());
    }
}
