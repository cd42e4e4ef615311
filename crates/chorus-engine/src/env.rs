//! The environment as the engine sees it: a look-up that the binary gives.

use chorus_spec::{Secret, Template};
use std::collections::BTreeMap;
use std::sync::Arc;

type LookUp = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Looks environment variables up.
#[derive(Clone)]
pub struct Env(Arc<LookUp>);

impl Env {
    /// An environment with that look-up.
    pub fn of(lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(lookup))
    }

    /// An environment of these variables alone, each with its value.
    #[must_use]
    pub fn having(variables: &[(&str, &str)]) -> Self {
        let owned = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let variables: BTreeMap<String, String> = owned.collect();
        Self::of(move |name| variables.get(name).cloned())
    }

    /// A text with its variables filled in.
    ///
    /// # Errors
    /// The variable that is unset.
    pub fn resolve(&self, text: &Template) -> Result<String, impl std::error::Error + use<>> {
        text.resolve(&*self.0)
    }

    /// A secret, for the one call that needs it.
    ///
    /// # Errors
    /// The variable that is unset.
    pub fn reveal(&self, secret: &Secret) -> Result<String, impl std::error::Error + use<>> {
        secret.reveal(&*self.0)
    }
}

impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Env")
    }
}
