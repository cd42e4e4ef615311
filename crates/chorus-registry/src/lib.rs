//! Bundles in OCI registries: pushed and pulled whole, tagged, with what is attached to them.
//!
//! The protocol is `oci-client`'s; what a bundle is, `chorus-bundle` knows. It knows no file system, no environment and no
//! binding. Source: OCI distribution-spec 1.1, image-spec 1.1 (`subject`, referrers, the referrers tag).
//!
//! **Invariant:** a bundle is handed out only when every byte of it is here and verified; blobs are pushed before the
//! manifest that names them, and a tag moves last, so that whoever reads meanwhile finds the old one or the new one.

mod fault;
mod name;
mod pull;
mod push;

pub use fault::{REGISTRY_CODES, RegistryFault};
pub use name::Name;
pub use pull::Pulled;

use oci_client::client::{Client, ClientConfig, ClientProtocol};
use oci_client::secrets::RegistryAuth;
use std::time::Duration;

/// How long a registry may be silent unless told otherwise.
pub const SILENCE: Duration = Duration::from_secs(30);

/// How a registry is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// Whether one that is not on loopback is spoken to without TLS.
    pub plain: bool,
    /// How long it may be silent.
    pub silence: Duration,
}

impl Default for Reach {
    fn default() -> Self {
        Self { plain: false, silence: SILENCE }
    }
}

/// A way into registries.
pub struct Registry {
    client: Client,
    auth: RegistryAuth,
}

/// Who one is at a registry; never shown.
#[derive(Clone)]
pub struct Credential {
    /// The user.
    pub user: String,
    /// The password, or a token that stands for one.
    pub password: String,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Registry {
    /// A way in, as nobody or with a credential. A registry on loopback is spoken to without TLS.
    #[must_use]
    pub fn open(credential: Option<Credential>, name: &Name, reach: Reach) -> Self {
        // The client wants a provider for the process; whoever was first is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let host = name.host().to_owned();
        let protocol = if reach.plain || name.is_loopback() {
            ClientProtocol::HttpsExcept(vec![host])
        } else {
            ClientProtocol::Https
        };
        let config = ClientConfig {
            protocol,
            read_timeout: Some(reach.silence),
            connect_timeout: Some(reach.silence),
            ..ClientConfig::default()
        };
        let auth = credential.map_or(RegistryAuth::Anonymous, |it| RegistryAuth::Basic(it.user, it.password));
        Self { client: Client::new(config), auth }
    }

    /// Tags of a repository, sorted; tags that stand for what is attached are left out.
    ///
    /// # Errors
    /// [`RegistryFault::Registry`].
    pub async fn tags(&self, name: &Name) -> Result<Vec<String>, RegistryFault> {
        let listed = self.client.list_tags(name.reference(), &self.auth, None, None).await;
        let mut tags = listed.map_err(|fault| RegistryFault::of(name, fault))?.tags;
        tags.retain(|tag| !tag.starts_with("sha256-"));
        tags.sort();
        Ok(tags)
    }

    /// The digest that a name leads to.
    ///
    /// # Errors
    /// [`RegistryFault::Absent`], [`RegistryFault::Registry`].
    pub async fn digest(&self, name: &Name) -> Result<String, RegistryFault> {
        self.manifest(name).await.map(|(_, digest)| digest)
    }
}
