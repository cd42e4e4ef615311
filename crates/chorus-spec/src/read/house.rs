//! What the file says for all routes that plugins of a route fall back on.
//!
//! It knows no plugin.

use super::tool_selection::ToolsIntegration;
use crate::{MemoryStore, QdrantPlace};

/// What plugins of a route fall back on.
#[derive(Debug)]
pub(super) struct House {
    pub(super) memory: MemoryStore,
    pub(super) tools: ToolsIntegration,
    /// The server of passages.
    pub(super) vectors: Option<Box<QdrantPlace>>,
    /// The server of memories.
    pub(super) memories: Option<Box<QdrantPlace>>,
}
