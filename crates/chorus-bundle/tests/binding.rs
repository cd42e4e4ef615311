//! A bundle in an environment: bindings that are read, refused and mounted; v0.3 files split and put together again.

#![expect(clippy::unwrap_used, reason = "a test that finds its fixture broken has failed")]

use chorus_bundle::{Bundle, Files, binding, graph, import, mount, source};

fn bundle() -> Bundle {
    let text = |text: &str| text.as_bytes().to_vec();
    let files = Files::from([
        ("mom.yaml".to_owned(), text(include_str!("source/mom.yaml"))),
        ("policy.yaml".to_owned(), text(include_str!("source/policy.yaml"))),
        ("prompts/code.md".to_owned(), text("Answer with code first.\n")),
        ("suites/smoke.jsonl".to_owned(), text("{}\n")),
    ]);
    Bundle::build(source::read(&files).source.unwrap()).unwrap()
}

const BINDING: &str = "\
format: 1
components:
  generalist:
    deployments:
      - name: far
        preference: 2
        trust: public
        region: eu-west-1
        price: {prompt_per_1m: 1.80, completion_per_1m: 7.20}
        backend: {base_url: \"https://models.example/v1\", api_key_env: MODELS_KEY}
      - name: near
        preference: 1
        trust: process
        accelerator: cpu
        backend: {type: local, model: smollm2-135m-instruct}
";

#[test]
fn a_binding_mounts_and_leaves_the_graph_alone() {
    let bundle = bundle();
    let read = binding::read(BINDING, &bundle.mom).unwrap();
    assert_eq!(read.components[0].1.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["near", "far"]);
    let mounted = mount::mount(&bundle, &read, None).unwrap();
    let first = &mounted.documents[0];
    let checked = chorus_spec::read_document(&first.document);
    let spec = checked.spec.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
    assert_eq!(graph::of(&first.document), mount::graph(&bundle));
    assert_eq!(first.places["coder"], ["generalist/near"], "coder falls back to generalist");
    assert_eq!(spec.models[&chorus_spec::ModelId::new("coder")].backends.len(), 1);
    let names: Vec<&str> =
        spec.entrypoints.iter().flat_map(|it| &it.model_names).map(String::as_str).collect();
    let points = [
        "acme/helpdesk-light",
        "acme/helpdesk-light@1.2.0",
        "acme/helpdesk-ultra",
        "acme/helpdesk-ultra@1.2.0",
    ];
    assert_eq!(names, points);
}

#[test]
fn invariant_2_a_binding_with_a_policy_key_is_refused_by_name() {
    let mom = bundle().mom;
    for (line, key) in [
        ("bounds: {max_calls: 99}\n", "bounds"),
        ("routing: {}\n", "routing"),
        ("constraints: []\n", "constraints"),
        ("operating_points: []\n", "operating_points"),
        ("global: {}\n", "global"),
    ] {
        let found = binding::read(&format!("{BINDING}{line}"), &mom).unwrap_err();
        assert!(found[0].message.contains(&format!("`{key}` is of the bundle")), "{found:?}");
    }
    let nested = BINDING.replace("        accelerator: cpu", "        threshold: 0.1");
    let found = binding::read(&nested, &mom).unwrap_err();
    assert_eq!((found.len(), found[0].place.line, found[0].code), (1, 14, "unknown-key"));
    assert!(found[0].message.contains("`threshold` is of the bundle"));
}

#[test]
fn a_binding_says_how_calls_are_tried_again_and_not_by_whom() {
    let bundle = bundle();
    let with = |rules: &str| {
        let text = BINDING.replace("  generalist:\n", &format!("  generalist:\n    reliability: {rules}\n"));
        binding::read(&text, &bundle.mom)
    };
    let bound = with("{retry_count: 2, retry_on: 5xx, lb_policy: least_request}").unwrap();
    let mounted = mount::mount(&bundle, &bound, None).unwrap();
    assert_eq!(graph::of(&mounted.documents[0].document), mount::graph(&bundle));
    let spec = chorus_spec::read_document(&mounted.documents[0].document).spec.unwrap();
    let rules = |name: &str| spec.models[&chorus_spec::ModelId::new(name)].reliability.retry_count;
    assert_eq!((rules("generalist"), rules("coder")), (Some(2), None));
    let found = with("{fallback: [coder]}").unwrap_err();
    assert!(found[0].message.contains("`fallback` is of the bundle"), "{found:?}");
}

#[test]
fn what_a_binding_lacks_or_makes_up_is_told_at_once() {
    let mom = bundle().mom;
    let text = "format: 2\nbundle: latest\ncomponents:\n  nobody: {deployments: [{name: a}]}\n";
    let codes: Vec<&str> = binding::read(text, &mom).unwrap_err().iter().map(|it| it.code).collect();
    assert_eq!(codes, ["missing-key", "bad-value", "bad-value", "unknown-reference", "missing-key"]);
}

#[test]
fn a_binding_for_another_bundle_does_not_mount() {
    let bundle = bundle();
    let bound_to = |digest: &str| {
        let text = BINDING.replacen("format: 1", &format!("format: 1\nbundle: {digest}"), 1);
        mount::mount(&bundle, &binding::read(&text, &bundle.mom).unwrap(), None).is_ok()
    };
    assert!(bound_to(&bundle.digest));
    assert!(!bound_to(&format!("sha256:{}", "0".repeat(64))));
}

const CONFIG: &str = "\
version: v0.3
listeners: [{port: 8899, timeout: 1200s}]
global:
  router: {auto_model_names: [acme/auto]}
  integrations: {looper: {timeout_seconds: 30, endpoint: \"http://127.0.0.1:1\"}}
  stores: {response_cache: {enabled: false}}
providers:
  defaults: {default_model: small}
  models:
    - name: small
      provider_model_id: small-q4
      pricing: {currency: USD, prompt_per_1m: 0.10, completion_per_1m: 0.00}
      backend_refs: [{name: here, endpoint: \"127.0.0.1:1\", weight: 1}]
routing:
  modelCards: [{name: small, context_window_size: 4096, quality_score: 0.50}]
  signals:
    keywords: [{name: k, operator: OR, keywords: [0.30, no, \"1\"]}]
  decisions:
    - {name: d, priority: 1, rules: {type: keyword, name: k}, modelRefs: [{model: small, weight: 1.0}]}
";

/// The checked routes of a configuration, places aside.
fn routes(spec: &chorus_spec::Spec) -> String {
    let text =
        format!("{:?} {:?} {:?} {:?}", spec.recipes, spec.entrypoints, spec.models, spec.default_model);
    let mut parts = text.split("Place { ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.split_once('}').map_or("", |(_, rest)| rest))
}

#[test]
fn a_configuration_is_split_and_put_together_again() {
    let imported = import::split(CONFIG, "acme/imported").unwrap_or_else(|fault| panic!("{fault:?}"));
    let file = |name: &str| String::from_utf8(imported.files[name].clone()).unwrap();
    for (name, has, lacks) in [
        ("policy.yaml", "auto_model_names", "response_cache"),
        ("policy.yaml", "timeout_seconds", "127.0.0.1"),
        ("runtime.yaml", "response_cache", "auto_model_names"),
        ("runtime.yaml", "endpoint", "keywords"),
        ("binding.yaml", "127.0.0.1:1", "keywords"),
        ("mom.yaml", "context_tokens: 4096", "127.0.0.1"),
    ] {
        let text = file(name);
        assert!(text.contains(has) && !text.contains(lacks), "{name}: {text}");
    }
    let bundle = Bundle::build(imported.source.clone()).unwrap();
    let read = binding::read(&file("binding.yaml"), &bundle.mom).unwrap();
    let checked = mount::check(&bundle, &read).unwrap();
    let again = checked.spec.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
    assert_eq!(routes(&again), routes(&chorus_spec::read(CONFIG).spec.unwrap()));
}

#[test]
fn what_cannot_travel_is_not_imported() {
    let broken = import::split(&CONFIG.replace("model: small, weight", "model: nobody, weight"), "x");
    assert!(matches!(broken, Err(import::ImportFault::Config(found)) if found.len() == 1));
    let header = CONFIG.replace(
        "weight: 1.0}]}",
        "weight: 1.0}], plugins: [{type: header_mutation, configuration: {add: [{name: X, value: \"${TOKEN}\"}]}}]}",
    );
    assert!(matches!(import::split(&header, "x"), Err(import::ImportFault::Source(_))));
}
