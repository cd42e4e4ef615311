//! `chorus keys create|list|revoke`: who may ask.

use crate::cli::{Keys, KeysAt};
use crate::stores;
use crate::terminal::{note, say, table};
use anyhow::bail;
use chorus_store::{ApiKey, KeyStore};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Makes, lists or revokes.
pub(crate) async fn run(command: Keys) -> anyhow::Result<ExitCode> {
    match command {
        Keys::Create { user, group, name, at } => {
            let keys = at.open().await?;
            let (key, whole) = keys.create(&name, &user, &group, now_ms()).await?;
            note(&format!("key {} of {}; it is shown this once:", key.id, key.user));
            say(whole.reveal());
        }
        Keys::List { json, at } => {
            let all = at.open().await?.list().await?;
            if json {
                for key in &all {
                    say(&serde_json::to_string(key)?);
                }
            } else {
                say(&listing(&all));
            }
        }
        Keys::Revoke { id, at } => {
            let keys = at.open().await?;
            if !keys.revoke(&id, now_ms()).await? {
                bail!("no key `{id}` opens anything; `chorus keys list` shows all");
            }
            note(&format!("key {id} opens nothing any more"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl KeysAt {
    async fn open(self) -> anyhow::Result<Arc<dyn KeyStore>> {
        stores::keys(&stores::named(self.config.as_deref(), None)?, self.keys_file).await
    }
}

fn listing(all: &[ApiKey]) -> String {
    let mut rows = vec![["id", "user", "groups", "name", "state"].map(str::to_owned)];
    rows.extend(all.iter().map(|key| {
        let state = if key.revoked_at_ms.is_some() { "revoked" } else { "open" };
        [key.id.clone(), key.user.clone(), key.groups.join(","), key.name.clone(), state.to_owned()]
    }));
    table(&rows)
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
