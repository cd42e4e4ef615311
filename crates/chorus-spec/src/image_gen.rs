//! The `image_gen` plugin: a route whose answer is an image.
//!
//! Plain data of the file; it knows no server. Source: contract §1.10, Appendix A (`ImageGenPluginConfig`).

use crate::{Secret, Template};
use std::time::Duration;

/// How a route's images come about.
#[derive(Debug, Clone)]
pub struct ImageGenSettings {
    /// The words of the server.
    pub backend: ImageBackend,
    /// Its address, with or without `/v1`.
    pub base_url: Template,
    /// Its key.
    pub api_key: Option<Secret>,
    /// The model there; the server's own where `None`.
    pub model: Option<String>,
    /// In pixels, 16..=8192.
    pub width: u32,
    /// In pixels, 16..=8192.
    pub height: u32,
    /// How long one image may take.
    pub timeout: Duration,
    /// Whether only requests that want one get one, as `modules.modality_detector` tells; otherwise all of the route's.
    pub only_wanted: bool,
}

/// A server of images. Both answer `/v1/images/generations`.
#[derive(Debug, Clone, PartialEq)]
pub enum ImageBackend {
    /// OpenAI, or who speaks like it.
    OpenAi {
        /// Sent as `quality`.
        quality: Option<String>,
        /// Sent as `style`.
        style: Option<String>,
    },
    /// vLLM-Omni.
    VllmOmni {
        /// Steps of diffusion, 1..=1000.
        steps: u32,
        /// Sent as `true_cfg_scale`.
        cfg_scale: f64,
        /// Makes images repeatable.
        seed: Option<i64>,
    },
}

impl ImageBackend {
    /// The contract's word.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::OpenAi { .. } => "openai",
            Self::VllmOmni { .. } => "vllm_omni",
        }
    }
}

impl ImageGenSettings {
    /// Every environment variable that it reads, and whether it holds a credential.
    pub(crate) fn variables(&self, note: &mut impl FnMut(Vec<(&str, bool)>, bool)) {
        note(self.base_url.variables(), false);
        self.api_key.iter().for_each(|key| note(key.variables(), true));
    }
}
