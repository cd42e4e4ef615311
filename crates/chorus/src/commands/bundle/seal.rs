//! `chorus keygen | sign`, and the judgement of `--policy`: keys and statements on disk.
//!
//! **Invariant:** a private key is written for its owner alone, and shown nowhere.

use super::bound::told;
use super::disk::{self, Opened};
use crate::cli::{Sign, Statement};
use crate::terminal::{note, say};
use anyhow::{Context, bail};
use chorus_bundle::attest::Attached;
use chorus_bundle::dsse::{Claim, Key, Kind};
use chorus_bundle::trust::{self, Distrust};
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

const DAY_S: u64 = 24 * 60 * 60;

/// Makes a key pair.
pub(super) fn keygen(file: &Path) -> anyhow::Result<ExitCode> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)
        .map_err(|fault| anyhow::anyhow!("the system gives no random bytes: {fault}"))?;
    let key = Key::of_seed(&seed);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let shown = file.display();
    let mut opened = options.open(file).with_context(|| format!("cannot make {shown}"))?;
    opened.write_all(key.write()?.as_bytes()).with_context(|| format!("cannot write {shown}"))?;
    let mut public = file.as_os_str().to_owned();
    public.push(".pub");
    disk::put(Path::new(&public), key.public().write()?.as_bytes())?;
    say(&format!("{shown} and {}: {}", Path::new(&public).display(), key.public().id()));
    Ok(ExitCode::SUCCESS)
}

/// Attaches a statement.
pub(super) fn sign(flags: &Sign) -> anyhow::Result<ExitCode> {
    let Opened { bundle, mut attached } = disk::open_with(&flags.bundle)?;
    let text =
        |path: &Path| fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
    let key = Key::read(&text(&flags.key)?)?;
    let content: Value = match &flags.content {
        Some(path) => serde_json::from_str(&text(path)?).with_context(|| path.display().to_string())?,
        None => Value::Null,
    };
    let issued_s = now_s();
    let kind = match flags.statement {
        Statement::Signature => Kind::Signature,
        Statement::Approval => Kind::Approval,
        Statement::Scorecard => Kind::Scorecard,
        Statement::Provenance => Kind::Provenance,
    };
    let claim = Claim {
        kind,
        bundle: bundle.digest.clone(),
        name: format!("{} {}", bundle.mom.family, bundle.mom.version),
        issued_s,
        expires_s: flags.days.map(|days| issued_s.saturating_add(days.saturating_mul(DAY_S))),
        content,
    };
    attached.push(Attached::to(&bundle, kind, &key.sign(&claim)?)?);
    let path = &flags.bundle;
    if path.join("oci-layout").exists() {
        disk::write_layout(&bundle, &attached, path)?;
    } else if path.is_file() {
        disk::write_archive(&bundle, &attached, path)?;
    } else {
        bail!("{} is no bundle yet: `chorus build` it first", path.display());
    }
    say(&format!("{} by {} is attached to {}", kind.as_str(), key.public().id(), bundle.digest));
    Ok(ExitCode::SUCCESS)
}

/// What of a policy a bundle does not meet.
pub(super) fn judge(policy: &Path, opened: &Opened) -> anyhow::Result<Vec<Distrust>> {
    let text = fs::read_to_string(policy).with_context(|| format!("cannot read {}", policy.display()))?;
    let policy = trust::read(&text).map_err(|found| told(&policy.display().to_string(), &found))?;
    let distrust = policy.judge(&opened.bundle.digest, &opened.attached, now_s());
    if distrust.is_empty() {
        note("every statement that the policy asks for is attached and valid");
    }
    Ok(distrust)
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
