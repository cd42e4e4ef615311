//! What calls of a deployment have shown of late: moving means and percentiles, in memory of fixed size.
//!
//! It knows no clock and no lock: who makes the calls says how long they took. A percentile is over the last
//! [`WINDOW`] to twice as many calls, so that what was long ago is forgotten. **Invariant:** calls that ended are
//! counted once, whatever way they ended.

use crate::ask::{LiveFigures, Needs};
use hdrhistogram::Histogram;

/// Calls of one half of the memory.
pub const WINDOW: u64 = 256;

/// Weight of the newest call in a moving mean. Source: contract §1.7 (EMA α .1).
const NEWEST: f64 = 0.1;

/// Histograms count in hundredths of a millisecond.
const PER_MS: f64 = 100.0;

/// Greatest time that is told apart: one hour.
const MOST_MS: f64 = 3_600_000.0;

/// Two significant digits: a percentile is right within 1%.
const DIGITS: u8 = 2;

/// One call that has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Ended {
    /// Milliseconds to its first token, where it came that far.
    pub ttft_ms: Option<f64>,
    /// Milliseconds per further token, where there were any.
    pub tpot_ms: Option<f64>,
    /// Whether it gave no answer.
    pub failed: bool,
}

/// One deployment.
#[derive(Debug, Clone, Default)]
pub struct Deployment {
    ttft: Series,
    tpot: Series,
    in_flight: u32,
    ended: u64,
    failed: u64,
}

/// One quantity.
#[derive(Debug, Clone, Default)]
struct Series {
    mean: Option<f64>,
    newest: Option<Histogram<u32>>,
    older: Option<Histogram<u32>>,
    /// Percentiles that were asked for since the last value came.
    known: Vec<(u8, f64)>,
}

impl Deployment {
    /// A call starts.
    pub fn start(&mut self) {
        self.in_flight = self.in_flight.saturating_add(1);
    }

    /// A call that had started has ended.
    pub fn end(&mut self, call: Ended) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.ended = self.ended.saturating_add(1);
        self.failed = self.failed.saturating_add(u64::from(call.failed));
        if let Some(ms) = call.ttft_ms {
            self.ttft.add(ms);
        }
        if let Some(ms) = call.tpot_ms {
            self.tpot.add(ms);
        }
    }

    /// A call that had started was dropped before it showed anything: it counts for nothing.
    pub fn forget(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Moving mean of the time to the first token, in milliseconds.
    #[must_use]
    pub fn mean_ttft_ms(&self) -> Option<f64> {
        self.ttft.mean
    }

    /// Moving mean of the time per further token, in milliseconds.
    #[must_use]
    pub fn mean_tpot_ms(&self) -> Option<f64> {
        self.tpot.mean
    }

    /// Calls that gave no answer.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// What a selector is shown of one model's deployments together.
    #[must_use]
    pub fn figures(deployments: &mut [&mut Self], needs: Needs) -> LiveFigures {
        let in_flight = deployments.iter().fold(0, |sum: u32, it| sum.saturating_add(it.in_flight));
        let ended = deployments.iter().fold(0, |sum: u64, it| sum.saturating_add(it.ended));
        let (ttft_ms, tpot_ms) = match deployments {
            [] => (None, None),
            [one] => (one.ttft.known(needs.ttft_percentile), one.tpot.known(needs.tpot_percentile)),
            several => {
                let all = |series: fn(&Self) -> &Series, percentile: Option<u8>| {
                    Series::percentile(several.iter().map(|it| series(it)), percentile?)
                };
                (all(|it| &it.ttft, needs.ttft_percentile), all(|it| &it.tpot, needs.tpot_percentile))
            }
        };
        LiveFigures { ttft_ms, tpot_ms, in_flight, ended }
    }
}

impl Series {
    fn add(&mut self, ms: f64) {
        if !ms.is_finite() || ms < 0.0 {
            return;
        }
        self.mean = Some(self.mean.map_or(ms, |mean| mean + NEWEST * (ms - mean)));
        let value = (ms.min(MOST_MS) * PER_MS).round() as u64;
        if self.newest.as_ref().is_some_and(|it| it.len() >= WINDOW) {
            self.older = self.newest.take();
        }
        if self.newest.is_none() {
            self.newest = histogram();
        }
        if let Some(newest) = &mut self.newest {
            newest.saturating_record(value);
        }
        self.known.clear();
    }

    /// The percentile, from memory where nothing came since it was last asked for.
    fn known(&mut self, percentile: Option<u8>) -> Option<f64> {
        let percentile = percentile?;
        if let Some((_, value)) = self.known.iter().find(|(known, _)| *known == percentile) {
            return Some(*value);
        }
        let value = Self::percentile(std::iter::once(&*self), percentile)?;
        self.known.push((percentile, value));
        Some(value)
    }

    /// The percentile over all of these together, in milliseconds.
    fn percentile<'a>(all: impl Iterator<Item = &'a Self>, percentile: u8) -> Option<f64> {
        let mut parts = all.flat_map(|it| it.newest.iter().chain(&it.older));
        let first = parts.next()?;
        let quantile = f64::from(percentile) / 100.0;
        let Some(second) = parts.next() else {
            return Some(first.value_at_quantile(quantile) as f64 / PER_MS);
        };
        let mut whole = first.clone();
        for part in std::iter::once(second).chain(parts) {
            whole.add(part).ok()?;
        }
        Some(whole.value_at_quantile(quantile) as f64 / PER_MS)
    }
}

/// Without bounds of its own it never refuses a value; made of constants, it always can be.
fn histogram() -> Option<Histogram<u32>> {
    Histogram::new_with_bounds(1, (MOST_MS * PER_MS) as u64, DIGITS).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDS: Needs = Needs {
        query: false,
        similarity: false,
        capabilities: false,
        ttft_percentile: Some(95),
        tpot_percentile: Some(50),
    };

    fn called(times: u64, ttft_ms: f64) -> Deployment {
        let mut it = Deployment::default();
        for _ in 0..times {
            it.start();
            it.end(Ended { ttft_ms: Some(ttft_ms), tpot_ms: Some(ttft_ms / 10.0), failed: false });
        }
        it
    }

    fn near(value: Option<f64>, wanted: f64) -> bool {
        value.is_some_and(|value| (value - wanted).abs() <= wanted * 0.02)
    }

    #[test]
    fn percentiles_and_means_are_of_late() {
        let mut it = called(600, 100.0);
        assert!(near(Deployment::figures(&mut [&mut it], NEEDS).ttft_ms, 100.0));
        for _ in 0..2 * WINDOW {
            it.start();
            it.end(Ended { ttft_ms: Some(900.0), ..Ended::default() });
        }
        let figures = Deployment::figures(&mut [&mut it], Needs { ttft_percentile: Some(1), ..NEEDS });
        assert!(near(figures.ttft_ms, 900.0), "{figures:?}: what was long ago is forgotten");
        assert!(near(it.mean_ttft_ms(), 900.0) && near(it.mean_tpot_ms(), 10.0));
        assert_eq!(figures.ended, 600 + 2 * WINDOW);
    }

    #[test]
    fn deployments_of_a_model_are_seen_together_and_calls_in_flight_counted() {
        let (mut quick, mut slow) = (called(90, 10.0), called(10, 1_000.0));
        quick.start();
        let figures = Deployment::figures(&mut [&mut quick, &mut slow], NEEDS);
        assert!(near(figures.ttft_ms, 1_000.0) && near(figures.tpot_ms, 1.0), "{figures:?}");
        assert_eq!((figures.in_flight, figures.ended), (1, 100));
        quick.forget();
        assert_eq!(Deployment::figures(&mut [&mut quick], NEEDS).in_flight, 0);
    }

    #[test]
    fn what_is_no_time_is_passed_over() {
        let mut it = Deployment::default();
        for ms in [f64::NAN, f64::INFINITY, -1.0] {
            it.start();
            it.end(Ended { ttft_ms: Some(ms), ..Ended::default() });
        }
        assert_eq!(Deployment::figures(&mut [&mut it], NEEDS).ttft_ms, None);
        assert_eq!(it.ended, 3);
    }
}
