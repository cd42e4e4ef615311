//! A bundle: the immutable form of a source, and its identity.
//!
//! It knows neither files nor time. **Invariant:** equal sources give equal bytes; the identity is the digest of the
//! manifest's canonical text, and the manifest names every other byte.

use crate::canonical;
use crate::fault::BundleFault;
use crate::mom::Mom;
use crate::oci::{
    ARTIFACT, CONFIG, Descriptor, GRAPH, INDEX, Index, LICENCES, MANIFEST, Manifest, REF_NAME, TITLE,
    VERSION, blob_name, kind_of,
};
use crate::path::Files;
use crate::source::Source;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What the file `oci-layout` says. Source: OCI image-spec 1.1, image layout.
pub(crate) const LAYOUT: &str = "{\"imageLayoutVersion\":\"1.0.0\"}";

/// A Mixture-of-Models that was built, or read and verified.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    /// The interface.
    pub mom: Mom,
    /// What decides.
    pub graph: Value,
    /// Prompts, heads, knowledge, suites and the model card, by name.
    pub assets: Files,
    /// What it consists of.
    pub manifest: Manifest,
    /// Its identity.
    pub digest: String,
}

/// The canonical text of one of our documents.
pub(crate) fn text(name: &str, value: &impl Serialize) -> Result<Vec<u8>, BundleFault> {
    let value = serde_json::to_value(value).map_err(|fault| BundleFault::shape(name, fault.to_string()))?;
    canonical::write(&value).map_err(|fault| BundleFault::canonical(name, &fault))
}

impl Bundle {
    /// Builds the bundle of a source.
    ///
    /// # Errors
    /// What has no canonical form.
    pub fn build(source: Source) -> Result<Self, BundleFault> {
        let Source { mom, graph, assets } = source;
        let config = Descriptor::of(CONFIG, &text("the interface", &mom)?);
        let mut layers = vec![Descriptor::of(GRAPH, &text("the graph", &graph)?)];
        for (name, bytes) in &assets {
            let kind = kind_of(name).ok_or_else(|| BundleFault::shape(name, "is no asset"))?;
            let mut layer = Descriptor::of(kind, bytes);
            layer.annotations.insert(TITLE.to_owned(), name.clone());
            layers.push(layer);
        }
        let annotations = [(TITLE, &mom.family), (VERSION, &mom.version), (LICENCES, &mom.licence)];
        let manifest = Manifest {
            schema_version: 2,
            media_type: MANIFEST.to_owned(),
            artifact_type: ARTIFACT.to_owned(),
            config,
            layers,
            subject: None,
            annotations: annotations.map(|(key, value)| (key.to_owned(), value.clone())).into(),
        };
        let digest = Descriptor::of(MANIFEST, &text("the manifest", &manifest)?).digest;
        Ok(Self { mom, graph, assets, manifest, digest })
    }

    /// What names it in an index, or as the subject of what is attached to it.
    ///
    /// # Errors
    /// What has no canonical form.
    pub fn descriptor(&self) -> Result<Descriptor, BundleFault> {
        let mut descriptor = Descriptor::of(MANIFEST, &text("the manifest", &self.manifest)?);
        descriptor.artifact_type = Some(ARTIFACT.to_owned());
        Ok(descriptor)
    }

    /// The files of an OCI image layout that holds this bundle alone, tagged with its version.
    ///
    /// # Errors
    /// What has no canonical form.
    pub fn layout(&self) -> Result<Files, BundleFault> {
        let manifest = text("the manifest", &self.manifest)?;
        let mut tagged = self.descriptor()?;
        tagged.annotations = BTreeMap::from([(REF_NAME.to_owned(), self.mom.version.clone())]);
        let index = Index { schema_version: 2, media_type: Some(INDEX.to_owned()), manifests: vec![tagged] };
        let mut files = Files::from([
            ("oci-layout".to_owned(), LAYOUT.as_bytes().to_vec()),
            ("index.json".to_owned(), text("index.json", &index)?),
        ]);
        let own = [manifest, text("the interface", &self.mom)?, text("the graph", &self.graph)?];
        for bytes in own.into_iter().chain(self.assets.values().cloned()) {
            let name = blob_name(&Descriptor::of("", &bytes).digest);
            files.extend(name.map(|name| (name, bytes)));
        }
        Ok(files)
    }

    /// What there is to know of it at a glance: identity, contents by digest, components with their licences.
    #[must_use]
    pub fn summary(&self) -> Value {
        let blobs: Vec<Value> = std::iter::once(&self.manifest.config)
            .chain(&self.manifest.layers)
            .map(|it| json!({ "name": it.title(), "kind": it.media_type, "digest": it.digest, "bytes": it.size }))
            .collect();
        let components: Vec<Value> = self
            .mom
            .components
            .iter()
            .map(|it| {
                let form = if it.weights.is_some() { "open weights, by reference" } else { "external reference" };
                json!({ "name": it.name, "kind": it.kind, "licence": it.licence, "form": form, "weights": it.weights })
            })
            .collect();
        let points: Vec<String> =
            self.mom.operating_points.iter().map(|it| self.mom.identity(&it.name)).collect();
        json!({
            "digest": self.digest, "family": self.mom.family, "version": self.mom.version, "licence": self.mom.licence,
            "format": self.mom.format, "identities": points, "components": components, "blobs": blobs,
        })
    }
}
