//! A panic ends one request, never the process; and even that request leaves a record.

use crate::support::{HOUSE, House, Setup, ask};
use chorus_infer::{EncodeFault, TextEncoder};
use chorus_store::RunStatus;
use std::sync::Arc;

/// Prepares its examples well and panics at the word "boom".
struct Fragile;

impl TextEncoder for Fragile {
    fn digest(&self) -> &str {
        "sha256:fragile"
    }

    fn dimension(&self) -> usize {
        2
    }

    fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeFault> {
        assert!(!texts.iter().any(|text| text.contains("boom")), "boom");
        Ok(texts.iter().map(|_| vec![1.0, 0.0]).collect())
    }

    fn encode_windows(&self, text: &str) -> Result<Vec<Vec<f32>>, EncodeFault> {
        self.encode(&[text])
    }

    fn count_tokens(&self, text: &str) -> usize {
        text.len()
    }
}

/// A header of the file that cannot be looked up without a panic, and a signal over [`Fragile`].
fn fragile(name: &str, rules: &str, plugins: &str) -> String {
    format!(
        "{HOUSE}
    - name: {name}
      priority: 70
      rules: {rules}
      modelRefs: [{{ model: small }}]
      algorithm: {{ type: static }}
      plugins: [{plugins}]
"
    )
}

async fn fails_alone(house: &House, text: &str) {
    let request = ask("vllm-sr/auto", text);
    for stream in [false, true] {
        let answer =
            if stream { house.stream(&request).await.whole().await } else { house.chat(&request).await };
        assert_eq!((answer.status, answer.error().0.as_str()), (500, "internal"), "{text}");
        let record = house.record(answer.header("x-vsr-replay-id")).await;
        assert_eq!((record.status, record.error_code.as_deref()), (RunStatus::Failed, Some("internal")));
    }
    house.still_serves().await;
}

#[tokio::test]
async fn a_panic_in_the_life_of_a_request() {
    let header = "{ type: header_mutation, configuration: { add: [{ name: x-a, value: \"${BOOM}\" }] } }";
    let file = fragile("blasted", "{ type: keyword, name: greeting }", header);
    let house = House::open(&file).await;
    fails_alone(&house, "hello").await;
    // The evaluation runs in the handler's own task.
    let answer = house.post("/api/v1/eval", ask("vllm-sr/auto", "hello").to_string()).await;
    assert_eq!((answer.status, answer.error().0.as_str()), (500, "internal"));
    assert_eq!(house.get("/health").await.status, 200);
}

#[tokio::test]
async fn a_panic_in_the_encoder() {
    let file = fragile("learned", "{ type: embedding, name: near }", "").replace(
        "    keywords:\n",
        "    embeddings: [{ name: near, threshold: 0.5, candidates: [example] }]\n    keywords:\n",
    );
    let mut setup = Setup::of(&file);
    setup.encoder = Some(Arc::new(Fragile));
    let house = setup.open().await;
    fails_alone(&house, "boom").await;
    assert_eq!(house.chat(&ask("vllm-sr/auto", "calm")).await.status, 200);
}
