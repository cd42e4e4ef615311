//! Tools that routes add to requests, read from the files that the configuration names.
//!
//! A file is a list of `{tool, description, category, tags}`, where `tool` is a definition as requests have it. It knows
//! files and definitions, no request. **Invariant:** a definition is offered with the text that it has in its file.
//! Source: contract §1.9 (`tools_db_path`).

use chorus_recall::tools::ToolCard;
use chorus_signals::Folders;
use chorus_spec::{Plugin, Spec, ToolSelectionMode};
use chorus_wire::Raw;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

/// Most tools of one file (`max_tools`).
const TOOLS_MOST: usize = 4096;

/// A tool that can be added.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(crate) card: ToolCard,
    /// As requests have it.
    pub(crate) definition: Raw,
}

/// The tools of every file that the configuration names, or why they cannot be read.
#[derive(Debug, Default)]
pub(crate) struct Toolboxes(BTreeMap<String, Result<Vec<Tool>, String>>);

#[derive(Deserialize)]
struct EntryWire {
    tool: Box<RawValue>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    category: String,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize)]
struct DefinitionWire {
    function: FunctionWire,
}

#[derive(Deserialize)]
struct FunctionWire {
    name: String,
    #[serde(default)]
    description: String,
}

impl Toolboxes {
    /// Reads every file; one that cannot be read is said in the log, and to whoever asks for it.
    pub(crate) fn read(spec: &Spec, folders: &Folders) -> Self {
        let plugins = spec.recipes.iter().flat_map(|it| &it.decisions).flat_map(|it| &it.plugins);
        let paths = plugins.filter_map(|plugin| match plugin {
            Plugin::ToolSelection(it) => match &it.mode {
                ToolSelectionMode::Add { path } => Some(path.clone()),
                ToolSelectionMode::Filter => None,
            },
            _ => None,
        });
        let distinct: BTreeSet<String> = paths.collect();
        let read = |path: String| {
            let tools = folders.read(&path).and_then(|bytes| tools(&bytes));
            if let Err(why) = &tools {
                tracing::warn!(path, why, "a file of tools cannot be used");
            }
            (path, tools)
        };
        Self(distinct.into_iter().map(read).collect())
    }

    /// The tools of a file.
    ///
    /// # Errors
    /// Why it cannot be read, as a sentence.
    pub(crate) fn of(&self, path: &str) -> Result<&[Tool], &str> {
        match self.0.get(path) {
            Some(Ok(tools)) => Ok(tools),
            Some(Err(why)) => Err(why),
            None => Err("the file was not read"),
        }
    }
}

fn tools(bytes: &[u8]) -> Result<Vec<Tool>, String> {
    let entries: Vec<EntryWire> = serde_json::from_slice(bytes).map_err(|why| why.to_string())?;
    if entries.len() > TOOLS_MOST {
        return Err(format!("{} tools; {TOOLS_MOST} are the most (max_tools)", entries.len()));
    }
    let mut names = BTreeSet::new();
    let tool = |entry: EntryWire| {
        let wire: DefinitionWire =
            serde_json::from_str(entry.tool.get()).map_err(|why| format!("a tool: {why}"))?;
        let FunctionWire { name, description } = wire.function;
        if !names.insert(name.clone()) {
            return Err(format!("the tool `{name}` stands twice"));
        }
        let EntryWire { tool, description: about, category, tags } = entry;
        let description = if about.is_empty() { description } else { about };
        Ok(Tool { card: ToolCard { name, description, tags, category }, definition: tool.into() })
    };
    entries.into_iter().map(tool).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_tools_is_read_whole_or_not_at_all() {
        let one = r#"{"tool": {"type": "function", "function": {"name": "a", "parameters": {"x": 1.0}}},
                      "description": "does a", "category": "c", "tags": ["t"]}"#;
        let read = tools(format!("[{one}]").as_bytes()).unwrap();
        assert_eq!((read[0].card.name.as_str(), read[0].card.description.as_str()), ("a", "does a"));
        assert!(read[0].definition.get().contains("1.0"), "digits stay");
        assert!(tools(format!("[{one},{one}]").as_bytes()).unwrap_err().contains("twice"));
        assert!(tools(br#"[{"tool": {"type": "function"}}]"#).is_err());
        assert!(tools(b"{}").is_err());
    }
}
