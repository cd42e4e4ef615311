//! The watch on the file.
//!
//! Editors and deployments replace a file instead of writing into it, and a mounted volume swaps a link somewhere
//! above; so the folders are watched, of the name and of what it points to, and any event in them is a reason to look.
//! Looking is cheap: a text that is already known ends there.

use super::{Cause, Configuration};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long the folders must be quiet before the file is read: most programs have written it whole by then.
pub const QUIET: Duration = Duration::from_millis(200);

/// A watch; it ends when this is dropped.
#[derive(Debug)]
pub struct Watching {
    _watcher: RecommendedWatcher,
}

/// Reloads the configuration whenever its file changes. A built-in one has no file: `None`.
///
/// # Errors
/// When the system gives no watch.
pub fn watch(configuration: Arc<Configuration>, quiet: Duration) -> notify::Result<Option<Watching>> {
    let watched: BTreeSet<PathBuf> = configuration.origin().files().into_iter().flat_map(folders).collect();
    if watched.is_empty() {
        return Ok(None);
    }
    let (tell, events) = mpsc::unbounded_channel();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        // Reading is an event too, and our own must not wake us.
        if event.is_ok_and(|event| !event.kind.is_access()) {
            let _ = tell.send(());
        }
    })?;
    for folder in watched {
        watcher.watch(&folder, RecursiveMode::NonRecursive)?;
    }
    tokio::spawn(follow(configuration, events, quiet));
    Ok(Some(Watching { _watcher: watcher }))
}

/// The folder of the name, and the one of what it points to.
fn folders(path: &Path) -> BTreeSet<PathBuf> {
    let real = std::fs::canonicalize(path).ok();
    let places = std::iter::once(path.to_path_buf()).chain(real);
    let folder = |place: PathBuf| {
        let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.unwrap_or(Path::new(".")).to_path_buf()
    };
    places.map(folder).collect()
}

async fn follow(configuration: Arc<Configuration>, mut events: mpsc::UnboundedReceiver<()>, quiet: Duration) {
    // It may have changed since it was read.
    let _ = configuration.reload(Cause::Watch).await;
    while events.recv().await.is_some() {
        while let Ok(Some(())) = tokio::time::timeout(quiet, events.recv()).await {}
        // Whatever comes of it stands in the log and in the state.
        let _ = configuration.reload(Cause::Watch).await;
    }
}
