//! Candidates of a rollout, as a server opens them: by the rules that hold for what it serves.
//!
//! **Invariant:** where the server trusts only signed bundles, nothing else becomes a candidate.

use super::bundle::{BundleShelf, is_bundle};
use crate::cli::{Bound, Source as Flags};
use crate::policy_file::Policy;
use crate::setup;
use chorus_engine::reload::{Candidates, Offer, Refusal, Shelf, Source};
use chorus_spec::Digest;
use std::path::{Path, PathBuf};

/// Opens bundles and files.
pub(crate) struct Opener {
    bound: Bound,
    base: Option<PathBuf>,
    assets: PathBuf,
}

impl Opener {
    /// By the flags of `serve`.
    pub(crate) fn new(bound: &Bound, flags: &Flags) -> anyhow::Result<Self> {
        let assets = setup::versions_folder(flags.runs_file.clone())?.with_file_name("bundle-assets");
        Ok(Self { bound: bound.clone(), base: flags.base.clone(), assets })
    }
}

impl Candidates for Opener {
    fn open(&self, source: &Source) -> Result<Offer, Refusal> {
        if is_bundle(&source.path) {
            let bound = Bound {
                binding: source.binding.clone(),
                lock: source.lock.clone(),
                also: Vec::new(),
                ..self.bound.clone()
            };
            return BundleShelf::new(&source.path, &bound, self.assets.clone()).offer();
        }
        if self.bound.trust.is_some() {
            return Err(Refusal::Unready("this server trusts signed bundles alone (--trust)".to_owned()));
        }
        let policy = Policy::read(&source.path, self.base.as_deref());
        policy.map(|policy| Offer::of(policy.yaml)).map_err(|why| Refusal::Unready(format!("{why:#}")))
    }
}

/// Where the state of a rollout beside that file is kept: one place for each file that is served.
pub(crate) fn state_file(served: Option<&Path>, flags: &Flags) -> anyhow::Result<PathBuf> {
    let folder = setup::versions_folder(flags.runs_file.clone())?.with_file_name("rollouts");
    std::fs::create_dir_all(&folder)?;
    let whole = served.map(|path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
    let name = whole.as_ref().map_or(&b"built-in"[..], |path| path.as_os_str().as_encoded_bytes());
    let digest = Digest::of(name).to_string();
    let tail: String = digest.chars().rev().take(12).collect();
    Ok(folder.join(format!("{tail}.json")))
}
