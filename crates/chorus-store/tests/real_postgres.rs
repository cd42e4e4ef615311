//! The stores that replicas share against a real PostgreSQL server, where one is at hand:
//! `cargo test -p chorus-store --test real_postgres -- --ignored`. It says so and passes where `CHORUS_TEST_POSTGRES` does not
//! name one (`acceptance/postgres.sh` starts a server and sets it to `PORT:PASSWORD`). Where `CHORUS_TEST_POSTGRES_TLS` names
//! a folder, the server takes encrypted connections alone, by a certificate for `localhost` of the authority `ours.pem` there;
//! `other.pem` is an authority that it has nothing of.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test that cannot go on should say where")]

use chorus_store::{
    Content, KeyStore as _, Outcome, OutcomeMark, OutcomeStore as _, OutcomeTarget, OutcomeVerdict, Page,
    PostgresFault, PostgresKeys, PostgresOutcomes, PostgresPlace, PostgresRuns, PostgresTls, RunFilter,
    RunId, RunRecord, RunStore as _, RunsPlace, SharedRunStore, SqliteRunStore, StoreFault, Told,
};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A database of that server; `None` where there is no server.
fn place(database: &str) -> Option<PostgresPlace> {
    let Ok(named) = std::env::var("CHORUS_TEST_POSTGRES") else {
        eprintln!("skipped: CHORUS_TEST_POSTGRES names no server (acceptance/postgres.sh starts one)");
        return None;
    };
    let (port, password) = named.split_once(':').unwrap();
    let (host, tls) = match authority("ours.pem") {
        Some(ours) => ("localhost", PostgresTls::Verified(Some(ours))),
        None => ("127.0.0.1", PostgresTls::Off),
    };
    Some(PostgresPlace {
        host: host.to_owned(),
        port: port.parse().unwrap(),
        database: database.to_owned(),
        user: "router".to_owned(),
        password: Some(password.to_owned()),
        tls,
    })
}

/// The file of an authority, where the server is one with TLS.
fn authority(name: &str) -> Option<PathBuf> {
    std::env::var_os("CHORUS_TEST_POSTGRES_TLS").map(|folder| PathBuf::from(folder).join(name))
}

fn runs(place: &PostgresPlace, keep_for: Option<Duration>) -> SharedRunStore {
    with_spool(place, SqliteRunStore::in_memory().unwrap(), keep_for)
}

fn with_spool(place: &PostgresPlace, spool: SqliteRunStore, keep_for: Option<Duration>) -> SharedRunStore {
    let line = || -> Arc<dyn RunsPlace> { Arc::new(PostgresRuns::new(place).unwrap()) };
    SharedRunStore::new(line(), line(), spool, keep_for)
}

fn record(decision: &str, at: u64) -> RunRecord {
    RunRecord {
        started_at_ms: at,
        decision: Some(decision.into()),
        // A name that a client may send, and that a column of PostgreSQL cannot hold.
        requested_model: "zażółć\0gęślą".into(),
        content: Some(Content { prompt: "p\0".to_owned(), ..Content::default() }),
        ..RunRecord::default()
    }
}

fn outcome(verdict: OutcomeVerdict) -> Outcome {
    Outcome {
        run: RunId::new(),
        told_at_ms: 5,
        target: OutcomeTarget::Model,
        target_ref: Some("small".to_owned()),
        decision: None,
        verdict,
        reason: Some("a\0b".to_owned()),
        score: Some(0.5),
        metadata: Default::default(),
    }
}

#[tokio::test]
#[ignore = "needs a PostgreSQL server"]
async fn two_replicas_that_start_at_once_share_records() {
    let Some(place) = place("chorus_runs_test") else { return };
    let (one, other) = (runs(&place, None), runs(&place, None));
    let records: Vec<RunRecord> =
        (0..600).map(|n| record(if n % 2 == 0 { "even" } else { "odd" }, n)).collect();
    let writes = records.iter().enumerate().map(|(n, record)| {
        let (store, record) = (if n % 2 == 0 { one.clone() } else { other.clone() }, record.clone());
        tokio::spawn(async move { store.append(record).await.unwrap() })
    });
    for write in writes.collect::<Vec<_>>() {
        write.await.unwrap();
    }
    assert_eq!(other.get(&records[0].id).await.unwrap().as_ref(), Some(&records[0]));
    let even = RunFilter { decision: Some("even".to_owned()), ..RunFilter::default() };
    let latest = other.list(even.clone(), Page { limit: 2, before: None }).await.unwrap();
    assert_eq!(latest, [records[598].clone(), records[596].clone()]);
    let before = Page { limit: 1, before: Some(latest[1].id.clone()) };
    assert_eq!(one.list(even, before).await.unwrap(), std::slice::from_ref(&records[594]));
    let named = RunFilter {
        requested_model: Some(records[0].requested_model.clone().into()),
        since_ms: Some(599),
        ..RunFilter::default()
    };
    assert_eq!(one.list(named, Page::default()).await.unwrap(), std::slice::from_ref(&records[599]));
    // A name that no index takes whole: whoever sends one keeps nobody's records back.
    let long: String = (0..2_000).map(|n: u32| format!("{:08x}", n.wrapping_mul(2_654_435_761))).collect();
    let long = RunRecord { requested_model: format!("ż{long}").into(), ..record("long", 700) };
    one.append(long.clone()).await.unwrap();
    let named =
        RunFilter { requested_model: Some(long.requested_model.clone().into()), ..RunFilter::default() };
    assert_eq!(other.list(named, Page::default()).await.unwrap(), std::slice::from_ref(&long));
    let again = one.append(records[0].clone()).await;
    assert!(matches!(again, Err(StoreFault::Duplicate(id)) if id == records[0].id));
    assert_eq!(one.trim_content("odd".to_owned(), 2, 10).await.unwrap(), 10);
    assert_eq!(one.trim_content("odd".to_owned(), 2, 10).await.unwrap(), 0);
    assert_eq!(other.get(&records[599].id).await.unwrap().unwrap().content, records[599].content);
    assert_eq!(other.get(&records[595].id).await.unwrap().unwrap().content, None);
}

#[tokio::test]
#[ignore = "needs a PostgreSQL server"]
async fn what_waits_in_the_spool_is_brought_over_once_and_old_runs_go() {
    let Some(place) = place("chorus_spool_test") else { return };
    let spool = SqliteRunStore::in_memory().unwrap();
    let (kept, waiting) = (record("kept", u64::MAX >> 12), record("waiting", u64::MAX >> 12));
    runs(&place, None).append(kept.clone()).await.unwrap();
    // What a database had committed before it could say so waits too.
    for record in [&kept, &waiting] {
        spool.append(record.clone()).await.unwrap();
    }
    runs(&place, None).append(record("old", 1)).await.unwrap();
    let store = with_spool(&place, spool.clone(), Some(Duration::from_secs(60)));
    let all = || store.list(RunFilter::default(), Page::default());
    for _ in 0..200 {
        let spooled = spool.list(RunFilter::default(), Page::default()).await.unwrap();
        if spooled.is_empty() && all().await.unwrap().len() == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let found = all().await.unwrap();
    assert_eq!(found, [waiting, kept], "each once, and the old one is gone");
}

#[tokio::test]
#[ignore = "needs a PostgreSQL server"]
async fn e11_replicas_judge_a_run_once() {
    let Some(place) = place("chorus_outcomes_test") else { return };
    let (one, other) = (PostgresOutcomes::new(&place).unwrap(), PostgresOutcomes::new(&place).unwrap());
    let (good, bad) = (outcome(OutcomeVerdict::GoodFit), outcome(OutcomeVerdict::Failed));
    assert_eq!(one.tell("k1".to_owned(), good.clone()).await.unwrap(), Told::New);
    let later = Outcome { told_at_ms: 9, ..good.clone() };
    assert_eq!(other.tell("k1".to_owned(), later).await.unwrap(), Told::Again);
    assert_eq!(other.tell("k1".to_owned(), bad.clone()).await.unwrap(), Told::Other);
    let second = Outcome { verdict: OutcomeVerdict::Failed, ..good.clone() };
    assert_eq!(other.tell("k2".to_owned(), second).await.unwrap(), Told::Other, "a run is judged once");
    assert_eq!(other.tell("k2".to_owned(), bad.clone()).await.unwrap(), Told::New);
    assert_eq!(one.of(&bad.run).await.unwrap(), std::slice::from_ref(&bad));
    assert_eq!(one.latest(10).await.unwrap().0, [bad, good]);
}

#[tokio::test]
#[ignore = "needs a PostgreSQL server"]
async fn a_key_that_one_replica_makes_opens_at_the_other_until_it_is_revoked() {
    let Some(place) = place("chorus_keys_test") else { return };
    let (one, other) = (PostgresKeys::new(&place).unwrap(), PostgresKeys::new(&place).unwrap());
    let groups = ["staff".to_owned(), "ml".to_owned()];
    let (key, whole) = one.create("laptop", "ada", &groups, 7).await.unwrap();
    let secret = whole.reveal();
    assert_eq!(other.find(secret).await.unwrap(), Some(key.clone()));
    let wrong = format!("{}0", &secret[..secret.len() - 1]);
    let opens = other.find(&wrong).await.unwrap().is_some();
    assert_eq!(opens, wrong == secret);
    assert_eq!(other.find("sk-1").await.unwrap(), None);
    assert!(one.revoke(&key.id, 9).await.unwrap());
    assert_eq!(other.find(secret).await.unwrap(), None);
    assert!(!other.revoke(&key.id, 10).await.unwrap(), "once");
    assert_eq!(other.list().await.unwrap()[0].revoked_at_ms, Some(9));
}

#[tokio::test]
#[ignore = "needs a PostgreSQL server"]
async fn what_waiting_does_not_mend_is_told_without_the_password() {
    let Some(place) = place("chorus_keys_test") else { return };
    let prepared = async |place: PostgresPlace| chorus_store::postgres::prepare(&place).await.unwrap_err();
    let wrong = prepared(PostgresPlace { password: Some("hunter2".to_owned()), ..place.clone() }).await;
    assert!(matches!(&wrong, PostgresFault::Refused(_)) && !wrong.to_string().contains("hunter2"), "{wrong}");
    let none = prepared(PostgresPlace { password: None, ..place.clone() }).await;
    assert!(matches!(&none, PostgresFault::Refused(why) if why.contains("password")), "{none}");
    let database = prepared(PostgresPlace { database: "nowhere".to_owned(), ..place.clone() }).await;
    assert!(matches!(&database, PostgresFault::Refused(why) if why.contains("nowhere")), "{database}");
}

#[tokio::test]
#[ignore = "needs a PostgreSQL server"]
async fn each_mode_promises_what_it_says() {
    let Some(place) = place("chorus_keys_test") else { return };
    let prepared = async |host: &str, tls| {
        let place = PostgresPlace { host: host.to_owned(), tls, ..place.clone() };
        let told = chorus_store::postgres::prepare(&place).await;
        let shown = told.as_ref().err().map(ToString::to_string).unwrap_or_default();
        assert!(!shown.contains(place.password.as_deref().unwrap()), "{shown}");
        told
    };
    let (Some(ours), Some(other)) = (authority("ours.pem"), authority("other.pem")) else {
        let fault = prepared("127.0.0.1", PostgresTls::AnyCertificate).await.unwrap_err();
        assert!(matches!(&fault, PostgresFault::Refused(why) if why.contains("TLS")), "{fault}");
        return;
    };
    let by = |authorities: &PathBuf| PostgresTls::Verified(Some(authorities.clone()));
    prepared("localhost", by(&ours)).await.unwrap();
    for host in ["localhost", "127.0.0.1"] {
        prepared(host, PostgresTls::AnyCertificate).await.unwrap();
        let fault = prepared(host, PostgresTls::Off).await.unwrap_err();
        assert!(matches!(&fault, PostgresFault::Refused(why) if why.contains("no encryption")), "{fault}");
    }
    for (host, tls, because) in [
        ("localhost", by(&other), "no authority that is trusted"),
        ("localhost", PostgresTls::Verified(None), "no authority that is trusted"),
        ("127.0.0.1", by(&ours), "for other hosts"),
    ] {
        let fault = prepared(host, tls).await.unwrap_err();
        assert!(matches!(&fault, PostgresFault::Tls(why) if why.contains(because)), "{fault}");
    }
}

#[tokio::test]
#[ignore = "needs a PostgreSQL server"]
async fn a_reader_who_goes_on_from_a_mark_misses_no_verdict_of_many_replicas() {
    let Some(place) = place("chorus_marks_test") else { return };
    let tellers = (0..4).map(|replica| {
        let store = PostgresOutcomes::new(&place).unwrap();
        tokio::spawn(async move {
            for n in 0..100 {
                let outcome = outcome(OutcomeVerdict::GoodFit);
                assert_eq!(store.tell(format!("{replica}-{n}"), outcome).await.unwrap(), Told::New);
            }
        })
    });
    let tellers: Vec<_> = tellers.collect();
    let reader = PostgresOutcomes::new(&place).unwrap();
    let (mut read, mut mark) = (Vec::new(), OutcomeMark::default());
    for _ in 0..10_000 {
        let are_done = tellers.iter().all(tokio::task::JoinHandle::is_finished);
        let (more, end) = reader.after(mark, 7).await.unwrap();
        let is_all = more.len() < 7;
        read.extend(more.into_iter().map(|outcome| outcome.run.to_string()));
        mark = end;
        if are_done && is_all {
            break;
        }
    }
    let runs: BTreeSet<String> = read.iter().cloned().collect();
    assert_eq!((read.len(), runs.len()), (400, 400), "each once");
    assert_eq!(reader.latest(1).await.unwrap().1, mark);
}
