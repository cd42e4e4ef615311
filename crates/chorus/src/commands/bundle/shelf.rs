//! Bundles under their bindings, as a server reads them: at the start, and again whenever one of the files changes.
//!
//! **Invariant:** an offer is made only of bundles that are whole and trusted, bindings that are theirs, and locks that
//! hold; otherwise there is a refusal and nothing else.

use super::bound::{read_binding, told};
use super::{disk, lock, seal};
use crate::cli::Bound;
use anyhow::{Context, bail};
use chorus_bundle::binding;
use chorus_bundle::mount::{self, Mount, Mounted};
use chorus_bundle::{Bundle, Mom, source};
use chorus_engine::artifact::{Artifact, Point};
use chorus_engine::reload::{Offer, Offered, Refusal, Shelf};
use chorus_spec::{Digest, Document};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Sections that a runtime file has; what decides has no place there.
const OF_RUNTIME: [&str; 3] = ["version", "listeners", "global"];

/// One bundle with what it is served under.
struct Place {
    bundle: PathBuf,
    binding: Option<PathBuf>,
    lock: Option<PathBuf>,
}

/// Bundles that are served together.
pub(crate) struct BundleShelf {
    places: Vec<Place>,
    runtime: Option<PathBuf>,
    trust: Option<PathBuf>,
    /// Where assets are put that signals read.
    assets: PathBuf,
    files: Vec<PathBuf>,
}

/// Whether a bundle or a source is meant, and no configuration.
pub(crate) fn is_bundle(path: &Path) -> bool {
    let has = |name: &str| path.extension().is_some_and(|it| it == name);
    path.is_dir() || has("tar") || has("mom") || super::builtin::files(path).is_some()
}

impl BundleShelf {
    /// The shelf of these flags.
    pub(crate) fn new(bundle: &Path, flags: &Bound, assets: PathBuf) -> Self {
        let first =
            Place { bundle: bundle.to_owned(), binding: flags.binding.clone(), lock: flags.lock.clone() };
        let also = flags.also.chunks_exact(2).filter_map(|pair| match pair {
            [bundle, binding] => {
                Some(Place { bundle: bundle.clone(), binding: Some(binding.clone()), lock: None })
            }
            _ => None,
        });
        let places: Vec<Place> = std::iter::once(first).chain(also).collect();
        let mut files: Vec<PathBuf> = Vec::new();
        for place in &places {
            files.extend(watched(&place.bundle));
            files.extend(place.binding.iter().chain(&place.lock).cloned());
        }
        files.extend(flags.runtime.iter().chain(&flags.trust).cloned());
        Self { places, runtime: flags.runtime.clone(), trust: flags.trust.clone(), assets, files }
    }

    fn all(&self) -> anyhow::Result<Offer> {
        let mut offered = Vec::new();
        for place in &self.places {
            offered.extend(self.one(place)?);
        }
        let mut offered = offered.into_iter();
        let first = offered.next().context("there is nothing to serve")?;
        Ok(Offer { first, others: offered.collect() })
    }

    /// The documents of one bundle.
    fn one(&self, place: &Place) -> anyhow::Result<Vec<Offered>> {
        let opened = disk::open_with(&place.bundle)?;
        if let Some(policy) = &self.trust
            && let Some(distrust) = seal::judge(policy, &opened)?.into_iter().next()
        {
            bail!("{} is refused [{}]: {}", place.bundle.display(), distrust.code, distrust.message);
        }
        let bundle = opened.bundle;
        let (text, binding) = read_binding(&bundle.mom, place.binding.as_deref())?;
        let digest = binding::digest(&text).map_err(|found| told("the binding", &found))?;
        let lock = place.lock.as_deref().map(|path| lock::held(path, &bundle, &digest)).transpose()?;
        let pins = lock.as_ref().map(chorus_bundle::lock::Lock::pins);
        let mount =
            mount::mount(&bundle, &binding, pins.as_ref()).map_err(|found| told("the binding", &found))?;
        let artifact = Artifact {
            bundle: Digest::parse(&bundle.digest),
            binding: Some(digest),
            lock: lock.map(|it| it.digest()).transpose()?,
            points: Vec::new(),
            abstaining: abstaining(&bundle.mom, &mount),
        };
        let folder = self.unpack(&bundle)?;
        let runtime = self.runtime.as_deref().map(runtime).transpose()?;
        let all = mount.documents.iter().map(|it| {
            let artifact = Artifact { points: points(&bundle.mom, it), ..artifact.clone() };
            let text = text_of(it, &artifact, runtime.as_ref());
            Offered { text, artifact, folder: folder.clone() }
        });
        Ok(all.collect())
    }

    /// Puts knowledge and heads where signals find them; the folder is named by the bundle and holds nothing else.
    fn unpack(&self, bundle: &Bundle) -> anyhow::Result<Option<PathBuf>> {
        let needed = || bundle.assets.iter().filter(|(name, _)| is_read_by_signals(name));
        if needed().next().is_none() {
            return Ok(None);
        }
        let folder = self.assets.join(bundle.digest.trim_start_matches("sha256:"));
        for (name, bytes) in needed() {
            let path = folder.join(name);
            if fs::read(&path).map_or(true, |there| there != *bytes) {
                disk::put(&path, bytes)?;
            }
        }
        Ok(Some(folder))
    }
}

impl Shelf for BundleShelf {
    fn files(&self) -> &[PathBuf] {
        &self.files
    }

    fn offer(&self) -> Result<Offer, Refusal> {
        self.all().map_err(|why| Refusal::Unready(format!("{why:#}")))
    }
}

fn is_read_by_signals(name: &str) -> bool {
    name.starts_with("knowledge/") || name.starts_with("heads/")
}

/// What of a bundle says something new when it changes.
fn watched(bundle: &Path) -> Vec<PathBuf> {
    if super::builtin::files(bundle).is_some() {
        return Vec::new();
    }
    if !bundle.is_dir() {
        return vec![bundle.to_owned()];
    }
    ["index.json", source::INTERFACE, "policy.yaml", "policy.dsl"]
        .into_iter()
        .map(|name| bundle.join(name))
        .filter(|path| path.exists())
        .collect()
}

fn runtime(path: &Path) -> anyhow::Result<Value> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let name = path.display().to_string();
    let value = Document::parse(&text).map_err(|found| told(&name, &found))?.to_json();
    let fields = value.as_object().with_context(|| format!("{name} is no mapping"))?;
    if let Some(key) = fields.keys().find(|key| !OF_RUNTIME.contains(&key.as_str())) {
        bail!("{name}: `{key}` is of the bundle: a runtime file has {}", OF_RUNTIME.join(", "));
    }
    let deciding = mount::deciding(&value);
    if let Some(path) = deciding.first() {
        bail!("{name}: `global.{path}` decides, and is of the bundle");
    }
    Ok(value)
}

fn abstaining(mom: &Mom, mount: &Mount) -> std::collections::BTreeMap<String, String> {
    let names = mount.abstaining.iter().flat_map(|it| {
        let why = it.why.clone();
        mount::names(mom, &it.point).into_iter().map(move |name| (name, why.clone()))
    });
    names.collect()
}

fn points(mom: &Mom, mounted: &Mounted) -> Vec<Point> {
    let served = mom.operating_points.iter().filter(|it| mounted.points.contains(&it.name));
    served.map(|it| Point::of(mom, it)).collect()
}

/// The document with a first line that names what it is of, so that its digest does too.
fn text_of(mounted: &Mounted, artifact: &Artifact, runtime: Option<&Value>) -> String {
    let mut document = mounted.document.clone();
    runtime.into_iter().for_each(|runtime| document.merge(runtime));
    let named = |word: &str, digest: &Option<Digest>| {
        digest.as_ref().map(|digest| format!(" {word} {digest}")).unwrap_or_default()
    };
    format!(
        "#{}{}{}{}\n{}",
        named("bundle", &artifact.bundle),
        named("binding", &artifact.binding),
        named("lock", &artifact.lock),
        mounted.points.iter().map(|it| format!(" point {it}")).collect::<String>(),
        document.to_yaml()
    )
}
