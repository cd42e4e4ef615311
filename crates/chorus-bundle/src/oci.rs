//! The words of the OCI image layout that a bundle is written in.
//!
//! Source: OCI image-spec 1.1 (descriptor, manifest, index, layout). It knows nothing of what the blobs hold.

use chorus_spec::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The kind of the artifact.
pub const ARTIFACT: &str = "application/vnd.chorus.mom.v1+json";
/// The interface: [`crate::Mom`] in canonical JSON.
pub const CONFIG: &str = "application/vnd.chorus.mom.config.v1+json";
/// The graph in canonical JSON.
pub const GRAPH: &str = "application/vnd.chorus.mom.graph.v1+json";
/// An image manifest.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// An image index.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// What is attached to a bundle: a signed statement.
pub const ATTESTATION: &str = "application/vnd.chorus.mom.attestation.v1+json";
/// The signed statement itself. Source: DSSE, media type of an envelope.
pub const ENVELOPE: &str = "application/vnd.dsse.envelope.v1+json";
/// A config without content. Source: OCI image-spec 1.1, the empty descriptor.
pub const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// Annotation of an attestation: the kind of its statement.
pub const STATEMENT: &str = "org.chorus-mom.statement";
/// Annotation of an asset: its name.
pub const TITLE: &str = "org.opencontainers.image.title";
/// Annotation of a manifest: its version.
pub const VERSION: &str = "org.opencontainers.image.version";
/// Annotation of a manifest: its licence.
pub const LICENCES: &str = "org.opencontainers.image.licenses";
/// Annotation of a descriptor in the index: a tag.
pub const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// Folders of assets, each with the kind of its blobs.
pub const ASSET_FOLDERS: [(&str, &str); 4] = [
    ("prompts/", "application/vnd.chorus.mom.prompt.v1"),
    ("heads/", "application/vnd.chorus.mom.head.v1"),
    ("knowledge/", "application/vnd.chorus.mom.knowledge.v1"),
    ("suites/", "application/vnd.chorus.mom.suite.v1"),
];
/// The model card's name and kind.
pub const CARD: (&str, &str) = ("README.md", "application/vnd.chorus.mom.card.v1");

/// The kind of the blob of an asset; `None` for what is no asset.
#[must_use]
pub fn kind_of(name: &str) -> Option<&'static str> {
    if name == CARD.0 {
        return Some(CARD.1);
    }
    ASSET_FOLDERS.into_iter().find(|(folder, _)| name.starts_with(folder)).map(|(_, kind)| kind)
}

/// Whether the text is `sha256:` and 64 hexadecimal digits in lower case.
#[must_use]
pub fn is_digest(text: &str) -> bool {
    let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    text.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64 && hex.bytes().all(is_hex))
}

/// Where the layout keeps the blob of a digest; `None` where the text is no digest.
#[must_use]
pub fn blob_name(digest: &str) -> Option<String> {
    let hex = digest.strip_prefix("sha256:").filter(|_| is_digest(digest))?;
    Some(format!("blobs/sha256/{hex}"))
}

/// What names a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// What it holds.
    pub media_type: String,
    /// What its bytes hash to.
    pub digest: String,
    /// How many they are.
    pub size: u64,
    /// The kind of artifact that a manifest describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// More about it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Descriptor {
    /// Names these bytes.
    #[must_use]
    pub fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest: Digest::of(bytes).to_string(),
            size: bytes.len() as u64,
            artifact_type: None,
            annotations: BTreeMap::new(),
        }
    }

    /// The asset's name.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.annotations.get(TITLE).map(String::as_str)
    }
}

/// What a bundle consists of; the digest of its canonical text is the bundle's identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    /// 2.
    pub schema_version: u64,
    /// [`MANIFEST`].
    pub media_type: String,
    /// [`ARTIFACT`].
    pub artifact_type: String,
    /// The interface.
    pub config: Descriptor,
    /// The graph, then the assets by name.
    pub layers: Vec<Descriptor>,
    /// What it is attached to; a bundle is attached to nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Name, version, licence.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// The manifests of a layout, with the tags that point at them; not part of any identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// 2.
    pub schema_version: u64,
    /// [`INDEX`].
    #[serde(default)]
    pub media_type: Option<String>,
    /// The manifests.
    pub manifests: Vec<Descriptor>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_has_one_place_and_nothing_else_has_any() {
        let digest = Digest::of(b"{}").to_string();
        // Source: OCI image-spec, the empty descriptor.
        assert_eq!(digest, "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
        assert_eq!(blob_name(&digest), Some(format!("blobs/sha256/{}", &digest[7..])));
        let upper = digest.to_uppercase();
        for bad in ["", "sha256:", "sha256:../../etc/passwd", "sha512:00", upper.as_str(), &digest[..70]] {
            assert_eq!(blob_name(bad), None, "{bad}");
        }
    }
}
