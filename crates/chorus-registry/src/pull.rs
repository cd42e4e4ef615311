//! Pulling: every byte into memory, within the bounds of a bundle, and verified there.

use crate::Registry;
use crate::fault::RegistryFault;
use crate::name::Name;
use chorus_bundle::attest::{Attached, MAX_ATTACHED, envelope_of};
use chorus_bundle::dsse::MAX_ENVELOPE_BYTES;
use chorus_bundle::oci::{ARTIFACT, ATTESTATION, Descriptor, INDEX, Index, MANIFEST, Manifest, blob_name};
use chorus_bundle::verify::{self, MAX_BUNDLE_BYTES, MAX_DOCUMENT_BYTES, MAX_LAYERS};
use chorus_bundle::{Bundle, BundleFault, Files};
use futures_util::StreamExt;
use oci_client::RegistryOperation;
use std::collections::btree_map::Entry;

/// What was pulled, verified.
#[derive(Debug, Clone)]
pub struct Pulled {
    /// The bundle.
    pub bundle: Bundle,
    /// What is attached to it; whose word it is, is not known yet.
    pub attached: Vec<Attached>,
}

impl Registry {
    /// Pulls a bundle and what is attached to it.
    ///
    /// # Errors
    /// [`RegistryFault`]; nothing is kept then.
    pub async fn pull(&self, from: &Name) -> Result<Pulled, Vec<RegistryFault>> {
        let authorised = self.client.auth(from.reference(), &self.auth, RegistryOperation::Pull).await;
        authorised.map_err(|fault| vec![RegistryFault::of(from, fault)])?;
        let files = self.files(from).await.map_err(|fault| vec![fault])?;
        let all =
            |faults: Vec<BundleFault>| faults.into_iter().map(RegistryFault::Bundle).collect::<Vec<_>>();
        let bundle = verify::read(&files).map_err(all)?;
        let attached = self.attached(from, &bundle.digest).await.map_err(|fault| vec![fault])?;
        Ok(Pulled { bundle, attached })
    }

    /// The manifest that a name leads to, and its digest.
    pub(crate) async fn manifest(&self, from: &Name) -> Result<(Vec<u8>, String), RegistryFault> {
        let pulled = self.client.pull_manifest_raw(from.reference(), &self.auth, &[MANIFEST]).await;
        let (bytes, _) = pulled.map_err(|fault| RegistryFault::of(from, fault))?;
        if bytes.len() as u64 > MAX_DOCUMENT_BYTES {
            return Err(too_large("the manifest", MAX_DOCUMENT_BYTES));
        }
        let digest = Descriptor::of(MANIFEST, &bytes).digest;
        // Another manifest than the one that was named may be a good one, and is still not it.
        if let Some(wanted) = from.digest().filter(|wanted| *wanted != digest) {
            let (name, wanted) = ("the manifest".to_owned(), wanted.to_owned());
            return Err(RegistryFault::Bundle(BundleFault::Digest { name, wanted, found: digest }));
        }
        Ok((bytes.to_vec(), digest))
    }

    /// The bundle's files as a layout.
    async fn files(&self, from: &Name) -> Result<Files, RegistryFault> {
        let (bytes, _) = self.manifest(from).await?;
        let manifest: Manifest = serde_json::from_slice(&bytes).map_err(|fault| {
            let (name, why) = ("the manifest".to_owned(), fault.to_string());
            RegistryFault::Bundle(BundleFault::Shape { name, why })
        })?;
        let blobs: Vec<&Descriptor> = std::iter::once(&manifest.config).chain(&manifest.layers).collect();
        if blobs.len() > MAX_LAYERS {
            return Err(too_large("layers", MAX_LAYERS as u64));
        }
        let total = blobs.iter().try_fold(0_u64, |sum, it| sum.checked_add(it.size));
        if total.is_none_or(|total| total > MAX_BUNDLE_BYTES) {
            return Err(too_large("layers", MAX_BUNDLE_BYTES));
        }
        let mut descriptor = Descriptor::of(MANIFEST, &bytes);
        descriptor.artifact_type = Some(ARTIFACT.to_owned()).filter(|kind| *kind == manifest.artifact_type);
        let index = Index {
            schema_version: 2,
            media_type: Some(INDEX.to_owned()),
            manifests: vec![descriptor.clone()],
        };
        let mut files = Files::from([
            ("oci-layout".to_owned(), b"{\"imageLayoutVersion\":\"1.0.0\"}".to_vec()),
            ("index.json".to_owned(), serde_json::to_vec(&index).unwrap_or_default()),
        ]);
        files.extend(blob_name(&descriptor.digest).map(|name| (name, bytes)));
        for it in blobs {
            let name = blob_name(&it.digest).ok_or_else(|| {
                RegistryFault::Bundle(BundleFault::Path {
                    name: it.digest.clone(),
                    why: "is no sha256 digest",
                })
            })?;
            if let Entry::Vacant(place) = files.entry(name) {
                place.insert(self.blob(from, it).await?);
            }
        }
        Ok(files)
    }

    /// The bytes of a blob, no more than its descriptor says.
    async fn blob(&self, from: &Name, it: &Descriptor) -> Result<Vec<u8>, RegistryFault> {
        let wrong = |why: String| RegistryFault::Registry { name: format!("{from} {}", it.digest), why };
        let stream = self.client.pull_blob_stream(from.reference(), it.digest.as_str()).await;
        let mut stream = stream.map_err(|fault| wrong(fault.to_string()))?.stream;
        let mut bytes = Vec::new();
        while let Some(piece) = stream.next().await {
            let piece = piece.map_err(|fault| wrong(fault.to_string()))?;
            if (bytes.len() + piece.len()) as u64 > it.size {
                let found = it.size.saturating_add(1);
                let fault = BundleFault::Size { name: it.digest.clone(), wanted: it.size, found };
                return Err(RegistryFault::Bundle(fault));
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }

    /// Digests of the statements that are attached to a bundle.
    pub(crate) async fn referrers(&self, of: &Name, bundle: &str) -> Result<Vec<String>, RegistryFault> {
        let name = of.by_digest(bundle);
        let index = self.client.pull_referrers(name.reference(), Some(ATTESTATION)).await;
        let index = index.map_err(|fault| RegistryFault::of(&name, fault))?;
        let ours = index.manifests.into_iter().filter(|it| it.artifact_type.as_deref() == Some(ATTESTATION));
        Ok(ours.map(|it| it.digest).collect())
    }

    async fn attached(&self, from: &Name, bundle: &str) -> Result<Vec<Attached>, RegistryFault> {
        let digests = self.referrers(from, bundle).await?;
        if digests.len() > MAX_ATTACHED {
            return Err(too_large("what is attached", MAX_ATTACHED as u64));
        }
        let mut all = Vec::new();
        for digest in digests {
            let (manifest, _) = self.manifest(&from.by_digest(&digest)).await?;
            let (kind, envelope) = envelope_of(&manifest).map_err(RegistryFault::Bundle)?;
            if envelope.size > MAX_ENVELOPE_BYTES {
                return Err(too_large("an envelope", MAX_ENVELOPE_BYTES));
            }
            let envelope = self.blob(from, &envelope).await?;
            all.push(Attached { kind, manifest, envelope });
        }
        Ok(all)
    }
}

fn too_large(name: &str, most: u64) -> RegistryFault {
    let unit = if most == MAX_LAYERS as u64 { "blobs" } else { "bytes" };
    RegistryFault::Bundle(BundleFault::TooLarge { name: name.to_owned(), most, unit })
}
