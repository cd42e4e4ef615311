//! The plugins that look at an answer before it leaves, and the one that draws it.

#![expect(clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on should say where")]

use chorus_spec::{
    HallucinationSettings, ImageBackend, JailbreakAction, Plugin, Remark, ResponseJailbreakSettings, Spec,
};
use std::time::Duration;

fn file(plugin: &str) -> String {
    format!(
        "version: v0.3
providers:
  models: [{{ name: m, backend_refs: [{{ endpoint: \"127.0.0.1:1\" }}] }}]
routing:
  decisions:
    - name: route
      modelRefs: [{{ model: m }}]
      plugins: [{plugin}]
"
    )
}

fn spec(plugin: &str) -> Spec {
    let checked = chorus_spec::read(&file(plugin));
    checked.spec.unwrap_or_else(|| panic!("{:#?}", checked.diagnostics))
}

fn plugin(text: &str) -> Plugin {
    spec(text).recipes[0].decisions[0].plugins[0].clone()
}

/// `code: message` of everything that is said of it.
fn told(text: &str) -> Vec<String> {
    let checked = chorus_spec::read(&file(text));
    checked.diagnostics.iter().map(|it| format!("{}: {}", it.code, it.message)).collect()
}

#[test]
fn a_bare_check_has_the_contracts_defaults() {
    let Plugin::Hallucination(it) = plugin("{ type: hallucination }") else { panic!() };
    assert_eq!(it, HallucinationSettings::default());
    assert_eq!((it.unsupported, it.unverified), (Remark::Header, Remark::Header));
    let Plugin::ResponseJailbreak(it) = plugin("{ type: response_jailbreak }") else { panic!() };
    assert_eq!(it, ResponseJailbreakSettings { threshold: None, action: JailbreakAction::Header });
}

#[test]
fn what_is_written_is_what_is_checked() {
    let text = "{ type: hallucination, configuration: { use_nli: true, hallucination_action: body,
        unverified_factual_action: none, include_hallucination_details: true } }";
    let Plugin::Hallucination(it) = plugin(text) else { panic!() };
    let want = HallucinationSettings {
        by_meaning: true,
        unsupported: Remark::Body,
        unverified: Remark::None,
        details: true,
    };
    assert_eq!(it, want);
    let text = "{ type: response_jailbreak, configuration: { threshold: 0.8, action: block } }";
    let Plugin::ResponseJailbreak(it) = plugin(text) else { panic!() };
    assert_eq!(it, ResponseJailbreakSettings { threshold: Some(0.8), action: JailbreakAction::Block });
}

#[test]
fn a_server_of_images_has_its_own_defaults() {
    let text =
        "{ type: image_gen, configuration: { backend: openai, backend_config: { api_key: \"${K}\" } } }";
    let Plugin::ImageGen(it) = plugin(text) else { panic!() };
    assert_eq!(it.backend, ImageBackend::OpenAi { quality: None, style: None });
    assert_eq!((it.model.as_deref(), it.width, it.height), (Some("gpt-image-1"), 1024, 1024));
    assert_eq!((it.timeout, it.only_wanted), (Duration::from_secs(60), false));
    let named: Vec<_> = spec(text).variables().into_iter().map(|it| (it.name, it.is_secret)).collect();
    assert_eq!(named, [("K".to_owned(), true)]);

    let text =
        "{ type: image_gen, configuration: { backend: vllm_omni, default_width: 512, modality_detection: {},
        max_inference_steps: 20, backend_config: { base_url: \"http://h:1\", cfg_scale: 2 } } }";
    let Plugin::ImageGen(it) = plugin(text) else { panic!() };
    assert_eq!(it.backend, ImageBackend::VllmOmni { steps: 20, cfg_scale: 2.0, seed: None });
    assert_eq!((it.model.as_deref(), it.width, it.height), (None, 512, 1024));
    assert_eq!((it.timeout, it.only_wanted), (Duration::from_secs(120), true));
}

#[test]
fn every_wrong_setting_is_told_in_its_place() {
    for (text, want) in [
        ("{ type: hallucination, configuration: { hallucination_action: shout } }", "bad-value"),
        ("{ type: hallucination, configuration: { include_hallucination_details: true } }", "unused"),
        ("{ type: response_jailbreak, configuration: { action: body } }", "bad-value"),
        ("{ type: response_jailbreak, configuration: { threshold: 70 } }", "bad-range"),
        ("{ type: image_gen, configuration: { backend: dalle } }", "bad-value"),
        ("{ type: image_gen, configuration: { backend: openai } }", "missing-key"),
        ("{ type: image_gen, configuration: { backend: openai, backend_config: {} } }", "missing-key"),
        ("{ type: image_gen, configuration: { backend: vllm_omni, backend_config: {} } }", "missing-key"),
        (
            "{ type: image_gen, configuration: { backend: openai, backend_config: { api_key: \"${K}\", key: x } } }",
            "unknown-key",
        ),
        (
            "{ type: image_gen, configuration: { backend: openai, backend_config: { api_key: sk-1 } } }",
            "literal-secret",
        ),
        (
            "{ type: image_gen, configuration: { backend: openai, default_width: 4, backend_config: { api_key: \"${K}\" } } }",
            "bad-range",
        ),
        (
            "{ type: image_gen, configuration: { backend: openai, max_inference_steps: 4, backend_config: { api_key: \"${K}\" } } }",
            "unused",
        ),
    ] {
        let told = told(text);
        assert!(told.iter().any(|it| it.starts_with(want)), "{text}: {told:?}");
    }
}

#[test]
fn a_plugin_that_is_off_leaves_no_trace() {
    for kind in ["hallucination", "response_jailbreak", "image_gen"] {
        let text = format!("{{ type: {kind}, configuration: {{ enabled: false }} }}");
        assert!(spec(&text).recipes[0].decisions[0].plugins.is_empty(), "{kind}");
        assert!(told(&text).iter().all(|it| !it.contains(kind)), "{:?}", told(&text));
    }
}
