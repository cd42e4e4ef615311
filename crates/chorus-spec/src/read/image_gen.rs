//! The plugin `image_gen`.
//!
//! It knows the two servers that this version speaks to. Source: contract §1.10, Appendix A (`ImageGenPluginConfig`,
//! `OpenAIImageGenConfig`, `VLLMOmniImageGenConfig`); defaults are those of the contract's engine.

use super::credential::secret;
use super::cursor::Cursor;
use super::rag::known;
use crate::diagnostic::code;
use crate::{ImageBackend, ImageGenSettings, Template};
use std::time::Duration;

/// Width and height unless the file says otherwise, in pixels.
const SIDE: u32 = 1024;
/// How long an image may take at OpenAI unless the file says otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long an image may take where steps can be many, unless the file says otherwise.
const DIFFUSION_TIMEOUT: Duration = Duration::from_secs(120);
/// Steps and scale of diffusion unless the file says otherwise.
const STEPS: u32 = 50;
const CFG_SCALE: f64 = 4.0;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    OpenAi,
    VllmOmni,
}

/// Reads it; `None` where its backend cannot be told, which has been reported.
pub(super) fn read(at: &Cursor<'_>) -> Option<ImageGenSettings> {
    at.required("backend")?;
    let kind = at.word("backend", &[("openai", Kind::OpenAi), ("vllm_omni", Kind::VllmOmni)])?;
    let server = at.needed("backend_config")?;
    let (backend, timeout) = match kind {
        Kind::OpenAi => (openai(&server), TIMEOUT),
        Kind::VllmOmni => (vllm_omni(at, &server), DIFFUSION_TIMEOUT),
    };
    let base_url = match kind {
        Kind::OpenAi => server.string("base_url").unwrap_or_else(|| "https://api.openai.com".to_owned()),
        Kind::VllmOmni => server.required("base_url")?,
    };
    let needs_key = kind == Kind::OpenAi && server.get("base_url").is_none();
    if needs_key && server.get("api_key").is_none() {
        server.error(code::MISSING_KEY, "`api_key` is missing");
    }
    if let Some(idle) = at.get("max_inference_steps").filter(|_| kind == Kind::OpenAi) {
        idle.warn(code::UNUSED, "`max_inference_steps` has an effect with `backend: vllm_omni` only");
    }
    Some(ImageGenSettings {
        backend,
        base_url: Template::new(base_url),
        api_key: secret(&server, "api_key"),
        model: server.string("model").or_else(|| (kind == Kind::OpenAi).then(|| "gpt-image-1".to_owned())),
        width: side(at, "default_width"),
        height: side(at, "default_height"),
        timeout: at.count("timeout_seconds").map_or(timeout, Duration::from_secs),
        only_wanted: at.get("modality_detection").is_some(),
    })
}

fn openai(server: &Cursor<'_>) -> ImageBackend {
    known(server, &["api_key", "base_url", "model", "quality", "style"]);
    ImageBackend::OpenAi { quality: server.string("quality"), style: server.string("style") }
}

fn vllm_omni(at: &Cursor<'_>, server: &Cursor<'_>) -> ImageBackend {
    known(server, &["base_url", "model", "num_inference_steps", "cfg_scale", "seed", "api_key"]);
    let steps = |at: &Cursor<'_>, key| at.integer_in(key, 0, 1000).and_then(|n| u32::try_from(n).ok());
    let most = steps(at, "max_inference_steps").filter(|n| *n > 0).unwrap_or(u32::MAX);
    ImageBackend::VllmOmni {
        steps: steps(server, "num_inference_steps").filter(|n| *n > 0).unwrap_or(STEPS).min(most),
        cfg_scale: server.float_in("cfg_scale", 0.0, 100.0).filter(|it| *it > 0.0).unwrap_or(CFG_SCALE),
        seed: server.integer_in("seed", i64::MIN, i64::MAX),
    }
}

fn side(at: &Cursor<'_>, key: &str) -> u32 {
    let written = at.integer_in(key, 0, 8192).filter(|n| *n > 0);
    if written.is_some_and(|n| n < 16)
        && let Some(named) = at.get(key)
    {
        named.error(code::BAD_RANGE, format!("`{key}` must be in 16..=8192"));
    }
    written.and_then(|n| u32::try_from(n).ok()).unwrap_or(SIDE)
}
