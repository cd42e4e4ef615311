//! What stands between a call and its backend: turns, health, and how long a backend asks to be left alone.

use crate::support::{House, ask};
use chorus_testkit::{Gate, Received, Script, Step};

const FILE: &str = r#"
version: v0.3
providers:
  defaults: { default_model: capped }
  models:
    - { name: capped, backend_refs: [{ name: main, base_url: "${UP}", max_concurrency: 1 }] }
    - name: watched
      reliability: { fallback: [spare], health_check_path: /health, health_check_interval: 20ms }
      backend_refs: [{ name: main, base_url: "${UP}" }]
    - { name: spare, backend_refs: [{ name: main, base_url: "${UP}" }] }
"#;

fn asked(house: &House, model: &str) -> usize {
    house.up.requests().iter().filter(|request| request.model == model).count()
}

#[tokio::test]
async fn a_backend_s_turns_are_kept_and_those_who_wait_come_in_order() {
    let house = House::open(FILE).await;
    let gate = Gate::new();
    house.up.on("capped", Script::reply("my turn").first(Step::Await(gate.clone())));
    let body = ask("capped", "x");
    let both = async { tokio::join!(house.chat(&body), house.chat(&body)) };
    let opening = async {
        assert!(house.up.wait(|up| !up.requests().is_empty()).await);
        // The second one has had every chance to arrive once a third, to another model, has been answered.
        house.up.on("spare", Script::reply("between"));
        assert_eq!(house.chat(&ask("spare", "x")).await.text(), "between");
        assert_eq!(asked(&house, "capped"), 1, "one at a time");
        gate.open();
        assert!(
            house.up.wait(|up| up.requests().iter().filter(|it| it.model == "capped").count() == 2).await
        );
        gate.open();
    };
    let ((first, second), ()) = tokio::join!(both, opening);
    assert_eq!((first.text().as_str(), second.text().as_str()), ("my turn", "my turn"));
}

#[tokio::test]
async fn a_backend_that_says_it_is_ill_is_left_alone_until_it_is_well() {
    let house = House::open(FILE).await;
    house.up.on("watched", Script::reply("well"));
    house.up.on("spare", Script::reply("in its place"));
    let health = |status: u16| move |_: &Received| Script::error(status, "health");
    house.up.otherwise(health(503));
    let answers = async |wanted: &str| {
        for _ in 0..200 {
            if house.chat(&ask("watched", "x")).await.text() == wanted {
                return true;
            }
            tokio::task::yield_now().await;
        }
        false
    };
    assert!(answers("in its place").await);
    assert!(house.up.requests().iter().any(|request| request.path == "/health" && request.method == "GET"));
    house.up.otherwise(health(200));
    let since = house.up.requests().len();
    assert!(
        house
            .up
            .wait(|up| up.requests().iter().skip(since).filter(|it| it.path == "/health").count() >= 2)
            .await
    );
    assert!(answers("well").await);
}

#[tokio::test]
async fn how_long_a_backend_asks_to_be_left_alone_reaches_the_client() {
    let rows = [(429, "17", "17"), (503, "2.5", "3"), (429, "999999999", "3600"), (503, "soon", "1")];
    for (status, header, wanted) in rows {
        let house = House::open(FILE).await;
        house.up.on("spare", Script::error(status, "not now").header("retry-after", header));
        let answer = house.chat(&ask("spare", "x")).await;
        assert_eq!(answer.header("retry-after"), Some(wanted), "{status} {header}");
    }
}
