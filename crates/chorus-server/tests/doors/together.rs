//! Many requests at once: nobody gets anybody else's (case I10).

use crate::support::{HOUSE, House};
use chorus_testkit::{ChatAnswer, Received, Script};
use futures_util::future::join_all;
use serde_json::{Value, json};

const REQUESTS: usize = 100;

/// Says back which marks and which cap it saw.
fn echo(request: &Received) -> Script {
    let body = request.json();
    let mut marks = body.to_string();
    marks.retain(|c| c.is_ascii_alphanumeric() || c == '-' || c == ' ');
    let mut marks: Vec<&str> = marks.split(' ').filter(|word| word.starts_with("marker-")).collect();
    marks.sort_unstable();
    marks.dedup();
    let cap = body["max_tokens"].as_u64().unwrap_or_default();
    Script::chat(ChatAnswer::text(&format!("{} {cap}", marks.join("+"))).usage(10, 5))
}

fn body(n: usize) -> Value {
    let (model, text) = match n % 4 {
        0 => ("small", format!("first marker-{n} last")),
        1 => ("vllm-sr/auto", format!("first marker-{n} last")),
        2 => ("vllm-sr/auto", format!("deeply marker-{n} last")),
        _ => ("vllm-sr/fusion", format!("first marker-{n} last")),
    };
    // Without it a streamed answer of one model has no totals, and its record has estimates.
    let options = json!({"include_usage": true});
    json!({"model": model, "stream_options": options, "max_tokens": 100 + n, "messages": [{"role": "user", "content": text}]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i10_a_hundred_marked_requests_do_not_mix() {
    let house = House::open(HOUSE).await;
    house.up.otherwise(echo);
    let asked = join_all((0..REQUESTS).map(|n| {
        let house = &house;
        async move {
            let body = body(n);
            if n % 2 == 0 {
                let answer = house.chat(&body).await;
                (answer.text(), answer.header("x-vsr-replay-id").map(str::to_owned))
            } else {
                let told = house.stream(&body).await.told().await;
                (told.is_whole().text.clone(), told.header("x-vsr-replay-id").map(str::to_owned))
            }
        }
    }));
    for (n, (text, id)) in asked.await.into_iter().enumerate() {
        assert_eq!(text, format!("marker-{n} {}", 100 + n));
        let record = house.record(id.as_deref()).await;
        let calls = if n % 4 < 2 { 1 } else { 5 };
        assert_eq!((record.calls.len(), record.usage.prompt_tokens), (calls, 10 * calls as u64), "{n}");
    }
    house.all_records(REQUESTS).await;
}
