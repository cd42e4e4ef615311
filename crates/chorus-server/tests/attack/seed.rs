//! A seeded source of choices: the same seed gives the same texts on every machine.
//!
//! Source: splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).

/// A stream of choices.
pub(crate) struct Seed(u64);

impl Seed {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A whole number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// One of these.
    pub(crate) fn of<'t, T: ?Sized>(&mut self, all: &[&'t T]) -> &'t T {
        let at = self.below(all.len() as u64);
        all[usize::try_from(at).unwrap()]
    }

    /// So many digits, the first one not 0.
    pub(crate) fn digits(&mut self, count: usize) -> String {
        let first = (1 + self.below(9)).to_string();
        let rest = (1..count).map(|_| self.below(10).to_string());
        std::iter::once(first).chain(rest).collect()
    }
}
