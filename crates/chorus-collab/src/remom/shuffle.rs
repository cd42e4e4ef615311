//! A small generator of pseudo-random numbers, so that a seed gives the same order on every machine.
//!
//! Source: Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators" (`SplitMix64`).

/// The step of the state.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// What is shuffled.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    /// The seats of a round.
    Seats,
    /// The references that a round is shown.
    References,
}

/// `SplitMix64`.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// The stream of a seed for one purpose in one round; the key is mixed, so that no stream is another one shifted.
    pub(super) fn new(seed: u64, purpose: Purpose, round: usize) -> Self {
        let key = ((purpose as u64) << 32) | round as u64;
        Self(seed ^ mixed(key.wrapping_add(GAMMA)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mixed(self.0)
    }

    /// Fisher and Yates.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = usize::try_from(self.next() % (last as u64 + 1)).unwrap_or(last);
            items.swap(last, other);
        }
    }
}

fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        // The first three numbers of the reference implementation from the state 0.
        let mut random = Random(0);
        let want = [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F];
        assert_eq!([random.next(), random.next(), random.next()], want);
    }

    #[test]
    fn a_seed_gives_one_order_and_every_order_occurs() {
        let order = |seed| {
            let mut items = [1, 2, 3];
            Random::new(seed, Purpose::Seats, 0).shuffle(&mut items);
            items
        };
        assert_eq!(order(42), order(42));
        let orders: std::collections::BTreeSet<_> = (0..200).map(order).collect();
        assert_eq!(orders.len(), 6);
    }
}
