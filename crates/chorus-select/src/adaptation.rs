//! What verdicts on past runs make of a selector's pick: one pure function over plain data.
//!
//! Each candidate's fitness for a decision is believed as a Beta distribution: the card's quality is where it starts,
//! verdicts of *good fit* and *underpowered* move it. A draw from each, less what is known against the candidate, is its
//! score; the greatest takes over from the selector's pick. A pick that has shown to be too weak or to fail is left by the
//! means alone, without a draw. It knows no store, no clock and no request. Source: Thompson 1933; contract §4.8 for the
//! weights.
//!
//! **Invariant:** the answer is one of the candidates, and the selector's pick stands where nobody has judged anything, in
//! an open tool call, and while the current model's cache is warm.

use crate::ask::Candidate;
use crate::choice::{drawn, first_greatest};
use chorus_spec::CandidateSet;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Beta, Distribution};

/// How many verdicts a card's quality is worth.
const PRIOR_STRENGTH: f64 = 10.0;
/// Quality that is assumed of a card without one.
const UNKNOWN_QUALITY: f64 = 0.5;
/// What a candidate loses that was always more than was needed.
const OVERPROVISIONED: f64 = 0.03;
/// What a candidate loses that always failed.
const FAILED: f64 = 0.10;
/// What the slowest candidate loses.
const LATENCY: f64 = 0.02;
/// What a wholly warm cache is worth.
const CACHE: f64 = 0.02;
/// What being the selector's pick is worth.
const BASE: f64 = 0.001;
/// Warmth from which on the current model is not drawn against.
const WARM: f64 = 0.65;
/// Bad verdicts from which on a pick is left.
const RESCUE: u64 = 2;

/// Verdicts on one candidate of one decision.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Verdicts {
    /// It did as it should.
    pub good_fit: u64,
    /// Something stronger was needed.
    pub underpowered: u64,
    /// Something cheaper would have done.
    pub overprovisioned: u64,
    /// It did not work.
    pub failed: u64,
}

impl std::iter::Sum for Verdicts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, it| Self {
            good_fit: sum.good_fit + it.good_fit,
            underpowered: sum.underpowered + it.underpowered,
            overprovisioned: sum.overprovisioned + it.overprovisioned,
            failed: sum.failed + it.failed,
        })
    }
}

impl Verdicts {
    fn all(self) -> u64 {
        self.good_fit + self.underpowered + self.overprovisioned + self.failed
    }

    fn share(self, of: u64) -> f64 {
        if self.all() == 0 { 0.0 } else { of as f64 / self.all() as f64 }
    }

    /// Whether whoever has these should be left.
    fn is_hopeless(self) -> bool {
        (self.underpowered >= RESCUE && self.underpowered > self.good_fit) || self.failed >= RESCUE
    }
}

/// A choice that may be moved.
#[derive(Debug, Clone, Copy)]
pub struct AdaptationAsk<'a> {
    /// Who may answer.
    pub candidates: &'a [Candidate<'a>],
    /// From how far they come.
    pub set: CandidateSet,
    /// The verdicts on each, in their order.
    pub verdicts: &'a [Verdicts],
    /// Index of the selector's pick.
    pub base: usize,
    /// Whether the request answers a tool call of its conversation.
    pub tool_loop: bool,
    /// What draws are made from.
    pub seed: u64,
}

/// What becomes of a selector's pick.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct AdaptationVerdict {
    /// Index of the candidate that answers.
    #[serde(skip)]
    pub pick: usize,
    /// What was done.
    pub action: AdaptationAction,
    /// From how far the candidates came.
    pub candidate_set: CandidateSet,
    /// The selector's pick.
    pub base: String,
    /// Who answers by what was learnt.
    pub proposal: String,
    /// Why, for people.
    pub reason: String,
    /// Probability with which the pick was drawn, where a draw decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub propensity: Option<f64>,
    /// What the draw was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// What was done with the selector's pick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AdaptationAction {
    /// It stands, undrawn.
    Keep,
    /// A draw decided.
    Sample,
    /// It was left for bad verdicts.
    Rescue,
}

impl AdaptationAction {
    /// The word of headers and records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Sample => "sample",
            Self::Rescue => "rescue",
        }
    }
}

/// Who answers, by what was learnt; `None` where the base is no candidate.
#[must_use]
pub fn adapt(ask: &AdaptationAsk<'_>) -> Option<AdaptationVerdict> {
    let base = ask.candidates.get(ask.base)?;
    let on_base = ask.verdicts.get(ask.base).copied().unwrap_or_default();
    let still = |why: &str| told(ask, ask.base, AdaptationAction::Keep, why);
    if ask.candidates.len() < 2 {
        return still("there is nobody else");
    }
    if ask.verdicts.iter().all(|it| it.all() == 0) {
        return still("nobody has judged this route yet");
    }
    if ask.tool_loop {
        return still("a tool call is open");
    }
    let beliefs: Vec<Belief> = (0..ask.candidates.len()).filter_map(|at| Belief::of(ask, at)).collect();
    let means: Vec<Option<f64>> = beliefs.iter().map(|it| Some(it.mean())).collect();
    if on_base.is_hopeless() {
        let others = means.iter().enumerate().map(|(at, mean)| mean.filter(|_| at != ask.base));
        let others: Vec<Option<f64>> = others.collect();
        let pick = first_greatest(&others)?;
        return told(
            ask,
            pick,
            AdaptationAction::Rescue,
            "the selector's pick was judged too weak, or failed",
        );
    }
    if base.warmth >= WARM {
        return still("the conversation's cache is warm");
    }
    let mut rng = ChaCha8Rng::seed_from_u64(ask.seed);
    let (pick, _, propensity) = drawn(|| beliefs.iter().map(|it| it.draw(&mut rng)).collect())?;
    let mut verdict = told(ask, pick, AdaptationAction::Sample, "the greatest draw from what was judged")?;
    verdict.propensity = Some(propensity);
    verdict.seed = Some(ask.seed);
    Some(verdict)
}

fn told(
    ask: &AdaptationAsk<'_>,
    pick: usize,
    action: AdaptationAction,
    why: &str,
) -> Option<AdaptationVerdict> {
    let name = |at: usize| ask.candidates.get(at).map(|it| it.model.to_owned());
    Some(AdaptationVerdict {
        pick,
        action,
        candidate_set: ask.set,
        base: name(ask.base)?,
        proposal: name(pick)?,
        reason: why.to_owned(),
        propensity: None,
        seed: None,
    })
}

/// What the dearest candidate's price takes, and by how much another must be better than the selector's pick: the farther
/// candidates come from, the more.
fn breadth(set: CandidateSet) -> (f64, f64) {
    match set {
        CandidateSet::Decision => (0.04, 0.0),
        CandidateSet::Tier => (0.06, 0.03),
        CandidateSet::Global => (0.10, 0.08),
    }
}

/// What is believed of one candidate.
struct Belief {
    /// The fitness, as a Beta distribution; both above 0.
    alpha: f64,
    beta: f64,
    /// What is known for it, less what is known against it.
    bonus: f64,
}

impl Belief {
    fn of(ask: &AdaptationAsk<'_>, at: usize) -> Option<Self> {
        let it = ask.candidates.get(at)?;
        let seen = ask.verdicts.get(at).copied().unwrap_or_default();
        let quality = it.quality.unwrap_or(UNKNOWN_QUALITY).clamp(0.0, 1.0);
        let most = |of: fn(&Candidate<'_>) -> f64| ask.candidates.iter().map(of).fold(0.0, f64::max);
        let share = |own: f64, most: f64| if most > 0.0 { own / most } else { 0.0 };
        let (cost, margin) = breadth(ask.set);
        let bonus = CACHE * it.warmth + if at == ask.base { BASE + margin } else { 0.0 }
            - cost * share(it.usd_per_1m, most(|it| it.usd_per_1m))
            - OVERPROVISIONED * seen.share(seen.overprovisioned)
            - FAILED * seen.share(seen.failed)
            - LATENCY * share(latency(it), most(latency));
        Some(Self {
            alpha: PRIOR_STRENGTH * quality + seen.good_fit as f64 + 1.0,
            beta: PRIOR_STRENGTH * (1.0 - quality) + seen.underpowered as f64 + 1.0,
            bonus,
        })
    }

    fn mean(&self) -> f64 {
        self.alpha / (self.alpha + self.beta) + self.bonus
    }

    fn draw(&self, rng: &mut ChaCha8Rng) -> Option<f64> {
        Beta::new(self.alpha, self.beta).ok().map(|belief| belief.sample(rng) + self.bonus)
    }
}

/// Milliseconds to the first token, or for each further one; 0 where nothing was seen.
fn latency(it: &Candidate<'_>) -> f64 {
    it.live.ttft_ms.or(it.live.tpot_ms).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(warmth: f64) -> [Candidate<'static>; 2] {
        [("small", 0.5, warmth), ("large", 0.6, 0.0)].map(|(model, quality, warmth)| Candidate {
            model,
            quality: Some(quality),
            warmth,
            ..Candidate::default()
        })
    }

    fn adapted(warmth: f64, tool_loop: bool, verdicts: [Verdicts; 2], seed: u64) -> AdaptationVerdict {
        within(CandidateSet::Decision, warmth, tool_loop, verdicts, seed)
    }

    fn within(
        set: CandidateSet,
        warmth: f64,
        tool_loop: bool,
        verdicts: [Verdicts; 2],
        seed: u64,
    ) -> AdaptationVerdict {
        let candidates = pool(warmth);
        let verdicts = &verdicts;
        adapt(&AdaptationAsk { candidates: &candidates, set, verdicts, base: 0, tool_loop, seed }).unwrap()
    }

    fn good(n: u64) -> Verdicts {
        Verdicts { good_fit: n, ..Verdicts::default() }
    }

    #[test]
    fn the_pick_stands_where_nothing_was_judged_in_a_tool_call_and_on_a_warm_cache() {
        for (warmth, tool_loop, verdicts) in [
            (0.0, false, [Verdicts::default(); 2]),
            (0.0, true, [Verdicts::default(), good(90)]),
            (0.65, false, [Verdicts::default(), good(90)]),
        ] {
            let verdict = adapted(warmth, tool_loop, verdicts, 1);
            assert_eq!((verdict.pick, verdict.action, verdict.seed), (0, AdaptationAction::Keep, None));
        }
    }

    #[test]
    fn verdicts_move_the_draws() {
        let share = |verdicts: [Verdicts; 2]| {
            (0..400).filter(|seed| adapted(0.0, false, verdicts, *seed).pick == 1).count()
        };
        let weak = Verdicts { good_fit: 9, underpowered: 9, ..Verdicts::default() };
        let (even, moved) = (share([good(9), good(9)]), share([weak, good(30)]));
        assert!((100..330).contains(&even), "{even}");
        assert!(moved > 360, "{moved}");
    }

    #[test]
    fn candidates_from_farther_away_must_be_better_by_more() {
        let share = |set| {
            let moved = |seed: &u64| within(set, 0.0, false, [good(9), good(12)], *seed).pick == 1;
            (0..400).filter(moved).count()
        };
        let (own, tier, all) =
            (share(CandidateSet::Decision), share(CandidateSet::Tier), share(CandidateSet::Global));
        assert!(own > tier && tier > all && all > 0, "{own} {tier} {all}");
    }

    #[test]
    fn a_pick_that_was_too_weak_or_failed_twice_is_left() {
        for verdicts in [
            Verdicts { underpowered: 2, good_fit: 1, ..Verdicts::default() },
            Verdicts { failed: 2, good_fit: 50, ..Verdicts::default() },
        ] {
            let verdict = adapted(0.9, false, [verdicts, Verdicts::default()], 1);
            assert_eq!((verdict.pick, verdict.action), (1, AdaptationAction::Rescue));
        }
    }

    #[test]
    fn the_same_seed_is_the_same_pick_with_the_same_probability() {
        let draw = || adapted(0.0, false, [good(3), good(2)], 7);
        assert_eq!(draw(), draw());
        assert!(draw().propensity.is_some_and(|it| it > 0.0 && it <= 1.0));
    }
}
