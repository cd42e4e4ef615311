//! The averaged perceptron that trains the tagger.
//!
//! It knows features and labels as numbers. Source: Collins 2002, "Discriminative training methods for hidden Markov
//! models", with the averaging of Freund and Schapire 1999 by time stamps. **Invariant:** the same sentences in the same
//! order give the same weights.

use chorus_signals::pii::names::{BUCKETS, FEATURES, LABELS, Model, ModelFault};

/// Values above this share are clipped when weights become bytes.
const KEPT: f64 = 0.9995;

/// A sentence: the rows of every token, and its label.
pub(super) struct Sentence {
    pub(super) features: Vec<[usize; FEATURES]>,
    pub(super) labels: Vec<usize>,
}

/// A weight, its sum over time, and when it was last summed.
#[derive(Clone, Copy, Default)]
struct Cell {
    value: f32,
    sum: f64,
    since: u32,
}

impl Cell {
    fn change(&mut self, by: f32, now: u32) {
        self.sum += f64::from(self.value) * f64::from(now - self.since);
        self.since = now;
        self.value += by;
    }

    fn mean(&self, now: u32) -> f64 {
        (self.sum + f64::from(self.value) * f64::from(now - self.since)) / f64::from(now.max(1))
    }
}

/// Weights in training.
pub(super) struct Perceptron {
    rows: Vec<[Cell; LABELS]>,
    transitions: [[Cell; LABELS]; LABELS],
    now: u32,
}

impl Perceptron {
    pub(super) fn new() -> Self {
        Self {
            rows: vec![[Cell::default(); LABELS]; BUCKETS],
            transitions: [[Cell::default(); LABELS]; LABELS],
            now: 0,
        }
    }

    /// Learns from one sentence; the number of tokens that were wrong before.
    pub(super) fn learn(&mut self, sentence: &Sentence) -> usize {
        let guess = self.best(sentence);
        self.now += 1;
        let wrong = guess.iter().zip(&sentence.labels).filter(|(a, b)| a != b).count();
        if wrong > 0 {
            self.shift(sentence, &sentence.labels, 1.0);
            self.shift(sentence, &guess, -1.0);
        }
        wrong
    }

    fn shift(&mut self, sentence: &Sentence, labels: &[usize], by: f32) {
        let now = self.now;
        for (features, &label) in sentence.features.iter().zip(labels) {
            for &row in features {
                if let Some(cell) = self.rows.get_mut(row).and_then(|row| row.get_mut(label)) {
                    cell.change(by, now);
                }
            }
        }
        for pair in labels.windows(2) {
            if let [from, to] = *pair
                && let Some(cell) = self.transitions.get_mut(from).and_then(|row| row.get_mut(to))
            {
                cell.change(by, now);
            }
        }
    }

    /// Viterbi over the weights as they are.
    fn best(&self, sentence: &Sentence) -> Vec<usize> {
        let mut total = [0.0_f32; LABELS];
        let mut back: Vec<[usize; LABELS]> = Vec::with_capacity(sentence.features.len());
        for (at, features) in sentence.features.iter().enumerate() {
            let mut score = [0.0_f32; LABELS];
            for row in features.iter().filter_map(|&row| self.rows.get(row)) {
                score.iter_mut().zip(row).for_each(|(score, cell)| *score += cell.value);
            }
            let mut came = [0; LABELS];
            let reached: [f32; LABELS] = std::array::from_fn(|to| {
                let step = |from: usize| {
                    let transition =
                        self.transitions.get(from).and_then(|row| row.get(to)).map_or(0.0, |c| c.value);
                    total.get(from).copied().unwrap_or_default() + if at == 0 { 0.0 } else { transition }
                };
                let from =
                    (1..LABELS).fold(0, |best, from| if step(from) > step(best) { from } else { best });
                if let Some(slot) = came.get_mut(to) {
                    *slot = from;
                }
                step(from) + score.get(to).copied().unwrap_or_default()
            });
            total = reached;
            back.push(came);
        }
        trace(&total, &back)
    }

    /// The averaged weights as bytes.
    pub(super) fn model(&self) -> Result<Model, ModelFault> {
        let means: Vec<[f64; LABELS]> =
            self.rows.iter().map(|row| row.map(|cell| cell.mean(self.now))).collect();
        let mut sizes: Vec<f64> =
            means.iter().flatten().map(|mean| mean.abs()).filter(|size| *size > 0.0).collect();
        sizes.sort_by(f64::total_cmp);
        let largest = sizes.get((sizes.len() as f64 * KEPT) as usize).copied().unwrap_or(1.0);
        let scale = f64::from(i8::MAX) / largest;
        let rows = means.iter().map(|row| row.map(|mean| (mean * scale).round().clamp(-127.0, 127.0) as i8));
        let transitions = self.transitions.map(|row| {
            row.map(|cell| (cell.mean(self.now) * scale).round().clamp(-32_000.0, 32_000.0) as i16)
        });
        Model::new(transitions, rows.collect())
    }
}

fn trace(total: &[f32; LABELS], back: &[[usize; LABELS]]) -> Vec<usize> {
    let better = |best: usize, label: usize| if total.get(label) > total.get(best) { label } else { best };
    let mut label = (1..LABELS).fold(0, better);
    let mut path = Vec::with_capacity(back.len());
    for came in back.iter().rev() {
        path.push(label);
        label = came.get(label).copied().unwrap_or_default();
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_signals::pii::names::{Label, features, tokens};

    #[test]
    fn it_learns_what_is_told_often() {
        let cut = tokens("my name is Qwxyz now");
        let sentence = Sentence {
            features: (0..cut.len()).map(|at| features(&cut, at)).collect(),
            labels: vec![0, 0, 0, 1, 0],
        };
        let mut perceptron = Perceptron::new();
        let wrong: Vec<usize> = (0..50).map(|_| perceptron.learn(&sentence)).collect();
        assert!(wrong[0] > 0 && wrong[49] == 0, "{wrong:?}");
        let tagged = perceptron.model().unwrap().tag(&cut);
        let labels: Vec<Label> = tagged.into_iter().map(|(label, _)| label).collect();
        assert_eq!(labels.iter().filter(|label| **label == Label::Person).count(), 1);
        assert_eq!(labels[3], Label::Person);
    }
}
