//! Texts as vectors, in OpenAI's dialect: asked beside the place where chats are asked, and read with doubt.
//!
//! What is asked for is what is handed on: another number of vectors, another length or something that is no vector is a broken
//! answer; the other of the two ways to write a vector is turned into the one that was asked for. Source: OpenAI API reference,
//! "Create embeddings"; Azure OpenAI REST reference, "Embeddings - Create".

use crate::client::Upstream;
use crate::dialect::Dialect;
use crate::fault::UpstreamFault;
use crate::path::path_segment;
use crate::reshape;
use crate::seam::Sent;
use crate::target::{Target, Timeouts};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chorus_wire::{RawObject, Usage};
use serde::Deserialize;

/// How a vector is written.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VectorFormat {
    /// A list of numbers.
    #[default]
    Float,
    /// The base64 of little-endian floats of four bytes.
    Base64,
}

impl VectorFormat {
    /// A vector as [`Base64`](Self::Base64) has it.
    #[must_use]
    pub fn base64(vector: &[f32]) -> String {
        let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
        STANDARD.encode(bytes)
    }
}

/// What an answer has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorsWish {
    /// How many vectors.
    pub count: usize,
    /// How they are written.
    pub format: VectorFormat,
    /// How long each is; whatever the model gives where nobody says.
    pub dimensions: Option<usize>,
}

/// An answer as the backend wrote it, but for how vectors are written.
#[derive(Debug, Clone)]
pub struct Vectors {
    /// The whole of it.
    pub body: RawObject,
    /// What it took, where the backend says.
    pub usage: Option<Usage>,
}

impl Upstream {
    /// Asks for vectors; `body` is the request with the backend's own name of the model.
    ///
    /// # Errors
    /// [`UpstreamFault`].
    pub async fn vectors(
        &self,
        target: &Target,
        body: &RawObject,
        wish: VectorsWish,
        headers: &[(String, String)],
        limits: &Timeouts,
    ) -> Result<Vectors, UpstreamFault> {
        let path = Some(place(target, body)?);
        let sent = Sent { body: Bytes::from(body.to_bytes()), path, accept: "application/json" };
        let answer = self.post(target, sent, headers, limits).await?.collect().await?;
        read(&answer, wish)
    }
}

/// Where they are asked for.
fn place(target: &Target, body: &RawObject) -> Result<String, UpstreamFault> {
    match target.dialect {
        Dialect::OpenAi => target.beside("/chat/completions", "/embeddings").ok_or_else(|| {
            UpstreamFault::untranslatable("its `chat_path` does not end in /chat/completions")
        }),
        Dialect::Azure => {
            let model: Option<String> = body.read("model").map_err(UpstreamFault::untranslatable)?;
            let deployment = path_segment(&model.unwrap_or_default());
            Ok(format!("/openai/deployments/{deployment}/embeddings"))
        }
        _ => Err(UpstreamFault::untranslatable("vectors are asked for in OpenAI's dialect alone")),
    }
}

#[derive(Deserialize)]
struct Took {
    prompt_tokens: u64,
    total_tokens: Option<u64>,
}

fn read(answer: &[u8], wish: VectorsWish) -> Result<Vectors, UpstreamFault> {
    let without = || UpstreamFault::malformed("an answer without `data`");
    let mut body = RawObject::parse(answer).map_err(|_| without())?;
    let Some(mut vectors) = body.read::<Vec<RawObject>>("data").ok().flatten() else {
        return Err(reshape::error_of(&body).map_or_else(without, UpstreamFault::in_band));
    };
    if vectors.len() != wish.count {
        let text = format!("{} vectors where {} were asked for", vectors.len(), wish.count);
        return Err(UpstreamFault::malformed(text));
    }
    let mut is_changed = false;
    for vector in &mut vectors {
        is_changed |= mend(vector, wish)?;
    }
    if is_changed {
        body.write("data", &vectors).map_err(UpstreamFault::malformed)?;
    }
    let usage = body.read::<Took>("usage").ok().flatten().map(|took| Usage {
        prompt_tokens: took.prompt_tokens,
        completion_tokens: 0,
        total_tokens: took.total_tokens.unwrap_or(0).max(took.prompt_tokens),
        estimated: false,
    });
    Ok(Vectors { body, usage })
}

/// Writes a vector in the way that was asked for; whether that changed it.
fn mend(entry: &mut RawObject, wish: VectorsWish) -> Result<bool, UpstreamFault> {
    let no_vector = || UpstreamFault::malformed("an entry of `data` that holds no vector");
    let written = entry.get_set("embedding").ok_or_else(no_vector)?.get();
    let format = if written.starts_with('"') { VectorFormat::Base64 } else { VectorFormat::Float };
    let vector: Vec<f32> = match format {
        VectorFormat::Float => serde_json::from_str(written).map_err(|_| no_vector())?,
        VectorFormat::Base64 => {
            let text: String = serde_json::from_str(written).map_err(|_| no_vector())?;
            let bytes = STANDARD.decode(text).map_err(|_| no_vector())?;
            let (floats, rest) = bytes.as_chunks::<4>();
            if !rest.is_empty() {
                return Err(no_vector());
            }
            floats.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
        }
    };
    if vector.is_empty() || wish.dimensions.is_some_and(|wanted| wanted != vector.len()) {
        return Err(UpstreamFault::malformed(format!(
            "a vector of {} numbers, which is not what was asked for",
            vector.len()
        )));
    }
    if format == wish.format {
        return Ok(false);
    }
    let rewritten = match wish.format {
        VectorFormat::Float => entry.write("embedding", &vector),
        VectorFormat::Base64 => entry.write("embedding", &VectorFormat::base64(&vector)),
    };
    rewritten.map(|()| true).map_err(UpstreamFault::malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(format: VectorFormat, dimensions: Option<usize>) -> VectorsWish {
        VectorsWish { count: 1, format, dimensions }
    }

    #[test]
    fn both_ways_to_write_a_vector_become_the_one_that_was_asked_for() {
        let of = |written: &str, format| {
            let answer = format!(
                r#"{{"object":"list","data":[{{"index":0,"embedding":{written}}}],"usage":{{"prompt_tokens":3}},"x":1.50}}"#
            );
            let vectors = read(answer.as_bytes(), wish(format, Some(2))).unwrap();
            assert_eq!(vectors.usage.unwrap().total_tokens, 3);
            String::from_utf8(vectors.body.to_bytes()).unwrap()
        };
        let numbers = of("[0.50, -1.0]", VectorFormat::Float);
        assert!(numbers.contains("[0.50, -1.0]") && numbers.contains("1.50"), "byte for byte: {numbers}");
        let text = of("[0.5,-1.0]", VectorFormat::Base64);
        assert!(text.contains(r#""embedding":"AAAAPwAAgL8=""#), "{text}");
        assert!(of(r#""AAAAPwAAgL8=""#, VectorFormat::Float).contains(r#""embedding":[0.5,-1.0]"#));
    }

    #[test]
    fn what_is_not_what_was_asked_for_is_a_broken_answer() {
        let good = r#"{"embedding":[0.5,1.0]}"#;
        let rows = [
            r#"{"data":[]}"#.to_owned(),
            format!(r#"{{"data":[{good},{good}]}}"#),
            r#"{"data":[{"embedding":[0.5]}]}"#.to_owned(),
            r#"{"data":[{"embedding":"AAA"}]}"#.to_owned(),
            r#"{"data":[{"embedding":{}}]}"#.to_owned(),
            r#"{"data":[{}]}"#.to_owned(),
            r#"{"object":"list"}"#.to_owned(),
            "no".to_owned(),
        ];
        for answer in rows {
            let fault = read(answer.as_bytes(), wish(VectorFormat::Float, Some(2))).unwrap_err();
            assert!(matches!(fault, UpstreamFault::Malformed { .. }), "{answer}: {fault}");
        }
        let told = read(br#"{"error":{"message":"no"}}"#, wish(VectorFormat::Float, None)).unwrap_err();
        assert!(matches!(told, UpstreamFault::InBand { .. }), "{told}");
    }

    #[test]
    fn vectors_are_asked_for_beside_chats() {
        let body = RawObject::parse(br#"{"model":"text embed/3"}"#).unwrap();
        let rows = [
            (Target::builder("http://h/v1?a=1"), Some("/embeddings")),
            (Target::builder("http://h").chat_path("/api/chat/completions"), Some("/api/embeddings")),
            (Target::builder("http://h").chat_path("/generate"), None),
            (
                Target::builder("http://h").dialect(Dialect::Azure),
                Some("/openai/deployments/text%20embed%2F3/embeddings"),
            ),
            (Target::builder("http://h").dialect(Dialect::Anthropic).chat_path("/v1/messages"), None),
        ];
        for (builder, want) in rows {
            assert_eq!(place(&builder.build().unwrap(), &body).ok().as_deref(), want);
        }
    }
}
