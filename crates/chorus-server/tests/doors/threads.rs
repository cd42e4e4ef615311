//! The data plane's threads: a new connection goes to the one with the fewest, and stays there.

use crate::support::{HOUSE, House, ask};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

/// Each thread has connections of its own to backends: over which a request comes there tells its thread.
#[tokio::test]
async fn connections_are_spread_and_stay() {
    let house = House::open(HOUSE).await;
    let url = format!("http://{}/v1/chat/completions", house.bound.data);
    let client = || Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    for client in [client(), client()].iter().cycle().take(6) {
        let body = Bytes::from(ask("small", "x").to_string());
        let response = client.request(Request::post(&url).body(Full::new(body)).unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
        response.into_body().collect().await.unwrap();
    }
    let on: Vec<usize> = house.up.requests().iter().map(|request| request.connection).collect();
    assert!(on[0] != on[1] && on.chunks(2).all(|pair| pair == &on[..2]), "{on:?}");
}
