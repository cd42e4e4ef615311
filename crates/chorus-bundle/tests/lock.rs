//! Locks: resolved, compared, moved by one component, refused for another bundle.

#![expect(clippy::unwrap_used, reason = "a test that finds its fixture broken has failed")]

use chorus_bundle::binding::{self, Deployment};
use chorus_bundle::lock::{Lock, LockFault, Observed, Prober, Runtime};
use chorus_bundle::{Bundle, Component, Files, mount, source};
use chorus_spec::Digest;
use std::collections::BTreeMap;

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
      - {name: near, preference: 1, trust: process, backend: {type: local, model: small}}
      - {name: far, preference: 2, trust: private, price: {prompt_per_1m: 2, completion_per_1m: 6}, backend: {endpoint: \"h:1\"}}
  coder:
    deployments:
      - {name: box, trust: private, provider_model_id: coder-7b, backend: {endpoint: \"h:2\"}}
";

/// A world where weights and providers are as told.
struct World {
    weights: &'static str,
    fingerprint: &'static str,
    at_ms: u64,
}

impl Prober for World {
    fn probe(&self, component: &Component, deployment: &Deployment) -> Observed {
        if deployment.trust == "process" {
            let weights = BTreeMap::from([("model.gguf".to_owned(), self.weights.to_owned())]);
            return Observed::Local {
                model: "small".to_owned(),
                weights,
                tokenizer: self.weights.to_owned(),
            };
        }
        let model = deployment.provider_model_id.clone().unwrap_or_else(|| component.name.clone());
        let fingerprint = Some(self.fingerprint.to_owned());
        Observed::Provider { model, fingerprint, context_tokens: Some(8192), at_ms: self.at_ms }
    }
}

const THEN: World = World { weights: "sha256:aa", fingerprint: "sha256:11", at_ms: 1 };

fn resolve(text: &str, world: &World) -> Lock {
    let bundle = bundle();
    let binding = binding::read(text, &bundle.mom).unwrap();
    let engine = Runtime {
        version: "0.1.0".to_owned(),
        platform: "linux-x86_64".to_owned(),
        instruction_set: vec!["avx2".to_owned()],
    };
    Lock::resolve(&bundle, (&binding, &binding::digest(text).unwrap()), engine, world).unwrap()
}

#[test]
fn what_was_asked_for_and_what_was_found_stand_side_by_side() {
    let lock = resolve(BINDING, &THEN);
    let coder = &lock.components["coder"];
    assert_eq!(coder.requested.weights.as_ref().unwrap().reference, "qwen2.5-coder-0.5b-instruct");
    assert_eq!(coder.deployments, ["coder/box"]);
    assert_eq!(lock.components["generalist"].deployments, ["generalist/near"]);
    let text = lock.write().unwrap();
    assert!(text.starts_with("{\n  \"version\": 1,\n  \"revision\": 0,\n  \"bundle\": \"sha256:"), "{text}");
    assert!(text.contains("\"context_tokens\": 8192") && text.contains("\"fingerprint\": \"sha256:11\""));
    assert_eq!(Lock::read(&text).unwrap(), lock);
}

#[test]
fn drift_is_told_by_component_and_time_is_no_drift() {
    let lock = resolve(BINDING, &THEN);
    assert_eq!(lock.drift(&resolve(BINDING, &World { at_ms: 99, ..THEN })), []);
    let moved = lock.drift(&resolve(BINDING, &World { fingerprint: "sha256:22", ..THEN }));
    let told: Vec<(&str, &str)> = moved.iter().map(|it| (it.component.as_str(), it.what.as_str())).collect();
    assert_eq!(told, [("coder", "coder/box digest")]);
    let other = resolve(BINDING, &World { weights: "sha256:bb", ..THEN });
    assert_eq!(lock.drift(&other)[0].component, "generalist");
    assert_eq!(moved[0].found, "sha256:22");
}

#[test]
fn one_component_moves_and_the_others_stay() {
    let mut lock = resolve(BINDING, &THEN);
    let found = resolve(BINDING, &World { weights: "sha256:bb", fingerprint: "sha256:22", at_ms: 2 });
    lock.update("coder", &found).unwrap();
    assert_eq!(lock.components["coder"], found.components["coder"]);
    let left: Vec<String> = lock.drift(&found).into_iter().map(|it| it.component).collect();
    assert_eq!(left, ["generalist"]);
    assert_eq!(lock.update("nobody", &found), Err(LockFault::Component("nobody".to_owned())));
}

#[test]
fn substitutions_are_listed() {
    let without = BINDING.split("  coder:").next().unwrap();
    let lock = resolve(without, &THEN);
    assert_eq!(lock.substitutions, BTreeMap::from([("coder".to_owned(), "generalist".to_owned())]));
    assert_eq!(lock.components["coder"].deployments, ["generalist/near"]);
}

#[test]
fn a_lock_is_for_one_bundle_and_one_binding_and_of_no_newer_version() {
    let lock = resolve(BINDING, &THEN);
    let digest = binding::digest(BINDING).unwrap();
    assert_eq!(lock.is_for(&bundle().digest, &digest), Ok(()));
    let other = Digest::of(b"another").to_string();
    assert!(matches!(lock.is_for(&other, &digest), Err(LockFault::Bundle { .. })));
    assert!(matches!(lock.is_for(&lock.bundle, &Digest::of(b"x")), Err(LockFault::Binding { .. })));
    let newer = lock.write().unwrap().replacen("\"version\": 1", "\"version\": 2", 1);
    assert_eq!(Lock::read(&newer), Err(LockFault::Newer(2)));
    assert!(matches!(Lock::read("{}"), Err(LockFault::Syntax(_))));
    let commented = format!("# a remark\n{BINDING}");
    assert_eq!(binding::digest(&commented).unwrap(), digest);
}

#[test]
fn a_lock_holds_components_where_they_were() {
    let bundle = bundle();
    let lock = resolve(BINDING, &THEN);
    // Another deployment is preferred now; the lock does not follow.
    let moved = BINDING.replace("preference: 2", "preference: 0");
    let binding = binding::read(&moved, &bundle.mom).unwrap();
    let free = mount::mount(&bundle, &binding, None).unwrap();
    let held = mount::mount(&bundle, &binding, Some(&lock.pins())).unwrap();
    assert_eq!(free.documents[0].places["generalist"], ["generalist/far"]);
    assert_eq!(held.documents[0].places["generalist"], ["generalist/near"]);
}
