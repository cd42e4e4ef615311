//! Operating points at the engine: contracts held without any door, and several artifacts served side by side.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should say where")]

use chorus_engine::{Artifact, Code, Engine, Env, Inbound, Options, Part, Point};
use chorus_spec::{BudgetSettings, Spec};
use chorus_testkit::{Script, ScriptedUpstream};
use chorus_wire::{ChatRequest, Message, Role};
use std::collections::BTreeMap;

const NAME: &str = "acme/x-point";
const ABSTENTION: &str = "The material at hand does not support an answer to this.";

fn spec(model: &str, name: &str) -> Spec {
    let text = format!(
        "version: v0.3
providers:
  models: [{{ name: {model}, backend_refs: [{{ base_url: \"${{UP}}\" }}] }}]
routing:
  decisions: [{{ name: all, priority: 1, modelRefs: [{{ model: {model} }}] }}]
entrypoints: [{{ model_names: [{name}], recipe: default }}]
"
    );
    let checked = chorus_spec::read(&text);
    checked.spec.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
}

fn options(up: &ScriptedUpstream) -> Options {
    Options::bare(Env::having(&[("UP", &up.base_url())]))
}

fn point(name: &str, objective: &str, constraints: &[&str]) -> Artifact {
    let point = Point {
        name: "point".to_owned(),
        names: vec![name.to_owned()],
        budget: BudgetSettings::default(),
        constraints: constraints.iter().map(|it| (*it).to_owned()).collect(),
        objective: objective.to_owned(),
    };
    Artifact { points: vec![point], ..Artifact::default() }
}

async fn house(artifact: Artifact) -> (ScriptedUpstream, Engine) {
    let up = ScriptedUpstream::start().await.unwrap();
    let engine = Engine::of(spec("m", NAME), options(&up), artifact).unwrap();
    (up, engine)
}

fn question(name: &str) -> ChatRequest {
    let material = Message::new(Role::Tool, "The bridge was opened in 1932. It is painted grey.");
    ChatRequest::new(name, vec![material, Message::new(Role::User, "When was the bridge opened?")])
}

/// The text of the answer, or the code of the fault.
async fn answer(engine: &Engine, request: ChatRequest) -> Result<String, Code> {
    let mut run = engine.run(Inbound::of(request));
    let mut text = String::new();
    while let Some(part) = run.next().await {
        match part {
            Part::Reply(_, reply) => text = reply.content.clone(),
            Part::Chunk(chunk) => text.extend(chunk.choices.iter().filter_map(|it| it.content.clone())),
            Part::Fault(fault) => return Err(fault.code),
            _ => {}
        }
    }
    Ok(text)
}

#[tokio::test]
async fn halu_only_what_the_material_says_leaves() {
    let (good, bad) = ("The bridge was opened in 1932.", "The bridge was opened in 1950.");
    for (said, want, calls) in [
        ([good, ""], good, 1),
        ([bad, good], good, 2),
        (["A penguin opened it.", "A giant penguin opened it in 1950."], ABSTENTION, 2),
    ] {
        let (up, engine) = house(point(NAME, "grounding", &["grounded"])).await;
        up.on_each("m", said.map(Script::reply));
        assert_eq!(answer(&engine, question(NAME)).await.as_deref(), Ok(want));
        assert_eq!(up.requests().len(), calls, "{said:?}");
    }
}

#[tokio::test]
async fn halu_a_stream_is_held() {
    let (up, engine) = house(point(NAME, "grounding", &["grounded"])).await;
    up.otherwise(|_| Script::reply("A penguin opened it."));
    let mut ask = question(NAME);
    ask.set_stream(true, false);
    assert_eq!(answer(&engine, ask).await.as_deref(), Ok(ABSTENTION));
}

#[tokio::test]
async fn a_name_that_is_no_point_is_under_no_contract() {
    let (up, engine) = house(point("acme/x-other", "grounding", &["grounded"])).await;
    up.otherwise(|_| Script::reply("A penguin opened it."));
    assert_eq!(answer(&engine, question(NAME)).await.as_deref(), Ok("A penguin opened it."));
}

/// No encoder is loaded: whether a text is an attack cannot be told.
#[tokio::test]
async fn secu_what_cannot_be_told_reaches_no_model() {
    let (up, engine) = house(point(NAME, "safety", &["fail_closed"])).await;
    up.otherwise(|_| Script::reply("fine"));
    assert_eq!(answer(&engine, question(NAME)).await, Err(Code::Blocked));
    assert!(up.requests().is_empty(), "nothing has left");
}

#[tokio::test]
async fn a_point_that_abstains_calls_nobody() {
    let abstaining = BTreeMap::from([(NAME.to_owned(), "`m` may run nowhere".to_owned())]);
    let (up, engine) = house(Artifact { abstaining, ..Artifact::default() }).await;
    assert_eq!(answer(&engine, question(NAME)).await, Err(Code::NoCandidate));
    assert!(up.requests().is_empty());
}

#[tokio::test]
async fn several_are_served_at_once_and_swapped_together() {
    let (up, engine) = house(Artifact::default()).await;
    up.otherwise(|request| Script::reply(&format!("I am {}", request.model)));
    let beside = |model: &str, name: &str| {
        let mom = engine.prepare(spec(model, name), options(&up)).unwrap();
        mom.named(point(name, "latency", &[]))
    };
    engine.add(vec![beside("n", "acme/y-point@1.0.0")]);
    let names: Vec<String> = engine.models().data.into_iter().map(|card| card.id).collect();
    assert!(
        names.contains(&NAME.to_owned()) && names.contains(&"acme/y-point@1.0.0".to_owned()),
        "{names:?}"
    );
    assert_eq!(answer(&engine, question(NAME)).await.as_deref(), Ok("I am m"));
    assert_eq!(answer(&engine, question("acme/y-point@1.0.0")).await.as_deref(), Ok("I am n"));
    let generation = engine.swap_all(beside("o", NAME), vec![beside("p", "acme/y-point@2.0.0")]);
    assert_eq!(generation, 2);
    assert_eq!(answer(&engine, question(NAME)).await.as_deref(), Ok("I am o"));
    assert_eq!(answer(&engine, question("acme/y-point@2.0.0")).await.as_deref(), Ok("I am p"));
    assert_eq!(answer(&engine, question("acme/y-point@1.0.0")).await, Err(Code::ModelNotFound));
}
