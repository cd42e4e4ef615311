//! Fits the map from one encoder's cosines to the scale that thresholds in existing files were written for.
//!
//! It knows pairs of texts and quantiles; it knows no signal and no policy. Invariant: the same data and the same
//! encoder give the same table, byte by byte.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use chorus_infer::encoder::digest_in;
use chorus_infer::{Catalog, TextEncoder};
use sha2::{Digest, Sha256};

use crate::fault::LabFault;
use crate::metrics::auroc;
use crate::pairs::{self, Pair, Pairs};

/// The quantiles that become anchors.
const QUANTILES: [f64; 7] = [0.01, 0.05, 0.25, 0.50, 0.75, 0.95, 0.99];
/// Mean and standard deviation of the cosines of unrelated texts, and of texts of one subject, on the authors' scale.
///
/// Source: the measurement of BGE-M3 on 160 sentences of 20 subjects in github.com/scrypster/muninndb, issue 719;
/// `mmbert-embed-32k-2d-matryoshka` was trained on BGE-M3's data, says its model card.
const AUTHORS_UNRELATED: (f64, f64) = (0.411, 0.058);
const AUTHORS_NEIGHBOURS: (f64, f64) = (0.490, 0.066);
/// Texts that are encoded at once.
const AT_ONCE: usize = 128;

/// A calibration to be fitted.
#[derive(Debug)]
pub struct Calibrate {
    /// The encoder's name in the catalog.
    pub encoder: String,
    /// Folder with the datasets.
    pub data_dir: PathBuf,
    /// Where the table and its card are written.
    pub out_dir: PathBuf,
}

/// What was fitted, and how well the encoder tells pairs apart.
#[derive(Debug)]
pub struct CalibrationReport {
    /// Cosine and scale, increasing.
    pub anchors: Vec<(f64, f64)>,
    /// Area under the curve of requests that want the same against neighbours of one subject.
    pub alike_auroc: f64,
    /// Of translations of one request against translations of others.
    pub parallel_auroc: f64,
    /// The card's text.
    pub card: String,
}

/// Sorted cosines of each kind of pair.
struct Measured {
    unrelated: Vec<f64>,
    neighbours: Vec<f64>,
    alike: Vec<f64>,
}

impl Calibrate {
    /// Fits, and writes `OUT/NAME.tsv` and `OUT/NAME.md`.
    ///
    /// # Errors
    /// [`LabFault`].
    pub fn run(
        &self,
        encoder: &dyn TextEncoder,
        progress: &mut dyn FnMut(&str),
    ) -> Result<CalibrationReport, LabFault> {
        let pairs = pairs::english(&self.data_dir)?;
        progress("encoding pairs of English requests");
        let english = measure(&pairs, encoder)?;
        progress("encoding pairs of one request in many languages");
        let parallel = measure(&pairs::parallel()?, encoder)?;
        let anchors = anchors(&english);
        let mut report = CalibrationReport {
            alike_auroc: area(&english.alike, &english.neighbours),
            parallel_auroc: area(&parallel.alike, &parallel.unrelated),
            anchors,
            card: String::new(),
        };
        report.card = self.card(&report, &english, &parallel, &data_digest(&pairs));
        let table = self.table(&report, encoder);
        for (kind, text) in [("tsv", &table), ("md", &report.card)] {
            let path = self.out_dir.join(format!("{}.{kind}", self.encoder));
            write(&path, text)?;
        }
        Ok(report)
    }

    /// The table that the signals read.
    fn table(&self, report: &CalibrationReport, encoder: &dyn TextEncoder) -> String {
        let mut text = format!("# {}: cosine, scale. Written by `chorus lab calibrate`.\n", self.encoder);
        let mut digests = siblings(&self.encoder);
        digests.push(encoder.digest().to_owned());
        digests.sort();
        digests.dedup();
        for digest in digests {
            let _ = writeln!(text, "encoder\t{digest}");
        }
        for (cosine, scale) in &report.anchors {
            let _ = writeln!(text, "{cosine:.4}\t{scale:.4}");
        }
        text
    }

    fn card(
        &self,
        report: &CalibrationReport,
        english: &Measured,
        parallel: &Measured,
        data_digest: &str,
    ) -> String {
        let mut text = format!(
            "# Calibration: {}\n\nThe map from this encoder's cosines to the scale that thresholds of existing \
             configuration files were written for: quantiles of ordinary pairs of requests (half of different \
             subjects, half of one subject) are carried to the same quantiles on that scale, an exact repetition to 1, \
             with straight lines between.\n\nThe scale is assumed, not measured: unrelated texts are taken to be \
             normal about {:.3} (±{:.3}), texts of one subject about {:.3} (±{:.3}), as published for an encoder that \
             was trained on the same data as the authors' one.\n\n| | |\n|---|---|\n| pairs | `{data_digest}` |\n\n",
            self.encoder,
            AUTHORS_UNRELATED.0,
            AUTHORS_UNRELATED.1,
            AUTHORS_NEIGHBOURS.0,
            AUTHORS_NEIGHBOURS.1,
        );
        text.push_str("| cosine | scale |\n|---|---|\n");
        for (cosine, scale) in &report.anchors {
            let _ = writeln!(text, "| {cosine:.4} | {scale:.4} |");
        }
        text.push_str("\n## Cosines measured\n\n| pairs | count | 5% | 25% | 50% | 75% | 95% |\n|---|---|---|---|---|---|---|\n");
        for (name, cosines) in [
            ("English, different subjects", &english.unrelated),
            ("English, one subject, another wish", &english.neighbours),
            ("English, the same wish in other words", &english.alike),
            ("many languages, another request", &parallel.unrelated),
            ("many languages, the same request", &parallel.alike),
        ] {
            let _ = write!(text, "| {name} | {} |", cosines.len());
            for share in [0.05, 0.25, 0.5, 0.75, 0.95] {
                let _ = write!(text, " {:.3} |", quantile(cosines, share));
            }
            text.push('\n');
        }
        let _ = write!(
            text,
            "\nTelling the same wish from another of its subject, English: AUROC {:.3}. Telling the same request in \
             another language from another request: AUROC {:.3}.\n\nRepeat with `chorus lab calibrate {} --data DATA \
             --out OUT`.\n",
            report.alike_auroc, report.parallel_auroc, self.encoder
        );
        text
    }
}

/// Digests of the catalog's encoders of one family: they differ in precision, not in scale.
fn siblings(name: &str) -> Vec<String> {
    let catalog = Catalog::builtin();
    let family = catalog.get(name).map(|model| model.family.clone());
    let models = catalog.models().iter().filter(|model| Some(&model.family) == family.as_ref());
    models.filter_map(|model| digest_in(&catalog, &model.id)).collect()
}

fn measure(pairs: &Pairs, encoder: &dyn TextEncoder) -> Result<Measured, LabFault> {
    let all = [&pairs.unrelated, &pairs.neighbours, &pairs.alike].into_iter().flatten();
    let texts: BTreeSet<&str> = all.flat_map(|(left, right)| [left.as_str(), right.as_str()]).collect();
    let texts: Vec<&str> = texts.into_iter().collect();
    let mut vectors: BTreeMap<&str, Vec<f32>> = BTreeMap::new();
    for part in texts.chunks(AT_ONCE) {
        vectors.extend(part.iter().copied().zip(encoder.encode(part)?));
    }
    Ok(Measured {
        unrelated: cosines(&pairs.unrelated, &vectors),
        neighbours: cosines(&pairs.neighbours, &vectors),
        alike: cosines(&pairs.alike, &vectors),
    })
}

/// Sorted cosines of pairs.
fn cosines(pairs: &[Pair], vectors: &BTreeMap<&str, Vec<f32>>) -> Vec<f64> {
    let cosine = |(left, right): &Pair| {
        let (left, right) = (vectors.get(left.as_str())?, vectors.get(right.as_str())?);
        Some(left.iter().zip(right).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>())
    };
    let mut all: Vec<f64> = pairs.iter().filter_map(cosine).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// Equal quantiles of the pooled pairs and of the authors' scale; both kinds of pair weigh the same.
fn anchors(measured: &Measured) -> Vec<(f64, f64)> {
    let (unrelated, neighbours) = (&measured.unrelated, &measured.neighbours);
    let below = |cosine: f64| (share_below(unrelated, cosine) + share_below(neighbours, cosine)) / 2.0;
    let authors = |scale: f64| (normal(scale, AUTHORS_UNRELATED) + normal(scale, AUTHORS_NEIGHBOURS)) / 2.0;
    let anchors = QUANTILES.iter().map(|share| (invert(below, *share), invert(authors, *share)));
    let mut anchors: Vec<(f64, f64)> =
        anchors.map(|(cosine, scale)| (rounded(cosine), rounded(scale))).collect();
    anchors.push((1.0, 1.0));
    anchors
}

fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// Where an increasing function reaches `wanted`, within −1..=1.
fn invert(function: impl Fn(f64) -> f64, wanted: f64) -> f64 {
    let (mut low, mut high) = (-1.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if function(middle) < wanted { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

fn share_below(sorted: &[f64], value: f64) -> f64 {
    sorted.partition_point(|other| *other < value) as f64 / sorted.len().max(1) as f64
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = (share * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

/// The normal distribution's share below `value`, by the error function's approximation.
/// Source: Abramowitz and Stegun, 7.1.26 (error below 1.5e-7).
fn normal(value: f64, (mean, deviation): (f64, f64)) -> f64 {
    let x = (value - mean) / (deviation * std::f64::consts::SQRT_2);
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
    let terms = [0.254_829_592, -0.284_496_736, 1.421_413_741, -1.453_152_027, 1.061_405_429];
    let polynomial = terms.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    let tail = polynomial * (-x * x).exp() / 2.0;
    if x < 0.0 { tail } else { 1.0 - tail }
}

fn area(alike: &[f64], other: &[f64]) -> f64 {
    let scores = |cosines: &[f64], label| cosines.iter().map(move |c| (*c as f32, label)).collect::<Vec<_>>();
    auroc(&[scores(alike, true), scores(other, false)].concat())
}

/// `sha256:…` over all pairs that the map was fitted on.
fn data_digest(pairs: &Pairs) -> String {
    let mut digest = Sha256::new();
    for (left, right) in pairs.unrelated.iter().chain(&pairs.neighbours) {
        digest.update(format!("{left}\t{right}\n"));
    }
    format!("sha256:{}", hex::encode(digest.finalize()))
}

fn write(path: &Path, text: &str) -> Result<(), LabFault> {
    let folder = path.parent().unwrap_or(Path::new(""));
    std::fs::create_dir_all(folder).map_err(|cause| LabFault::file(folder, cause))?;
    std::fs::write(path, text).map_err(|cause| LabFault::file(path, cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution_has_its_known_quantiles() {
        for (value, share) in [(0.0, 0.5), (1.959_964, 0.975), (-1.644_854, 0.05), (3.0, 0.998_65)] {
            assert!((normal(value, (0.0, 1.0)) - share).abs() < 1e-5, "{value}");
        }
    }

    #[test]
    fn equal_ranks_are_carried_to_each_other() {
        // Cosines spread evenly over 0..1 for both kinds: the median is .5, whose place on the scale is about .45.
        let even: Vec<f64> = (0..1000).map(|step| f64::from(step) / 1000.0).collect();
        let measured = Measured { unrelated: even.clone(), neighbours: even, alike: Vec::new() };
        let anchors = anchors(&measured);
        assert!(anchors.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1), "{anchors:?}");
        let median = anchors[3];
        assert!((median.0 - 0.5).abs() < 2e-3 && (0.44..0.46).contains(&median.1), "{median:?}");
        assert_eq!(anchors.last(), Some(&(1.0, 1.0)));
    }

    #[test]
    fn siblings_share_a_table() {
        assert_eq!(siblings("multilingual-e5-small").len(), 2);
        assert_eq!(siblings("all-minilm-l6-v2").len(), 1);
    }
}
