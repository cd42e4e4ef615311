//! A configuration takes another's place under load: nobody notices, and nobody gets a mixture (case C11).

use crate::house::{House, broken, policy};
use chorus_engine::reload::{Cause, Refusal};
use chorus_testkit::openai::chunk;
use chorus_testkit::{ChatAnswer, Gate, Received, Script, Step};
use futures_util::future::join_all;
use serde_json::json;
use std::collections::BTreeMap;

/// Says who was asked, after a pause of a gate.
fn held(gate: &Gate) -> impl Fn(&Received) -> Script + Send + Sync + 'static {
    let gate = gate.clone();
    move |request: &Received| {
        let name = request.json()["model"].as_str().unwrap_or_default().to_owned();
        Script::chat(ChatAnswer::text(&name)).first(Step::Await(gate.clone()))
    }
}

fn says_who(request: &Received) -> Script {
    Script::reply(request.json()["model"].as_str().unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c11_requests_that_span_five_swaps_end_on_what_they_began_with() {
    const WAVE: usize = 40;
    let house = House::open(&policy("gen-1")).await;
    let gate = Gate::new();
    house.up.otherwise(held(&gate));
    let mut digests = BTreeMap::from([("gen-1".to_owned(), house.configuration.state().digest.to_string())]);
    let swaps = async {
        for generation in 2..=6 {
            // A wave is under way on every generation before the next one comes.
            assert!(house.up.wait(|up| up.requests().len() == WAVE * (generation - 1)).await);
            if generation == 4 {
                assert!(matches!(house.load(&broken()).await, Err(Refusal::Rejected(_))));
            }
            let name = format!("gen-{generation}");
            let state = house.load(&policy(&name)).await.unwrap();
            assert_eq!(state.generation, generation as u64);
            digests.insert(name, state.digest.to_string());
        }
        (0..WAVE * 5).for_each(|_| gate.open());
    };
    let asked = async {
        let mut waves = Vec::new();
        for wave in 1..=5_usize {
            let house = &house;
            waves.push(async move {
                let mut state = house.configuration.subscribe();
                state.wait_for(|state| state.generation == wave as u64).await.unwrap();
                let answers = join_all((0..WAVE).map(|_| house.chat("who are you?"))).await;
                answers.into_iter().map(|answer| (answer.status, answer.text())).collect::<Vec<_>>()
            });
        }
        join_all(waves).await
    };
    let (answers, ()) = tokio::join!(asked, swaps);
    for (wave, answers) in answers.into_iter().enumerate() {
        assert_eq!(answers, vec![(200, format!("gen-{}", wave + 1)); WAVE]);
    }
    for record in house.records(WAVE * 5).await {
        let name = digests.iter().find(|(_, digest)| **digest == record.spec_digest);
        assert!(name.is_some(), "{} was never served", record.spec_digest);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c11_two_hundred_requests_amid_swaps_all_succeed_and_each_is_of_one_generation() {
    let house = House::open(&policy("gen-1")).await;
    house.up.otherwise(says_who);
    let asked = join_all((0..200).map(|n| {
        let house = &house;
        async move {
            // Spread over the swaps, not over time.
            for _ in 0..n {
                tokio::task::yield_now().await;
            }
            let answer = house.chat("who are you?").await;
            (answer.status, answer.text(), answer.headers["x-vsr-replay-id"].to_str().unwrap().to_owned())
        }
    }));
    let swaps = async {
        let mut digests = vec![house.configuration.state().digest.to_string()];
        for generation in 2..=9 {
            let state = house.load(&policy(&format!("gen-{generation}"))).await.unwrap();
            digests.push(state.digest.to_string());
        }
        digests
    };
    let (answers, digests) = tokio::join!(asked, swaps);
    let records = house.records(200).await;
    for (status, who, id) in answers {
        let record = records.iter().find(|record| record.id.to_string() == id).unwrap();
        let place = digests.iter().position(|digest| *digest == record.spec_digest).unwrap();
        assert_eq!(
            (status, who),
            (200, format!("gen-{}", place + 1)),
            "text and record are of one generation"
        );
    }
}

#[tokio::test]
async fn c11_a_stream_that_began_goes_on_after_the_swap() {
    let house = House::open(&policy("gen-1")).await;
    let gate = Gate::new();
    let piece = |text: &str| Step::event(&chunk("x", &json!({"content": text})).to_string());
    let stop = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let steps = [
        piece("one "),
        Step::Await(gate.clone()),
        piece("two"),
        Step::event(&stop.to_string()),
        Step::event("[DONE]"),
    ];
    house.up.on("gen-1", Script::sse(steps));
    let asked = async {
        let answer = house.chat_streamed("x").await;
        String::from_utf8(answer.body.to_vec()).unwrap()
    };
    let swap = async {
        assert!(house.up.wait(|up| up.requests().len() == 1).await);
        house.load(&policy("gen-2")).await.unwrap();
        gate.open();
    };
    let (body, ()) = tokio::join!(asked, swap);
    assert!(body.contains("one ") && body.contains("two") && body.contains("[DONE]"), "{body}");
}

#[tokio::test]
async fn c11_a_bad_file_changes_nothing_says_why_and_the_next_good_one_works() {
    let house = House::open(&policy("gen-1")).await;
    house.up.otherwise(says_who);
    let before = house.configuration.state();
    let no_default = policy("x").replace("  defaults: { default_model: small }\n", "");
    for (bad, want) in [
        (broken(), "nowhere"),
        ("version: [".to_owned(), "line 2"),
        (String::new(), "line 1: "),
        (no_default, "these tests have a default model"),
    ] {
        house.load(&bad).await.unwrap_err();
        let status = house.get("/config/status").await.json();
        assert!(status["last_change"]["refused"].as_str().unwrap().contains(want), "{status}");
        assert_eq!(status["generation"], 1);
        assert_eq!(status["digest"], before.digest.as_str());
        let ready = house.get("/ready").await;
        assert_eq!((ready.status, &ready.json()["last_change_refused"]), (200, &json!(true)));
        assert_eq!(house.chat("hello").await.text(), "gen-1");
    }
    let status = house.load(&broken()).await.map(|_| ());
    assert!(status.is_err());
    let diagnostics = house.get("/config/status").await.json()["last_change"]["diagnostics"].clone();
    assert!(diagnostics[0]["place"]["line"].as_u64().unwrap() > 1, "{diagnostics}");
    let state = house.load(&policy("gen-2")).await.unwrap();
    assert_eq!((state.generation, state.last.refused.as_deref()), (2, None));
    assert_eq!(house.chat("hello").await.text(), "gen-2");
    assert_eq!(house.get("/ready").await.json()["last_change_refused"], false);
}

#[tokio::test]
async fn a_signal_loads_also_what_is_served_already() {
    let house = House::open(&policy("gen-1")).await;
    let state = house.configuration.reload(Cause::Signal).await.unwrap();
    assert_eq!(state.generation, 2, "what the file names may have changed");
}

#[tokio::test]
async fn sockets_stay_where_they_are_and_that_is_said() {
    let house = House::open(&policy("gen-1")).await;
    house.up.otherwise(says_who);
    let state = house.load(&policy("gen-2").replace("port: 8899", "port: 8898")).await.unwrap();
    assert_eq!(state.waiting, ["listeners[0]"]);
    assert_eq!(house.get("/config/status").await.json()["waiting_for_restart"], json!(["listeners[0]"]));
    assert_eq!(house.chat("hello").await.text(), "gen-2");
    assert!(house.load(&policy("gen-3")).await.unwrap().waiting.is_empty());
}
