//! How alike texts are in meaning, on the scale of configuration files.
//!
//! It knows the shared encoder and its scale, no plugin.

use crate::fault::Fault;
use crate::mom::Mom;
use chorus_vectors::dot;

/// The shared encoder of a configuration.
pub(super) struct Likeness<'a>(&'a Mom);

impl<'a> Likeness<'a> {
    pub(super) fn of(mom: &'a Mom) -> Self {
        Self(mom)
    }

    /// The encoder's digest; `None` where none is loaded.
    pub(super) fn encoder(&self) -> Option<&'a str> {
        self.0.classifiers.encoder().map(|(digest, _)| digest)
    }

    /// One unit vector a text.
    pub(super) async fn vectors(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, Fault> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        self.0.classifiers.embed(texts).await
    }

    /// How alike two vectors are, in 0..=1.
    pub(super) fn between(&self, a: &[f32], b: &[f32]) -> f64 {
        self.scaled(f64::from(dot(a, b)))
    }

    /// A cosine on the scale of configuration files, in 0..=1.
    pub(super) fn scaled(&self, cosine: f64) -> f64 {
        self.0.selection.calibration.apply(cosine).clamp(0.0, 1.0)
    }

    /// The cosine that a threshold of a configuration file stands for.
    pub(super) fn cosine(&self, threshold: f64) -> f64 {
        self.0.selection.calibration.cosine(threshold)
    }
}
