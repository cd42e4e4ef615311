//! Runs that are executed again from what was recorded: the same record, and nobody is called.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should say where")]

use chorus_engine::tape::{TapeFault, Tapes, differences};
use chorus_engine::{Artifact, Engine, Env, Inbound, Options, Point};
use chorus_spec::{BudgetSettings, Spec};
use chorus_store::{RunRecord, RunStatus, RunStore, SqliteRunStore};
use chorus_testkit::{ChatAnswer, Script, ScriptedUpstream};
use chorus_wire::{ChatRequest, Message, Role};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// How long a run and its record may take to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// Every way to work, over a, b and c.
const WAYS: [&str; 8] = [
    "{ type: static }",
    "{ type: confidence, confidence: { escalation_order: declared, threshold: 0.9 } }",
    "{ type: ratings, ratings: { raters: components, aggregate: best } }",
    "{ type: remom, remom: { breadth_schedule: [3], model_distribution: equal, synthesis_model: c } }",
    "{ type: fusion, fusion: { model: judge, analysis_models: [a, b, c], on_error: skip } }",
    "{ type: fusion, fusion: { model: judge, analysis_models: [a, b, c], min_successful_responses: 1, on_error: skip } }",
    "{ type: workflows, workflows: { roles: [{ name: Thinker, models: [a] }, { name: Solver, models: [b] }], final: { model: c } } }",
    "{ type: poll, poll: { alternatives: 4, steps: [{ models: [a, b], accept: 0.6 }, { models: [c] }] } }",
];

fn spec(algorithm: &str) -> Spec {
    let text = format!(
        "version: v0.3
providers:
  models:
    - {{ name: a, pricing: {{ prompt_per_1m: 1, completion_per_1m: 2 }}, backend_refs: [{{ name: x, base_url: \"${{UP}}\" }}, {{ name: y, base_url: \"${{UP}}\" }}], reliability: {{ retry_count: 1, retry_on: 5xx }} }}
    - {{ name: b, backend_refs: [{{ name: x, base_url: \"${{UP}}\" }}] }}
    - {{ name: c, backend_refs: [{{ name: x, base_url: \"${{UP}}\" }}] }}
    - {{ name: judge, backend_refs: [{{ name: x, base_url: \"${{UP}}\" }}] }}
routing:
  signals:
    keywords: [{{ name: bread, keywords: [bread] }}]
  decisions:
    - {{ name: all, priority: 1, rules: {{ type: keyword, name: bread }}, modelRefs: [{{ model: a }}, {{ model: b }}, {{ model: c }}], algorithm: {algorithm} }}
"
    );
    let checked = chorus_spec::read(&text);
    checked.spec.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
}

fn options(up: &ScriptedUpstream, records: Option<SqliteRunStore>) -> Options {
    let records = records.map(|it| Arc::new(it) as Arc<dyn RunStore>);
    Options { records, ..Options::bare(Env::having(&[("UP", &up.base_url())])) }
}

struct House {
    up: ScriptedUpstream,
    engine: Engine,
    records: SqliteRunStore,
    tapes: Tapes,
    _folder: TempDir,
}

async fn house(algorithm: &str, artifact: Artifact) -> House {
    let up = ScriptedUpstream::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let tapes = Tapes::open(folder.path(), false).unwrap();
    let records = SqliteRunStore::in_memory().unwrap();
    let engine = Engine::of(spec(algorithm), options(&up, Some(records.clone())), artifact).unwrap();
    let engine = engine.recording(tapes.clone());
    House { up, engine, records, tapes, _folder: folder }
}

impl House {
    /// Runs a question to its end; its record.
    async fn asked(&self, text: &str, stream: bool) -> RunRecord {
        let mut request = ChatRequest::new("vllm-sr/auto", vec![Message::new(Role::User, text)]);
        request.set_stream(stream, stream);
        let mut run = self.engine.run(Inbound::of(request));
        let id = chorus_store::RunId::parse(&run.id).unwrap();
        while run.next().await.is_some() {}
        drop(run);
        assert!(self.engine.drain(PATIENCE).await, "the run comes to its end");
        self.records.get(&id).await.unwrap().unwrap()
    }

    /// The record of the run executed again under that algorithm, and where it strayed.
    async fn again(&self, record: &RunRecord, algorithm: &str) -> (RunRecord, Vec<String>) {
        let called = self.up.requests().len();
        let engine = Engine::sealed(spec(algorithm), options(&self.up, None), Artifact::default()).unwrap();
        let tape = self.tapes.tape(record.id.as_str()).unwrap();
        let again = engine.replay(&tape).await.unwrap();
        assert_eq!(self.up.requests().len(), called, "nobody is called");
        again
    }
}

#[tokio::test]
async fn every_way_to_work_gives_the_identical_record() {
    for algorithm in WAYS {
        let house = house(algorithm, Artifact::default()).await;
        for model in ["a", "b", "c", "judge"] {
            let said = format!("{model} thinks that bread needs time");
            let answer = ChatAnswer::text(&said).logprobs([(said.as_str(), -0.7)]).usage(11, 7);
            house.up.on(model, Script::chat(answer));
        }
        for stream in [false, true] {
            let was = house.asked("How is bread baked?", stream).await;
            assert_eq!(was.status, RunStatus::Ok, "{algorithm}: {:?}", was.error_code);
            let (is, strayed) = house.again(&was, algorithm).await;
            assert_eq!(differences(&was, &is), [], "{algorithm}, stream {stream}");
            assert_eq!((is.id, strayed), (was.id, Vec::<String>::new()), "{algorithm}");
        }
    }
}

#[tokio::test]
async fn retries_and_failures_are_played_too() {
    let house = house(WAYS[0], Artifact::default()).await;
    house.up.on_each("a", [Script::error(503, "busy"), Script::reply("at last")]);
    let was = house.asked("bread", false).await;
    assert_eq!((was.status, was.calls.len()), (RunStatus::Ok, 2));
    let (is, strayed) = house.again(&was, WAYS[0]).await;
    assert_eq!((differences(&was, &is), strayed), (vec![], vec![]));

    house.up.on("a", Script::error(400, "no"));
    let was = house.asked("bread again", true).await;
    assert_eq!(was.status, RunStatus::Failed);
    let (is, _) = house.again(&was, WAYS[0]).await;
    assert_eq!(differences(&was, &is), []);
}

#[tokio::test]
async fn another_policy_says_what_differs_and_calls_nobody() {
    let house = house(WAYS[0], Artifact::default()).await;
    house.up.on("a", Script::reply("fine"));
    let was = house.asked("bread", false).await;
    let (is, strayed) = house.again(&was, WAYS[4]).await;
    let paths: Vec<String> = differences(&was, &is).into_iter().map(|it| it.path).collect();
    assert!(
        paths.contains(&"spec_digest".to_owned()) && paths.contains(&"algorithm".to_owned()),
        "{paths:?}"
    );
    assert!(strayed.contains(&"a call to `b` was not recorded".to_owned()), "{strayed:?}");
}

#[tokio::test]
async fn what_was_not_recorded_is_refused_and_no_retention_never_is() {
    let silent = Point {
        name: "p".to_owned(),
        names: vec!["vllm-sr/auto".to_owned()],
        budget: BudgetSettings::default(),
        constraints: vec!["no_retention".to_owned()],
        objective: "cost".to_owned(),
    };
    let house = house(WAYS[0], Artifact { points: vec![silent], ..Artifact::default() }).await;
    house.up.on("a", Script::reply("fine"));
    let record = house.asked("bread", false).await;
    assert_eq!(record.status, RunStatus::Ok);
    house.engine.drain(Duration::from_secs(1)).await;
    assert!(matches!(house.tapes.tape(record.id.as_str()), Err(TapeFault::NotRecorded)));
}
