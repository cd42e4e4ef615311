//! `global.integrations.tools` and the plugin `tool_selection`.
//!
//! The global settings are the defaults of every route's plugin. Source: contract §1.9, §1.10.

use super::cursor::Cursor;
use crate::diagnostic::code;
use crate::{ToolFiltering, ToolSelectionMode, ToolSelectionSettings, ToolWeights};

/// Where tools are read from unless the file says otherwise. Source: contract §1.9.
const PATH: &str = "config/tools_db.json";
/// Least similarity of a tool that is added, unless the file says otherwise.
const THRESHOLD: f64 = 0.2;
/// Tools that are added, unless the file says otherwise. Source: contract §1.9.
const TOP_K: usize = 3;
/// Most tools that the file may ask for.
const COUNT_MOST: i64 = 4096;

/// What `global.integrations.tools` says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ToolsIntegration {
    /// Whether every route adds tools to requests that ask for them without naming any.
    pub(super) enabled: bool,
    path: Option<String>,
    top_k: Option<usize>,
    threshold: Option<f64>,
    fallback_to_empty: Option<bool>,
    filtering: Option<ToolFiltering>,
}

impl ToolsIntegration {
    /// What a route without a plugin does where the integration is switched on.
    pub(super) fn everywhere(&self) -> ToolSelectionSettings {
        ToolSelectionSettings {
            mode: ToolSelectionMode::Add { path: self.path.clone().unwrap_or_else(|| PATH.to_owned()) },
            top_k: Some(self.top_k.unwrap_or(TOP_K)),
            threshold: self.threshold.unwrap_or(THRESHOLD),
            preserve_count: 0,
            fallback_to_empty: self.fallback_to_empty.unwrap_or(true),
            filtering: self.filtering.clone().unwrap_or_default(),
            only_when_asked: true,
        }
    }
}

/// Reads `global.integrations.tools`.
pub(super) fn integration(root: &Cursor<'_>) -> ToolsIntegration {
    let Some(at) = root.dig(&["global", "integrations", "tools"]) else { return ToolsIntegration::default() };
    ToolsIntegration {
        enabled: at.boolean("enabled").unwrap_or(false),
        path: at.string("tools_db_path").filter(|path| !path.trim().is_empty()),
        top_k: count(&at, "top_k"),
        threshold: at.float_in("similarity_threshold", 0.0, 1.0),
        fallback_to_empty: at.boolean("fallback_to_empty"),
        filtering: at.get("advanced_filtering").and_then(|it| filtering(&it)),
    }
}

/// Reads the plugin of a route.
pub(super) fn plugin(at: &Cursor<'_>, global: &ToolsIntegration) -> ToolSelectionSettings {
    let adds = at.word("mode", &[("add", true), ("filter", false)]).unwrap_or(true);
    let base = global.everywhere();
    strategy(at, "strategy");
    let (threshold, other) = if adds {
        ("similarity_threshold", "relevance_threshold")
    } else {
        ("relevance_threshold", "similarity_threshold")
    };
    let written = at.float_in(threshold, 0.0, 1.0);
    if let Some(idle) = at.get(other) {
        idle.warn(
            code::UNUSED,
            format!("`{other}` has no effect in this mode; `{threshold}` is the one that counts"),
        );
    }
    let mode = if adds {
        let path = at.string("tools_db_path").filter(|path| !path.trim().is_empty());
        match (path, base.mode) {
            (Some(path), _) => ToolSelectionMode::Add { path },
            (None, mode) => mode,
        }
    } else {
        ToolSelectionMode::Filter
    };
    ToolSelectionSettings {
        mode,
        top_k: count(at, "top_k").or(base.top_k.filter(|_| adds)),
        threshold: written.unwrap_or(if adds { base.threshold } else { 0.0 }),
        preserve_count: count(at, "preserve_count").unwrap_or(usize::from(!adds)),
        fallback_to_empty: at.boolean("fallback_to_empty").unwrap_or(base.fallback_to_empty),
        filtering: at.get("advanced_filtering").and_then(|it| filtering(&it)).unwrap_or(base.filtering),
        only_when_asked: false,
    }
}

fn filtering(at: &Cursor<'_>) -> Option<ToolFiltering> {
    strategy(at, "retrieval_strategy");
    let by_category = at.boolean("use_category_filter").unwrap_or(false);
    let confidence = at.float_in("category_confidence_threshold", 0.0, 1.0).unwrap_or(0.0);
    let it = ToolFiltering {
        weights: at.get("weights").map_or(ToolWeights::MIXED, |it| weights(&it)),
        candidate_pool: count(at, "candidate_pool_size").unwrap_or(0),
        min_lexical_overlap: count(at, "min_lexical_overlap").unwrap_or(0),
        min_combined_score: at.float_in("min_combined_score", 0.0, 1.0).unwrap_or(0.0),
        by_category: by_category.then_some(confidence),
        allow: at.strings("allow_tools"),
        block: at.strings("block_tools"),
    };
    at.boolean("enabled").unwrap_or(false).then_some(it)
}

fn weights(at: &Cursor<'_>) -> ToolWeights {
    let default = ToolWeights::MIXED;
    let weight = |key: &str, default| at.float_in(key, 0.0, 1.0).unwrap_or(default);
    let it = ToolWeights {
        embed: weight("embed", default.embed),
        lexical: weight("lexical", default.lexical),
        tag: weight("tag", default.tag),
        name: weight("name", default.name),
        category: weight("category", default.category),
    };
    if it.sum() <= 0.0 {
        at.error(code::BAD_RANGE, "one of the weights must be above 0");
    }
    it
}

/// Reports a way of choosing that this version does not run.
fn strategy(at: &Cursor<'_>, key: &str) {
    const RUN: [(&str, bool); 4] =
        [("default", true), ("weighted", true), ("hybrid_history", false), ("semantic", true)];
    if at.word(key, &RUN) == Some(false)
        && let Some(named) = at.get(key)
    {
        named.warn(
            code::NOT_SUPPORTED_YET,
            "`hybrid_history` is known, not supported: tools are weighed as in `weighted`",
        );
    }
}

fn count(at: &Cursor<'_>, key: &str) -> Option<usize> {
    at.integer_in(key, 0, COUNT_MOST).and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0)
}
