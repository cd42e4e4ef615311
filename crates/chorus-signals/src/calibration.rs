//! From one encoder's cosines to the scale that thresholds in configuration files were written for.
//!
//! *What a threshold means.* Files of the v0.3 contract were written for `mmbert-embed-32k-2d-matryoshka`. How alike two
//! texts look differs from encoder to encoder: texts of unrelated subjects have a cosine of about .07 on
//! all-MiniLM-L6-v2 and of about .80 on multilingual-e5-small. So a threshold is taken to mean a *rank*: what share of
//! ordinary pairs of texts lies below it. A map carries each quantile of the cosines of one fixed set of ordinary pairs
//! to the same quantile on the authors' scale, straight lines between them, and an exact repetition to 1.
//!
//! *Assumption.* No weights of the authors' encoder were at hand. Their scale is taken from published measurements of
//! an encoder that was trained on the same data (see `chorus lab calibrate`, which fits the maps, and the cards beside
//! them). It knows no signal and no file of a user. **Invariant:** every map is strictly increasing, so that it never
//! changes which of two texts is nearer, and can be read backwards.

use chorus_infer::TextEncoder;
use std::sync::OnceLock;

/// The fitted maps, each a table as `chorus lab calibrate` writes it.
const TABLES: [&str; 2] = [
    include_str!("../calibration/all-minilm-l6-v2.tsv"),
    include_str!("../calibration/multilingual-e5-small.tsv"),
];

/// A strictly increasing map of cosines.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Calibration {
    /// Cosine and scale, both increasing; fewer than two leave cosines as they are.
    anchors: Vec<(f64, f64)>,
}

impl Calibration {
    /// The map of an encoder; cosines of an encoder that no map was fitted for stay as they are.
    #[must_use]
    pub fn of(encoder: &dyn TextEncoder) -> Self {
        let digest = encoder.digest();
        fitted()
            .iter()
            .find(|fitted| fitted.digests.iter().any(|d| d == digest))
            .map_or_else(Self::default, |fitted| fitted.map.clone())
    }

    /// A map through anchors `(cosine, scale)`; `None` unless both increase strictly.
    #[must_use]
    pub fn through(anchors: Vec<(f64, f64)>) -> Option<Self> {
        let increases = anchors.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1);
        (increases && anchors.len() >= 2).then_some(Self { anchors })
    }

    /// Whether cosines stay as they are.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.anchors.len() < 2
    }

    /// A cosine on the authors' scale; an exact repetition (1) is 1 on both.
    #[must_use]
    pub fn apply(&self, cosine: f64) -> f64 {
        interpolate(&self.anchors, cosine, |(cosine, scale)| (cosine, scale))
    }

    /// The cosine that [`apply`](Self::apply) carries to `scale`.
    #[must_use]
    pub fn cosine(&self, scale: f64) -> f64 {
        interpolate(&self.anchors, scale, |(cosine, scale)| (scale, cosine))
    }
}

/// A straight line between the two anchors around `x`; the outermost lines go on beyond the outermost anchors.
fn interpolate(anchors: &[(f64, f64)], x: f64, axes: impl Fn((f64, f64)) -> (f64, f64)) -> f64 {
    let next = anchors.iter().position(|anchor| axes(*anchor).0 >= x).unwrap_or(anchors.len());
    let upper = next.clamp(1, anchors.len().saturating_sub(1).max(1));
    let (Some(low), Some(high)) = (anchors.get(upper - 1), anchors.get(upper)) else {
        return x;
    };
    let ((x0, y0), (x1, y1)) = (axes(*low), axes(*high));
    y0 + (x - x0) * (y1 - y0) / (x1 - x0)
}

struct Fitted {
    digests: Vec<String>,
    map: Calibration,
}

fn fitted() -> &'static [Fitted] {
    static FITTED: OnceLock<Vec<Fitted>> = OnceLock::new();
    FITTED.get_or_init(|| TABLES.iter().filter_map(|table| parse(table)).collect())
}

/// Reads a table: a line `encoder<tab>digest` for each form of the encoder, and a line `cosine<tab>scale` an anchor.
fn parse(table: &str) -> Option<Fitted> {
    let lines = table.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('\t'));
    let (digests, anchors): (Vec<_>, Vec<_>) = lines.partition(|(name, _)| *name == "encoder");
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let anchors = anchors.into_iter().map(|(cosine, scale)| Some((number(cosine)?, number(scale)?)));
    let map = Calibration::through(anchors.collect::<Option<_>>()?)?;
    Some(Fitted { digests: digests.into_iter().map(|(_, digest)| digest.trim().to_owned()).collect(), map })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::WordBag;

    #[test]
    fn every_table_is_a_map_of_some_encoder() {
        assert_eq!(fitted().len(), TABLES.len());
        for fitted in fitted() {
            assert!(!fitted.digests.is_empty());
            assert!(fitted.digests.iter().all(|digest| digest.starts_with("sha256:")));
            assert!((fitted.map.apply(1.0) - 1.0).abs() < 1e-9, "a repetition stays a repetition");
        }
    }

    #[test]
    fn maps_increase_and_read_backwards() {
        for fitted in fitted() {
            let steps: Vec<f64> = (-100..=100).map(|step| f64::from(step) / 100.0).collect();
            let scaled: Vec<f64> = steps.iter().map(|cosine| fitted.map.apply(*cosine)).collect();
            assert!(scaled.is_sorted_by(|a, b| a < b));
            for (cosine, scale) in steps.iter().zip(&scaled) {
                assert!((fitted.map.cosine(*scale) - cosine).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn lines_by_hand() {
        let map = Calibration::through(vec![(0.0, 0.4), (0.5, 0.6), (1.0, 1.0)]).unwrap();
        for (cosine, scale) in [(0.0, 0.4), (0.25, 0.5), (0.75, 0.8), (1.0, 1.0), (-0.5, 0.2)] {
            assert!((map.apply(cosine) - scale).abs() < 1e-12, "{cosine}");
        }
        assert_eq!(Calibration::through(vec![(0.0, 0.4), (0.5, 0.4)]), None);
        assert_eq!(Calibration::through(vec![(0.0, 0.4)]), None);
    }

    #[test]
    fn an_unknown_encoder_keeps_its_cosines() {
        let map = Calibration::of(&WordBag);
        assert!(map.is_identity());
        assert_eq!((map.apply(0.3), map.cosine(0.3)), (0.3, 0.3));
    }
}
