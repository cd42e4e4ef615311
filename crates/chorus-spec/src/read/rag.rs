//! The plugin `rag`.
//!
//! It knows the backends that this version runs, and the others by name. Source: contract §1.10.

use super::credential::secret;
use super::cursor::Cursor;
use super::document::json;
use super::headers::header_name;
use super::house::House;
use super::nearest::suggest;
use super::qdrant;
use crate::diagnostic::code;
use crate::{
    ExternalSearch, McpSearch, OpenAiSearch, QdrantPlace, QdrantSearch, RagBackend, RagFailure, RagInjection,
    RagSettings, SearchFormat, Secret, Severity, Template,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// Passages unless the file says otherwise. Source: the contract's engine.
const TOP_K: usize = 5;
/// Most passages that the file may ask for.
const TOP_K_MOST: i64 = 50;
/// Least similarity unless the file says otherwise. Source: the contract's engine.
const THRESHOLD: f64 = 0.7;
/// How long a search may take unless the file says otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long found passages answer again, where they are kept at all.
const CACHE_TTL: Duration = Duration::from_secs(3600);

/// The words of `backend`.
#[derive(Clone, Copy)]
enum Kind {
    VectorStore,
    Qdrant,
    OpenAi,
    External,
    Mcp,
    Foreign,
}

const BACKENDS: [(&str, Kind); 7] = [
    ("vectorstore", Kind::VectorStore),
    ("openai", Kind::OpenAi),
    ("external_api", Kind::External),
    ("mcp", Kind::Mcp),
    ("milvus", Kind::Foreign),
    ("qdrant", Kind::Qdrant),
    ("hybrid", Kind::Foreign),
];

/// Reads it; `None` where its backend cannot be told or is not run, which has been reported.
pub(super) fn read(at: &Cursor<'_>, house: &House) -> Option<RagSettings> {
    at.required("backend")?;
    let kind = at.word("backend", &BACKENDS)?;
    let top_k = at.integer_in("top_k", 0, TOP_K_MOST).filter(|n| *n > 0);
    let cached = at.boolean("cache_results").unwrap_or(false);
    let ttl = at.count("cache_ttl_seconds").map(Duration::from_secs);
    let injection = [("tool_role", RagInjection::ToolRole), ("system_prompt", RagInjection::SystemPrompt)];
    let failure = [("skip", RagFailure::Skip), ("block", RagFailure::Block), ("warn", RagFailure::Warn)];
    let settings = |backend| RagSettings {
        backend,
        top_k: top_k.and_then(|n| usize::try_from(n).ok()).unwrap_or(TOP_K),
        similarity_threshold: at.float_in("similarity_threshold", 0.0, 1.0).unwrap_or(THRESHOLD),
        max_context_length: at.count("max_context_length").and_then(|n| usize::try_from(n).ok()),
        injection: at.word("injection_mode", &injection).unwrap_or_default(),
        on_failure: at.word("on_failure", &failure).unwrap_or_default(),
        cache_ttl: cached.then(|| ttl.unwrap_or(CACHE_TTL)),
        min_confidence: at.float_in("min_confidence_threshold", 0.0, 1.0),
    };
    if let Kind::Foreign = kind {
        let named = at.get("backend")?;
        let help = "`vectorstore`, `qdrant`, `openai`, `external_api` and `mcp` are supported".to_owned();
        named.error_help(code::NOT_SUPPORTED_YET, "this backend is known, not supported", help);
        return None;
    }
    let own = at.needed("backend_config")?;
    if let Kind::Qdrant = kind {
        return collection(at, &own, house).map(|it| settings(RagBackend::Qdrant(Box::new(it))));
    }
    backend(&own, kind).map(settings)
}

/// A collection, on a server that the file names for something else: that of passages, or with `reuse_cache_connection` that
/// of memories, where there is one.
fn collection(plugin: &Cursor<'_>, at: &Cursor<'_>, house: &House) -> Option<QdrantSearch> {
    known(at, &["collection", "content_field", "reuse_cache_connection"]);
    let reuses =
        at.get("reuse_cache_connection").filter(|_| at.boolean("reuse_cache_connection") == Some(true));
    let vectors = house.vectors.as_deref();
    let place = if reuses.is_some() { house.memories.as_deref().or(vectors) } else { vectors };
    let Some(place) = place else {
        let help = match reuses {
            Some(_) => {
                "name it in `global.stores.memory` or `global.stores.vector_store`, with `enabled: true`"
            }
            None => {
                "name it in `global.stores.vector_store`, with `enabled: true` and `backend_type: qdrant`"
            }
        };
        let named = reuses.or_else(|| plugin.get("backend"))?;
        named.error_help(code::MISSING_KEY, "no Qdrant server is named", help.to_owned());
        return None;
    };
    at.required("collection")?;
    let place = QdrantPlace { collection: qdrant::collection(at, "collection")?, ..place.clone() };
    let content_field = at.string("content_field").filter(|it| !it.is_empty());
    Some(QdrantSearch { place, content_field: content_field.unwrap_or_else(|| "content".to_owned()) })
}

fn backend(at: &Cursor<'_>, kind: Kind) -> Option<RagBackend> {
    match kind {
        Kind::VectorStore => {
            known(at, &["vector_store_id", "file_ids"]);
            let store = at.required("vector_store_id")?;
            Some(RagBackend::VectorStore { store, file_ids: at.strings("file_ids") })
        }
        Kind::OpenAi => openai(at).map(|it| RagBackend::OpenAi(Box::new(it))),
        Kind::External => external(at).map(|it| RagBackend::External(Box::new(it))),
        Kind::Mcp => mcp(at).map(|it| RagBackend::Mcp(Box::new(it))),
        Kind::Qdrant | Kind::Foreign => None,
    }
}

fn openai(at: &Cursor<'_>) -> Option<OpenAiSearch> {
    known(
        at,
        &[
            "vector_store_id",
            "base_url",
            "api_key",
            "max_num_results",
            "file_ids",
            "filter",
            "timeout_seconds",
            "workflow_mode",
        ],
    );
    if at.word("workflow_mode", &[("direct_search", true), ("tool_based", false)]) == Some(false) {
        let named = at.get("workflow_mode")?;
        named.error_help(
            code::NOT_SUPPORTED_YET,
            "`tool_based` is known, not supported",
            "write `direct_search`".to_owned(),
        );
    }
    let base_url = at.string("base_url").unwrap_or_else(|| "https://api.openai.com/v1".to_owned());
    Some(OpenAiSearch {
        store: at.required("vector_store_id")?,
        base_url: Template::new(base_url),
        api_key: secret(at, "api_key"),
        max_results: at
            .integer_in("max_num_results", 0, TOP_K_MOST)
            .and_then(|n| usize::try_from(n).ok())
            .filter(|n| *n > 0),
        file_ids: at.strings("file_ids"),
        filter: at.get("filter").map(|it| json(it.node())),
        timeout: timeout(at),
    })
}

fn external(at: &Cursor<'_>) -> Option<ExternalSearch> {
    known(
        at,
        &[
            "endpoint",
            "api_key",
            "auth_header",
            "request_format",
            "request_template",
            "timeout_seconds",
            "headers",
        ],
    );
    let auth_header = at.get("auth_header").and_then(|it| header_name(&it));
    let mut headers = BTreeMap::new();
    for (name, _, value) in at.get("headers").map(|it| it.entries()).unwrap_or_default() {
        headers.extend(value.text().map(|text| (name.to_owned(), Secret::new(text))));
    }
    Some(ExternalSearch {
        endpoint: Template::new(at.required("endpoint")?),
        api_key: secret(at, "api_key"),
        auth_header: auth_header.unwrap_or_else(|| "authorization".to_owned()).to_ascii_lowercase(),
        format: format(at)?,
        timeout: timeout(at),
        headers,
    })
}

fn format(at: &Cursor<'_>) -> Option<SearchFormat> {
    const FORMATS: [(&str, &str); 4] = [
        ("pinecone", "pinecone"),
        ("weaviate", "weaviate"),
        ("elasticsearch", "elasticsearch"),
        ("custom", "custom"),
    ];
    at.required("request_format")?;
    Some(match at.word("request_format", &FORMATS)? {
        "pinecone" => SearchFormat::Pinecone,
        "weaviate" => SearchFormat::Weaviate,
        "elasticsearch" => SearchFormat::Elasticsearch,
        _ => SearchFormat::Custom { template: template(at)? },
    })
}

/// A template is JSON once its slots are filled; a text stands for each.
fn template(at: &Cursor<'_>) -> Option<String> {
    let text = at.required("request_template")?;
    let filled = text.replace("${top_k}", "1").replace("${threshold}", "0.5");
    if let Err(fault) = serde_json::from_str::<serde_json::Value>(&filled) {
        let help = "`${user_content}` stands inside quotes, `${top_k}` and `${threshold}` without".to_owned();
        at.get("request_template")?.error_help(
            code::BAD_VALUE,
            format!("the template is not JSON: {fault}"),
            help,
        );
        return None;
    }
    Some(text)
}

fn mcp(at: &Cursor<'_>) -> Option<McpSearch> {
    known(at, &["server_name", "endpoint", "tool_name", "tool_arguments", "timeout_seconds"]);
    let named = at.string("server_name").filter(|name| name.starts_with("http") || name.starts_with("${"));
    let Some(endpoint) = at.string("endpoint").or(named) else {
        let help = "servers over streamable HTTP are called; programs are not started".to_owned();
        at.error_help(code::MISSING_KEY, "`endpoint`, the address of the MCP server, is missing", help);
        return None;
    };
    let arguments = at.get("tool_arguments").map(|it| json(it.node()));
    let arguments = match arguments {
        Some(serde_json::Value::Object(map)) => map,
        _ => serde_json::Map::new(),
    };
    Some(McpSearch {
        endpoint: Template::new(endpoint),
        tool: at.required("tool_name")?,
        arguments,
        timeout: timeout(at),
    })
}

fn timeout(at: &Cursor<'_>) -> Duration {
    at.count("timeout_seconds").map_or(TIMEOUT, Duration::from_secs)
}

/// Reports every key that the backend does not have: the contract's table knows no keys below `backend_config`.
pub(super) fn known(at: &Cursor<'_>, keys: &[&str]) {
    for (written, place, value) in at.entries() {
        if !keys.contains(&written) {
            let message = format!("this backend has no key `{written}`");
            value.say(Severity::Error, code::UNKNOWN_KEY, place, message, suggest(written, keys, ""));
        }
    }
}
