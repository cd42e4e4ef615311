//! What plugins did, counted from what they note in a run's record.
//!
//! It knows the words of those notes, and no plugin. **Invariant:** labels are words of this file.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use serde::Serialize;
use serde_json::Value;

const CACHE: &str = "response_cache";
const MEMORY: &str = "memory";
const RAG: &str = "rag";
const COMPRESSION: &str = "context_compression";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    plugin: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ItemLabels {
    plugin: &'static str,
    item: &'static str,
}

/// The metrics of plugins.
#[derive(Default)]
pub(super) struct PluginMeters {
    outcomes: Family<OutcomeLabels, Counter>,
    items: Family<ItemLabels, Counter>,
}

/// What has become of requests on routes that shorten, since the start of this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CompressionStats {
    /// Requests of which something was shortened.
    pub shortened: u64,
    /// Requests below their trigger.
    pub below_trigger: u64,
    /// Requests whose client wished to be left alone.
    pub bypassed: u64,
    /// Requests in which there was nothing to shorten.
    pub nothing: u64,
    /// Tokens that prompts had less than before.
    pub tokens_saved: u64,
    /// Passages that were left out.
    pub passages_left_out: u64,
    /// Originals that models asked for.
    pub originals_retrieved: u64,
}

impl PluginMeters {
    pub(super) fn register(&self, registry: &mut Registry) {
        let help = "What became of requests at plugins, by plugin and outcome";
        registry.register("plugin_outcomes", help, self.outcomes.clone());
        let help = "What plugins kept, showed, left out or saved, by plugin and item";
        registry.register("plugin_items", help, self.items.clone());
    }

    /// Counts what the plugins of a run noted.
    pub(super) fn count(&self, notes: &Value) {
        for (plugin, outcome) in [
            (CACHE, notes.get(CACHE).map(cache)),
            (MEMORY, notes.get(MEMORY).map(memory)),
            (RAG, notes.get(RAG).map(rag)),
            (COMPRESSION, notes.get(COMPRESSION).map(compression)),
        ] {
            if let Some(outcome) = outcome {
                self.outcomes.get_or_create(&OutcomeLabels { plugin, outcome }).inc();
            }
        }
        let length = |plugin: &str, field: &str| {
            notes.get(plugin).and_then(|it| it.get(field)?.as_array()).map_or(0, Vec::len) as u64
        };
        let kept = notes.get(CACHE).and_then(|it| it.get("stored")?.as_bool()).unwrap_or(false);
        for (plugin, item, count) in [
            (CACHE, "stored", u64::from(kept)),
            (CACHE, "refused_neighbours", length(CACHE, "refused")),
            (MEMORY, "shown", length(MEMORY, "shown")),
            (MEMORY, "stored", length(MEMORY, "stored")),
            (RAG, "shown", length(RAG, "shown")),
            (COMPRESSION, "tokens_saved", saved(notes.get(COMPRESSION))),
            (COMPRESSION, "passages_left_out", left_out(notes.get(COMPRESSION))),
            (COMPRESSION, "originals_retrieved", number(notes.get(COMPRESSION), "retrievals")),
        ] {
            if count > 0 {
                self.items.get_or_create(&ItemLabels { plugin, item }).inc_by(count);
            }
        }
    }

    pub(super) fn compression(&self) -> CompressionStats {
        let plugin = COMPRESSION;
        let outcome = |outcome| self.outcomes.get_or_create(&OutcomeLabels { plugin, outcome }).get();
        let item = |item| self.items.get_or_create(&ItemLabels { plugin, item }).get();
        CompressionStats {
            shortened: outcome("shortened"),
            below_trigger: outcome("below_trigger"),
            bypassed: outcome("bypassed"),
            nothing: outcome("nothing"),
            tokens_saved: item("tokens_saved"),
            passages_left_out: item("passages_left_out"),
            originals_retrieved: item("originals_retrieved"),
        }
    }
}

fn cache(note: &Value) -> &'static str {
    match (is(note, "hit"), note.get("kind").and_then(Value::as_str), note.get("skipped")) {
        (true, Some("exact"), _) => "hit_exact",
        (true, ..) => "hit_semantic",
        (false, ..) if note.get("failed").is_some() => "failed",
        (false, _, Some(_)) => "skipped",
        (false, ..) => "miss",
    }
}

fn memory(note: &Value) -> &'static str {
    match note.get("idle").and_then(Value::as_str) {
        Some("memory_unavailable") => "failed",
        Some(_) => "skipped",
        None if is_empty(note, "shown") => "nothing",
        None => "shown",
    }
}

fn rag(note: &Value) -> &'static str {
    match (note.get("failed"), note.get("idle")) {
        (Some(_), _) => "failed",
        (None, Some(_)) => "skipped",
        (None, None) if is_empty(note, "shown") => "nothing",
        (None, None) => "shown",
    }
}

fn compression(note: &Value) -> &'static str {
    match note.get("idle").and_then(Value::as_str) {
        Some("bypass") => "bypassed",
        Some(_) => "below_trigger",
        None if note.get("parts").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty) => {
            "nothing"
        }
        None => "shortened",
    }
}

fn saved(note: Option<&Value>) -> u64 {
    let after = note.and_then(|it| it.get("tokens_after")?.as_u64());
    after.map_or(0, |after| number(note, "tokens_before").saturating_sub(after))
}

fn left_out(note: Option<&Value>) -> u64 {
    let parts = note.and_then(|it| it.get("parts")?.as_object());
    parts.map_or(0, |it| it.values().map(|part| number(Some(part), "left_out")).sum())
}

fn number(note: Option<&Value>, field: &str) -> u64 {
    note.and_then(|it| it.get(field)?.as_u64()).unwrap_or(0)
}

fn is(note: &Value, field: &str) -> bool {
    note.get(field).and_then(Value::as_bool).unwrap_or(false)
}

fn is_empty(note: &Value, field: &str) -> bool {
    note.get(field).and_then(Value::as_array).is_none_or(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_note_has_one_outcome() {
        for (read, note, outcome) in [
            (cache as fn(&Value) -> &'static str, json!({"hit": true, "kind": "exact"}), "hit_exact"),
            (cache, json!({"hit": true, "kind": "semantic"}), "hit_semantic"),
            (cache, json!({"hit": false, "stored": true}), "miss"),
            (cache, json!({"skipped": "the store is off"}), "skipped"),
            (cache, json!({"hit": false, "failed": "the store did not answer"}), "failed"),
            (memory, json!({"idle": "memory_unavailable"}), "failed"),
            (memory, json!({"idle": "nobody"}), "skipped"),
            (memory, json!({"shown": [], "known": 3}), "nothing"),
            (memory, json!({"shown": [{}]}), "shown"),
            (rag, json!({"failed": "rag_timeout"}), "failed"),
            (rag, json!({"idle": "no_question"}), "skipped"),
            (rag, json!({"shown": []}), "nothing"),
            (rag, json!({"shown": [{}, {}]}), "shown"),
            (compression, json!({"idle": "bypass"}), "bypassed"),
            (compression, json!({"idle": "below_trigger"}), "below_trigger"),
            (compression, json!({"parts": {}}), "nothing"),
            (compression, json!({"parts": {"history": {}}}), "shortened"),
        ] {
            assert_eq!(read(&note), outcome, "{note}");
        }
    }

    #[test]
    fn items_are_summed() {
        let meters = PluginMeters::default();
        let part = |left_out: u64| json!({"left_out": left_out, "shortened": 1});
        let notes = json!({
            "context_compression": {
                "tokens_before": 900, "tokens_after": 400, "retrievals": 2,
                "parts": {"history": part(3), "tool_outputs": part(4)},
            },
            "a plugin of another time": {},
        });
        meters.count(&notes);
        meters.count(&json!({"context_compression": {"idle": "below_trigger", "tokens_before": 7}}));
        assert_eq!(
            meters.compression(),
            CompressionStats {
                shortened: 1,
                below_trigger: 1,
                tokens_saved: 500,
                passages_left_out: 7,
                originals_retrieved: 2,
                ..CompressionStats::default()
            }
        );
    }
}
