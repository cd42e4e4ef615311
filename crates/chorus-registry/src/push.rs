//! Pushing: blobs, then manifests, then tags.

use crate::Registry;
use crate::fault::RegistryFault;
use crate::name::Name;
use chorus_bundle::attest::Attached;
use chorus_bundle::oci::{Descriptor, INDEX, Index, MANIFEST, blob_name};
use chorus_bundle::{Bundle, Files};
use http::HeaderValue;
use oci_client::RegistryOperation;

impl Registry {
    /// Pushes a bundle with what is attached to it, and points these tags at it, last. What the registry has already is
    /// not sent again.
    ///
    /// # Errors
    /// [`RegistryFault`]; tags have not moved then.
    pub async fn push(
        &self,
        to: &Name,
        bundle: &Bundle,
        attached: &[Attached],
        tags: &[String],
    ) -> Result<(), RegistryFault> {
        let authorised = self.client.auth(to.reference(), &self.auth, RegistryOperation::Push).await;
        authorised.map_err(|fault| RegistryFault::of(to, fault))?;
        let files = bundle.layout().map_err(RegistryFault::Bundle)?;
        for descriptor in std::iter::once(&bundle.manifest.config).chain(&bundle.manifest.layers) {
            self.put_blob(to, &descriptor.digest, blob(&files, &descriptor.digest)?).await?;
        }
        let manifest = blob(&files, &bundle.digest)?;
        self.put_manifest(&to.by_digest(&bundle.digest), manifest.clone(), MANIFEST).await?;
        for it in attached {
            self.attach(to, &bundle.digest, it).await?;
        }
        for tag in tags {
            self.put_manifest(&to.tagged(tag), manifest.clone(), MANIFEST).await?;
        }
        Ok(())
    }

    /// Points a tag at what another name leads to, and says its digest.
    ///
    /// # Errors
    /// [`RegistryFault`]; the tag has not moved then.
    pub async fn point(&self, from: &Name, tag: &str) -> Result<String, RegistryFault> {
        let authorised = self.client.auth(from.reference(), &self.auth, RegistryOperation::Push).await;
        authorised.map_err(|fault| RegistryFault::of(from, fault))?;
        let (bytes, digest) = self.manifest(from).await?;
        self.put_manifest(&from.tagged(tag), bytes, MANIFEST).await?;
        Ok(digest)
    }

    async fn attach(&self, to: &Name, bundle: &str, it: &Attached) -> Result<(), RegistryFault> {
        for bytes in it.blobs() {
            let digest = Descriptor::of("", &bytes).digest;
            self.put_blob(to, &digest, bytes).await?;
        }
        let descriptor = it.descriptor();
        self.put_manifest(&to.by_digest(&descriptor.digest), it.manifest.clone(), MANIFEST).await?;
        if self.referrers(to, bundle).await?.contains(&descriptor.digest) {
            return Ok(());
        }
        // A registry without the referrers API keeps them as an index under a tag. Source: distribution-spec 1.1.
        let tag = to.tagged(&bundle.replace(':', "-"));
        let mut index = self.referrers_index(&tag).await?;
        index.manifests.push(descriptor);
        let bytes = serde_json::to_vec(&index)
            .map_err(|fault| RegistryFault::Registry { name: tag.to_string(), why: fault.to_string() })?;
        self.put_manifest(&tag, bytes, INDEX).await
    }

    async fn put_blob(&self, to: &Name, digest: &str, bytes: Vec<u8>) -> Result<(), RegistryFault> {
        let wrong = |fault| RegistryFault::of(to, fault);
        if self.client.blob_exists(to.reference(), digest).await.map_err(wrong)? {
            return Ok(());
        }
        self.client.push_blob(to.reference(), bytes, digest).await.map_err(wrong)?;
        Ok(())
    }

    async fn put_manifest(&self, to: &Name, bytes: Vec<u8>, kind: &'static str) -> Result<(), RegistryFault> {
        let kind = HeaderValue::from_static(kind);
        let put = self.client.push_manifest_raw(to.reference(), bytes, kind).await;
        put.map(drop).map_err(|fault| RegistryFault::of(to, fault))
    }

    async fn referrers_index(&self, tag: &Name) -> Result<Index, RegistryFault> {
        let empty = || Index { schema_version: 2, media_type: Some(INDEX.to_owned()), manifests: Vec::new() };
        match self.client.pull_manifest_raw(tag.reference(), &self.auth, &[INDEX]).await {
            Ok((bytes, _)) => Ok(serde_json::from_slice(&bytes).unwrap_or_else(|_| empty())),
            Err(fault) => match RegistryFault::of(tag, fault) {
                RegistryFault::Absent(_) => Ok(empty()),
                other => Err(other),
            },
        }
    }
}

fn blob(files: &Files, digest: &str) -> Result<Vec<u8>, RegistryFault> {
    let name = blob_name(digest).unwrap_or_default();
    files.get(&name).cloned().ok_or(RegistryFault::Bundle(chorus_bundle::BundleFault::Missing(name)))
}
