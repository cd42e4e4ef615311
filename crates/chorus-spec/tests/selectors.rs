//! Selectors as they are read: defaults, overrides, and what is refused.

#![expect(clippy::indexing_slicing, clippy::panic, reason = "a test that cannot go on should say where")]

use chorus_spec::{Algorithm, Diagnostic, OnError, OnNoCandidates, SelectorMethod, Severity, Spec, read};

fn file(algorithm: &str, router: &str) -> String {
    format!(
        "version: v0.3\nglobal:\n  router: {router}\nproviders:\n  models:\n    \
         - {{ name: a, backend_refs: [{{ endpoint: \"127.0.0.1:1\" }}] }}\n    \
         - {{ name: b, backend_refs: [{{ endpoint: \"127.0.0.1:1\" }}] }}\nrouting:\n  \
         modelCards: [{{ name: a }}, {{ name: b }}]\n  decisions:\n    - name: d\n      \
         modelRefs: [{{ model: a }}, {{ model: b }}]\n      algorithm: {algorithm}\n"
    )
}

fn spec(algorithm: &str, router: &str) -> Spec {
    let checked = read(&file(algorithm, router));
    checked.spec.unwrap_or_else(|| panic!("{algorithm}: {:#?}", checked.diagnostics))
}

fn method(algorithm: &str, router: &str) -> (SelectorMethod, OnError) {
    match &spec(algorithm, router).recipes[0].decisions[0].algorithm {
        Algorithm::Selector(it) => (it.method.clone(), it.on_error),
        other => panic!("{algorithm} is {other:?}"),
    }
}

fn told(algorithm: &str, router: &str) -> Vec<Diagnostic> {
    read(&file(algorithm, router)).diagnostics
}

#[test]
fn every_type_is_read_without_a_remark_and_has_the_contracts_defaults() {
    for kind in ["router_dc", "hybrid", "latency_aware", "multi_factor", "automix", "prompt", "thompson"] {
        let algorithm = format!("{{ type: {kind} }}");
        assert_eq!(told(&algorithm, "{}").len(), 0, "{kind}");
        assert_eq!(spec(&algorithm, "{}").recipes[0].decisions[0].algorithm.kind(), kind);
    }
    let (SelectorMethod::RouterDc(it), OnError::Skip) = method("{ type: router_dc }", "{}") else { panic!() };
    assert_eq!((it.temperature, it.min_similarity), (0.07, 0.3));
    let (SelectorMethod::LatencyAware(it), _) = method("{ type: latency_aware }", "{}") else { panic!() };
    assert_eq!((it.tpot_percentile, it.ttft_percentile), (Some(95), Some(95)));
    let one = "{ type: latency_aware, latency_aware: { ttft_percentile: 50 } }";
    let (SelectorMethod::LatencyAware(it), _) = method(one, "{}") else { panic!() };
    assert_eq!((it.tpot_percentile, it.ttft_percentile), (None, Some(50)));
}

#[test]
fn a_decision_overrides_what_all_share() {
    let shared = "{ model_selection: { automix: { discount_factor: 0.5, max_escalations: 1 },
                    ml: { models_path: models, knn: { k: 40, pretrained_path: knn.safetensors } } } }";
    let own = "{ type: automix, on_error: fail, automix: { max_escalations: 3 } }";
    let (SelectorMethod::Automix(it), OnError::Fail) = method(own, shared) else { panic!() };
    assert_eq!((it.max_escalations, it.discount_factor), (3, 0.5));
    let (SelectorMethod::Knn(it), _) = method("{ type: knn, knn: { k: 7 } }", shared) else { panic!() };
    assert_eq!((it.path.as_deref(), it.k), (Some("models/knn.safetensors"), Some(7)));
}

#[test]
fn d19_weights_that_are_left_out_are_zero_and_all_of_them_zero_is_refused() {
    let some = "{ type: multi_factor, multi_factor: { weights: { quality: 0.7, cost: 0.3 },
                  slo: { max_ttft_ms: 800, max_inflight: 4 }, on_no_candidates: fail } }";
    let (SelectorMethod::MultiFactor(it), _) = method(some, "{}") else { panic!() };
    assert_eq!((it.quality_weight, it.cost_weight, it.latency_weight, it.load_weight), (0.7, 0.3, 0.0, 0.0));
    assert_eq!((it.max_ttft_ms, it.max_inflight), (Some(800.0), Some(4)));
    assert_eq!(it.on_no_candidates, OnNoCandidates::Fail);
    let none = "{ type: multi_factor, multi_factor: { weights: { quality: 0 } } }";
    assert!(told(none, "{}").iter().any(|it| it.severity == Severity::Error && it.code == "bad-range"));
}

#[test]
fn what_cannot_work_is_said_at_its_place() {
    let cases = [
        ("{ type: knn }", Severity::Warning, "has no trained artifact"),
        ("{ type: latency_aware, latency_aware: { ttft_percentile: 0 } }", Severity::Error, "1..=100"),
        ("{ type: prompt, prompt: { model: nobody } }", Severity::Error, "no model is named `nobody`"),
        ("{ type: prompt, prompt: { model: vllm-sr/auto } }", Severity::Error, "would recurse"),
        ("{ type: automix, automix: { discount_factor: 2 } }", Severity::Error, "0..=1"),
        ("{ type: router_dc, router_dc: { temperature: 0 } }", Severity::Error, "above 0"),
        ("{ type: thomson }", Severity::Error, "is not an algorithm"),
    ];
    for (algorithm, severity, text) in cases {
        let all = told(algorithm, "{}");
        assert!(
            all.iter().any(|it| it.severity == severity && it.message.contains(text)),
            "{algorithm}: {all:#?}"
        );
    }
}

#[test]
fn conversations_are_protected_only_where_the_file_says_so() {
    let sessions = |router: &str| spec("{ type: static }", router).global.sessions;
    assert!(!sessions("{}").enabled);
    assert!(!sessions("{ learning: { enabled: false, protection: { enabled: true } } }").enabled);
    let it = sessions(
        "{ learning: { enabled: true, protection: { scope: conversation, identity: { headers: { session: X-My } },
           tuning: { idle_timeout_seconds: 60, switch_margin: 0.2 } } } }",
    );
    assert!(it.enabled && it.by_conversation);
    assert_eq!((it.session_header.as_str(), it.idle_timeout.as_secs(), it.switch_margin), ("x-my", 60, 0.2));
}

#[test]
fn a_decision_without_an_algorithm_gets_the_method_of_the_file_where_there_is_a_choice() {
    let kind = |router: &str, refs: &str| {
        let file = file("X", router).replace("      algorithm: X\n", "");
        let file = file.replace("modelRefs: [{ model: a }, { model: b }]", refs);
        let checked = read(&file);
        let spec = checked.spec.unwrap_or_else(|| panic!("{router}: {:#?}", checked.diagnostics));
        spec.recipes[0].decisions[0].algorithm.kind()
    };
    let two = "modelRefs: [{ model: a }, { model: b }]";
    let method = |it: &str| format!("{{ model_selection: {{ {it} }} }}");
    assert_eq!(kind(&method("method: multi_factor"), two), "multi_factor");
    assert_eq!(kind(&method("method: multi_factor"), "modelRefs: [{ model: a }]"), "static");
    assert_eq!(kind(&method("method: multi_factor, enabled: false"), two), "static");
    assert_eq!(kind(&method("method: knn"), two), "static", "nothing was trained");
    assert_eq!(kind(&method("method: knn, ml: { knn: { pretrained_path: k.safetensors } }"), two), "knn");
    assert_eq!(kind("{}", two), "static");
    assert_eq!(
        spec("{ type: automix }", &method("method: hybrid")).recipes[0].decisions[0].algorithm.kind(),
        "automix"
    );
}
