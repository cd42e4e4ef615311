//! The load under which Chorus is killed: clients that ask without a pause, and a reader of the records.

use crate::line::{End, Line};
use crate::records::Records;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Clients at once.
const CLIENTS: usize = 12;
/// Between two looks at the records.
const LOOK: Duration = Duration::from_millis(5);

/// Runs that were answered, each with when.
type Answered = Vec<(String, Instant)>;

/// A running load.
pub(super) struct Load {
    clients: JoinSet<Answered>,
    reader: std::thread::JoinHandle<anyhow::Result<Vec<String>>>,
    over: CancellationToken,
}

impl Load {
    pub(super) fn start(port: u16, records: &Path) -> Self {
        let over = CancellationToken::new();
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            clients.spawn(client(port));
        }
        let (path, token): (PathBuf, _) = (records.to_owned(), over.clone());
        Self { clients, reader: std::thread::spawn(move || read(&path, &token)), over }
    }

    /// Runs that were answered, and ids of records that the reader saw.
    pub(super) async fn end(mut self) -> anyhow::Result<(Answered, Vec<String>)> {
        self.over.cancel();
        let mut answered = Vec::new();
        while let Some(client) = self.clients.join_next().await {
            answered.extend(client?);
        }
        let committed = self.reader.join().map_err(|_| anyhow::anyhow!("the reader ended badly"))??;
        Ok((answered, committed))
    }
}

/// Asks until nobody answers any more.
async fn client(port: u16) -> Answered {
    let body = json!({"model": "vllm-sr/auto", "messages": [{"role": "user", "content": "Is it foggy?"}]});
    let (mut line, mut answered) = (Line::to(port), Vec::new());
    while let Ok(told) = line.ask(body.to_string(), false).await {
        if told.end == End::Whole {
            answered.push((told.run, Instant::now()));
        }
    }
    answered
}

/// Reads what is committed, as another process would, until told to stop; its last look is before the stop.
fn read(path: &Path, over: &CancellationToken) -> anyhow::Result<Vec<String>> {
    let records = Records::open(path)?;
    let (mut committed, mut last) = (Vec::new(), 0);
    while !over.is_cancelled() {
        let (ids, row) = records.ids_after(last)?;
        committed.extend(ids);
        last = row;
        std::thread::sleep(LOOK);
    }
    Ok(committed)
}
