//! How long a model's latest calls took, for the moment at which a second one is worth its price.
//!
//! It knows no clock. **Invariant:** a percentile is given only over [`ENOUGH`] calls or more.

use std::collections::VecDeque;
use std::time::Duration;

/// Calls that are remembered.
const REMEMBERED: usize = 128;

/// Fewer calls say nothing about a tail.
pub const ENOUGH: usize = 20;

/// The latest latencies.
#[derive(Debug, Default, Clone)]
pub struct Latencies {
    latest: VecDeque<Duration>,
}

impl Latencies {
    /// Remembers one.
    pub fn push(&mut self, latency: Duration) {
        if self.latest.len() == REMEMBERED {
            self.latest.pop_front();
        }
        self.latest.push_back(latency);
    }

    /// The latency that `percent` (0..=100) of the latest calls did not exceed, by nearest rank; `None` while there are
    /// too few.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        if self.latest.len() < ENOUGH {
            return None;
        }
        let mut sorted: Vec<Duration> = self.latest.iter().copied().collect();
        sorted.sort_unstable();
        let rank = (percent.clamp(0.0, 100.0) / 100.0 * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.max(1) - 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_by_nearest_rank() {
        let mut it = Latencies::default();
        for ms in 1..ENOUGH as u64 {
            it.push(Duration::from_millis(ms));
        }
        assert_eq!(it.percentile(95.0), None);
        for ms in ENOUGH as u64..=100 {
            it.push(Duration::from_millis(ms));
        }
        for (percent, ms) in [(0.0, 1), (50.0, 50), (95.0, 95), (100.0, 100)] {
            assert_eq!(it.percentile(percent), Some(Duration::from_millis(ms)), "{percent}");
        }
    }

    #[test]
    fn old_calls_are_forgotten() {
        let mut it = Latencies::default();
        it.push(Duration::from_secs(1000));
        (0..REMEMBERED).for_each(|_| it.push(Duration::from_secs(1)));
        assert_eq!(it.percentile(100.0), Some(Duration::from_secs(1)));
    }
}
