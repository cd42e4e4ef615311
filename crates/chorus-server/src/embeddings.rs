//! `POST /v1/embeddings`: vectors of the encoder that this process has loaded, or of a model behind a backend.
//!
//! The encoder's public name is `chorus/encoder`; its digest is one too. A model of the file is asked for vectors where its card
//! says `embeddings`. The page is `docs/doors/embeddings.md`.
//!
//! **Invariant:** a vector is its model's own, whole: what the model cannot do (another length, the encoder's token ids) is
//! refused, not imitated.

mod forwarded;

use crate::door::Door;
use crate::{body, reply};
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use chorus_engine::{Code, Fault, Mom};
use chorus_spec::ModelId;
use chorus_upstream::VectorFormat;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

/// The public name of whatever encoder is loaded.
pub(crate) const ENCODER: &str = "chorus/encoder";

/// Most texts of one request (`max_texts`).
const MAX_TEXTS: usize = 256;

#[derive(Debug, Deserialize)]
struct Asked {
    model: String,
    /// A text or texts; anything else is refused in words of our own.
    input: Value,
    encoding_format: Option<VectorFormat>,
    dimensions: Option<u64>,
}

/// The handler.
pub(crate) async fn create(State(door): State<Door>, headers: HeaderMap, body: Body) -> Response {
    let bytes = match body::read(body, &door.limits).await {
        Ok(bytes) => bytes,
        Err(refusal) => return refusal,
    };
    let serving = door.engine.serving();
    match forwarded::read(&serving, &bytes) {
        Ok(Some(ask)) => return forwarded::answered(&door, &headers, ask).await,
        Ok(None) => {}
        Err(fault) => return reply::fault(&fault, HeaderMap::new()),
    }
    match embedded(&serving, &bytes).await {
        Ok(body) => reply::json(StatusCode::OK, HeaderMap::new(), body.to_string().into_bytes()),
        Err(fault) => reply::fault(&fault, HeaderMap::new()),
    }
}

async fn embedded(mom: &Mom, bytes: &[u8]) -> Result<Value, Fault> {
    let asked: Asked = serde_json::from_slice(bytes)
        .map_err(|why| Fault::new(Code::InvalidRequest, format!("the body cannot be read: {why}")))?;
    let dimension = encoder(mom, &asked.model)?;
    if let Some(wanted) = asked.dimensions.filter(|wanted| usize::try_from(*wanted).ok() != Some(dimension)) {
        let text = format!(
            "vectors of this encoder have {dimension} dimensions; cut to {wanted} they would be others, for which it was not trained"
        );
        return Err(bad("dimensions", text));
    }
    let texts = texts(asked.input)?;
    let counts = mom.classifiers.count_tokens(texts.clone()).await?;
    let vectors = mom.classifiers.embed(texts).await?;
    let format = asked.encoding_format.unwrap_or_default();
    let told = |(index, vector): (usize, Vec<f32>)| json!({"object": "embedding", "index": index, "embedding": written(&vector, format)});
    let data: Vec<Value> = vectors.into_iter().enumerate().map(told).collect();
    let tokens: u64 = counts.iter().sum();
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    Ok(json!({"object": "list", "model": asked.model, "data": data, "usage": usage}))
}

/// The length of the vectors, if that name means the loaded encoder.
fn encoder(mom: &Mom, name: &str) -> Result<usize, Fault> {
    match mom.classifiers.encoder() {
        Some((digest, dimension)) if name == ENCODER || name == digest => Ok(dimension),
        None if name == ENCODER => Err(Fault::new(
            Code::NotLoaded,
            "no encoder is loaded, because no signal of the served policy needs one",
        )),
        _ if mom.spec.models.contains_key(&ModelId::new(name)) => {
            let text = format!(
                "that model answers chats; vectors come from `{ENCODER}`, and from models whose card says `capabilities: [embeddings]`"
            );
            Err(bad("model", text))
        }
        _ => {
            let text = format!("no such model of vectors; `{ENCODER}` is the one that is loaded");
            Err(Fault::new(Code::ModelNotFound, text).at("model"))
        }
    }
}

fn texts(input: Value) -> Result<Vec<String>, Fault> {
    let list = if input.is_string() { Value::Array(vec![input]) } else { input };
    let texts: Vec<String> = serde_json::from_value(list).map_err(|_| {
        bad("input", "`input` must be a string or a list of strings; token ids are those of another model")
    })?;
    match texts.len() {
        0 => Err(bad("input", "`input` holds no text")),
        n if n > MAX_TEXTS => {
            Err(bad("input", format!("`input` holds {n} texts; {MAX_TEXTS} are the most (max_texts)")))
        }
        _ if texts.iter().any(String::is_empty) => Err(bad("input", "`input` holds an empty text")),
        _ => Ok(texts),
    }
}

fn written(vector: &[f32], format: VectorFormat) -> Value {
    match format {
        VectorFormat::Float => json!(vector),
        VectorFormat::Base64 => json!(VectorFormat::base64(vector)),
    }
}

fn bad(param: &str, text: impl Into<String>) -> Fault {
    Fault::new(Code::InvalidRequest, text).at(param)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    #[test]
    fn the_two_formats_say_the_same() {
        let vector = [0.6_f32, -0.8, 0.0];
        let Value::String(text) = written(&vector, VectorFormat::Base64) else { panic!("no text") };
        let bytes = STANDARD.decode(text).unwrap();
        let back: Vec<f32> =
            bytes.chunks_exact(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect();
        assert_eq!(back, vector);
        assert_eq!(written(&vector, VectorFormat::Float), json!(vector));
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let input = texts;
        assert_eq!(input(json!("a")).unwrap(), ["a"]);
        assert_eq!(input(json!(["a", "b"])).unwrap(), ["a", "b"]);
        for wrong in [
            json!([]),
            json!([1, 2]),
            json!([[1]]),
            json!(""),
            json!(["a", ""]),
            json!(7),
            json!(vec!["x"; 257]),
        ] {
            assert_eq!(input(wrong).unwrap_err().param.as_deref(), Some("input"));
        }
    }
}
