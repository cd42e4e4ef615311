//! Reading a bundle that somebody else may have written: nothing is believed that a digest does not hold.
//!
//! It knows no file system: files come through [`Blobs`]. **Invariant:** a [`Bundle`] is handed out only when building it
//! again from what was read gives the same identity.

use crate::bundle::{self, Bundle};
use crate::canonical;
use crate::fault::BundleFault;
use crate::graph;
use crate::mom::{FORMAT, Mom};
use crate::oci::{
    ARTIFACT, CONFIG, Descriptor, GRAPH, Index, MANIFEST, Manifest, blob_name, is_digest, kind_of,
};
use crate::path::{self, Files};
use crate::source::Source;
use chorus_spec::{Document, Severity};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Most bytes of a JSON document.
pub const MAX_DOCUMENT_BYTES: u64 = canonical::MAX_BYTES as u64;
/// Most bytes of one asset. Weights do not travel in this version.
pub const MAX_ASSET_BYTES: u64 = 256 * 1024 * 1024;
/// Most bytes of a whole bundle.
pub const MAX_BUNDLE_BYTES: u64 = 1024 * 1024 * 1024;
/// Most blobs of a bundle.
pub const MAX_LAYERS: usize = 4096;

/// Where the files of a layout come from.
pub trait Blobs {
    /// The bytes of a file.
    ///
    /// # Errors
    /// It is not there, or has more than `most` bytes; what is too large is not read.
    fn read(&self, name: &str, most: u64) -> Result<Vec<u8>, BundleFault>;
}

impl Blobs for Files {
    fn read(&self, name: &str, most: u64) -> Result<Vec<u8>, BundleFault> {
        let bytes = self.get(name).ok_or_else(|| BundleFault::Missing(name.to_owned()))?;
        if bytes.len() as u64 > most {
            return Err(BundleFault::TooLarge { name: name.to_owned(), most, unit: "bytes" });
        }
        Ok(bytes.clone())
    }
}

/// Reads and verifies the bundle of a layout.
///
/// # Errors
/// Every reason against it that was found. The blobs are all looked at; what stands inside them only once they are whole.
pub fn read(files: &dyn Blobs) -> Result<Bundle, Vec<BundleFault>> {
    let (digest, manifest) = manifest(files).map_err(|fault| vec![fault])?;
    let mut faults = shape_of(&manifest);
    let config = fetch(files, &manifest.config, MAX_DOCUMENT_BYTES).map_err(|fault| faults.push(fault)).ok();
    let mut layers = Vec::new();
    for layer in &manifest.layers {
        let most = if layer.media_type == GRAPH { MAX_DOCUMENT_BYTES } else { MAX_ASSET_BYTES };
        match fetch(files, layer, most) {
            Ok(bytes) => layers.push((layer, bytes)),
            Err(fault) => faults.push(fault),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let source = contents(&config.unwrap_or_default(), layers).map_err(|fault| vec![fault])?;
    check_policy(&source).map_err(|fault| vec![fault])?;
    let built = Bundle::build(source).map_err(|fault| vec![fault])?;
    if built.digest != digest {
        let why = "is not what its contents are built to: annotations or the order of layers differ";
        return Err(vec![BundleFault::shape("the manifest", why)]);
    }
    Ok(built)
}

/// The one manifest of ours, with its digest.
fn manifest(files: &dyn Blobs) -> Result<(String, Manifest), BundleFault> {
    let layout = json(&files.read("oci-layout", MAX_DOCUMENT_BYTES)?, "oci-layout")?;
    let version = layout.get("imageLayoutVersion").and_then(Value::as_str).unwrap_or_default();
    if version != "1.0.0" {
        return Err(BundleFault::Kind {
            what: "imageLayoutVersion",
            wanted: "1.0.0",
            found: version.to_owned(),
        });
    }
    let index: Index =
        typed(json(&files.read("index.json", MAX_DOCUMENT_BYTES)?, "index.json")?, "index.json")?;
    let is_ours = |it: &&Descriptor| {
        it.media_type == MANIFEST
            && it.artifact_type.as_deref().is_some_and(|kind| version_of(kind).is_some())
    };
    let ours: Vec<&Descriptor> = index.manifests.iter().filter(is_ours).collect();
    let [descriptor] = ours.as_slice() else {
        return Err(BundleFault::shape("index.json", format!("names {} bundles, not one", ours.len())));
    };
    let bytes = fetch(files, descriptor, MAX_DOCUMENT_BYTES)?;
    let value = canonical_json(&bytes, "the manifest")?;
    check_kind(value.get("artifactType").and_then(Value::as_str).unwrap_or_default())?;
    Ok((descriptor.digest.clone(), typed(value, "the manifest")?))
}

/// The version in a kind of artifact of ours: `application/vnd.chorus.mom.v1+json`.
fn version_of(kind: &str) -> Option<u64> {
    kind.strip_prefix("application/vnd.chorus.mom.v")?.strip_suffix("+json")?.parse().ok()
}

fn check_kind(kind: &str) -> Result<(), BundleFault> {
    match version_of(kind) {
        Some(found) if found > FORMAT => {
            Err(BundleFault::NewerFormat { what: "the manifest".to_owned(), found, known: FORMAT })
        }
        Some(_) if kind == ARTIFACT => Ok(()),
        _ => Err(BundleFault::Kind { what: "artifactType", wanted: ARTIFACT, found: kind.to_owned() }),
    }
}

/// What is wrong with a manifest before any blob is read.
fn shape_of(manifest: &Manifest) -> Vec<BundleFault> {
    let mut faults = Vec::new();
    if manifest.layers.len() > MAX_LAYERS {
        faults.push(BundleFault::TooLarge {
            name: "layers".to_owned(),
            most: MAX_LAYERS as u64,
            unit: "blobs",
        });
    }
    let total = manifest.layers.iter().try_fold(0_u64, |sum, it| sum.checked_add(it.size));
    if total.is_none_or(|total| total > MAX_BUNDLE_BYTES) {
        faults.push(BundleFault::TooLarge {
            name: "layers".to_owned(),
            most: MAX_BUNDLE_BYTES,
            unit: "bytes",
        });
    }
    for (what, wanted, found) in [
        ("mediaType", MANIFEST, &manifest.media_type),
        ("config.mediaType", CONFIG, &manifest.config.media_type),
    ] {
        if wanted != found {
            faults.push(BundleFault::Kind { what, wanted, found: found.clone() });
        }
    }
    let graphs = manifest.layers.iter().filter(|it| it.media_type == GRAPH).count();
    if graphs != 1 {
        faults.push(BundleFault::shape("the manifest", format!("names {graphs} graphs, not one")));
    }
    let mut seen = std::collections::BTreeSet::new();
    for layer in manifest.layers.iter().filter(|it| it.media_type != GRAPH) {
        let name = layer.title().unwrap_or_default();
        if let Err(why) = path::check(name) {
            faults.push(BundleFault::Path { name: name.to_owned(), why });
        } else if kind_of(name) != Some(layer.media_type.as_str()) {
            faults
                .push(BundleFault::shape(name, format!("does not go with the kind `{}`", layer.media_type)));
        } else if !seen.insert(name) {
            faults.push(BundleFault::shape(name, "stands twice in the manifest"));
        }
    }
    if faults.iter().any(|it| matches!(it, BundleFault::TooLarge { .. })) {
        faults.truncate(1);
    }
    faults
}

/// The bytes of a descriptor: as many as it says, with the digest that it says.
pub(crate) fn fetch(files: &dyn Blobs, it: &Descriptor, most: u64) -> Result<Vec<u8>, BundleFault> {
    let Some(name) = blob_name(&it.digest).filter(|_| is_digest(&it.digest)) else {
        return Err(BundleFault::Path { name: it.digest.clone(), why: "is no sha256 digest" });
    };
    if it.size > most {
        return Err(BundleFault::TooLarge { name, most, unit: "bytes" });
    }
    // A file that has grown is not read beyond what its descriptor says and one byte.
    let bytes = match files.read(&name, it.size) {
        Err(BundleFault::TooLarge { name, .. }) => {
            return Err(BundleFault::Size { name, wanted: it.size, found: it.size.saturating_add(1) });
        }
        other => other?,
    };
    if bytes.len() as u64 != it.size {
        return Err(BundleFault::Size { name, wanted: it.size, found: bytes.len() as u64 });
    }
    let found = Descriptor::of("", &bytes).digest;
    if found != it.digest {
        return Err(BundleFault::Digest { name, wanted: it.digest.clone(), found });
    }
    Ok(bytes)
}

pub(crate) fn json(bytes: &[u8], name: &str) -> Result<Value, BundleFault> {
    canonical::parse(bytes).map_err(|fault| BundleFault::canonical(name, &fault))
}

pub(crate) fn canonical_json(bytes: &[u8], name: &str) -> Result<Value, BundleFault> {
    let value = json(bytes, name)?;
    let written = canonical::write(&value).map_err(|fault| BundleFault::canonical(name, &fault))?;
    if written != bytes {
        let why = "white space, order of keys, or the text of a number or an escape differs".to_owned();
        return Err(BundleFault::NotCanonical { name: name.to_owned(), why });
    }
    Ok(value)
}

pub(crate) fn typed<T: DeserializeOwned>(value: Value, name: &str) -> Result<T, BundleFault> {
    serde_json::from_value(value).map_err(|fault| BundleFault::shape(name, fault.to_string()))
}

fn contents(config: &[u8], layers: Vec<(&Descriptor, Vec<u8>)>) -> Result<Source, BundleFault> {
    let name = "the interface";
    let value = canonical_json(config, name)?;
    let format = value.get("format").and_then(Value::as_u64).unwrap_or_default();
    if format > FORMAT {
        return Err(BundleFault::NewerFormat { what: name.to_owned(), found: format, known: FORMAT });
    }
    let mom: Mom = typed(value, name)?;
    let strict = crate::source::interface_of(&String::from_utf8_lossy(config));
    if let Err(found) = strict {
        let why =
            found.into_iter().next().map(|it| format!("{}: {}", it.path, it.message)).unwrap_or_default();
        return Err(BundleFault::shape(name, why));
    }
    let mut graph = Value::Null;
    let mut assets = Files::new();
    for (layer, bytes) in layers {
        match layer.title() {
            Some(title) if layer.media_type != GRAPH => drop(assets.insert(title.to_owned(), bytes)),
            _ => graph = canonical_json(&bytes, "the graph")?,
        }
    }
    Ok(Source { mom, graph, assets })
}

/// A graph must be one that a build could have written: readable, in its one form, and without a deployment.
fn check_policy(source: &Source) -> Result<(), BundleFault> {
    if source.graph.get("contract").and_then(Value::as_str) != Some(graph::CONTRACT) {
        let found = source.graph.get("contract").map(Value::to_string).unwrap_or_default();
        return Err(BundleFault::Kind { what: "the graph's contract", wanted: graph::CONTRACT, found });
    }
    let is_known = |key: &&String| *key == "contract" || graph::SECTIONS.contains(&key.as_str());
    if let Some(key) =
        source.graph.as_object().into_iter().flat_map(|it| it.keys()).find(|key| !is_known(key))
    {
        return Err(BundleFault::Policy(format!("`{key}` is no section of a graph")));
    }
    let first = |found: Vec<chorus_spec::Diagnostic>| {
        let error = found.into_iter().find(|it| it.severity == Severity::Error);
        error.map(|it| BundleFault::Policy(format!("{}: {}", it.path, it.message)))
    };
    let mut policy: Document = match graph::document(&source.graph, &source.mom) {
        Ok(document) => document,
        Err(found) => {
            return Err(first(found).unwrap_or_else(|| BundleFault::Policy("no document".to_owned())));
        }
    };
    policy.merge(&serde_json::json!({ "providers": null }));
    if let Some(fault) = first(graph::check(&policy, &source.mom).diagnostics) {
        return Err(fault);
    }
    if graph::of(&policy) != source.graph {
        return Err(BundleFault::shape("the graph", "is not in its one form"));
    }
    bundle::text("the graph", &source.graph).map(drop)
}
