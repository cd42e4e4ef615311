//! A house with an encoder by words and a proxy that names users, and what tests ask of it.

use crate::support::{Answer, House, Setup};
use bytes::Bytes;
use chorus_infer::{EncodeFault, TextEncoder};
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Texts are as alike as the words that they share.
pub(crate) struct Words;

const WIDTH: usize = 512;

impl TextEncoder for Words {
    fn digest(&self) -> &str {
        "sha256:words in common"
    }

    fn dimension(&self) -> usize {
        WIDTH
    }

    fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeFault> {
        let vector = |text: &&str| {
            let mut counts = vec![0.0_f32; WIDTH];
            counts[0] = 0.01;
            for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|it| it.len() > 3) {
                let place =
                    word.bytes().fold(5_usize, |sum, byte| (sum * 139 + usize::from(byte)) % (WIDTH - 1));
                counts[1 + place] = 1.0;
            }
            let length = counts.iter().map(|x| x * x).sum::<f32>().sqrt();
            counts.into_iter().map(|x| x / length).collect()
        };
        Ok(texts.iter().map(vector).collect())
    }

    fn encode_windows(&self, text: &str) -> Result<Vec<Vec<f32>>, EncodeFault> {
        self.encode(&[text])
    }

    fn count_tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
}

/// A file with one route of these plugins, and this below `global`.
pub(crate) fn file(plugins: &str, global: &str) -> String {
    let plugins = plugins.replace('\n', "\n          ");
    format!(
        "version: v0.3
providers:
  models: [{{ name: m, backend_refs: [{{ name: main, base_url: \"${{UP}}\" }}] }}]
routing:
  modelCards: [{{ name: m, context_window_size: 100000 }}]
  decisions:
    - name: route
      modelRefs: [{{ model: m }}]
      plugins: {plugins}
global:
  services: {{ authz: {{ identity: {{ user_id_header: x-user }} }} }}
{global}
"
    )
}

/// A served file.
pub(crate) async fn open(plugins: &str, global: &str) -> House {
    Setup { encoder: Some(Arc::new(Words)), ..Setup::of(&file(plugins, global)) }.open().await
}

/// A request by a user that the proxy names.
pub(crate) async fn by(house: &House, user: &str, method: &str, path: &str, body: &Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let url = format!("http://{}{path}", house.bound.data);
    let mut request = Request::builder().method(method).uri(url);
    if !user.is_empty() {
        request = request.header("x-user", user);
    }
    house.send(request.body(Full::new(Bytes::from(body))).unwrap()).await.whole().await
}

/// A chat of that user.
pub(crate) async fn chat(house: &House, user: &str, text: &str) -> Answer {
    let body = json!({"model": "vllm-sr/auto", "messages": [{"role": "user", "content": text}]});
    by(house, user, "POST", "/v1/chat/completions", &body).await
}

/// A request of an operator.
pub(crate) async fn operated(house: &House, method: &str, path: &str, body: &Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = Request::builder().method(method).uri(format!("http://{}{path}", house.bound.management));
    house.send(request.body(Full::new(Bytes::from(body))).unwrap()).await.whole().await
}

/// Uploads a file: as a user at the data plane, or as an operator where none is named; its id.
pub(crate) async fn upload(house: &House, user: Option<&str>, name: &str, text: &str) -> String {
    let form = format!(
        "--XX\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nassistants\r\n\
         --XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n{text}\r\n--XX--\r\n"
    );
    let plane = if user.is_some() { house.bound.data } else { house.bound.management };
    let mut request = Request::post(format!("http://{plane}/v1/files"))
        .header("content-type", "multipart/form-data; boundary=XX");
    if let Some(user) = user {
        request = request.header("x-user", user);
    }
    let answer = house.send(request.body(Full::new(Bytes::from(form))).unwrap()).await.whole().await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// Makes a vector store of a file and waits until it can be searched; its id.
pub(crate) async fn store(house: &House, user: Option<&str>, name: &str, file: &str) -> String {
    let body = json!({"name": name, "file_ids": [file]});
    let ask = async |method: &str, path: &str, body: &Value| match user {
        Some(user) => by(house, user, method, path, body).await,
        None => operated(house, method, path, body).await,
    };
    let made = ask("POST", "/v1/vector_stores", &body).await;
    assert_eq!(made.status, 200, "{:?}", made.body);
    let id = made.json()["id"].as_str().unwrap().to_owned();
    for _ in 0..1000 {
        let now = ask("GET", &format!("/v1/vector_stores/{id}"), &Value::Null).await.json();
        if now["status"] == "completed" {
            assert_eq!(now["file_counts"]["completed"], 1, "{now}");
            return id;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("the file was never read");
}

/// What the model was sent last.
pub(crate) fn sent(house: &House) -> Value {
    house.up.requests_for("m").last().expect("the model was asked").json()
}

/// What a plugin says that it did in the run of an answer.
pub(crate) async fn did(house: &House, answer: &Answer, plugin: &str) -> Value {
    let record = house.record(answer.header("x-vsr-replay-id").or(answer.header("x-request-id"))).await;
    record.traces.get("plugins").map(|all| all[plugin].clone()).unwrap_or_default()
}
