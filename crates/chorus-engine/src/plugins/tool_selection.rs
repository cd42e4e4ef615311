//! `tool_selection`: a model is offered the tools that its task may need: some of a file's besides the client's, or some
//! of the client's.
//!
//! Tools are weighed by meaning, shared words, tags, names and category. It knows names and descriptions of tools, not
//! what they do.
//!
//! **Invariant:** a tool stays that `tool_choice` names or that the conversation has calls of; nothing is offered that the
//! route blocks. Source: contract §1.10, §1.9 (`integrations.tools`).

mod offered;
mod weigh;

use super::at_work::{Asking, AtWork};
use crate::fault::{Code, Fault};
use chorus_collab::Answer;
use chorus_spec::{ToolSelectionMode, ToolSelectionSettings};
use futures_util::future::{BoxFuture, FutureExt};
use offered::Offered;
use serde_json::json;
use weigh::Weighed;

const KIND: &str = "tool_selection";
/// The word of the warning when tools cannot be told apart.
const UNTOLD: &str = "tool_selection_unavailable";
/// The word when a file of tools cannot be read.
const UNREAD: &str = "tool_selection_no_tools";

/// The plugin at work on one request.
pub(super) struct ToolSelection {
    settings: ToolSelectionSettings,
}

impl ToolSelection {
    pub(super) fn new(settings: ToolSelectionSettings) -> Self {
        Self { settings }
    }

    async fn select(&self, ask: &mut Asking<'_>) -> Result<(), Fault> {
        let offered = Offered::of(ask.request);
        let task = ask.scene.asked.request.last_user_text().to_owned();
        let idle = match &self.settings.mode {
            _ if offered.forbidden() => Some("tool_choice_none"),
            _ if task.trim().is_empty() => Some("no_task"),
            ToolSelectionMode::Add { .. } if self.settings.only_when_asked && !offered.asks_for_tools() => {
                Some("not_asked")
            }
            ToolSelectionMode::Filter if offered.is_empty() => Some("no_tools"),
            _ => None,
        };
        if let Some(idle) = idle {
            ask.notes.did(KIND, &json!({ "idle": idle }));
            return Ok(());
        }
        match &self.settings.mode {
            ToolSelectionMode::Add { path } => self.add(path, &offered, &task, ask).await,
            ToolSelectionMode::Filter => self.filter(&offered, &task, ask).await,
        }
    }

    /// Adds the most relevant tools of a file.
    async fn add(
        &self,
        path: &str,
        offered: &Offered,
        task: &str,
        ask: &mut Asking<'_>,
    ) -> Result<(), Fault> {
        let mom = &ask.scene.mom;
        let Ok(tools) = mom.toolboxes.of(path) else { return self.unavailable(UNREAD, ask) };
        let new: Vec<_> = tools
            .iter()
            .filter(|tool| self.is_allowed(&tool.card.name) && !offered.has(&tool.card.name))
            .collect();
        let cards = new.iter().map(|tool| &tool.card).collect();
        let Ok(weighed) = weigh::weigh(&self.settings, ask.scene, task, cards).await else {
            return self.unavailable(UNTOLD, ask);
        };
        let most = self.settings.top_k.unwrap_or(usize::MAX);
        let chosen: Vec<&Weighed> = weighed.iter().filter(|it| it.is_relevant).take(most).collect();
        let named = |it: &&Weighed| json!({ "name": it.name, "score": it.score });
        let rows: Vec<_> = chosen.iter().map(named).collect();
        ask.notes.did(KIND, &json!({ "mode": "add", "known": new.len(), "added": rows }));
        let added = chosen.iter().filter_map(|it| new.get(it.place)).map(|tool| &tool.definition);
        offered.write_with(added.collect(), ask.request);
        Ok(())
    }

    /// Keeps the most relevant of the client's tools.
    async fn filter(&self, offered: &Offered, task: &str, ask: &mut Asking<'_>) -> Result<(), Fault> {
        let free = offered.free();
        let cards = free.iter().map(|tool| &tool.card).collect();
        let Ok(weighed) = weigh::weigh(&self.settings, ask.scene, task, cards).await else {
            return self.unavailable(UNTOLD, ask);
        };
        let most = self.settings.top_k.unwrap_or(usize::MAX);
        let least = self.settings.preserve_count.max(usize::from(offered.must_call())).min(most);
        let mut kept: Vec<usize> = Vec::new();
        let allowed = weighed.iter().filter(|it| self.is_allowed(&it.name));
        for it in allowed {
            if kept.len() < most && (it.is_relevant || kept.len() < least) {
                kept.extend(free.get(it.place).map(|tool| tool.place));
            }
        }
        let stays = |place: usize| kept.contains(&place) || !free.iter().any(|tool| tool.place == place);
        let (left, gone) = offered.write_where(&stays, ask.request);
        let trace = json!({ "mode": "filter", "offered": left + gone.len(), "kept": left, "removed": gone });
        ask.notes.did(KIND, &trace);
        Ok(())
    }

    fn is_allowed(&self, name: &str) -> bool {
        let filtering = &self.settings.filtering;
        (filtering.allow.is_empty() || filtering.allow.iter().any(|it| it == name))
            && !filtering.block.iter().any(|it| it == name)
    }

    /// What becomes of the request when tools cannot be told apart.
    fn unavailable(&self, word: &'static str, ask: &mut Asking<'_>) -> Result<(), Fault> {
        ask.notes.did(KIND, &json!({ "failed": word }));
        if self.settings.fallback_to_empty {
            ask.notes.warn(word);
            return Ok(());
        }
        Err(Fault::new(Code::Misconfigured, "the tools of this route cannot be chosen; the log says why"))
    }
}

impl AtWork for ToolSelection {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn before<'a>(&'a mut self, ask: &'a mut Asking<'_>) -> BoxFuture<'a, Result<Option<Answer>, Fault>> {
        async move { self.select(ask).await.map(|()| None) }.boxed()
    }
}
