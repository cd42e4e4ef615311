//! What the store promises: nothing acknowledged is lost, lists are in order, files that are not ours are refused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use chorus_store::sqlite::QUEUE;
use chorus_store::{
    CallRecord, Losses, Page, Purpose, RunFilter, RunId, RunRecord, RunStatus, RunStore, SignalRecord,
    SignalState, SqliteRunStore, StoreFault,
};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

fn record(at: u64) -> RunRecord {
    RunRecord {
        started_at_ms: at,
        requested_model: "vllm-sr/auto".into(),
        decision: Some(if at.is_multiple_of(2) { "even" } else { "odd" }.into()),
        status: if at.is_multiple_of(5) { RunStatus::Failed } else { RunStatus::Ok },
        spec_digest: "sha256:abc".into(),
        ..RunRecord::default()
    }
}

async fn ids(store: &SqliteRunStore, filter: RunFilter, page: Page) -> Vec<RunId> {
    store.list(filter, page).await.unwrap().into_iter().map(|run| run.id).collect()
}

#[tokio::test]
async fn a_record_comes_back_as_it_went() {
    let store = SqliteRunStore::in_memory().unwrap();
    let mut run = record(1);
    run.purpose = Purpose::DryRun;
    run.signals = vec![SignalRecord {
        key: "domain:research".into(),
        state: SignalState::Matched,
        confidence: Some(0.75),
        ..SignalRecord::default()
    }];
    run.calls = vec![CallRecord { role: "panel".into(), cost_micro_usd: 12, ..CallRecord::default() }];
    run.traces.insert("fusion".to_owned(), serde_json::json!({"judge": "parsed"}));
    store.append(run.clone()).await.unwrap();
    assert_eq!(store.get(&run.id).await.unwrap(), Some(run));
    assert_eq!(store.get(&RunId::new()).await.unwrap(), None);
}

#[tokio::test]
async fn lists_are_latest_first_filtered_and_paged() {
    let store = SqliteRunStore::in_memory().unwrap();
    let runs: Vec<RunRecord> = (0..10).map(record).collect();
    for run in &runs {
        store.append(run.clone()).await.unwrap();
    }
    let latest_first: Vec<RunId> = runs.iter().rev().map(|run| run.id.clone()).collect();
    assert_eq!(ids(&store, RunFilter::default(), Page::default()).await, latest_first);

    let mut paged = Vec::new();
    let mut page = Page { limit: 4, before: None };
    loop {
        let part = ids(&store, RunFilter::default(), page.clone()).await;
        let Some(last) = part.last().cloned() else { break };
        page.before = Some(last);
        paged.push(part);
    }
    assert_eq!(paged.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 2]);
    assert_eq!(paged.concat(), latest_first);

    let odd_and_failed = RunFilter {
        decision: Some("odd".to_owned()),
        status: Some(RunStatus::Failed),
        requested_model: Some("vllm-sr/auto".to_owned()),
        spec_digest: Some("sha256:abc".to_owned()),
        since_ms: Some(5),
    };
    assert_eq!(ids(&store, odd_and_failed, Page::default()).await, [runs[5].id.clone()]);
    let since = RunFilter { since_ms: Some(8), ..RunFilter::default() };
    assert_eq!(ids(&store, since, Page::default()).await, [runs[9].id.clone(), runs[8].id.clone()]);
    let none = RunFilter { decision: Some("neither".to_owned()), ..RunFilter::default() };
    assert!(ids(&store, none, Page::default()).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_writers_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteRunStore::open(&folder.path().join("runs.db")).unwrap();
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                for at in 0..50 {
                    store.append(record(writer * 100 + at)).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let all = ids(&store, RunFilter::default(), Page { limit: 1000, before: None }).await;
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 400);
}

#[tokio::test]
async fn flush_makes_what_was_submitted_visible_to_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = SqliteRunStore::open(&path).unwrap();
    let mut receipts = Vec::new();
    for at in 0..100 {
        receipts.push(store.submit(record(at)).await.unwrap());
    }
    store.flush().await.unwrap();
    let other = SqliteRunStore::open(&path).unwrap();
    let seen = ids(&other, RunFilter::default(), Page { limit: 1000, before: None }).await;
    assert_eq!(seen.len(), 100);
    for receipt in receipts {
        receipt.safe().await.unwrap();
    }
}

#[tokio::test]
async fn a_duplicate_fails_alone() {
    let store = SqliteRunStore::in_memory().unwrap();
    let (one, two) = (record(1), record(2));
    store.append(one.clone()).await.unwrap();
    let again = store.submit(one.clone()).await.unwrap();
    let fresh = store.submit(two.clone()).await.unwrap();
    assert!(matches!(again.safe().await, Err(StoreFault::Duplicate(id)) if id == one.id));
    fresh.safe().await.unwrap();
    assert_eq!(ids(&store, RunFilter::default(), Page::default()).await, [two.id, one.id]);
}

/// What it was told of.
#[derive(Default)]
struct Lost(Mutex<Vec<String>>);

impl Losses for Lost {
    fn lost(&self, fault: &StoreFault) {
        self.0.lock().unwrap().push(fault.to_string());
    }
}

#[tokio::test]
async fn records_that_are_handed_over_are_there_after_a_flush_and_losses_are_told() {
    let store = SqliteRunStore::in_memory().unwrap();
    let lost = Arc::new(Lost::default());
    // More than wait at once.
    let runs: Vec<RunRecord> = (0..2 * QUEUE as u64).map(record).collect();
    for run in &runs {
        store.hand_over(Box::new(run.clone()), Arc::clone(&lost) as Arc<dyn Losses>).await;
    }
    store.hand_over(Box::new(runs[7].clone()), Arc::clone(&lost) as Arc<dyn Losses>).await;
    store.flush().await.unwrap();
    assert_eq!(*lost.0.lock().unwrap(), [StoreFault::Duplicate(runs[7].id.clone()).to_string()]);
    for run in [&runs[0], runs.last().unwrap()] {
        assert_eq!(store.get(&run.id).await.unwrap().as_ref(), Some(run));
    }
    let latest = ids(&store, RunFilter::default(), Page { limit: 1000, before: None }).await;
    assert!(latest.iter().eq(runs.iter().rev().take(1000).map(|run| &run.id)));
}

/// Both roles of one test: started again with the variable set, it is the process that gets killed.
const CRASH_FILE: &str = "CHORUS_STORE_CRASH_FILE";

#[tokio::test]
async fn a_kill_loses_nothing_acknowledged() {
    if let Some(path) = std::env::var_os(CRASH_FILE) {
        append_until_killed(Path::new(&path)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_kill_loses_nothing_acknowledged", "--nocapture"])
        .env(CRASH_FILE, &path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut acknowledged = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        acknowledged.extend(RunId::parse(&line.unwrap()));
        if acknowledged.len() == 200 {
            child.kill().unwrap(); // SIGKILL; what the pipe still holds is read on
        }
    }
    child.wait().unwrap();
    assert!(acknowledged.len() >= 200, "{}", acknowledged.len());
    let store = SqliteRunStore::open(&path).unwrap();
    for id in &acknowledged {
        assert!(store.get(id).await.unwrap().is_some(), "{id} was acknowledged and is lost");
    }
}

async fn append_until_killed(path: &Path) {
    let store = SqliteRunStore::open(path).unwrap();
    for at in 0.. {
        let runs = [record(at), record(at)];
        let ids = [runs[0].id.clone(), runs[1].id.clone()];
        let [one, two] = runs.map(|run| store.append(run));
        let (one, two) = tokio::join!(one, two);
        one.and(two).unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}\n{}", ids[0], ids[1]).unwrap();
        out.flush().unwrap();
    }
}

#[tokio::test]
async fn files_that_are_no_store_are_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "shopping list\n".repeat(100)).unwrap();
    let refused = SqliteRunStore::open(&text).err().unwrap();
    assert!(matches!(refused, StoreFault::NotAStore { .. }), "{refused}");
    assert!(refused.to_string().contains("notes.txt"), "{refused}");
    assert_eq!(std::fs::read_to_string(&text).unwrap(), "shopping list\n".repeat(100));

    let foreign = folder.path().join("photos.db");
    let database = rusqlite::Connection::open(&foreign).unwrap();
    database.execute_batch("CREATE TABLE photos (name TEXT)").unwrap();
    drop(database);
    let refused = SqliteRunStore::open(&foreign).err().unwrap();
    assert!(matches!(refused, StoreFault::NotAStore { .. }), "{refused}");

    let gone = SqliteRunStore::open(Path::new("/dev/null/runs.db")).err().unwrap();
    assert!(matches!(gone, StoreFault::Io(_)), "{gone}");
}

#[tokio::test]
async fn a_damaged_file_is_named_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = SqliteRunStore::open(&path).unwrap();
    let mut receipts = Vec::new();
    for at in 0..300 {
        receipts.push(store.submit(record(at)).await.unwrap());
    }
    store.flush().await.unwrap();
    drop(store);
    // The last clone's thread moves the log into the file and removes it.
    while path.with_extension("db-wal").exists() {
        std::thread::yield_now();
    }
    let mut bytes = std::fs::read(&path).unwrap();
    let (from, to) = (4096, bytes.len());
    bytes[from..to].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    let fault = match SqliteRunStore::open(&path) {
        Err(fault) => fault,
        Ok(store) => store.list(RunFilter::default(), Page::default()).await.unwrap_err(),
    };
    assert!(matches!(fault, StoreFault::Damaged(_)), "{fault}");
}

#[tokio::test]
async fn a_file_of_a_later_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    drop(SqliteRunStore::open(&path).unwrap());
    let database = rusqlite::Connection::open(&path).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    drop(database);
    let refused = SqliteRunStore::open(&path).err().unwrap();
    assert!(matches!(refused, StoreFault::TooNew { found: 99, known: 3, .. }), "{refused}");
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/runs.db");
    let store = SqliteRunStore::open(&path).unwrap();
    store.append(record(1)).await.unwrap();
    for name in ["runs.db", "runs.db-wal"] {
        let mode = std::fs::metadata(path.with_file_name(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}
