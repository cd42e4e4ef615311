//! What is attached to a bundle: signed statements, each a manifest of its own that names the bundle as its subject.
//!
//! Source: OCI image-spec 1.1 (`subject`, `artifactType`, the empty descriptor). Attaching changes no identity. It knows
//! no key: what a statement is worth says [`crate::trust`]. **Invariant:** a statement that is read has the bytes that its
//! digests name, and a subject that is this bundle.

use crate::bundle::{self, Bundle};
use crate::dsse::{Envelope, Kind, MAX_ENVELOPE_BYTES};
use crate::fault::BundleFault;
use crate::oci::{ATTESTATION, Descriptor, EMPTY, ENVELOPE, Index, MANIFEST, Manifest, STATEMENT, blob_name};
use crate::path::Files;
use crate::verify::{self, Blobs, MAX_DOCUMENT_BYTES};
use std::collections::BTreeMap;

/// Most statements that are read of one bundle.
pub const MAX_ATTACHED: usize = 256;

/// A statement with the manifest that attaches it.
#[derive(Debug, Clone, PartialEq)]
pub struct Attached {
    /// What it says it is; the signature decides.
    pub kind: String,
    /// The manifest's canonical text.
    pub manifest: Vec<u8>,
    /// The envelope's text.
    pub envelope: Vec<u8>,
}

impl Attached {
    /// Attaches a statement to a bundle.
    ///
    /// # Errors
    /// What has no canonical form.
    pub fn to(bundle: &Bundle, kind: Kind, envelope: &Envelope) -> Result<Self, BundleFault> {
        let envelope = bundle::text("the envelope", envelope)?;
        let manifest = Manifest {
            schema_version: 2,
            media_type: MANIFEST.to_owned(),
            artifact_type: ATTESTATION.to_owned(),
            config: Descriptor::of(EMPTY, EMPTY_CONFIG),
            layers: vec![Descriptor::of(ENVELOPE, &envelope)],
            subject: Some(bundle.descriptor()?),
            annotations: BTreeMap::from([(STATEMENT.to_owned(), kind.as_str().to_owned())]),
        };
        let manifest = bundle::text("the attestation", &manifest)?;
        Ok(Self { kind: kind.as_str().to_owned(), manifest, envelope })
    }

    /// What names its manifest.
    #[must_use]
    pub fn descriptor(&self) -> Descriptor {
        let mut descriptor = Descriptor::of(MANIFEST, &self.manifest);
        descriptor.artifact_type = Some(ATTESTATION.to_owned());
        descriptor.annotations = BTreeMap::from([(STATEMENT.to_owned(), self.kind.clone())]);
        descriptor
    }

    /// Its blobs beside the manifest.
    #[must_use]
    pub fn blobs(&self) -> [Vec<u8>; 2] {
        [EMPTY_CONFIG.to_vec(), self.envelope.clone()]
    }
}

const EMPTY_CONFIG: &[u8] = b"{}";

/// The files of a layout that holds a bundle and what is attached to it.
///
/// # Errors
/// What has no canonical form.
pub fn layout(bundle: &Bundle, attached: &[Attached]) -> Result<Files, BundleFault> {
    let mut files = bundle.layout()?;
    if attached.is_empty() {
        return Ok(files);
    }
    let mut index = index(&files)?;
    for it in attached {
        let descriptor = it.descriptor();
        if !index.manifests.iter().any(|there| there.digest == descriptor.digest) {
            index.manifests.push(descriptor);
        }
        for bytes in it.blobs().into_iter().chain([it.manifest.clone()]) {
            let name = blob_name(&Descriptor::of("", &bytes).digest);
            files.extend(name.map(|name| (name, bytes)));
        }
    }
    files.insert("index.json".to_owned(), bundle::text("index.json", &index)?);
    Ok(files)
}

fn index(files: &dyn Blobs) -> Result<Index, BundleFault> {
    let bytes = files.read("index.json", MAX_DOCUMENT_BYTES)?;
    verify::typed(verify::json(&bytes, "index.json")?, "index.json")
}

/// What a layout has attached to a bundle.
///
/// # Errors
/// A statement that is not whole, or more than [`MAX_ATTACHED`] of them. What is attached to other bundles is left alone.
pub fn read(files: &dyn Blobs, bundle: &str) -> Result<Vec<Attached>, BundleFault> {
    let is_ours = |it: &&Descriptor| it.artifact_type.as_deref() == Some(ATTESTATION);
    let mut all = Vec::new();
    for descriptor in index(files)?.manifests.iter().filter(is_ours) {
        let manifest = verify::fetch(files, descriptor, MAX_DOCUMENT_BYTES)?;
        let (kind, envelope) = envelope_of(&manifest)?;
        let subject = subject_of(&manifest)?;
        if subject != bundle {
            continue;
        }
        let envelope = verify::fetch(files, &envelope, MAX_ENVELOPE_BYTES)?;
        all.push(Attached { kind, manifest, envelope });
        if all.len() > MAX_ATTACHED {
            let name = "what is attached".to_owned();
            return Err(BundleFault::TooLarge { name, most: MAX_ATTACHED as u64, unit: "statements" });
        }
    }
    Ok(all)
}

fn manifest_of(bytes: &[u8]) -> Result<Manifest, BundleFault> {
    verify::typed(verify::canonical_json(bytes, "an attestation")?, "an attestation")
}

/// The digest that an attestation is attached to.
fn subject_of(manifest: &[u8]) -> Result<String, BundleFault> {
    let subject = manifest_of(manifest)?.subject;
    subject.map(|it| it.digest).ok_or_else(|| BundleFault::shape("an attestation", "is attached to nothing"))
}

/// What an attestation's manifest says it is, and where its envelope lies.
///
/// # Errors
/// A manifest of something else.
pub fn envelope_of(manifest: &[u8]) -> Result<(String, Descriptor), BundleFault> {
    let Manifest { artifact_type, layers, annotations, .. } = manifest_of(manifest)?;
    let kind = annotations.get(STATEMENT).cloned().unwrap_or_default();
    match <[Descriptor; 1]>::try_from(layers) {
        Ok([envelope]) if artifact_type == ATTESTATION && envelope.media_type == ENVELOPE => {
            Ok((kind, envelope))
        }
        _ => Err(BundleFault::shape("an attestation", "holds no single envelope")),
    }
}
