//! `chorus push | pull | tag | tags`: bundles in OCI registries.

use super::disk::{self, Opened};
use super::{identity, seal};
use crate::cli::Remote;
use crate::terminal::{note, say, table};
use anyhow::bail;
use chorus_registry::{Credential, Name, Pulled, Reach, Registry, RegistryFault};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

fn open(name: &str, remote: &Remote) -> anyhow::Result<(Registry, Name)> {
    let name = Name::read(name)?;
    let set = |key: &str| std::env::var(key).ok().filter(|value| !value.is_empty());
    let credential = set("CHORUS_REGISTRY_USER")
        .zip(set("CHORUS_REGISTRY_PASSWORD"))
        .map(|(user, password)| Credential { user, password });
    let reach = Reach { plain: remote.plain_http, silence: Duration::from_secs(remote.silence) };
    Ok((Registry::open(credential, &name, reach), name))
}

fn refused(fault: &RegistryFault) -> anyhow::Error {
    anyhow::anyhow!("[{}] {fault}", fault.code())
}

/// Pushes a bundle; its version is a tag, unless the name has one.
pub(super) async fn push(
    path: &Path,
    name: &str,
    mut tags: Vec<String>,
    remote: &Remote,
) -> anyhow::Result<ExitCode> {
    let Opened { bundle, attached } = disk::open_with(path)?;
    let (registry, to) = open(name, remote)?;
    let is_named = name.rsplit('/').next().is_some_and(|last| last.contains([':', '@']));
    let first = to.tag().filter(|_| is_named).map_or_else(|| bundle.mom.version.clone(), str::to_owned);
    tags.insert(0, first);
    registry.push(&to, &bundle, &attached, &tags).await.map_err(|fault| refused(&fault))?;
    let host = to.by_digest(&bundle.digest);
    say(&format!(
        "{} → {host}\ntags {}, {} statement(s)",
        identity(&bundle),
        tags.join(", "),
        attached.len()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Pulls a bundle, and writes it once it is whole and trusted.
pub(super) async fn pull(
    name: &str,
    dir: &Path,
    policy: Option<&Path>,
    remote: &Remote,
) -> anyhow::Result<ExitCode> {
    let (registry, from) = open(name, remote)?;
    let pulled = match registry.pull(&from).await {
        Ok(pulled) => pulled,
        Err(faults) => {
            faults.iter().for_each(|fault| note(&format!("error[{}]: {fault}", fault.code())));
            bail!("{from} is refused: see above");
        }
    };
    let Pulled { bundle, attached } = pulled;
    let opened = Opened { bundle, attached };
    let distrust = policy.map(|policy| seal::judge(policy, &opened)).transpose()?.unwrap_or_default();
    if !distrust.is_empty() {
        distrust.iter().for_each(|it| note(&format!("error[{}]: {}", it.code, it.message)));
        bail!("{from} is refused: see above");
    }
    disk::write_layout(&opened.bundle, &opened.attached, dir)?;
    say(&format!(
        "{}\n→ {}, {} statement(s)",
        identity(&opened.bundle),
        dir.display(),
        opened.attached.len()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Moves a tag.
pub(super) async fn tag(name: &str, tag: &str, remote: &Remote) -> anyhow::Result<ExitCode> {
    let (registry, from) = open(name, remote)?;
    let digest = registry.point(&from, tag).await.map_err(|fault| refused(&fault))?;
    say(&format!("{} → {digest}", from.tagged(tag)));
    Ok(ExitCode::SUCCESS)
}

/// Lists tags.
pub(super) async fn tags(name: &str, remote: &Remote) -> anyhow::Result<ExitCode> {
    let (registry, of) = open(name, remote)?;
    let mut rows = vec![["tag", "bundle"].map(str::to_owned)];
    for tag in registry.tags(&of).await.map_err(|fault| refused(&fault))? {
        let digest = registry.digest(&of.tagged(&tag)).await.map_err(|fault| refused(&fault))?;
        rows.push([tag, digest]);
    }
    say(&table(&rows));
    Ok(ExitCode::SUCCESS)
}
