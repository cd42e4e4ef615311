//! In which turn each plugin of a route looks at a request and at its answer; told once a decision, when a configuration is
//! prepared.
//!
//! It knows types of plugins, not what they do. **Invariant:** turns are taken in the order of [`RequestTurn`] and
//! [`AnswerTurn`], whatever the order in the file; plugins of one turn, which there are not, would take it in the order of
//! the file.

use chorus_spec::Plugin;
use std::sync::Arc;

/// When a plugin looks at the request, first to last. `fast_response`, `system_prompt`, `request_params`, `tools` and
/// `header_mutation` have been at work by then: they edit while the route is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RequestTurn {
    /// `response_cache`: an answer to the client's own words.
    CacheLookup,
    /// `tool_selection`.
    ToolSelection,
    /// `memory`: what is remembered of the user.
    Memory,
    /// `rag`: what is found in documents.
    Rag,
    /// `context_compression`: of all that has been added by now.
    ContextCompression,
    /// `response_cache` beside plugins that enrich the request: an answer to it as the model would get it.
    EnrichedCacheLookup,
    /// `hallucination`: what has been put into the request is material for the answer's check.
    Material,
    /// `image_gen`: an image in place of a model's words.
    ImageGen,
    /// Never.
    None,
}

/// When a plugin looks at the answer, first to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AnswerTurn {
    /// `context_compression`: the model asks for originals, and gets them.
    ContextRetrieval,
    /// `response_jailbreak`: what is refused goes no further.
    ResponseJailbreak,
    /// `hallucination`: marks stand in whatever is stored.
    Hallucination,
    /// `memory`: what the conversation says is remembered.
    MemoryWrite,
    /// `response_cache`: what is stored has passed all of the above.
    CacheWrite,
    /// `router_replay`: what left is captured.
    RouterReplay,
    /// Never.
    None,
}

/// Whether a plugin of a route adds what is one user's to requests, so that answers are those to what was added too.
pub(crate) fn enriches(route: &[Plugin]) -> bool {
    route.iter().any(|plugin| matches!(plugin, Plugin::Memory(_) | Plugin::Rag(_)))
}

/// The turns of a plugin, among those of its route.
pub(crate) fn of(plugin: &Plugin, route: &[Plugin]) -> (RequestTurn, AnswerTurn) {
    match plugin {
        Plugin::ResponseCache(_) if enriches(route) => {
            (RequestTurn::EnrichedCacheLookup, AnswerTurn::CacheWrite)
        }
        Plugin::ResponseCache(_) => (RequestTurn::CacheLookup, AnswerTurn::CacheWrite),
        Plugin::ToolSelection(_) => (RequestTurn::ToolSelection, AnswerTurn::None),
        Plugin::Memory(_) => (RequestTurn::Memory, AnswerTurn::MemoryWrite),
        Plugin::Rag(_) => (RequestTurn::Rag, AnswerTurn::None),
        Plugin::ContextCompression(_) => (RequestTurn::ContextCompression, AnswerTurn::ContextRetrieval),
        Plugin::Hallucination(_) => (RequestTurn::Material, AnswerTurn::Hallucination),
        Plugin::ImageGen(_) => (RequestTurn::ImageGen, AnswerTurn::None),
        Plugin::ResponseJailbreak(_) => (RequestTurn::None, AnswerTurn::ResponseJailbreak),
        Plugin::RouterReplay(_) => (RequestTurn::None, AnswerTurn::RouterReplay),
        Plugin::SystemPrompt(_)
        | Plugin::HeaderMutation(_)
        | Plugin::FastResponse { .. }
        | Plugin::RequestParams(_)
        | Plugin::Tools(_) => (RequestTurn::None, AnswerTurn::None),
    }
}

/// The turns of a decision's plugins that are at work on a request once it is planned.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Turns {
    /// Places in the decision's list, as they look at the request; who only looks at the answer stands last.
    pub(crate) request: Arc<[usize]>,
    /// Places in [`request`](Self::request), as they look at the answer.
    pub(crate) answer: Arc<[usize]>,
}

impl Turns {
    /// Of that list.
    pub(crate) fn of(plugins: &[Plugin]) -> Self {
        let mut turns: Vec<(usize, (RequestTurn, AnswerTurn))> =
            plugins.iter().map(|plugin| of(plugin, plugins)).enumerate().collect();
        turns.retain(|(_, turns)| *turns != (RequestTurn::None, AnswerTurn::None));
        turns.sort_by_key(|(_, (request, _))| *request);
        let mut answer: Vec<(usize, AnswerTurn)> =
            turns.iter().map(|(_, (_, answer))| *answer).enumerate().collect();
        answer.sort_by_key(|(_, turn)| *turn);
        Self {
            request: turns.into_iter().map(|(at, _)| at).collect(),
            answer: answer.into_iter().map(|(at, _)| at).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_those_of_the_types_whatever_the_order_in_the_file() {
        let plugins = |types: &[&str]| {
            let each: Vec<String> =
                types.iter().map(|it| format!("{{ type: {it}, configuration: {{}} }}")).collect();
            let mut it = chorus_spec::read(&format!(
                "version: v0.3
providers: {{ models: [{{ name: m, backend_refs: [{{ endpoint: 'h:1' }}] }}] }}
routing:
  modelCards: [{{ name: m }}]
  decisions: [{{ name: d, modelRefs: [{{ model: m }}], plugins: [{}] }}]
",
                each.join(", ")
            ));
            it.spec.take().unwrap_or_else(|| panic!("{:?}", it.diagnostics)).recipes[0].decisions[0]
                .plugins
                .clone()
        };
        let told = |types: &[&str]| {
            let plugins = plugins(types);
            let turns = Turns::of(&plugins);
            let kind = |at: &usize| plugins[turns.request[*at]].kind();
            let all: Vec<usize> = (0..turns.request.len()).collect();
            let request: Vec<&str> = all.iter().map(kind).collect();
            let answer: Vec<&str> = turns.answer.iter().map(kind).collect();
            (request.join(" "), answer.join(" "))
        };
        let types = [
            "router_replay",
            "hallucination",
            "context_compression",
            "request_params",
            "memory",
            "response_cache",
        ];
        let expected = (
            "memory context_compression response_cache hallucination router_replay".to_owned(),
            "context_compression hallucination memory response_cache router_replay".to_owned(),
        );
        assert_eq!(told(&types), expected);
        let mut reversed = types;
        reversed.reverse();
        assert_eq!(told(&reversed), expected);
        assert_eq!(told(&["context_compression", "response_cache"]).0, "response_cache context_compression");
        assert_eq!(Turns::of(&[]), Turns::default());
    }
}
