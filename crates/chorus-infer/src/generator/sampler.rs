//! Logits to the next token, and to log-probabilities.
//!
//! It knows no text. Invariant: the same seed, logits and history give the same token; ties go to the smaller id.
//!
//! Order of operations: penalties, temperature, top-k, min-p, top-p, draw.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::ask::SamplingParams;
use super::math;

/// Chooses tokens for one answer.
pub(super) struct Sampler {
    params: SamplingParams,
    draw: ChaCha8Rng,
    /// How often the prompt and the answer hold a token: `(in prompt, in answer)`.
    seen: BTreeMap<u32, (u32, u32)>,
    candidates: Vec<Candidate>,
}

/// A token and its weight: a logit first, a probability later.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Candidate {
    token: u32,
    weight: f32,
}

impl Candidate {
    /// Heavier first, then the smaller id.
    fn by_weight(a: &Self, b: &Self) -> Ordering {
        b.weight.total_cmp(&a.weight).then(a.token.cmp(&b.token))
    }
}

impl Sampler {
    /// A sampler for one answer to that prompt; `fresh_seed` serves where the parameters name none.
    pub(super) fn new(params: SamplingParams, prompt: &[u32], fresh_seed: u64) -> Self {
        let draw = ChaCha8Rng::seed_from_u64(params.seed.unwrap_or(fresh_seed));
        let mut seen = BTreeMap::new();
        let counts = params.repetition_penalty != 1.0;
        for token in prompt.iter().filter(|_| counts) {
            seen.entry(*token).or_insert((0, 0)).0 += 1;
        }
        Self { params, draw, seen, candidates: Vec::new() }
    }

    /// Chooses the next token; `logits` holds one number a token and at least one.
    pub(super) fn choose(&mut self, logits: &[f32]) -> u32 {
        self.candidates.clear();
        self.candidates.extend((0..).zip(logits).map(|(token, &weight)| Candidate { token, weight }));
        self.penalise();
        let token = if self.params.temperature == 0.0 { self.heaviest() } else { self.drawn() };
        self.seen.entry(token).or_insert((0, 0)).1 += 1;
        token
    }

    /// Source: Keskar et al. 2019, "CTRL", §4.1 (repetition); OpenAI API reference (presence, frequency).
    fn penalise(&mut self) {
        let params = &self.params;
        for (token, (in_prompt, in_answer)) in &self.seen {
            let Some(candidate) = self.candidates.get_mut(*token as usize) else {
                continue;
            };
            if in_prompt + in_answer > 0 {
                let penalty = params.repetition_penalty;
                candidate.weight *= if candidate.weight > 0.0 { penalty.recip() } else { penalty };
            }
            if *in_answer > 0 {
                candidate.weight -= params.presence_penalty + params.frequency_penalty * *in_answer as f32;
            }
        }
    }

    fn heaviest(&self) -> u32 {
        self.candidates.iter().min_by(|a, b| Candidate::by_weight(a, b)).map_or(0, |best| best.token)
    }

    fn drawn(&mut self) -> u32 {
        let top_k = self.params.top_k;
        if top_k > 0 && top_k < self.candidates.len() {
            self.candidates.select_nth_unstable_by(top_k - 1, Candidate::by_weight);
            self.candidates.truncate(top_k);
            self.candidates.sort_unstable_by_key(|candidate| candidate.token);
        }
        self.weigh();
        self.keep_likely();
        self.keep_nucleus();
        self.draw_one()
    }

    /// Turns logits into unnormalised probabilities: 1 for the most likely token.
    fn weigh(&mut self) {
        let most =
            self.candidates.iter().fold(f32::NEG_INFINITY, |most, candidate| most.max(candidate.weight));
        let inverse = self.params.temperature.recip();
        let candidates = &mut self.candidates;
        math::wide(
            #[inline(always)]
            || {
                for candidate in candidates {
                    candidate.weight = math::exp((candidate.weight - most) * inverse);
                }
            },
        );
    }

    fn keep_likely(&mut self) {
        let min_p = self.params.min_p;
        if min_p > 0.0 {
            self.candidates.retain(|candidate| candidate.weight >= min_p);
        }
    }

    /// Source: Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration", §3.1.
    fn keep_nucleus(&mut self) {
        let top_p = self.params.top_p;
        if top_p >= 1.0 {
            return;
        }
        let total = self.total();
        // Tokens below this share cannot make up `1 − top_p` even all together, so none of them is needed.
        let needless = (1.0 - top_p) * total / self.candidates.len() as f32;
        self.candidates.retain(|candidate| candidate.weight >= needless);
        self.candidates.sort_unstable_by(Candidate::by_weight);
        let mut sum = 0.0;
        let inside = |candidate: &&Candidate| {
            let before = sum;
            sum += candidate.weight;
            before < top_p * total
        };
        let kept = self.candidates.iter().take_while(inside).count();
        self.candidates.truncate(kept.max(1));
    }

    fn total(&self) -> f32 {
        self.candidates.iter().map(|candidate| candidate.weight).sum()
    }

    fn draw_one(&mut self) -> u32 {
        // 53 bits make a double in [0, 1).
        let point = (self.draw.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let total: f64 = self.candidates.iter().map(|candidate| f64::from(candidate.weight)).sum();
        let mut left = point * total;
        for candidate in &self.candidates {
            left -= f64::from(candidate.weight);
            if left < 0.0 {
                return candidate.token;
            }
        }
        self.candidates.last().map_or(0, |candidate| candidate.token)
    }
}

/// Log-probability of one token, and of the `count` most likely ones, best first.
pub(super) fn log_probabilities(logits: &[f32], token: u32, count: usize) -> (f32, Vec<(u32, f32)>) {
    let most = logits.iter().fold(f32::NEG_INFINITY, |most, logit| most.max(*logit));
    let total: f64 = logits.iter().map(|logit| f64::from(math::exp(logit - most))).sum();
    let normaliser = f64::from(most) + total.ln();
    let log_probability = |logit: f32| (f64::from(logit) - normaliser).min(0.0) as f32;
    let own = logits.get(token as usize).map_or(f32::NEG_INFINITY, |logit| log_probability(*logit));
    if count == 0 {
        return (own, Vec::new());
    }
    let mut all: Vec<_> = (0..).zip(logits).map(|(token, &weight)| Candidate { token, weight }).collect();
    let count = count.min(all.len());
    if count < all.len() {
        all.select_nth_unstable_by(count, Candidate::by_weight);
        all.truncate(count);
    }
    all.sort_unstable_by(Candidate::by_weight);
    (own, all.into_iter().map(|candidate| (candidate.token, log_probability(candidate.weight))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGITS: [f32; 5] = [1.0, 3.0, 2.0, 3.0, -1.0];

    fn params(change: impl FnOnce(&mut SamplingParams)) -> SamplingParams {
        let mut params = SamplingParams { seed: Some(7), ..Default::default() };
        change(&mut params);
        params
    }

    fn support(params: &SamplingParams) -> Vec<u32> {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..400 {
            let params = SamplingParams { seed: Some(seed), ..params.clone() };
            seen.insert(Sampler::new(params, &[], 0).choose(&LOGITS));
        }
        seen.into_iter().collect()
    }

    #[test]
    fn greedy_takes_the_smaller_of_two_equals() {
        assert_eq!(Sampler::new(params(|p| p.temperature = 0.0), &[], 0).choose(&LOGITS), 1);
    }

    #[test]
    fn each_filter_leaves_what_it_should() {
        assert_eq!(support(&params(|p| p.top_k = 2)), [1, 3]);
        assert_eq!(support(&params(|p| p.top_k = 1)), [1]);
        assert_eq!(support(&params(|p| p.top_p = 0.5)), [1, 3]);
        assert_eq!(support(&params(|p| p.top_p = 0.01)), [1]);
        assert_eq!(support(&params(|p| p.min_p = 0.3)), [1, 2, 3]);
        assert_eq!(support(&params(|_| {})), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn draws_follow_the_distribution() {
        let logits = [0.0, (3.0f32).ln()];
        let draw = |seed| Sampler::new(params(|p| p.seed = Some(seed)), &[], 0).choose(&logits);
        let ones: u32 = (0..4000).map(draw).sum();
        assert!((2900..3100).contains(&ones), "{ones} of 4000, expected about 3000");
    }

    #[test]
    fn the_same_seed_draws_the_same_tokens() {
        let run = |seed| {
            let mut sampler = Sampler::new(params(|p| p.seed = Some(seed)), &[], 0);
            (0..32).map(|_| sampler.choose(&LOGITS)).collect::<Vec<_>>()
        };
        assert_eq!(run(3), run(3));
        assert_ne!(run(3), run(4));
    }

    #[test]
    fn penalties_push_repeated_tokens_down() {
        let greedy = |change: fn(&mut SamplingParams)| {
            params(|p| {
                p.temperature = 0.0;
                change(p);
            })
        };
        let mut presence = Sampler::new(greedy(|p| p.presence_penalty = 1.5), &[], 0);
        assert_eq!([(); 4].map(|()| presence.choose(&LOGITS)), [1, 3, 2, 1]);
        let mut frequency = Sampler::new(greedy(|p| p.frequency_penalty = 0.6), &[], 0);
        assert_eq!([(); 4].map(|()| frequency.choose(&LOGITS)), [1, 3, 1, 3]);
        let mut repetition = Sampler::new(greedy(|p| p.repetition_penalty = 2.0), &[1], 0);
        assert_eq!(repetition.choose(&LOGITS), 3);
    }

    #[test]
    fn log_probabilities_sum_to_one() {
        let (own, top) = log_probabilities(&LOGITS, 2, 5);
        let sum: f32 = top.iter().map(|(_, logprob)| logprob.exp()).sum();
        assert!((sum - 1.0).abs() < 1e-5);
        assert_eq!(top.iter().map(|(token, _)| *token).collect::<Vec<_>>(), [1, 3, 2, 0, 4]);
        assert_eq!(own, top[2].1);
        assert_eq!(log_probabilities(&LOGITS, 2, 0).1, []);
    }
}
