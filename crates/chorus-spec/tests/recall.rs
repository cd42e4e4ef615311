//! The plugins that change what a model is shown, and the settings of the house that they fall back on.

#![expect(clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on should say where")]

use chorus_spec::{
    CompressionMode, CompressionScoring, HybridMode, Plugin, RagBackend, RagFailure, RagInjection,
    SearchFormat, Severity, Spec, ToolSelectionMode, ToolWeights,
};
use std::time::Duration;

/// A file with one route of these plugins, and this below `global`.
fn file(plugins: &str, global: &str) -> String {
    format!(
        "version: v0.3
providers:
  models: [{{ name: m, backend_refs: [{{ endpoint: \"127.0.0.1:1\" }}] }}]
routing:
  modelCards: [{{ name: m }}]
  decisions:
    - name: route
      modelRefs: [{{ model: m }}]
      plugins: {plugins}
    - name: other
      modelRefs: [{{ model: m }}]
global: {global}
"
    )
}

fn spec(plugins: &str, global: &str) -> Spec {
    let checked = chorus_spec::read(&file(plugins, global));
    checked.spec.unwrap_or_else(|| panic!("{:#?}", checked.diagnostics))
}

fn plugins(plugins: &str, global: &str) -> Vec<Plugin> {
    spec(plugins, global).recipes[0].decisions[0].plugins.clone()
}

/// The first problem that an error stands for, as (code, what it says).
fn error(plugins: &str, global: &str) -> (String, String) {
    let checked = chorus_spec::read(&file(plugins, global));
    let first = checked.diagnostics.iter().find(|it| it.severity == Severity::Error);
    let first = first.unwrap_or_else(|| panic!("no error: {plugins} {global}"));
    (first.code.to_owned(), format!("{} {}", first.message, first.help.clone().unwrap_or_default()))
}

#[test]
fn a_route_s_memory_is_filled_from_the_store() {
    let store = "{ stores: { memory: { enabled: true, auto_store: true, default_retrieval_limit: 7,
        default_similarity_threshold: 0.6, hybrid_search: true, disabled_routes: [other], disabled_models: [x],
        reflection: { recency_decay_days: 10, block_patterns: [\"acct [0-9]+\"] } } } }";
    let all = plugins("[]", store);
    let Plugin::Memory(it) = &all[0] else { panic!("{all:?}") };
    assert_eq!((it.retrieval_limit, it.similarity_threshold, it.auto_store), (7, 0.6, true));
    assert_eq!(
        (it.hybrid, it.disabled_models.as_slice()),
        (Some(HybridMode::Weighted), &["x".to_owned()][..])
    );
    assert_eq!(it.reflection.half_life, Duration::from_secs(864_000));
    assert_eq!(it.reflection.block_patterns, ["acct [0-9]+"]);
    assert!(spec("[]", store).recipes[0].decisions[1].plugins.is_empty(), "`other` is a disabled route");
    let own = plugins(
        "[{ type: memory, configuration: { enabled: true, retrieval_limit: 2, auto_store: false, hybrid_mode: rrf } }]",
        store,
    );
    let Plugin::Memory(it) = &own[0] else { panic!() };
    assert_eq!((it.retrieval_limit, it.auto_store, it.hybrid), (2, false, Some(HybridMode::ReciprocalRank)));
    let off = plugins("[{ type: memory, configuration: { enabled: false } }]", store);
    assert!(off.is_empty(), "a route that says no means no");
}

#[test]
fn a_qdrant_server_keeps_memories_and_passages() {
    let all = spec(
        "[]",
        "{ stores: { memory: { enabled: true, backend: qdrant, qdrant: { host: q.internal, port: 7333, use_tls: true,
            api_key: \"${QDRANT_KEY}\", connect_timeout: 2, collection: of-users } },
            vector_store: { enabled: true, backend_type: qdrant } } }",
    );
    let it = all.global.memory.server.unwrap();
    assert_eq!((it.host.as_str(), it.port, it.tls, it.timeout.as_secs()), ("q.internal", 7333, true, 2));
    assert!(it.collection == "of-users" && it.api_key.is_some());
    let it = all.global.vector_store.server.unwrap();
    assert_eq!((it.host.as_str(), it.port, it.collection.as_str()), ("localhost", 6333, "vllm-sr_"));
    let route = "[{ type: rag, configuration: { enabled: true, backend: qdrant, backend_config: { collection: docs } } }]";
    let named = "{ stores: { vector_store: { enabled: true, backend_type: qdrant, qdrant: { host: q } } } }";
    let Plugin::Rag(it) = &plugins(route, named)[0] else { panic!() };
    assert!(
        matches!(&it.backend, RagBackend::Qdrant(it) if it.place.host == "q" && it.place.collection == "docs"
            && it.content_field == "content")
    );
    assert_eq!(error(route, "{}").0, "missing-key", "no server is named");
    let reuses = "[{ type: rag, configuration: { enabled: true, backend: qdrant,
        backend_config: { collection: docs, reuse_cache_connection: true } } }]";
    let memories = "{ stores: { memory: { enabled: true, backend: qdrant, qdrant: { host: m } } } }";
    for (global, host) in [(memories, "m"), (named, "q")] {
        let Plugin::Rag(it) = &plugins(reuses, global)[0] else { panic!() };
        assert!(matches!(&it.backend, RagBackend::Qdrant(it) if it.place.host == host), "{it:?}");
    }
    assert_eq!(
        error(route, memories).0,
        "missing-key",
        "memories are another server's unless the file says so"
    );
    let none = chorus_spec::read(&file(reuses, "{}")).diagnostics;
    let named_at = none.iter().find(|it| it.code == "missing-key").unwrap().place.line;
    let line =
        file(reuses, "{}").lines().position(|line| line.contains("reuse_cache_connection")).unwrap() + 1;
    assert_eq!(named_at, line, "at its line");
    for block in ["host: 'http://q'", "host: 'q:6333'", "collection: 'a/b'"] {
        let memory = format!("{{ stores: {{ memory: {{ backend: qdrant, qdrant: {{ {block} }} }} }} }}");
        assert_eq!(error("[]", &memory).0, "bad-value", "{block}");
    }
    let grpc = "{ stores: { memory: { backend: qdrant, qdrant: { port: 6334 } } } }";
    let told = chorus_spec::read(&file("[]", grpc)).diagnostics;
    assert!(
        told.iter().any(|it| it.message.contains("gRPC") && it.severity == Severity::Warning),
        "{told:?}"
    );
}

#[test]
fn found_memories_wait_in_a_redis_server_in_front_of_the_one_that_keeps_them() {
    let cached = |backend: &str, cache: &str| {
        let global = format!(
            "{{ stores: {{ memory: {{ enabled: true, backend: {backend}, redis_cache: {{ {cache} }} }} }} }}"
        );
        spec("[]", &global).global.memory.cache
    };
    let it = cached(
        "qdrant",
        "enabled: true, address: 'r:7000', db: 3, password: '${R}', ttl_seconds: 60, key_prefix: 'x:'",
    );
    let it = it.unwrap();
    assert_eq!(
        (it.place.address.as_str(), it.place.database, it.place.key_prefix.as_str()),
        ("r:7000", 3, "x:")
    );
    assert_eq!((it.ttl.as_secs(), it.place.retries, it.place.password.is_some()), (60, 0, true));
    let it = cached("qdrant", "enabled: true").unwrap();
    assert_eq!((it.ttl.as_secs(), it.place.key_prefix.as_str()), (300, "vllm-sr:memory:"));
    assert_eq!(cached("qdrant", "address: 'r:7000'"), None, "it is off unless the file says otherwise");
    assert_eq!(cached("embedded", "enabled: true"), None, "the store of this process needs none");
}

#[test]
fn a_store_of_another_server_is_refused_at_its_line() {
    for backend in ["milvus", "valkey"] {
        let (code, text) =
            error("[]", &format!("{{ stores: {{ memory: {{ enabled: true, backend: {backend} }} }} }}"));
        assert_eq!(code, "not-supported-yet");
        assert!(text.contains(backend) && text.contains("embedded"), "{text}");
    }
    let (code, _) = error("[]", "{ stores: { vector_store: { enabled: true, backend_type: llama_stack } } }");
    assert_eq!(code, "not-supported-yet");
    spec("[]", "{ stores: { memory: { enabled: false, backend: milvus, milvus: { address: a } } } }");
    for backend in ["milvus", "hybrid"] {
        let plugin = format!(
            "[{{ type: rag, configuration: {{ enabled: true, backend: {backend}, backend_config: {{}} }} }}]"
        );
        let (code, text) = error(&plugin, "{}");
        assert_eq!(code, "not-supported-yet");
        assert!(text.contains("vectorstore"), "{text}");
    }
}

#[test]
fn rag_backends() {
    let of = |text: &str| {
        let all = plugins(&format!("[{{ type: rag, configuration: {{ enabled: true, {text} }} }}]"), "{}");
        let Some(Plugin::Rag(it)) = all.into_iter().next() else { panic!("{text}") };
        *it
    };
    let it =
        of("backend: vectorstore, backend_config: { vector_store_id: vs_1, file_ids: [file_1] }, top_k: 3");
    assert!(
        matches!(&it.backend, RagBackend::VectorStore { store, file_ids } if store == "vs_1" && file_ids.len() == 1)
    );
    assert_eq!((it.top_k, it.similarity_threshold, it.cache_ttl), (3, 0.7, None));
    assert_eq!((it.injection, it.on_failure), (RagInjection::ToolRole, RagFailure::Skip));
    let it = of("backend: openai, backend_config: { vector_store_id: v, api_key: \"${K}\", filter: { type: eq, key: a, value: 1 } },
        injection_mode: system_prompt, on_failure: block, cache_results: true");
    let RagBackend::OpenAi(search) = &it.backend else { panic!() };
    assert_eq!(search.base_url.as_written(), "https://api.openai.com/v1");
    assert_eq!(search.filter, Some(serde_json::json!({"type": "eq", "key": "a", "value": 1})));
    assert_eq!((it.injection, it.on_failure), (RagInjection::SystemPrompt, RagFailure::Block));
    assert_eq!(it.cache_ttl, Some(Duration::from_secs(3600)));
    let template = r#"'{"q": "${user_content}", "k": ${top_k}}'"#;
    let it = of(&format!(
        "backend: external_api, backend_config: {{ endpoint: \"http://h/s\", request_format: custom, request_template: {template} }}"
    ));
    assert!(
        matches!(&it.backend, RagBackend::External(it) if matches!(it.format, SearchFormat::Custom { .. }))
    );
    let it = of(
        "backend: mcp, backend_config: { server_name: \"http://h/mcp\", tool_name: look, tool_arguments: { n: 2 } }",
    );
    assert!(matches!(&it.backend, RagBackend::Mcp(it) if it.tool == "look" && it.arguments.len() == 1));
}

#[test]
fn h01_rag_settings_that_cannot_work_are_refused() {
    for (config, code) in [
        ("backend: vectorstore", "missing-key"),
        ("backend: vectorstore, backend_config: { vector_store_id: x, files: [a] }", "unknown-key"),
        ("backend: mcp, backend_config: { server_name: x, tool_name: y }", "missing-key"),
        ("backend: external_api, backend_config: { endpoint: x, request_format: soap }", "bad-value"),
        (
            "backend: external_api, backend_config: { endpoint: x, request_format: custom, request_template: \"{ q }\" }",
            "bad-value",
        ),
        (
            "backend: vectorstore, backend_config: { vector_store_id: a }, similarity_threshold: 7",
            "bad-range",
        ),
    ] {
        let plugin = format!("[{{ type: rag, configuration: {{ enabled: true, {config} }} }}]");
        assert_eq!(error(&plugin, "{}").0, code, "{config}");
    }
}

#[test]
fn compression_settings() {
    let of = |text: &str| {
        let all = plugins(
            &format!("[{{ type: context_compression, configuration: {{ enabled: true, {text} }} }}]"),
            "{}",
        );
        let Some(Plugin::ContextCompression(it)) = all.into_iter().next() else { panic!("{text}") };
        *it
    };
    let it = of("budget: { trigger_tokens: auto }");
    assert_eq!(
        (it.always, it.trigger_tokens, it.targets.tool_outputs.mode),
        (false, None, CompressionMode::Extractive)
    );
    assert_eq!(it.targets.history.mode, CompressionMode::Preserve);
    let it = of("mode: always, budget: { trigger_tokens: 32K, target_tokens: 8000 },
        targets: { history: { mode: extractive, min_tokens: 500 }, tool_outputs: { mode: recoverable } },
        scoring: { method: hybrid }, recovery: { enabled: true, ttl_seconds: 60 },
        request_controls: { enabled: true, allowed: [bypass] }, failure_mode: fail_closed");
    assert_eq!((it.trigger_tokens, it.target_tokens, it.fail_closed), (Some(32_000), Some(8000), true));
    assert_eq!((it.targets.history.min_tokens, it.targets.history.target_tokens), (500, 250));
    assert_eq!((it.scoring, it.recovery.ttl), (CompressionScoring::Hybrid, Duration::from_secs(60)));
    let controls = it.controls.unwrap();
    assert_eq!((controls.bypass, controls.target), (true, false));
    let upside_down = "[{ type: context_compression, configuration: { enabled: true,
        targets: { tool_outputs: { mode: extractive, min_tokens: 10, target_tokens: 20 } } } }]";
    assert_eq!(error(upside_down, "{}").0, "bad-range");
}

#[test]
fn tools_are_chosen_as_the_house_says_unless_the_route_says_otherwise() {
    let house = "{ integrations: { tools: { enabled: true, top_k: 4, similarity_threshold: 0.3, tools_db_path: t.json,
        advanced_filtering: { enabled: true, weights: { tag: 0.5 }, block_tools: [rm] } } } }";
    let all = plugins("[]", house);
    let Plugin::ToolSelection(it) = &all[0] else { panic!("{all:?}") };
    assert_eq!(it.mode, ToolSelectionMode::Add { path: "t.json".to_owned() });
    assert_eq!((it.top_k, it.threshold, it.only_when_asked), (Some(4), 0.3, true));
    assert_eq!(it.filtering.weights, ToolWeights { tag: 0.5, ..ToolWeights::MIXED });
    let own = plugins(
        "[{ type: tool_selection, configuration: { enabled: true, mode: filter, relevance_threshold: 0.4, preserve_count: 2 } }]",
        house,
    );
    let Plugin::ToolSelection(it) = &own[0] else { panic!() };
    assert_eq!(
        (&it.mode, it.top_k, it.threshold, it.preserve_count),
        (&ToolSelectionMode::Filter, None, 0.4, 2)
    );
    assert_eq!((it.only_when_asked, it.filtering.block.as_slice()), (false, &["rm".to_owned()][..]));
}
