//! The `rag` plugin: where a route's request is looked up before a model sees it, and how what was found is shown.
//!
//! It knows settings, not documents. **Invariant:** a backend that is named here is one that this version runs.

use crate::{QdrantPlace, Secret, Template};
use std::collections::BTreeMap;
use std::time::Duration;

/// What one route looks up.
#[derive(Debug, Clone)]
pub struct RagSettings {
    /// Where.
    pub backend: RagBackend,
    /// Most passages; at least 1, default 5.
    pub top_k: usize,
    /// Least similarity of a passage, in 0..=1; default 0.7.
    pub similarity_threshold: f64,
    /// Most characters of passages in one request; `None` is the default of 16,000.
    pub max_context_length: Option<usize>,
    /// Where in the request they are shown.
    pub injection: RagInjection,
    /// What happens when nothing can be looked up.
    pub on_failure: RagFailure,
    /// How long what was found answers the same question again; `None` asks each time.
    pub cache_ttl: Option<Duration>,
    /// Similarity that the best passage must have for any to be shown.
    pub min_confidence: Option<f64>,
}

/// Where passages come from.
#[derive(Debug, Clone)]
pub enum RagBackend {
    /// A vector store of this process (`vectorstore`).
    VectorStore {
        /// Its id, or its name.
        store: String,
        /// Only these files of it; empty is all.
        file_ids: Vec<String>,
    },
    /// A collection of a Qdrant server that somebody else fills (`qdrant`).
    Qdrant(Box<QdrantSearch>),
    /// Another server's `/vector_stores/{id}/search` (`openai`).
    OpenAi(Box<OpenAiSearch>),
    /// A search over HTTP (`external_api`).
    External(Box<ExternalSearch>),
    /// A tool of an MCP server over streamable HTTP (`mcp`).
    Mcp(Box<McpSearch>),
}

impl RagBackend {
    /// Every environment variable that it reads, and whether it holds a credential.
    pub(crate) fn variables(&self, note: &mut impl FnMut(Vec<(&str, bool)>, bool)) {
        match self {
            Self::VectorStore { .. } => {}
            Self::Qdrant(it) => it.place.api_key.iter().for_each(|key| note(key.variables(), true)),
            Self::OpenAi(it) => {
                note(it.base_url.variables(), false);
                it.api_key.iter().for_each(|key| note(key.variables(), true));
            }
            Self::External(it) => {
                note(it.endpoint.variables(), false);
                it.api_key.iter().chain(it.headers.values()).for_each(|key| note(key.variables(), true));
            }
            Self::Mcp(it) => note(it.endpoint.variables(), false),
        }
    }
}

/// A collection of a Qdrant server.
#[derive(Debug, Clone)]
pub struct QdrantSearch {
    /// The server of `global.stores.vector_store`, and the collection.
    pub place: QdrantPlace,
    /// The field of its payloads that holds the text; default `content`.
    pub content_field: String,
}

/// Another server's vector store.
#[derive(Debug, Clone)]
pub struct OpenAiSearch {
    /// Its id there.
    pub store: String,
    /// Address of the API; `https://api.openai.com/v1` by default.
    pub base_url: Template,
    /// Its key.
    pub api_key: Option<Secret>,
    /// Most results asked for; the plugin's `top_k` by default.
    pub max_results: Option<usize>,
    /// Only these files; empty is all.
    pub file_ids: Vec<String>,
    /// Sent as `filters`.
    pub filter: Option<serde_json::Value>,
    /// How long it may take.
    pub timeout: Duration,
}

/// A search over HTTP.
#[derive(Debug, Clone)]
pub struct ExternalSearch {
    /// Where.
    pub endpoint: Template,
    /// Its key, sent as a bearer token.
    pub api_key: Option<Secret>,
    /// The header that carries it; `Authorization` by default.
    pub auth_header: String,
    /// What is asked and answered.
    pub format: SearchFormat,
    /// How long it may take.
    pub timeout: Duration,
    /// Headers of every request.
    pub headers: BTreeMap<String, Secret>,
}

/// The words of a search over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchFormat {
    /// Pinecone's `/query`: a vector in, `matches` out.
    Pinecone,
    /// Weaviate's GraphQL over the class `Document`.
    Weaviate,
    /// Elasticsearch's `_search` over the field `content`.
    Elasticsearch,
    /// A JSON text in which `${user_content}`, `${top_k}` and `${threshold}` are filled in.
    Custom {
        /// The text.
        template: String,
    },
}

/// A tool of an MCP server.
#[derive(Debug, Clone)]
pub struct McpSearch {
    /// Address of the server.
    pub endpoint: Template,
    /// The tool.
    pub tool: String,
    /// Its arguments; `${user_content}`, `${top_k}` and `${threshold}` in texts are filled in. Empty is `{"query": …}`.
    pub arguments: serde_json::Map<String, serde_json::Value>,
    /// How long it may take.
    pub timeout: Duration,
}

/// Where in the request passages are shown.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum RagInjection {
    /// As the result of a tool call after the user's last message.
    #[default]
    ToolRole,
    /// In the system message.
    SystemPrompt,
}

/// What happens when nothing can be looked up.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum RagFailure {
    /// The request goes on without passages.
    #[default]
    Skip,
    /// The request is refused.
    Block,
    /// It goes on, and the client is told.
    Warn,
}
