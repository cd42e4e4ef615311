//! Which of several places is called next.
//!
//! It knows no health: places that may not be called are not in the list. **Invariant:** over a full round every place
//! is chosen in proportion to its weight, and the same turn gives the same place.

/// How places are chosen.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Balance {
    /// In turn, in proportion to weights.
    #[default]
    RoundRobin,
    /// Whichever has the fewest calls under way for its weight; turns break ties.
    LeastRequest,
}

/// A place that may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Whose place it is, for the caller.
    pub index: usize,
    /// Share of traffic; 0 counts as 1.
    pub weight: u32,
    /// Calls under way.
    pub in_flight: usize,
}

impl Balance {
    /// The index of the place for this turn; `None` where there is no place.
    #[must_use]
    pub fn choose(self, places: &[Place], turn: u64) -> Option<usize> {
        match self {
            Self::RoundRobin => in_turn(places, turn),
            Self::LeastRequest => {
                let least = places.iter().map(load).min_by(f64::total_cmp)?;
                let idle: Vec<Place> = places.iter().copied().filter(|place| load(place) <= least).collect();
                in_turn(&idle, turn)
            }
        }
    }
}

/// Calls for one unit of weight, were this one to go there.
fn load(place: &Place) -> f64 {
    (place.in_flight as f64 + 1.0) / f64::from(place.weight.max(1))
}

fn in_turn(places: &[Place], turn: u64) -> Option<usize> {
    let weight = |place: &Place| u64::from(place.weight.max(1));
    let total: u64 = places.iter().map(weight).sum();
    let mut left = turn.checked_rem(total)?;
    let place = places.iter().find(|place| {
        let hit = left < weight(place);
        left = left.saturating_sub(weight(place));
        hit
    })?;
    Some(place.index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(index: usize, weight: u32, in_flight: usize) -> Place {
        Place { index, weight, in_flight }
    }

    #[test]
    fn turns_follow_weights() {
        let places = [place(4, 1, 0), place(7, 3, 9)];
        let chosen: Vec<_> = (0..8).map(|turn| Balance::RoundRobin.choose(&places, turn).unwrap()).collect();
        assert_eq!(chosen, [4, 7, 7, 7, 4, 7, 7, 7]);
        assert_eq!(Balance::RoundRobin.choose(&[], 3), None);
    }

    #[test]
    fn the_least_busy_place_for_its_weight_is_next() {
        let rows: [(&[Place], u64, usize); 4] = [
            (&[place(0, 1, 3), place(1, 1, 1)], 0, 1),
            (&[place(0, 4, 3), place(1, 1, 1)], 0, 0),
            (&[place(0, 1, 2), place(1, 1, 2)], 0, 0),
            (&[place(0, 1, 2), place(1, 1, 2)], 1, 1),
        ];
        for (places, turn, want) in rows {
            assert_eq!(Balance::LeastRequest.choose(places, turn), Some(want), "{places:?}");
        }
    }
}
