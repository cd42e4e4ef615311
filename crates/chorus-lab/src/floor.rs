//! The threshold of a cascade that keeps a floor of quality: learn, then test.
//!
//! Thresholds are tested from the most careful one downwards, each hypothesis being that it costs more than the risk that is
//! allowed; the last one before the first that cannot be rejected is taken. An example costs where the cheaper model's
//! answer stays, is wrong, and the next model's is right. It knows no model and no policy.
//!
//! **Invariant:** over calibration sets drawn like the questions to come, the chance that the threshold costs more than the
//! risk is at most one less the confidence.
//! Source: Angelopoulos et al., "Learn then Test" (arXiv:2110.01052), fixed-sequence testing with the Hoeffding–Bentkus
//! p-value (Bates et al., arXiv:2101.02703).

use crate::corpus;
use crate::fault::LabFault;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::path::PathBuf;

/// Thresholds that are tested, in hundredths, from the most careful one.
const GRID: std::ops::RangeInclusive<u32> = 1..=99;

/// One question of a calibration set.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// The cheaper model's confidence, as the cascade measures it, in 0..=1.
    pub confidence: f64,
    /// Whether its answer is right.
    pub right: bool,
    /// Whether the next model's is.
    pub next_right: bool,
}

/// What a floor of quality is calibrated from.
#[derive(Debug, Clone)]
pub struct CalibrateFloor {
    /// One [`Example`] a line, as JSON.
    pub file: PathBuf,
    /// The most that may be wrong where the next model is right, as a share.
    pub risk: f64,
    /// How sure that must be.
    pub confidence: f64,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Floor {
    /// Digest of the set.
    pub set: String,
    /// Its questions.
    pub examples: usize,
    /// As asked.
    pub risk: f64,
    /// As asked.
    pub confidence: f64,
    /// The threshold, in hundredths; `None` where none can be vouched for.
    pub hundredths: Option<u32>,
    /// Share of the set's questions that stay with the cheaper model at it.
    pub kept: f64,
    /// Share of them that cost at it.
    pub cost: f64,
}

impl CalibrateFloor {
    /// Reads the set and tests.
    ///
    /// # Errors
    /// A file that is not there, or a line that is none.
    pub fn run(&self) -> Result<Floor, LabFault> {
        let examples: Vec<Example> = corpus::json_lines(&self.file)?;
        let bytes = std::fs::read(&self.file).map_err(|cause| LabFault::file(&self.file, cause))?;
        let set = format!("sha256:{}", hex::encode(Sha256::digest(&bytes)));
        let hundredths = threshold(&examples, self.risk, 1.0 - self.confidence);
        let at = hundredths.map(fraction).unwrap_or(f64::INFINITY);
        let count = examples.len().max(1) as f64;
        let share =
            |of: &dyn Fn(&Example) -> bool| examples.iter().filter(|it| of(it)).count() as f64 / count;
        Ok(Floor {
            set,
            examples: examples.len(),
            risk: self.risk,
            confidence: self.confidence,
            hundredths,
            kept: share(&|it| it.confidence >= at),
            cost: share(&|it| costs(it, at)),
        })
    }
}

/// The lowest threshold, in hundredths, that the examples vouch for.
#[must_use]
pub fn threshold(examples: &[Example], risk: f64, delta: f64) -> Option<u32> {
    let passes = |hundredths: &u32| {
        let at = fraction(*hundredths);
        let losses = examples.iter().filter(|it| costs(it, at)).count();
        p_value(losses, examples.len(), risk) <= delta
    };
    GRID.rev().take_while(passes).last()
}

fn fraction(hundredths: u32) -> f64 {
    f64::from(hundredths) / 100.0
}

fn costs(example: &Example, at: f64) -> bool {
    example.confidence >= at && !example.right && example.next_right
}

/// The Hoeffding–Bentkus p-value of "the risk is above `risk`" for so many losses of so many.
fn p_value(losses: usize, count: usize, risk: f64) -> f64 {
    if count == 0 || risk <= 0.0 {
        return 1.0;
    }
    let n = count as f64;
    let mean = losses as f64 / n;
    let hoeffding = if mean >= risk { 1.0 } else { (-n * divergence(mean, risk)).exp() };
    let bentkus = std::f64::consts::E * binomial_at_most(losses, count, risk);
    hoeffding.min(bentkus).min(1.0)
}

/// `a ln(a/b) + (1−a) ln((1−a)/(1−b))`, with `0 ln 0` as 0.
fn divergence(a: f64, b: f64) -> f64 {
    let term = |p: f64, q: f64| if p <= 0.0 { 0.0 } else { p * (p / q).ln() };
    term(a, b) + term(1.0 - a, 1.0 - b)
}

/// The chance of at most `most` successes in `count` tries.
fn binomial_at_most(most: usize, count: usize, p: f64) -> f64 {
    let (n, odds) = (count as f64, p / (1.0 - p));
    let mut log = n * (1.0 - p).ln();
    let mut sum = log.exp();
    for k in 1..=most.min(count) {
        let k = k as f64;
        log += ((n - k + 1.0) / k * odds).ln();
        sum += log.exp();
    }
    sum.min(1.0)
}

impl fmt::Display for Floor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(hundredths) = self.hundredths else {
            return write!(
                out,
                "no threshold can be vouched for: {} examples, risk {}, confidence {}; the point stays on the safe side",
                self.examples, self.risk, self.confidence
            );
        };
        let at = fraction(hundredths);
        writeln!(
            out,
            "threshold {at}: {:.1}% stay with the cheaper model, {:.1}% cost",
            100.0 * self.kept,
            100.0 * self.cost
        )?;
        writeln!(out, "in the policy:    threshold: {at}")?;
        write!(
            out,
            "in mom.yaml:      provenance: {{ calibration.POINT: \"set {} examples {} risk {} confidence {} threshold {at}\" }}",
            self.set, self.examples, self.risk, self.confidence
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers in 0..1, the same on every machine. Source: splitmix64.
    struct Draws(u64);

    impl Draws {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        }

        /// A model that is right as often as it is confident, and a next one that is right nine times in ten.
        fn set(&mut self, count: usize) -> Vec<Example> {
            let one = |draws: &mut Self| {
                let confidence = draws.next();
                Example { confidence, right: draws.next() < confidence, next_right: draws.next() < 0.9 }
            };
            (0..count).map(|_| one(self)).collect()
        }
    }

    /// What a threshold costs over all questions: nine tenths of the integral of `1 − c` from it to 1.
    fn true_risk(at: f64) -> f64 {
        0.9 * (1.0 - at) * (1.0 - at) / 2.0
    }

    #[test]
    fn the_p_value_agrees_with_one_by_hand() {
        // Nothing lost of 100 at risk 0.05: Hoeffding's 0.95^100 is below Bentkus' e times as much.
        assert!((p_value(0, 100, 0.05) - 0.95_f64.powi(100)).abs() < 1e-12);
        assert!((binomial_at_most(2, 4, 0.5) - 11.0 / 16.0).abs() < 1e-12);
        assert_eq!(p_value(10, 100, 0.05), 1.0);
        assert_eq!(p_value(0, 0, 0.05), 1.0);
    }

    #[test]
    fn the_guarantee_holds_over_many_sets() {
        let mut draws = Draws(7);
        let (risk, delta, sets) = (0.05, 0.1, 400);
        let mut broken = 0;
        let mut lowest: u32 = 100;
        for _ in 0..sets {
            let at = threshold(&draws.set(600), risk, delta).expect("600 examples are enough");
            broken += usize::from(true_risk(fraction(at)) > risk);
            lowest = lowest.min(at);
        }
        assert!(broken as f64 / f64::from(sets) <= delta, "{broken} of {sets} sets cost more");
        assert!(lowest < 85, "the test gives something for its examples: {lowest}");
    }

    #[test]
    fn too_few_examples_vouch_for_nothing() {
        assert_eq!(threshold(&Draws(3).set(20), 0.05, 0.1), None);
        assert_eq!(threshold(&[], 0.05, 0.1), None);
    }

    #[test]
    fn a_file_is_read_and_told() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let line = |it: &Example| {
            format!(
                "{{\"confidence\":{},\"right\":{},\"next_right\":{}}}\n",
                it.confidence, it.right, it.next_right
            )
        };
        let text: String = Draws(9).set(800).iter().map(line).collect();
        std::fs::write(file.path(), text).unwrap();
        let floor =
            CalibrateFloor { file: file.path().to_owned(), risk: 0.05, confidence: 0.9 }.run().unwrap();
        assert!(floor.cost <= 0.05 && floor.kept > 0.2, "{floor}");
        assert!(
            floor.to_string().contains(&format!("set sha256:{}", floor.set.trim_start_matches("sha256:")))
        );
    }
}
