//! A candidate beside what is served: shown copies, answering a share, promoted, taken back; also across a restart.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should say where")]

use chorus_engine::reload::{Basis, Candidates, Cause, Offer, Origin, Refusal, Source, Standing};
use chorus_engine::rollout::{Share, Stage, Trial};
use chorus_engine::{Configuration, Engine, Env, Inbound, Options, Part, SessionWords, Supply};
use chorus_spec::Spec;
use chorus_store::{Page, Purpose, RunFilter, RunRecord, RunStore, SqliteRunStore};
use chorus_testkit::{Gate, Script, ScriptedUpstream, Step};
use chorus_wire::{ChatRequest, Message, Role};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

fn policy(provider: &str) -> String {
    format!(
        "version: v0.3
providers:
  defaults: {{ default_model: small }}
  models: [{{ name: small, provider_model_id: {provider}, pricing: {{ prompt_per_1m: 1, completion_per_1m: 2 }}, backend_refs: [{{ base_url: \"${{UP}}\" }}] }}]
routing:
  decisions: [{{ name: all, priority: 1, modelRefs: [{{ model: small }}] }}]
"
    )
}

struct Stock(String);

impl Stock {
    fn options(&self) -> Options {
        Options::bare(Env::having(&[("UP", &self.0)]))
    }
}

impl Supply for Stock {
    fn supply<'a>(&'a self, _: &'a Spec) -> BoxFuture<'a, Result<Options, String>> {
        async { Ok(self.options()) }.boxed()
    }
}

struct Files;

impl Candidates for Files {
    fn open(&self, source: &Source) -> Result<Offer, Refusal> {
        Ok(Offer::of(std::fs::read_to_string(&source.path)?))
    }
}

struct House {
    up: Arc<ScriptedUpstream>,
    engine: Engine,
    configuration: Configuration,
    records: SqliteRunStore,
    folder: Arc<TempDir>,
}

impl House {
    async fn open() -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        std::fs::write(folder.path().join("base.yaml"), policy("base")).unwrap();
        std::fs::write(folder.path().join("next.yaml"), policy("next")).unwrap();
        let up = Arc::new(ScriptedUpstream::start().await.unwrap());
        up.otherwise(|request| Script::reply(&format!("I am {}", request.model)));
        Self::start(up, folder)
    }

    /// As another process would, with the same files.
    fn again(&self) -> Self {
        Self::start(Arc::clone(&self.up), Arc::clone(&self.folder))
    }

    fn start(up: Arc<ScriptedUpstream>, folder: Arc<TempDir>) -> Self {
        let records = SqliteRunStore::in_memory().unwrap();
        let stock = Stock(up.base_url());
        let file = folder.path().join("base.yaml");
        let text = std::fs::read_to_string(&file).unwrap();
        let options = Options { records: Some(Arc::new(records.clone())), ..stock.options() };
        let engine = Engine::new(chorus_spec::read(&text).spec.unwrap(), options).unwrap();
        let configuration =
            Configuration::new(engine.clone(), &text, Origin::File(file), Arc::new(stock), None);
        let configuration = configuration.trying(Arc::new(Files), folder.path().join("rollout.json"));
        Self { up, engine, configuration, records, folder }
    }

    fn next(&self) -> Source {
        Source { path: self.path("next.yaml"), binding: None, lock: None }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn tries(&self, stage: Stage, percent: f64) -> Result<chorus_engine::reload::Rollout, Refusal> {
        self.configuration.roll_out(&self.next(), trial(stage, percent), &Basis::Any).await
    }

    /// What a conversation of that name is answered.
    async fn asked(&self, session: &str) -> String {
        let request = ChatRequest::new("vllm-sr/auto", vec![Message::new(Role::User, "hello")]);
        let session = SessionWords { session: Some(session.to_owned()), conversation: None };
        let mut run = self.engine.run(Inbound { session, ..Inbound::of(request) });
        let mut text = String::new();
        while let Some(part) = run.next().await {
            match part {
                Part::Reply(_, reply) => text = reply.content.clone(),
                Part::Fault(fault) => panic!("{fault:?}"),
                _ => {}
            }
        }
        text
    }

    /// Who answers a hundred conversations.
    async fn census(&self) -> Vec<String> {
        let mut all = Vec::new();
        for at in 0..100 {
            all.push(self.asked(&format!("session {at}")).await);
        }
        all
    }

    /// All records, once there are `count`.
    async fn records(&self, count: usize) -> Vec<RunRecord> {
        for _ in 0..100_000 {
            let page = Page { limit: 1000, before: None };
            let records = self.records.list(RunFilter::default(), page).await.unwrap();
            if records.len() >= count {
                return records;
            }
            tokio::task::yield_now().await;
        }
        panic!("fewer than {count} records came")
    }
}

fn trial(stage: Stage, percent: f64) -> Trial {
    Trial { stage, share: Share::percent(percent).unwrap() }
}

fn count(all: &[String], who: &str) -> usize {
    all.iter().filter(|it| *it == &format!("I am {who}")).count()
}

#[tokio::test]
async fn a_shadow_is_shown_copies_and_reaches_no_client() {
    let house = House::open().await;
    house.tries(Stage::Shadow, 100.0).await.unwrap();
    for at in 0..4 {
        assert_eq!(house.asked(&format!("s{at}")).await, "I am base");
    }
    let records = house.records(8).await;
    let (shadows, live): (Vec<_>, Vec<_>) = records.into_iter().partition(|it| it.purpose == Purpose::Shadow);
    assert_eq!((shadows.len(), live.len()), (4, 4));
    for shadow in &shadows {
        let of = shadow.traces["rollout"]["shadow_of"].as_str().unwrap();
        let twin = live.iter().find(|it| it.id.as_str() == of).unwrap();
        assert_ne!(shadow.spec_digest, twin.spec_digest, "each names what answered");
        assert!(shadow.cost_micro_usd > 0 && !twin.traces.contains_key("rollout"));
    }
    let metrics = house.engine.serving().meters.text(&[]);
    assert!(
        metrics.lines().any(|line| line.starts_with("chorus_runs_total") && line.ends_with(" 4")),
        "{metrics}"
    );
}

#[tokio::test]
async fn a_canary_answers_its_share_of_conversations_and_keeps_them() {
    let house = House::open().await;
    let rollout = house.tries(Stage::Canary, 20.0).await.unwrap();
    let first = house.census().await;
    assert!((8..=35).contains(&count(&first, "next")), "{}", count(&first, "next"));
    assert_eq!(house.census().await, first, "a conversation stays where it is");
    house.configuration.retry(trial(Stage::Canary, 60.0), &Basis::Any).await.unwrap();
    let more = house.census().await;
    assert!(
        first.iter().zip(&more).all(|(was, is)| was == "I am base" || is == "I am next"),
        "none goes back"
    );
    assert!(count(&more, "next") > count(&first, "next"));
    let records = house.records(300).await;
    let of_next: Vec<&RunRecord> =
        records.iter().filter(|it| it.spec_digest == rollout.candidate.to_string()).collect();
    assert_eq!(of_next.len(), 2 * count(&first, "next") + count(&more, "next"));
    assert!(
        of_next.iter().all(|it| it.purpose == Purpose::Live && it.traces["rollout"]["stage"] == "canary")
    );
}

#[tokio::test]
async fn promotion_and_its_taking_back_are_seen_by_the_next_request() {
    let house = House::open().await;
    let base = house.configuration.state().digest.clone();
    house.tries(Stage::Shadow, 100.0).await.unwrap();
    let promoted = house.configuration.promote(&Basis::Any).await.unwrap();
    assert_eq!(promoted.standing, Standing::Promoted);
    assert_eq!(count(&house.census().await, "next"), 100);
    assert_eq!(house.configuration.state().digest, promoted.candidate);
    let again = house.tries(Stage::Canary, 5.0).await;
    assert!(matches!(again, Err(Refusal::RolloutStands)));
    house.configuration.withdraw(&Basis::Any).await.unwrap();
    assert_eq!(count(&house.census().await, "base"), 100);
    assert_eq!(house.configuration.state().digest, base);
    assert!(house.configuration.rollout().is_none() && !house.path("rollout.json").exists());
    assert!(matches!(house.configuration.withdraw(&Basis::Any).await, Err(Refusal::NoRollout)));
}

#[tokio::test]
async fn a_request_that_has_begun_ends_on_what_it_began_with() {
    let house = House::open().await;
    let gate = Gate::new();
    let held = gate.clone();
    house.up.on_with("base", move |_| Script::reply("I am base").first(Step::Await(held.clone())));
    let asked = house.asked("s");
    let promoting = async {
        assert!(house.up.wait(|up| up.requests().len() == 1).await);
        house.tries(Stage::Canary, 0.0).await.unwrap();
        house.configuration.promote(&Basis::Any).await.unwrap();
        assert_eq!(house.asked("other").await, "I am next");
        gate.open();
    };
    let (answer, ()) = tokio::join!(asked, promoting);
    assert_eq!(answer, "I am base");
}

#[tokio::test]
async fn a_restart_goes_on_where_it_was() {
    let house = House::open().await;
    house.tries(Stage::Canary, 30.0).await.unwrap();
    let was = house.census().await;
    let next = house.again();
    assert_eq!(next.configuration.resume().await.unwrap().unwrap().standing, Standing::Canary);
    assert_eq!(next.census().await, was, "the same conversations");
    next.configuration.promote(&Basis::Any).await.unwrap();

    let later = house.again();
    assert_eq!(later.configuration.resume().await.unwrap().unwrap().standing, Standing::Promoted);
    later.configuration.reload(Cause::Watch).await.unwrap();
    assert_eq!(
        count(&later.census().await, "next"),
        100,
        "a watch that finds the same file finds nothing new"
    );
    later.configuration.withdraw(&Basis::Any).await.unwrap();
    assert_eq!(later.asked("s").await, "I am base");
    assert!(house.again().configuration.resume().await.unwrap().is_none());
}

#[tokio::test]
async fn what_has_changed_meanwhile_ends_a_rollout_and_the_base_serves() {
    for (changed, text) in
        [("next.yaml", policy("other")), ("base.yaml", policy("newer")), ("rollout.json", "{".to_owned())]
    {
        let house = House::open().await;
        house.tries(Stage::Canary, 100.0).await.unwrap();
        std::fs::write(house.path(changed), text).unwrap();
        let later = house.again();
        assert!(later.configuration.resume().await.is_err(), "{changed}");
        assert_ne!(later.asked("s").await, "I am next", "{changed}");
    }
    let house = House::open().await;
    house.tries(Stage::Canary, 50.0).await.unwrap();
    std::fs::write(house.path("next.yaml"), policy("other")).unwrap();
    assert!(matches!(house.configuration.promote(&Basis::Any).await, Err(Refusal::Unready(_))));
    assert_eq!(count(&house.census().await, "base"), 100, "nothing that was not looked at is served");
    assert!(house.configuration.rollout().is_none());
    let house = House::open().await;
    house.tries(Stage::Canary, 100.0).await.unwrap();
    std::fs::write(house.path("base.yaml"), policy("newer")).unwrap();
    house.configuration.reload(Cause::Signal).await.unwrap();
    assert_eq!(house.asked("s").await, "I am newer", "a reload is the operator's word");
    assert!(house.configuration.rollout().is_none());
}

#[tokio::test]
async fn a_bad_candidate_changes_nothing() {
    let house = House::open().await;
    std::fs::write(house.path("next.yaml"), "version: v0.3\nrouting: { decisions: [{ name: x }] }").unwrap();
    assert!(matches!(house.tries(Stage::Canary, 100.0).await, Err(Refusal::Rejected(_))));
    let gone = Source { path: house.path("nowhere.yaml"), ..house.next() };
    let refused = house.configuration.roll_out(&gone, trial(Stage::Canary, 100.0), &Basis::Any).await;
    assert!(matches!(refused, Err(Refusal::Unreadable(_))));
    let stale = Basis::OneOf(vec!["sha256:0".to_owned()]);
    let refused = house.configuration.roll_out(&house.next(), trial(Stage::Canary, 100.0), &stale).await;
    assert!(matches!(refused, Err(Refusal::Stale(_))));
    assert_eq!(house.asked("s").await, "I am base");
    assert!(house.configuration.rollout().is_none());
}
