//! The `tool_selection` plugin, and what `global.integrations.tools` says for all routes.
//!
//! It knows settings, not tools. **Invariant:** a route that adds tools names the file that they come from.

/// How one route chooses the tools that a model is offered.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSelectionSettings {
    /// What is chosen from.
    pub mode: ToolSelectionMode,
    /// Most tools that are added (default 3), or kept besides those that must stay (`None` is any number).
    pub top_k: Option<usize>,
    /// Least similarity of a tool to the task, in 0..=1; default 0.2 to add (`similarity_threshold`) and 0 to filter
    /// (`relevance_threshold`).
    pub threshold: f64,
    /// Tools that a filter keeps at least; default 1.
    pub preserve_count: usize,
    /// Whether a request goes on as it is when tools cannot be told apart (no encoder, say); else it is refused. Default
    /// true.
    pub fallback_to_empty: bool,
    /// How relevance is told.
    pub filtering: ToolFiltering,
    /// Only where the client asks for tools by `tool_choice: "auto"` and sends none: what the global switch does.
    pub only_when_asked: bool,
}

/// What is chosen from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolSelectionMode {
    /// From a file of tools; the client's own stay.
    Add {
        /// The file, as written.
        path: String,
    },
    /// From the client's own.
    Filter,
}

/// How relevance is told (`advanced_filtering`).
#[derive(Debug, Clone, PartialEq)]
pub struct ToolFiltering {
    /// Share of each measure; they need not add up to 1.
    pub weights: ToolWeights,
    /// Best by meaning that are looked at closer; 0 is all.
    pub candidate_pool: usize,
    /// Least words that the task and a tool share; default 0.
    pub min_lexical_overlap: usize,
    /// Least weighted score, in 0..=1; default 0.
    pub min_combined_score: f64,
    /// Whether only tools of the task's domain count, where the domain is known well enough.
    pub by_category: Option<f64>,
    /// Names that may be chosen; empty is any.
    pub allow: Vec<String>,
    /// Names that may not.
    pub block: Vec<String>,
}

/// Share of each measure of relevance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ToolWeights {
    /// Of meaning.
    pub embed: f64,
    /// Of shared words.
    pub lexical: f64,
    /// Of shared tags.
    pub tag: f64,
    /// Of words of the tool's name.
    pub name: f64,
    /// Of the category.
    pub category: f64,
}

impl Default for ToolSelectionSettings {
    fn default() -> Self {
        Self {
            mode: ToolSelectionMode::Filter,
            top_k: None,
            threshold: 0.0,
            preserve_count: 1,
            fallback_to_empty: true,
            filtering: ToolFiltering::default(),
            only_when_asked: false,
        }
    }
}

impl Default for ToolFiltering {
    fn default() -> Self {
        Self {
            weights: ToolWeights::MEANING,
            candidate_pool: 0,
            min_lexical_overlap: 0,
            min_combined_score: 0.0,
            by_category: None,
            allow: Vec::new(),
            block: Vec::new(),
        }
    }
}

impl ToolWeights {
    /// Meaning alone.
    pub const MEANING: Self = Self { embed: 1.0, lexical: 0.0, tag: 0.0, name: 0.0, category: 0.0 };

    /// What `advanced_filtering` starts from, each share the file's to change.
    pub const MIXED: Self = Self { embed: 0.6, lexical: 0.15, tag: 0.1, name: 0.1, category: 0.05 };

    /// Their sum.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.embed + self.lexical + self.tag + self.name + self.category
    }
}
