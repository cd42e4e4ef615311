//! Reports of other systems' users about artifacts, each as a test that is named by its case.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that finds its fixture broken has failed"
)]

use chorus_bundle::{Bundle, Files, archive, source, verify};
use serde_json::Value;
use tar::EntryType;

fn files() -> Files {
    let text = |text: &str| text.as_bytes().to_vec();
    Files::from([
        ("mom.yaml".to_owned(), text(include_str!("source/mom.yaml"))),
        ("policy.yaml".to_owned(), text(include_str!("source/policy.yaml"))),
        ("prompts/code.md".to_owned(), text("Answer with code first.\n")),
        ("suites/smoke.jsonl".to_owned(), text("{\"prompt\":\"hello\"}\n")),
        ("README.md".to_owned(), text("# Helpdesk\n")),
    ])
}

fn build() -> Bundle {
    let reading = source::read(&files());
    Bundle::build(reading.source.unwrap_or_else(|| panic!("{:#?}", reading.findings))).unwrap()
}

/// Every digest that a document mentions.
fn digests(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(fields) => {
            let own = fields.get("digest").and_then(Value::as_str);
            own.into_iter().chain(fields.values().flat_map(digests)).collect()
        }
        Value::Array(items) => items.iter().flat_map(digests).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn h05_every_object_has_its_digest_and_a_flipped_byte_is_refused_by_name() {
    let (bundle, layout) = (build(), build().layout().unwrap());
    assert_eq!(bundle.layout().unwrap(), layout, "the same source has the same bytes");
    let manifest = serde_json::to_value(&bundle.manifest).unwrap();
    let index: Value = serde_json::from_slice(&layout["index.json"]).unwrap();
    let mut named: Vec<&str> = digests(&manifest).into_iter().chain(digests(&index)).collect();
    named.sort_unstable();
    named.dedup();
    let objects: Vec<&String> = layout.keys().filter(|name| name.starts_with("blobs/sha256/")).collect();
    let of = |digest: &str| format!("blobs/{}", digest.replace(':', "/"));
    assert_eq!(
        named.iter().map(|digest| of(digest)).collect::<Vec<_>>(),
        objects.iter().map(|it| (*it).clone()).collect::<Vec<_>>()
    );
    for name in objects {
        let mut flipped = layout.clone();
        flipped.get_mut(name).unwrap()[0] ^= 1;
        let faults = verify::read(&flipped).unwrap_err();
        assert!(faults.iter().any(|fault| fault.to_string().contains(name.as_str())), "{name}: {faults:?}");
    }
}

/// There is no export with weights: whatever a model's licence says, a bundle refers to it, and what lies beside the source
/// stays there.
#[test]
fn h07_no_models_bytes_are_exported_whatever_its_licence() {
    const WEIGHTS: &[u8] = b"GGUF weights that may not be copied";
    let mut files = files();
    let mom = include_str!("source/mom.yaml");
    let closed = mom
        .replace("licence: Apache-2.0\n    locality", "licence: LicenseRef-no-redistribution\n    locality");
    assert_ne!(closed, mom);
    files.insert("mom.yaml".to_owned(), closed.into_bytes());
    files.insert("models/coder.gguf".to_owned(), WEIGHTS.to_vec());
    let reading = source::read(&files);
    let told = reading.findings.iter().find(|it| it.file == "models/coder.gguf");
    assert!(told.is_some(), "{:?}", reading.findings);
    let bundle = Bundle::build(reading.source.unwrap()).unwrap();
    let components = &bundle.summary()["components"];
    let of =
        |name: &str| components.as_array().unwrap().iter().find(|it| it["name"] == name).unwrap().clone();
    assert_eq!(of("generalist")["form"], "external reference");
    assert_eq!(of("coder")["form"], "open weights, by reference");
    assert_eq!(of("coder")["licence"], "LicenseRef-no-redistribution");
    let archived = archive::save(&bundle.layout().unwrap()).unwrap();
    assert!(!archived.windows(WEIGHTS.len()).any(|part| part == WEIGHTS), "the export holds the weights");
}

/// An archive with one entry more than a sound one.
fn with_entry(name: &str, kind: EntryType, size: u64) -> Vec<u8> {
    let mut out = tar::Builder::new(Vec::new());
    for (name, bytes) in build().layout().unwrap() {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        out.append_data(&mut header, name, bytes.as_slice()).unwrap();
    }
    let mut header = tar::Header::new_ustar();
    header.as_ustar_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_cksum();
    out.append(&header, std::io::empty()).unwrap();
    out.into_inner().unwrap()
}

#[test]
fn h08_hostile_archives_are_refused_before_anything_is_written() {
    let blob = build().layout().unwrap().keys().find(|name| name.starts_with("blobs/")).unwrap().clone();
    let rows = [
        ("../x", EntryType::Regular, 0, "bundle-path"),
        ("/etc/passwd", EntryType::Regular, 0, "bundle-path"),
        ("oci-layout", EntryType::Symlink, 0, "bundle-path"),
        ("oci-layout", EntryType::Link, 0, "bundle-path"),
        (blob.as_str(), EntryType::Regular, 0, "bundle-archive"),
        ("Index.json", EntryType::Regular, 0, "bundle-path"),
        (blob.as_str(), EntryType::Regular, 1 << 40, "bundle-too-large"),
        ("oci-layout", EntryType::Block, 0, "bundle-path"),
        // A sparse entry is already refused by the reader of the archive, which names none.
        (blob.as_str(), EntryType::GNUSparse, 1 << 40, "bundle-archive"),
    ];
    for (name, kind, size, code) in rows {
        let fault = archive::load(&with_entry(name, kind, size)).unwrap_err();
        assert_eq!(fault.code(), code, "{name}: {fault}");
        let is_named =
            fault.to_string().contains(name) || code == "bundle-too-large" || kind == EntryType::GNUSparse;
        assert!(is_named, "{name}: {fault}");
    }
}
