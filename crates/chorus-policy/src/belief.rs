//! What can still become of a rule: the set of its possible truths, and the bounds of its confidence.
//!
//! Knows nothing of signals. Kleene's three-valued logic is lifted to sets: the outcomes of a connective are the
//! outcomes over every choice of its parts' outcomes. Parts are taken as independent, so a set may be too wide
//! (`a OR NOT a` is only settled with `a`), never too narrow.
//!
//! **Invariant:** whatever evidence arrives later, the final truth is in [`Belief::can`], and the final confidence of
//! a rule that holds is within `low..=high`.

/// A set of truths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcomes(u8);

impl Outcomes {
    pub(crate) const TRUE: Self = Self(0b001);
    pub(crate) const FALSE: Self = Self(0b010);
    pub(crate) const UNKNOWN: Self = Self(0b100);
    /// A signal that nobody can ask: either answer, if somebody could.
    pub(crate) const EITHER: Self = Self(0b011);
    /// A signal that has not been asked yet.
    pub(crate) const ANY: Self = Self(0b111);

    fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn may_hold(self) -> bool {
        self.has(Self::TRUE)
    }

    pub(crate) fn is_settled(self) -> bool {
        self.0.count_ones() == 1
    }

    fn when(self, condition: bool) -> Self {
        if condition { self } else { Self(0) }
    }

    fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn not(self) -> Self {
        Self::TRUE
            .when(self.has(Self::FALSE))
            .union(Self::FALSE.when(self.has(Self::TRUE)))
            .union(Self::UNKNOWN.when(self.has(Self::UNKNOWN)))
    }

    pub(crate) fn and(self, other: Self) -> Self {
        let holds = self.may_hold() && other.may_hold();
        let fails = self.has(Self::FALSE) || other.has(Self::FALSE);
        let open = Self::TRUE.union(Self::UNKNOWN);
        let unknown =
            self.has(Self::UNKNOWN) && other.has(open) || other.has(Self::UNKNOWN) && self.has(open);
        Self::TRUE.when(holds).union(Self::FALSE.when(fails)).union(Self::UNKNOWN.when(unknown))
    }

    pub(crate) fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }
}

/// The possible truths of a rule, and the bounds of its confidence should it hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Belief {
    pub(crate) can: Outcomes,
    /// In 0..=1; zero when the rule cannot hold.
    pub(crate) low: f64,
    /// In 0..=1; zero when the rule cannot hold.
    pub(crate) high: f64,
}

impl Belief {
    pub(crate) fn certain(can: Outcomes) -> Self {
        Self { can, low: 0.0, high: 0.0 }
    }

    pub(crate) fn matched(confidence: f64) -> Self {
        Self { can: Outcomes::TRUE, low: confidence, high: confidence }
    }

    pub(crate) fn open(can: Outcomes) -> Self {
        Self { can, low: 0.0, high: 1.0 }
    }

    pub(crate) fn holds(self) -> bool {
        self.can == Outcomes::TRUE
    }

    /// Confidence 1: nothing was found, and that is all there is to find.
    pub(crate) fn not(self) -> Self {
        let can = self.can.not();
        let confidence = if can.may_hold() { 1.0 } else { 0.0 };
        Self { can, low: confidence, high: confidence }
    }

    /// Confidence is the mean; of nothing, it is zero.
    pub(crate) fn all(parts: impl Iterator<Item = Self>) -> Self {
        let (mut can, mut low, mut high, mut count) = (Outcomes::TRUE, 0.0, 0.0, 0.0);
        for part in parts {
            can = can.and(part.can);
            low += part.low;
            high += part.high;
            count += 1.0;
        }
        if count == 0.0 || !can.may_hold() {
            return Self::certain(can);
        }
        Self { can, low: low / count, high: high / count }
    }

    /// Confidence is that of the best part that holds, so that more support never lowers it.
    pub(crate) fn any(parts: impl Iterator<Item = Self>) -> Self {
        let (mut can, mut floor, mut least, mut high) = (Outcomes::FALSE, None::<f64>, None::<f64>, 0.0_f64);
        for part in parts {
            can = can.or(part.can);
            if part.can.may_hold() {
                least = Some(least.map_or(part.low, |l| l.min(part.low)));
                high = high.max(part.high);
            }
            if part.holds() {
                floor = Some(floor.map_or(part.low, |f| f.max(part.low)));
            }
        }
        Self { can, low: floor.or(least).unwrap_or(0.0), high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SINGLES: [Outcomes; 3] = [Outcomes::TRUE, Outcomes::FALSE, Outcomes::UNKNOWN];

    fn members(set: Outcomes) -> Vec<Outcomes> {
        SINGLES.into_iter().filter(|one| set.has(*one)).collect()
    }

    fn sets() -> impl Iterator<Item = Outcomes> {
        (1..8).map(Outcomes)
    }

    #[test]
    fn kleene_tables() {
        let (t, f, u) = (Outcomes::TRUE, Outcomes::FALSE, Outcomes::UNKNOWN);
        let and = [(t, t, t), (t, f, f), (t, u, u), (f, f, f), (f, u, f), (u, u, u)];
        let or = [(t, t, t), (t, f, t), (t, u, t), (f, f, f), (f, u, u), (u, u, u)];
        for (a, b, want) in and {
            assert_eq!((a.and(b), b.and(a)), (want, want), "{a:?} AND {b:?}");
        }
        for (a, b, want) in or {
            assert_eq!((a.or(b), b.or(a)), (want, want), "{a:?} OR {b:?}");
        }
        assert_eq!([t, f, u].map(Outcomes::not), [f, t, u]);
    }

    #[test]
    fn sets_are_the_union_over_every_choice() {
        for (a, b) in sets().flat_map(|a| sets().map(move |b| (a, b))) {
            let pairs =
                || members(a).into_iter().flat_map(move |x| members(b).into_iter().map(move |y| (x, y)));
            let and = pairs().fold(Outcomes(0), |sum, (x, y)| sum.union(x.and(y)));
            let or = pairs().fold(Outcomes(0), |sum, (x, y)| sum.union(x.or(y)));
            assert_eq!((a.and(b), a.or(b)), (and, or), "{a:?} {b:?}");
            assert_eq!(a.not().not(), a);
        }
    }

    #[test]
    fn confidence_of_connectives() {
        let [weak, strong] = [0.25, 0.75].map(Belief::matched);
        let open = Belief::open(Outcomes::ANY);
        let no = Belief::certain(Outcomes::FALSE);
        assert_eq!(Belief::all([weak, strong].into_iter()), Belief::matched(0.5));
        assert_eq!(Belief::any([weak, strong, no].into_iter()), Belief::matched(0.75));
        assert_eq!(
            Belief::any([weak, open].into_iter()),
            Belief { can: Outcomes::TRUE, low: 0.25, high: 1.0 }
        );
        assert_eq!(
            Belief::all([strong, open].into_iter()),
            Belief { can: Outcomes::ANY, low: 0.375, high: 0.875 }
        );
        assert_eq!(Belief::all([strong, no].into_iter()), no);
        assert_eq!(no.not(), Belief::matched(1.0));
        assert_eq!(weak.not(), no);
    }

    #[test]
    fn all_of_nothing_holds_with_confidence_zero_and_any_of_nothing_does_not() {
        assert_eq!(Belief::all(std::iter::empty()), Belief::certain(Outcomes::TRUE));
        assert_eq!(Belief::any(std::iter::empty()), Belief::certain(Outcomes::FALSE));
    }
}
