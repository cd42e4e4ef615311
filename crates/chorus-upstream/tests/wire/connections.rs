//! Connections: time limits, reuse, cancellation, and what is sent on them.

use crate::bench::{Bench, ask, drain, piece, said};
use chorus_testkit::{ChatAnswer, Gate, Outcome, Script, ScriptedUpstream, Step};
use chorus_upstream::{
    Blame, ClientOptions, Retry, Secret, Stage, Target, Timeouts, Upstream, UpstreamFault,
};
use futures_util::StreamExt;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn a16_dropping_the_stream_closes_the_socket() {
    let gate = Gate::new();
    let script = Script::sse([Step::event(&piece("a")), Step::Await(gate), Step::event(&piece("b"))]);
    let bench = Bench::new(script).await;
    let mut stream = bench.stream().await.unwrap();
    assert_eq!(said(&stream.next().await.unwrap().unwrap()), "a");
    drop(stream);
    assert!(bench.backend.wait(|b| b.requests()[0].outcome == Outcome::ClientLeft).await);
    assert!(bench.backend.wait(|b| b.open_connections() == 0).await);
}

#[tokio::test]
async fn a16_dropping_a_call_that_waits_closes_the_socket() {
    let bench = Bench::new(Script::raw([Step::Stall])).await;
    let call = bench.complete();
    let arrived = bench.backend.wait(|b| b.requests().len() == 1);
    tokio::select! {
        reply = call => panic!("{reply:?}"),
        arrived = arrived => assert!(arrived),
    }
    assert!(bench.backend.wait(|b| b.requests()[0].outcome == Outcome::ClientLeft).await);
}

#[tokio::test]
async fn i08_abandoned_streams_leave_no_connection() {
    let bench = Bench::new(Script::sse([Step::event(&piece("a")), Step::Stall])).await;
    let streams = futures_util::future::join_all((0..40).map(|_| bench.stream())).await;
    assert!(streams.iter().all(Result::is_ok));
    drop(streams);
    assert!(bench.backend.wait(|b| b.open_connections() == 0).await);
}

#[tokio::test]
async fn c09_each_limit_by_name() {
    let short = Duration::from_millis(40);
    let begun = || Step::event(&piece("a"));
    type Limit = fn(&mut Timeouts, Duration);
    let rows: [(Script, Limit, Stage); 4] = [
        (Script::raw([Step::Stall]), |t, d| t.first_byte = d, Stage::FirstByte),
        // a head alone is no first byte
        (Script::sse([Step::Stall]), |t, d| t.first_byte = d, Stage::FirstByte),
        (Script::sse([begun(), Step::Stall]), |t, d| t.idle = d, Stage::Idle),
        (Script::sse([begun(), Step::Stall]), |t, d| t.total = d, Stage::Total),
    ];
    for (row, (script, set, stage)) in rows.into_iter().enumerate() {
        let mut bench = Bench::new(script).await;
        set(&mut bench.limits, short);
        let expected = UpstreamFault::Timeout { stage, limit: short };
        assert_eq!(bench.complete().await.unwrap_err(), expected, "row {row}");
        match bench.stream().await {
            Err(fault) => assert_eq!(fault, expected, "row {row}"),
            Ok(stream) => assert_eq!(drain(stream).await, ("a".to_owned(), Some(expected)), "row {row}"),
        }
        assert!(bench.backend.wait(|b| b.open_connections() == 0).await, "row {row}");
    }
}

#[tokio::test]
async fn c09_comments_keep_a_thinking_stream_alive() {
    let ping = || [Step::write(": ping\n\n"), Step::Wait(Duration::from_millis(60))];
    let steps = (0..4).flat_map(|_| ping()).chain([Step::event(&piece("a")), Step::event("[DONE]")]);
    let mut bench = Bench::new(Script::sse(steps)).await;
    bench.limits.idle = Duration::from_millis(300);
    assert_eq!(drain(bench.stream().await.unwrap()).await, ("a".to_owned(), None));
}

#[tokio::test]
async fn no_connection_is_a_connect_fault_without_an_address() {
    let mut bench = Bench::new(Script::reply("x")).await;
    let address = bench.backend.address();
    drop(std::mem::replace(&mut bench.backend, ScriptedUpstream::start().await.unwrap()));
    // The listener is closed by its task's end: wait until the port refuses.
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let fault = bench.complete().await.unwrap_err();
    assert!(matches!(fault, UpstreamFault::Connect { .. }), "{fault:?}");
    assert!(!fault.public().contains("127.0.0.1"));
}

#[tokio::test]
async fn c09_a_handshake_that_never_ends_is_a_connect_timeout() {
    // TLS to a backend that takes the hello and says nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = Target::builder(&format!("https://{}", silent.local_addr().unwrap())).build().unwrap();
    let client = Upstream::new(&ClientOptions::default()).unwrap();
    let limits = Timeouts { connect: Duration::from_millis(50), ..Timeouts::default() };
    let fault = client.complete(&target, ask(false), &[], &limits).await.unwrap_err();
    assert_eq!(fault, UpstreamFault::Timeout { stage: Stage::Connect, limit: limits.connect });
}

#[tokio::test]
async fn c16_a_pooled_connection_that_died_costs_one_silent_retry() {
    for end in [Step::Close, Step::Reset] {
        let bench = Bench::new(Script::reply("x")).await;
        // The second request on the first connection meets a backend that is just closing it.
        let dying = Script::raw([end]);
        bench.backend.on_each("m", [Script::reply("one"), dying, Script::reply("two")]);
        assert_eq!(bench.complete().await.unwrap().content, "one");
        assert_eq!(bench.complete().await.unwrap().content, "two");
        assert_eq!((bench.client.reconnects(), bench.backend.connections()), (1, 2));
        let on = bench.backend.requests().iter().map(|r| r.connection).collect::<Vec<_>>();
        assert_eq!(on, [0, 0, 1]);
    }
}

#[tokio::test]
async fn c16_an_idle_close_is_noticed() {
    let bench =
        Bench::new(Script::reply("x").then(Step::Wait(Duration::from_millis(5))).then(Step::Close)).await;
    for _ in 0..3 {
        assert_eq!(bench.complete().await.unwrap().content, "x");
        assert!(bench.backend.wait(|b| b.open_connections() == 0).await);
    }
    assert_eq!(bench.backend.connections(), 3);
}

#[tokio::test]
async fn c16_a_fresh_connection_that_dies_is_not_retried() {
    let bench = Bench::new(Script::raw([Step::Reset])).await;
    let fault = bench.complete().await.unwrap_err();
    assert!(matches!(fault, UpstreamFault::Transport { .. }), "{fault:?}");
    assert_eq!((bench.client.reconnects(), bench.backend.requests().len()), (0, 1));
}

#[tokio::test]
async fn c16_a_second_dead_connection_ends_it() {
    let bench = Bench::new(Script::reply("x")).await;
    bench.backend.on_each("m", [Script::reply("one"), Script::raw([Step::Close])]);
    bench.complete().await.unwrap();
    let fault = bench.complete().await.unwrap_err();
    assert!(matches!(fault, UpstreamFault::Transport { .. }), "{fault:?}");
    assert_eq!((bench.client.reconnects(), bench.backend.requests().len()), (1, 3));
}

#[tokio::test]
async fn c16_a_connection_that_waits_too_long_is_closed() {
    let mut bench = Bench::new(Script::reply("x")).await;
    let options = ClientOptions { pool_idle_timeout: Duration::from_millis(20), ..ClientOptions::default() };
    bench.client = Upstream::new(&options).unwrap();
    for served in 1..=2 {
        bench.complete().await.unwrap();
        assert!(bench.backend.wait(|b| b.open_connections() == 0).await);
        assert_eq!(bench.backend.connections(), served);
    }
    assert_eq!(bench.client.reconnects(), 0);
}

#[test]
fn each_runtime_has_connections_of_its_own() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let backends = tokio::runtime::Runtime::new().unwrap();
    let bench = backends.block_on(Bench::new(Script::json(200, &ChatAnswer::text("hi").whole("m"))));
    let (one, other) = (runtime(), runtime());
    for (runtime, connections) in [(&one, 1), (&one, 1), (&other, 2), (&one, 2), (&other, 2)] {
        runtime.block_on(bench.complete()).unwrap();
        assert_eq!(bench.backend.connections(), connections);
    }
    let on: Vec<_> = bench.backend.requests().iter().map(|request| request.connection).collect();
    assert_eq!((on[0], on[2]), (on[3], on[4]), "{on:?}");
}

#[tokio::test]
async fn connections_are_shared_by_place_and_no_more_of_them_wait_than_may() {
    let mut bench = Bench::new(Script::reply("x")).await;
    bench.client =
        Upstream::new(&ClientOptions { max_idle_per_host: 2, ..ClientOptions::default() }).unwrap();
    let answers = futures_util::future::join_all((0..5).map(|_| bench.complete())).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(bench.backend.connections(), 5);
    assert!(bench.backend.wait(|b| b.open_connections() == 2).await);
    bench.target = Target::builder(&bench.backend.base_url()).chat_path("/elsewhere").build().unwrap();
    bench.complete().await.unwrap();
    assert_eq!(bench.backend.connections(), 5, "the same place, at another path");
    drop(bench.client);
    assert!(bench.backend.wait(|b| b.open_connections() == 0).await);
}

#[tokio::test]
async fn e08_redirects_are_not_followed() {
    let other = ScriptedUpstream::start().await.unwrap();
    let bench = Bench::new(Script::json(307, &json!({})).header("location", &other.base_url())).await;
    let fault = bench.complete().await.unwrap_err();
    assert_eq!((fault.status(), fault.blame(), fault.retry()), (Some(307), Blame::Engine, Retry::Other));
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn e09_only_the_given_headers_go_up() {
    let mut bench = Bench::new(Script::reply("x")).await;
    bench.target = Target::builder(&bench.backend.base_url())
        .bearer(Secret::new("backend-key"))
        .header("x-team", "blue")
        .build()
        .unwrap();
    let given = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    let callers = [given("x-request-id", "r1"), given("Authorization", "Bearer client-key-1")].concat();
    bench.client.complete(&bench.target, ask(false), &callers, &bench.limits).await.unwrap();
    let mut sent = bench.backend.requests()[0].headers.clone();
    sent.retain(|(name, _)| !matches!(name.as_str(), "host" | "content-length"));
    sent.sort();
    let want = [
        ("accept", "application/json"),
        ("authorization", "Bearer backend-key"),
        ("content-type", "application/json"),
        ("user-agent", concat!("chorus/", env!("CARGO_PKG_VERSION"))),
        ("x-request-id", "r1"),
        ("x-team", "blue"),
    ];
    assert_eq!(sent, want.map(|(name, value)| (name.to_owned(), value.to_owned())));
    for name in ["Connection", "Host", "Transfer-Encoding", "x\r\ny"] {
        let fault = bench.client.complete(&bench.target, ask(false), &given(name, "v"), &bench.limits).await;
        assert_eq!(fault.unwrap_err(), UpstreamFault::Header { name: name.to_owned() });
    }
    assert_eq!(bench.backend.requests().len(), 1);
}
