//! `chorus lock`: a binding resolved, compared with what is there, or moved by one component.

use super::bound::{read_binding, told};
use super::{disk, probe};
use crate::cli::LockFlags;
use crate::setup;
use crate::terminal::{note, say, table};
use anyhow::{Context, bail};
use chorus_bundle::Bundle;
use chorus_bundle::binding;
use chorus_bundle::lock::{Drift, Lock, LockFault, Observed, Runtime};
use chorus_spec::Digest;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// Resolves, checks or updates.
pub(super) fn run(flags: &LockFlags) -> anyhow::Result<ExitCode> {
    let bundle = disk::open(&flags.bundle)?;
    let (text, binding) = read_binding(&bundle.mom, flags.binding.as_deref())?;
    let digest = binding::digest(&text).map_err(|found| told("the binding", &found))?;
    binding::check_bundle(&binding, &bundle).map_err(|found| told("the binding", &found))?;
    let store = setup::model_store(flags.models_dir.clone())?;
    let prober = probe::Look { store: &store, offline: flags.offline, now_ms: probe::now_ms() };
    let found = Lock::resolve(&bundle, (&binding, &digest), engine(), &prober)?;
    if flags.check {
        return check(&of_file(&flags.out)?, &found, &bundle);
    }
    let lock = match &flags.update {
        Some(component) => {
            let mut lock = of_file(&flags.out)?;
            lock.is_for(&bundle.digest, &digest)?;
            lock.update(component, &found)?;
            lock
        }
        None => found,
    };
    disk::put(&flags.out, lock.write()?.as_bytes())?;
    show(&lock, &flags.out)
}

fn show(lock: &Lock, path: &Path) -> anyhow::Result<ExitCode> {
    let mut rows = vec![["component", "runs on", "resolved to"].map(str::to_owned)];
    for (name, it) in &lock.components {
        let resolved: Vec<String> = it.resolved.values().map(|it| shown(&it.observed)).collect();
        rows.push([name.clone(), it.deployments.join(", "), resolved.join("; ")]);
    }
    say(&table(&rows));
    for (name, stand_in) in &lock.substitutions {
        note(&format!("`{stand_in}` stands in for `{name}`"));
    }
    say(&format!("\n{} {}", path.display(), lock.digest()?));
    Ok(ExitCode::SUCCESS)
}

fn shown(it: &Observed) -> String {
    match it {
        Observed::Local { model, weights, .. } => {
            let digest = weights.values().next().map(String::as_str).unwrap_or_default();
            format!("{model} {}", digest.chars().take(19).collect::<String>())
        }
        Observed::Provider { model, fingerprint, .. } => {
            format!(
                "{model} {}",
                fingerprint.as_deref().unwrap_or("by name alone").chars().take(19).collect::<String>()
            )
        }
        Observed::Unseen { why } => format!("not seen: {why}"),
    }
}

fn check(lock: &Lock, found: &Lock, bundle: &Bundle) -> anyhow::Result<ExitCode> {
    if lock.bundle != bundle.digest {
        lock.is_for(&bundle.digest, &Digest::of(&[]))?;
    }
    let drift = lock.drift(found);
    drift.iter().for_each(|it| say(&line(it)));
    say(&format!("{} difference(s) between the lock and what is there", drift.len()));
    Ok(if drift.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn line(it: &Drift) -> String {
    let value = |text: &str| if text.is_empty() { "nothing".to_owned() } else { text.to_owned() };
    format!("{}: {}: {} → {}", it.component, it.what, value(&it.locked), value(&it.found))
}

fn of_file(path: &Path) -> anyhow::Result<Lock> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Lock::read(&text).map_err(|fault| refused(path, &fault))
}

fn refused(path: &Path, fault: &LockFault) -> anyhow::Error {
    anyhow::anyhow!("{} is refused [{}]: {fault}", path.display(), fault.code())
}

/// A lock that holds: for this bundle and this binding, and weights of this machine as they were locked.
pub(super) fn held(path: &Path, bundle: &Bundle, digest: &Digest) -> anyhow::Result<Lock> {
    let lock = of_file(path)?;
    lock.is_for(&bundle.digest, digest).map_err(|fault| refused(path, &fault))?;
    let catalog = chorus_infer::store::Catalog::builtin();
    for resolved in lock.components.values().flat_map(|it| it.resolved.values()) {
        if let Observed::Local { model, weights, .. } = &resolved.observed
            && probe::weights_of(&catalog, model) != *weights
        {
            bail!(
                "{} is refused [lock-drift]: the weights of `{model}` are others than locked",
                path.display()
            );
        }
    }
    Ok(lock)
}

fn engine() -> Runtime {
    Runtime {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        platform: format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH),
        instruction_set: probe::instruction_set(),
    }
}
