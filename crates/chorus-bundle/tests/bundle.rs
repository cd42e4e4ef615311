//! Bundles of a small source: built, read back, tampered with, compared.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that finds its fixture broken has failed"
)]

use chorus_bundle::{
    Bundle, BundleFault, FAULT_CODES, Files, archive, canonical, diff, graph, source, verify,
};
use chorus_spec::{Digest, Severity};
use proptest::prelude::*;
use serde_json::{Value, json};

const MOM: &str = include_str!("source/mom.yaml");
const POLICY: &str = include_str!("source/policy.yaml");

fn files() -> Files {
    let text = |text: &str| text.as_bytes().to_vec();
    Files::from([
        ("mom.yaml".to_owned(), text(MOM)),
        ("policy.yaml".to_owned(), text(POLICY)),
        ("prompts/code.md".to_owned(), text("Answer with code first.\n")),
        ("suites/smoke.jsonl".to_owned(), text("{\"prompt\":\"hello\"}\n")),
        ("README.md".to_owned(), text("# Helpdesk\n")),
    ])
}

fn with(name: &str, from: &str, to: &str) -> Files {
    let mut files = files();
    let text = String::from_utf8(files[name].clone()).unwrap();
    assert!(text.contains(from), "{from}");
    files.insert(name.to_owned(), text.replacen(from, to, 1).into_bytes());
    files
}

fn build(files: &Files) -> Bundle {
    let reading = source::read(files);
    let source = reading.source.unwrap_or_else(|| panic!("{:#?}", reading.findings));
    Bundle::build(source).unwrap()
}

/// `file:code` of every error.
fn errors(files: &Files) -> Vec<String> {
    let reading = source::read(files);
    let errors = reading.findings.iter().filter(|it| it.diagnostic.severity == Severity::Error);
    errors.map(|it| format!("{}:{}:{}", it.file, it.diagnostic.place.line, it.diagnostic.code)).collect()
}

fn refused(layout: &Files) -> Vec<&'static str> {
    let mut codes: Vec<&str> = verify::read(layout).unwrap_err().iter().map(BundleFault::code).collect();
    codes.dedup();
    codes
}

#[test]
fn a_source_becomes_a_bundle_that_reads_back_the_same() {
    let bundle = build(&files());
    assert!(source::read(&files()).findings.is_empty(), "{:?}", source::read(&files()).findings);
    let layout = bundle.layout().unwrap();
    let again = verify::read(&layout).unwrap();
    assert_eq!(again, bundle);
    assert_eq!(again.layout().unwrap(), layout);
    let archived = archive::save(&layout).unwrap();
    assert_eq!(archive::load(&archived).unwrap(), layout);
    assert_eq!(archive::save(&archive::load(&archived).unwrap()).unwrap(), archived);
}

#[test]
fn a_graph_has_neither_addresses_nor_inexact_numbers() {
    let bundle = build(&files());
    let text = String::from_utf8(canonical::write(&bundle.graph).unwrap()).unwrap();
    for word in ["unbound", "providers", "endpoint", "listeners", "0.30"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
    fn fractions(value: &Value) -> usize {
        match value {
            Value::Number(number) => usize::from(number.is_f64()),
            Value::Array(items) => items.iter().map(fractions).sum(),
            Value::Object(fields) => fields.values().map(fractions).sum(),
            _ => 0,
        }
    }
    assert_eq!(fractions(&bundle.graph), 0);
    let prompt = &bundle.graph["routing"]["decisions"][0]["plugins"][0]["configuration"]["system_prompt"];
    assert_eq!(prompt, "Answer with code first.");
    assert_eq!(bundle.graph["routing"]["signals"]["embeddings"][0]["threshold"], "0.3");
    assert_eq!(bundle.mom.operating_points[0].bounds.max_micro_usd, Some(20_000));
}

#[test]
fn what_looks_like_a_number_stays_the_text_that_it_was() {
    let bundle = build(&with(
        "policy.yaml",
        "keywords: [rust]",
        "keywords: [0.30, \"0.30\", no, \"true\", 911, \"null\", 1e3]",
    ));
    assert_eq!(verify::read(&bundle.layout().unwrap()).unwrap(), bundle);
    let document = graph::document(&bundle.graph, &bundle.mom).unwrap();
    let spec = chorus_spec::read_document(&document).spec.unwrap();
    let kind = format!("{:?}", spec.recipes[0].signals[0].kind);
    assert!(kind.contains(r#"["0.30", "0.30", "no", "true", "911", "null", "1e3"]"#), "{kind}");
}

#[test]
fn how_a_number_was_written_says_nothing() {
    let one = build(&files()).digest;
    assert_eq!(build(&with("policy.yaml", "threshold: 0.30", "threshold: 3e-1")).digest, one);
    assert_eq!(build(&with("mom.yaml", "max_usd: 0.02", "max_usd: \"0.0200\"")).digest, one);
    assert_eq!(build(&with("policy.yaml", "version: v0.3", "# a comment\nversion: \"v0.3\"")).digest, one);
    assert_ne!(build(&with("policy.yaml", "threshold: 0.30", "threshold: 0.31")).digest, one);
    assert_ne!(build(&with("prompts/code.md", "first", "last")).digest, one);
}

#[test]
fn a_policy_in_the_policy_language_builds_too() {
    let document = chorus_spec::Document::parse(POLICY).unwrap();
    let mut files = files();
    files.remove("policy.yaml");
    files.insert("policy.dsl".to_owned(), chorus_spec::dsl::decompile(&document).text.into_bytes());
    let bundle = build(&files);
    assert_eq!(bundle.graph["routing"]["decisions"][0]["name"], "code");
    assert_eq!(verify::read(&bundle.layout().unwrap()).unwrap(), bundle);
}

#[test]
fn every_problem_of_a_source_is_told_at_once_and_in_its_place() {
    let mut broken = with("mom.yaml", "version: 1.2.0", "version: one\ncolour: red");
    let policy = POLICY.replace("model: coder", "model: nobody").replace("operator: OR", "operator: XOR");
    broken.insert("policy.yaml".to_owned(), policy.into_bytes());
    broken.insert("notes.txt".to_owned(), Vec::new());
    let found = errors(&broken);
    assert_eq!(
        found,
        ["mom.yaml:3:bad-value", "mom.yaml:4:unknown-key"],
        "the policy waits for its interface"
    );
    for (name, from, to, want) in [
        ("mom.yaml", "format: 1", "format: 2", "mom.yaml:1:bad-value"),
        ("mom.yaml", "licence: Apache-2.0", "licence: \"Apache; rm\"", "mom.yaml:4:bad-value"),
        ("mom.yaml", "max_usd: 0.02", "max_usd: 0.0000001", "mom.yaml:32:bad-range"),
        ("mom.yaml", "kind: generator", "kind: oracle", "mom.yaml:10:bad-value"),
        ("mom.yaml", "- name: coder", "- name: generalist", "mom.yaml:16:duplicate-name"),
        ("mom.yaml", "- name: coder", "- name: acme/helpdesk-light", "mom.yaml:16:recursion"),
        ("mom.yaml", "file: suites/smoke.jsonl", "file: suites/other.jsonl", "mom.yaml:1:unknown-reference"),
        ("mom.yaml", "suite: smoke", "suite: fire", "mom.yaml:40:unknown-reference"),
        ("mom.yaml", "recipe: default", "recipe: other", "mom.yaml:1:unknown-reference"),
        ("policy.yaml", "model: coder", "model: nobody", "policy.yaml:25:unknown-reference"),
        ("policy.yaml", "file:prompts/code.md", "file:prompts/none.md", "policy.yaml:1:unknown-reference"),
        ("policy.yaml", "version: v0.3", "version: v0.3\nlisteners: [{port: 1}]", "policy.yaml:2:bad-value"),
        (
            "policy.yaml",
            "version: v0.3",
            "version: v0.3\nglobal: {stores: {response_cache: {enabled: false}}}",
            "policy.yaml:2:bad-value",
        ),
    ] {
        let found = errors(&with(name, from, to));
        assert!(found.contains(&want.to_owned()), "{to}: {found:?}");
    }
}

#[test]
fn no_deployment_and_no_secret_gets_into_a_bundle() {
    let provider = "version: v0.3\nproviders: {models: [{name: coder, backend_refs: [{endpoint: \"h:1\"}]}]}";
    assert!(!errors(&with("policy.yaml", "version: v0.3", provider)).is_empty());
    let header = |value: &str| {
        let plugin = format!(
            "plugins:\n        - type: header_mutation\n          configuration: {{add: [{{name: X-Key, value: \"{value}\"}}]}}"
        );
        errors(&with("policy.yaml", "plugins:", &plugin))
    };
    assert!(header("plain").is_empty(), "{:?}", header("plain"));
    assert!(header("${TOKEN}").contains(&"policy.yaml:1:bad-value".to_owned()), "{:?}", header("${TOKEN}"));
}

#[test]
fn a_tampered_bundle_is_refused_by_name() {
    let layout = build(&files()).layout().unwrap();
    let blobs: Vec<String> = layout.keys().filter(|name| name.starts_with("blobs/")).cloned().collect();
    for name in &blobs {
        let mut flipped = layout.clone();
        let bytes = flipped.get_mut(name).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert_eq!(refused(&flipped), ["bundle-digest"], "{name}");
        let mut longer = layout.clone();
        longer.get_mut(name).unwrap().push(b' ');
        assert_eq!(refused(&longer), ["bundle-size"], "{name}");
        let mut gone = layout.clone();
        gone.remove(name);
        assert_eq!(refused(&gone), ["bundle-missing"], "{name}");
    }
    let mut half = layout.clone();
    half.remove("index.json");
    assert_eq!(refused(&half), ["bundle-missing"]);
    half.insert("index.json".to_owned(), b"{\"schemaVersion\":2,\"manifests\":[]}".to_vec());
    assert_eq!(refused(&half), ["bundle-shape"]);
}

/// A layout whose manifest was changed by somebody who knows how to compute digests.
fn forged(change: impl FnOnce(&mut Value, &mut Files)) -> Files {
    let bundle = build(&files());
    let mut layout = bundle.layout().unwrap();
    let mut manifest = serde_json::to_value(&bundle.manifest).unwrap();
    change(&mut manifest, &mut layout);
    let descriptor = put(&mut layout, &canonical::write(&manifest).unwrap());
    let mut index: Value = serde_json::from_slice(&layout["index.json"]).unwrap();
    let kind = index["manifests"][0]["mediaType"].clone();
    index["manifests"] = json!([{ "mediaType": kind, "artifactType": manifest["artifactType"], "digest": descriptor.0, "size": descriptor.1 }]);
    layout.insert("index.json".to_owned(), index.to_string().into_bytes());
    layout
}

fn put(layout: &mut Files, bytes: &[u8]) -> (String, u64) {
    let digest = Digest::of(bytes).to_string();
    layout.insert(format!("blobs/sha256/{}", &digest[7..]), bytes.to_vec());
    (digest, bytes.len() as u64)
}

/// Puts another document behind a descriptor of the manifest.
fn replace(manifest: &mut Value, pointer: &str, layout: &mut Files, bytes: &[u8]) {
    let (digest, size) = put(layout, bytes);
    let descriptor = manifest.pointer_mut(pointer).unwrap();
    descriptor["digest"] = json!(digest);
    descriptor["size"] = json!(size);
}

#[test]
fn a_forged_manifest_is_refused_by_name() {
    assert_eq!(
        refused(&forged(|it, _| it["artifactType"] = json!("application/vnd.chorus.mom.v2+json"))),
        ["bundle-newer-format"]
    );
    assert_eq!(refused(&forged(|it, _| it["config"]["mediaType"] = json!("text/plain"))), ["bundle-kind"]);
    assert_eq!(
        refused(&forged(|it, _| it["layers"][0]["digest"] = json!("sha256:../../../etc/passwd"))),
        ["bundle-path"]
    );
    assert_eq!(refused(&forged(|it, _| it["layers"][1]["size"] = json!(1_u64 << 40))), ["bundle-too-large"]);
    let title = "org.opencontainers.image.title";
    for name in ["../../evil", "/etc/passwd", "prompts/../../x", "prompts\\x"] {
        assert_eq!(
            refused(&forged(|it, _| it["layers"][2]["annotations"][title] = json!(name))),
            ["bundle-path"],
            "{name}"
        );
    }
    assert_eq!(refused(&forged(|it, _| it["annotations"][title] = json!("another"))), ["bundle-shape"]);
    assert_eq!(refused(&forged(|it, _| it["layers"].as_array_mut().unwrap().truncate(0))), ["bundle-shape"]);
    let bomb = forged(|it, _| {
        let layer = it["layers"][1].clone();
        it["layers"].as_array_mut().unwrap().extend(std::iter::repeat_n(layer, 5000));
    });
    assert_eq!(refused(&bomb), ["bundle-too-large"]);
}

#[test]
fn forged_contents_are_refused_by_name() {
    let interface = |change: fn(&mut Value)| {
        let mut mom = serde_json::to_value(build(&files()).mom).unwrap();
        change(&mut mom);
        forged(|it, layout| replace(it, "/config", layout, &canonical::write(&mom).unwrap()))
    };
    let graph = |change: fn(&mut Value)| {
        let mut graph = build(&files()).graph;
        change(&mut graph);
        forged(|it, layout| replace(it, "/layers/0", layout, &canonical::write(&graph).unwrap()))
    };
    assert_eq!(refused(&interface(|it| it["format"] = json!(2))), ["bundle-newer-format"]);
    assert_eq!(refused(&interface(|it| it["colour"] = json!("red"))), ["bundle-shape"]);
    assert_eq!(
        refused(&interface(|it| it["components"][0]["name"] = json!("acme/helpdesk-light"))),
        ["bundle-shape"]
    );
    assert_eq!(refused(&interface(|it| it["components"] = json!([]))), ["bundle-shape"]);
    assert_eq!(refused(&graph(|it| it["contract"] = json!("v9"))), ["bundle-kind"]);
    assert_eq!(refused(&graph(|it| it["providers"] = json!({"models": []}))), ["bundle-policy"]);
    assert_eq!(
        refused(&graph(|it| it["routing"]["decisions"][0]["modelRefs"][0]["model"] = json!("nobody"))),
        ["bundle-policy"]
    );
    assert_eq!(
        refused(&graph(|it| it["routing"]["signals"]["embeddings"][0]["threshold"] = json!("0.30"))),
        ["bundle-shape"]
    );
    let spaced = forged(|it, layout| replace(it, "/layers/0", layout, b"{ \"contract\": \"v0.3\" }"));
    assert_eq!(refused(&spaced), ["bundle-not-canonical"]);
    let deep = forged(|it, layout| replace(it, "/layers/0", layout, "[".repeat(100_000).as_bytes()));
    assert_eq!(refused(&deep), ["bundle-not-canonical"]);
}

#[test]
fn an_archive_holds_a_layout_and_nothing_else() {
    let packed = |name: &str, link: bool| {
        let mut header = tar::Header::new_ustar();
        let bytes = name.as_bytes();
        header.as_ustar_mut().unwrap().name[..bytes.len()].copy_from_slice(bytes);
        header.set_size(0);
        header.set_entry_type(if link { tar::EntryType::Symlink } else { tar::EntryType::Regular });
        header.set_cksum();
        let mut out = tar::Builder::new(Vec::new());
        out.append(&header, std::io::empty()).unwrap();
        archive::load(&out.into_inner().unwrap()).map_err(|fault| fault.code())
    };
    for name in ["../evil", "/etc/passwd", "blobs/sha256/../../x", "blobs/sha256/00", "prompts/a.md"] {
        assert_eq!(packed(name, false), Err("bundle-path"), "{name}");
    }
    assert_eq!(packed("index.json", true), Err("bundle-path"));
    let whole = archive::save(&build(&files()).layout().unwrap()).unwrap();
    for cut in [700, 1500, whole.len() / 2] {
        let came =
            archive::load(&whole[..cut]).map_or_else(|fault| vec![fault.code()], |files| refused(&files));
        assert!(!came.is_empty(), "{cut}");
    }
    assert_eq!(archive::load(&[7; 2048]).unwrap_err().code(), "bundle-archive");
}

#[test]
fn a_diff_says_what_changed_in_the_policys_own_words() {
    let before = build(&files());
    assert!(diff::between(&before, &before).is_empty());
    for (name, from, to, want) in [
        (
            "policy.yaml",
            "threshold: 0.30",
            "threshold: 0.42",
            "threshold routing.signals.embeddings[chat].threshold \"0.3\" \"0.42\"",
        ),
        ("policy.yaml", "priority: 20", "priority: 30", "decision routing.decisions[code].priority 20 30"),
        (
            "policy.yaml",
            "threshold: 0.8",
            "threshold: 0.9",
            "guard routing.signals.jailbreak[attack].threshold \"0.8\" \"0.9\"",
        ),
        ("mom.yaml", "max_calls: 4", "max_calls: 9", "bound operating_points[light].bounds.max_calls 4 9"),
        ("mom.yaml", "version: 1.2.0", "version: 1.3.0", "interface version \"1.2.0\" \"1.3.0\""),
        (
            "mom.yaml",
            "context_tokens: 8192",
            "context_tokens: 4096",
            "component components[coder].context_tokens 8192 4096",
        ),
        ("README.md", "# Helpdesk", "# Help", "asset assets[README.md].content"),
        (
            "prompts/code.md",
            "first",
            "last",
            "prompt routing.decisions[code].plugins[0].configuration.system_prompt",
        ),
    ] {
        let changes = diff::between(&before, &build(&with(name, from, to)));
        let shown = |value: &Option<Value>| value.as_ref().map(Value::to_string).unwrap_or_default();
        let lines: Vec<String> = changes
            .iter()
            .map(|it| {
                format!("{} {} {} {}", it.subject.as_str(), it.path, shown(&it.before), shown(&it.after))
            })
            .collect();
        assert!(lines.iter().any(|line| line.starts_with(want)), "{want}: {lines:?}");
    }
}

#[test]
fn every_code_is_documented() {
    let page = include_str!("../../../docs/mom-spec.md");
    for (code, _) in FAULT_CODES {
        assert!(page.contains(&format!("`{code}`")), "{code}");
    }
}

proptest! {
    #[test]
    fn files_in_any_order_give_the_same_bytes(order in Just(files().into_iter().collect::<Vec<_>>()).prop_shuffle()) {
        let shuffled: Files = order.into_iter().collect();
        prop_assert_eq!(build(&shuffled).layout().unwrap(), build(&files()).layout().unwrap());
    }

    #[test]
    fn the_order_of_keys_and_components_says_nothing(at in 0..3_usize) {
        let mut mom: Value = chorus_spec::Document::parse(MOM).unwrap().to_json();
        mom["components"].as_array_mut().unwrap().rotate_left(at);
        let turned: serde_json::Map<String, Value> = mom.as_object().unwrap().clone().into_iter().rev().collect();
        let mut other = files();
        other.insert("mom.yaml".to_owned(), Value::Object(turned).to_string().into_bytes());
        prop_assert_eq!(build(&other).digest, build(&files()).digest);
    }

    #[test]
    fn whatever_words_a_policy_has_its_bundle_verifies(words in prop::collection::vec("[-+.eE0-9a-z]{1,6}", 1..6), quoted in any::<bool>()) {
        let words: Vec<String> = words.iter().map(|it| if quoted { format!("\"{it}\"") } else { it.clone() }).collect();
        let files = with("policy.yaml", "keywords: [rust]", &format!("keywords: [{}]", words.join(", ")));
        if let Some(source) = source::read(&files).source {
            let bundle = Bundle::build(source).unwrap();
            prop_assert_eq!(verify::read(&bundle.layout().unwrap()), Ok(bundle));
        }
    }

    #[test]
    fn no_flipped_bit_goes_unnoticed(blob in any::<prop::sample::Index>(), byte in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut layout = build(&files()).layout().unwrap();
        let names: Vec<String> = layout.keys().filter(|name| name.starts_with("blobs/")).cloned().collect();
        let bytes = layout.get_mut(blob.get(&names)).unwrap();
        let at = byte.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(verify::read(&layout).is_err());
    }

    #[test]
    fn arbitrary_archives_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = archive::load(&bytes).map(|files| verify::read(&files));
    }
}
