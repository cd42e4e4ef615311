//! `image_gen`: an image in place of a model's words.
//!
//! The last user message is the prompt; a server of images draws it; the answer is a message whose text is one Markdown
//! image, with the address that the server gave or the bytes as a `data:` URL. Both kinds of server answer
//! `/v1/images/generations`. With `modality_detection` only requests that want an image get one; the others go on to the
//! route's model.
//!
//! **Invariant:** the call asks the budget and stands in the ledger like any call, and what a server answers cannot end the
//! Markdown image it stands in. Source: contract §1.10; OpenAI API reference, "Create image"; vLLM-Omni, "Image Generation
//! API".

use super::at_work::{Asking, AtWork, Scene};
use crate::backends::Server;
use crate::budget::{Admitted, Rates};
use crate::classify;
use crate::fault::{Code, Fault};
use crate::ledger::{AttemptEnd, Opening};
use chorus_collab::{Answer, CallFault, CallRole, FaultKind, Reply};
use chorus_policy::Observation;
use chorus_spec::{Family, ImageBackend, ImageGenSettings, ModelId, SignalKey};
use chorus_wire::{ChatReply, ChatRequest, Usage};
use futures_util::future::{BoxFuture, FutureExt};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Instant;

const KIND: &str = "image_gen";
const PATH: &str = "/images/generations";
/// Most characters of a prompt. Source: OpenAI API reference, "Create image", `prompt`.
const MOST_PROMPT_CHARS: usize = 32_000;
/// What servers of images are called in records where the route names no model.
const UNNAMED: &str = "image";

/// The plugin at work on one request.
pub(super) struct ImageGen {
    settings: ImageGenSettings,
}

/// What a server of images is asked.
#[derive(Debug, Default, Serialize)]
struct Question<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    prompt: &'a str,
    n: u8,
    size: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    quality: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    style: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_inference_steps: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    true_cfg_scale: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
}

/// What a server of images answers.
#[derive(Debug, Deserialize)]
struct Drawn {
    data: Vec<Image>,
    #[serde(default)]
    usage: Option<Spent>,
}

#[derive(Debug, Deserialize)]
struct Image {
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    b64_json: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Spent {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
}

impl ImageGen {
    pub(super) fn new(settings: ImageGenSettings) -> Self {
        Self { settings }
    }

    fn model(&self) -> &str {
        self.settings.model.as_deref().unwrap_or(UNNAMED)
    }

    /// Those of a model that the file declares under the same name; none otherwise.
    fn rates(&self, scene: &Scene) -> Rates {
        let declared = scene.mom.spec.models.get(&ModelId::new(self.model()));
        declared.map_or_else(Rates::default, |it| Rates { pricing: it.pricing, energy: it.energy })
    }

    fn server(&self, scene: &Scene) -> Result<Server, Fault> {
        let mom = &scene.mom;
        let base = mom.env.resolve(&self.settings.base_url);
        let base = base.map_err(|missing| Fault::new(Code::Misconfigured, missing.to_string()))?;
        Ok(mom.backends.keyed_server(&with_version(&base), PATH, self.settings.api_key.as_ref())?)
    }

    fn question<'a>(&'a self, prompt: &'a str) -> Question<'a> {
        let ImageGenSettings { backend, width, height, model, .. } = &self.settings;
        let bare = Question {
            model: model.as_deref(),
            prompt,
            n: 1,
            size: format!("{width}x{height}"),
            ..Question::default()
        };
        match backend {
            ImageBackend::OpenAi { quality, style } => {
                Question { quality: quality.as_deref(), style: style.as_deref(), ..bare }
            }
            ImageBackend::VllmOmni { steps, cfg_scale, seed } => Question {
                num_inference_steps: Some(*steps),
                true_cfg_scale: Some(*cfg_scale),
                seed: *seed,
                ..bare
            },
        }
    }

    /// One call, under the budget and in the ledger.
    async fn drawn(&self, prompt: &str, scene: &Scene) -> Result<(String, Usage), Fault> {
        let server = self.server(scene)?;
        let calls = &scene.calls;
        let prompt_tokens = chorus_wire::tokens::of_text(prompt);
        let opening = Opening {
            role: CallRole::Direct,
            model: self.model(),
            backend: self.settings.backend.name(),
            cause: None,
            prompt_tokens,
            cap: Some(0),
            rates: self.rates(scene),
        };
        let started = Instant::now();
        let admitted = calls.budget.admit(&calls.ledger, opening, started);
        let Admitted { entry, time, .. } = admitted.map_err(|spent| CallFault {
            kind: FaultKind::Budget,
            public: spent.to_string(),
            status: None,
        })?;
        let total = self.settings.timeout.min(time);
        let answer = tokio::time::timeout(total, server.ask(&json!(self.question(prompt)), total)).await;
        let answer = answer.unwrap_or_else(|_| Err(late(total)));
        let drawn = answer.and_then(|answer| read(answer, prompt_tokens));
        match &drawn {
            Ok((_, usage)) => entry.close(AttemptEnd::Answered, Some(*usage), started.elapsed()),
            Err(fault) => entry.fail(fault, started.elapsed()),
        }
        Ok(drawn?)
    }
}

/// Whether the request wants an image; where it cannot be told, it goes on to the model.
async fn is_wanted(scene: &Scene) -> bool {
    let request = scene.asked.request.as_ref().clone();
    let Ok(evidence) = scene.mom.classifiers.observe(&[Family::Modality], request).await else {
        return false;
    };
    [classify::IMAGE, classify::TEXT_AND_IMAGE].iter().any(|label| {
        let seen = evidence.get(&SignalKey::new(Family::Modality, *label));
        matches!(seen, Some(Observation::Matched { .. }))
    })
}

/// The description to draw: what leaves is what a model would get of it, with personal data taken out where the operating
/// point demands that.
fn prompt(request: &ChatRequest, scene: &Scene) -> Result<String, Fault> {
    let mut leaving = request.clone();
    if let Some(guard) = &scene.calls.guard {
        guard.redact(&mut leaving)?;
    }
    let prompt = leaving.last_user_text().trim();
    let refused = |why: &str| Err(Fault::new(Code::InvalidRequest, why).at("messages"));
    match prompt.chars().count() {
        0 => refused("an image needs a description in the last user message"),
        count if count > MOST_PROMPT_CHARS => {
            refused(&format!("the description of an image has at most {MOST_PROMPT_CHARS} characters"))
        }
        _ => Ok(prompt.to_owned()),
    }
}

/// The address of the API: files name servers with and without its version.
fn with_version(base: &str) -> String {
    let base = base.trim_end_matches('/');
    if base.ends_with("/v1") { base.to_owned() } else { format!("{base}/v1") }
}

fn read(answer: Value, prompt_tokens: u64) -> Result<(String, Usage), CallFault> {
    let drawn: Drawn = serde_json::from_value(answer).map_err(|_| no_image())?;
    let address = drawn.data.iter().find_map(address).ok_or_else(no_image)?;
    let spent = drawn.usage.unwrap_or(Spent { input_tokens: prompt_tokens, output_tokens: 0 });
    let usage = Usage {
        prompt_tokens: spent.input_tokens,
        completion_tokens: spent.output_tokens,
        total_tokens: spent.input_tokens.saturating_add(spent.output_tokens),
        ..Usage::default()
    };
    Ok((format!("![image]({address})"), usage))
}

/// Where the image is; none that could end the Markdown it is put into.
fn address(image: &Image) -> Option<String> {
    let ends_it = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '(' | ')' | '<' | '>');
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    let bytes = image.b64_json.as_deref().filter(|text| !text.is_empty() && text.chars().all(is_base64));
    let url = image.url.as_deref().filter(|url| !url.chars().any(ends_it));
    let url = url.filter(|url| ["https://", "http://", "data:image/"].iter().any(|it| url.starts_with(it)));
    url.map(str::to_owned).or_else(|| bytes.map(|text| format!("data:{};base64,{text}", media_type(text))))
}

/// By the first bytes, as they look in base64.
fn media_type(base64: &str) -> &'static str {
    match base64 {
        text if text.starts_with("/9j/") => "image/jpeg",
        text if text.starts_with("UklGR") => "image/webp",
        text if text.starts_with("R0lGOD") => "image/gif",
        _ => "image/png",
    }
}

fn no_image() -> CallFault {
    CallFault {
        kind: FaultKind::Empty,
        public: "the server of images answered without an image".to_owned(),
        status: None,
    }
}

fn late(total: std::time::Duration) -> CallFault {
    CallFault {
        kind: FaultKind::Timeout,
        public: format!("the image was not there within {} s", total.as_secs_f32()),
        status: None,
    }
}

impl AtWork for ImageGen {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn before<'a>(&'a mut self, ask: &'a mut Asking<'_>) -> BoxFuture<'a, Result<Option<Answer>, Fault>> {
        async move {
            if self.settings.only_wanted && !is_wanted(ask.scene).await {
                ask.notes.did(KIND, &json!({"drawn": false}));
                return Ok(None);
            }
            let prompt = prompt(ask.request, ask.scene)?;
            let (text, usage) = self.drawn(&prompt, ask.scene).await?;
            let ImageGenSettings { backend, width, height, .. } = &self.settings;
            let what = json!({"drawn": true, "backend": backend.name(), "model": self.model(),
                "size": format!("{width}x{height}")});
            ask.notes.did(KIND, &what);
            let mut reply = ChatReply::text("", ask.request.model(), 0, &text);
            reply.set("usage", &usage);
            Ok(Some(Answer::Finished(Box::new(Reply { model: self.model().to_owned(), reply, usage }))))
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_spec::Template;
    use std::time::Duration;

    fn image(url: Option<&str>, bytes: Option<&str>) -> Image {
        Image { url: url.map(str::to_owned), b64_json: bytes.map(str::to_owned) }
    }

    #[test]
    fn an_address_cannot_end_the_markdown_it_stands_in() {
        for (url, bytes, want) in [
            (Some("https://x.example/a.png"), None, Some("https://x.example/a.png")),
            (Some("https://x.example/a.png) [click](https://evil.example"), None, None),
            (Some("javascript:alert(1)"), None, None),
            (None, Some("iVBORw0KGgo="), Some("data:image/png;base64,iVBORw0KGgo=")),
            (None, Some("/9j/4AAQ"), Some("data:image/jpeg;base64,/9j/4AAQ")),
            (None, Some("not base64)"), None),
            (Some("file:///etc/passwd"), Some("UklGRg=="), Some("data:image/webp;base64,UklGRg==")),
            (None, None, None),
        ] {
            assert_eq!(address(&image(url, bytes)).as_deref(), want, "{url:?} {bytes:?}");
        }
    }

    #[test]
    fn each_server_is_asked_in_its_own_words() {
        let settings = |backend, model: Option<&str>| ImageGenSettings {
            backend,
            base_url: Template::new("http://localhost"),
            api_key: None,
            model: model.map(str::to_owned),
            width: 512,
            height: 256,
            timeout: Duration::from_secs(1),
            only_wanted: false,
        };
        let openai = ImageBackend::OpenAi { quality: Some("high".to_owned()), style: None };
        assert_eq!(
            json!(ImageGen::new(settings(openai, Some("gpt-image-1"))).question("a cat")),
            json!({"prompt": "a cat", "n": 1, "size": "512x256", "model": "gpt-image-1", "quality": "high"})
        );
        let omni = ImageBackend::VllmOmni { steps: 20, cfg_scale: 4.0, seed: Some(7) };
        assert_eq!(
            json!(ImageGen::new(settings(omni, None)).question("a cat")),
            json!({"prompt": "a cat", "n": 1, "size": "512x256", "num_inference_steps": 20,
                "true_cfg_scale": 4.0, "seed": 7})
        );
    }

    #[test]
    fn the_version_stands_once() {
        for base in ["http://h", "http://h/", "http://h/v1", "http://h/v1/"] {
            assert_eq!(with_version(base), "http://h/v1");
        }
    }

    #[test]
    fn what_is_spent_is_what_the_server_says() {
        let answer =
            json!({"data": [{"b64_json": "iVBO"}], "usage": {"input_tokens": 5, "output_tokens": 1000}});
        let (text, usage) = read(answer, 3).unwrap();
        assert_eq!(text, "![image](data:image/png;base64,iVBO)");
        assert_eq!((usage.prompt_tokens, usage.total_tokens), (5, 1005));
        assert_eq!(read(json!({"data": []}), 3).unwrap_err().public, no_image().public);
        assert_eq!(read(json!({"data": [{"url": "ftp://x"}]}), 3).unwrap_err().kind, FaultKind::Empty);
    }
}
