//! What is held back of memories that were found: those that are too unlike or too old, near repetitions, and what
//! exceeds the budget of tokens.
//!
//! Source: contract §4.9: similarity, then age, then repetitions, then 2,048 tokens. The strength by which memories are
//! forgotten follows Zhong et al., "MemoryBank", 2023, §3.3: e^(−t/S), where each reading adds to S.

use chorus_vectors::dot;
use chorus_wire::tokens::of_text;

const DAY_SECONDS: f64 = 86_400.0;

/// A memory that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Its id.
    pub id: String,
    /// What it says.
    pub text: String,
    /// Its vector, of unit length.
    pub vector: Vec<f32>,
    /// How alike it is to what was asked, in 0..=1.
    pub similarity: f64,
    /// Seconds since it was stated.
    pub age_seconds: u64,
}

/// How found memories are weighed.
#[derive(Debug, Clone, Copy)]
pub struct Weighing {
    /// Most memories.
    pub limit: usize,
    /// Least similarity, before age counts.
    pub threshold: f64,
    /// Seconds after which a memory counts half; `None` lets age be.
    pub half_life_seconds: Option<f64>,
    /// Cosine from which two memories say the same.
    pub same_cosine: f64,
    /// Most tokens of all texts together.
    pub max_tokens: u64,
}

/// A memory that is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// The memory.
    pub memory: Found,
    /// Its similarity, weighed by its age.
    pub score: f64,
}

/// What is shown, best first, and how many were held back for each reason.
#[derive(Debug, Default, Clone, PartialEq, serde::Serialize)]
pub struct HeldBack {
    /// Too unlike.
    pub unlike: usize,
    /// Saying what a better one says.
    pub repeated: usize,
    /// Beyond the limit or the budget.
    pub beyond_budget: usize,
}

/// Share that is left of a memory's weight at that age: e^(−ln 2 · age / half-life).
#[must_use]
pub fn recency(age_seconds: u64, half_life_seconds: f64) -> f64 {
    if half_life_seconds <= 0.0 {
        return 1.0;
    }
    (-std::f64::consts::LN_2 * age_seconds as f64 / half_life_seconds).exp()
}

/// How well a memory is kept, in 0..=1: e^(−t/S), where `S` is the initial strength in days and a day for each reading,
/// and `t` the days since it was last stated or read.
#[must_use]
pub fn strength(idle_seconds: u64, reads: u64, initial_days: f64) -> f64 {
    let days = idle_seconds as f64 / DAY_SECONDS;
    (-days / (initial_days + reads as f64).max(f64::MIN_POSITIVE)).exp()
}

/// Weighs what was found.
#[must_use]
pub fn weigh(found: Vec<Found>, rule: &Weighing) -> (Vec<Shown>, HeldBack) {
    let mut held = HeldBack::default();
    let all = found.len();
    let mut near: Vec<Shown> = found
        .into_iter()
        .filter(|memory| memory.similarity >= rule.threshold)
        .map(|memory| Shown { score: weighed(&memory, rule.half_life_seconds), memory })
        .collect();
    held.unlike = all - near.len();
    near.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.memory.id.cmp(&b.memory.id)));
    let (mut shown, mut tokens): (Vec<Shown>, u64) = (Vec::new(), 0);
    for it in near {
        let repeats =
            |other: &Shown| f64::from(dot(&other.memory.vector, &it.memory.vector)) >= rule.same_cosine;
        let more = of_text(&it.memory.text);
        if shown.iter().any(repeats) {
            held.repeated += 1;
        } else if shown.len() >= rule.limit || tokens + more > rule.max_tokens {
            held.beyond_budget += 1;
        } else {
            tokens += more;
            shown.push(it);
        }
    }
    (shown, held)
}

fn weighed(memory: &Found, half_life: Option<f64>) -> f64 {
    memory.similarity * half_life.map_or(1.0, |half_life| recency(memory.age_seconds, half_life))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MONTH: f64 = 30.0 * DAY_SECONDS;

    fn found(id: &str, similarity: f64, age_days: u64, vector: [f32; 2]) -> Found {
        let text = format!("memory {id}");
        Found { id: id.to_owned(), text, vector: vector.to_vec(), similarity, age_seconds: age_days * 86_400 }
    }

    fn rule(limit: usize, max_tokens: u64) -> Weighing {
        Weighing { limit, threshold: 0.5, half_life_seconds: Some(MONTH), same_cosine: 0.9, max_tokens }
    }

    fn ids(shown: &[Shown]) -> Vec<&str> {
        shown.iter().map(|it| it.memory.id.as_str()).collect()
    }

    #[test]
    fn half_of_it_is_left_after_the_half_life() {
        assert!((recency(30 * 86_400, MONTH) - 0.5).abs() < 1e-12);
        assert!((recency(0, MONTH) - 1.0).abs() < 1e-12);
        assert!((strength(30 * 86_400, 0, 30.0) - (-1.0_f64).exp()).abs() < 1e-12);
        assert!(strength(86_400, 5, 30.0) > strength(86_400, 0, 30.0));
    }

    #[test]
    fn a_fresh_one_outweighs_an_older_and_nearer_one() {
        let all = vec![found("old", 0.9, 60, [1.0, 0.0]), found("new", 0.7, 0, [0.0, 1.0])];
        let (shown, held) = weigh(all, &rule(5, 100));
        assert_eq!((ids(&shown), held), (vec!["new", "old"], HeldBack::default()));
        assert!((shown[1].score - 0.225).abs() < 1e-12);
    }

    #[test]
    fn the_unlike_the_repeated_and_the_surplus_are_held_back() {
        let all = vec![
            found("a", 0.9, 0, [1.0, 0.0]),
            found("b", 0.8, 0, [0.99, 0.1]),
            found("c", 0.7, 0, [0.0, 1.0]),
            found("d", 0.4, 0, [0.7, 0.7]),
            found("e", 0.6, 0, [-1.0, 0.0]),
        ];
        let (shown, held) = weigh(all.clone(), &rule(2, 100));
        assert_eq!(ids(&shown), ["a", "c"]);
        assert_eq!(held, HeldBack { unlike: 1, repeated: 1, beyond_budget: 1 });
        let (shown, _) = weigh(all, &rule(5, 3));
        assert_eq!(ids(&shown), ["a"], "a budget of three tokens holds one of two");
    }
}
