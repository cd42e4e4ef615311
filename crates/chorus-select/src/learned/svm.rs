//! `svm`: support vector machines that tell which model a request is for.

use super::card::{Card, Tables};
use super::{ArtifactFault, Prediction, Predictor};
use crate::doc::SelectorDoc;

/// The row of the table.
pub const DOC: SelectorDoc = SelectorDoc {
    kind: "svm",
    what: "One linear machine a model, trained to tell requests that the model answers well from those that it does \
           not; the greatest margin wins. Of the contract's artifacts the pairwise machines with a linear or Gaussian \
           kernel are read, and each pair votes.",
    when: "As `knn`, with a small artifact and a choice in microseconds; it follows single requests less closely.",
    parameters: &[
        (
            "pretrained_path",
            "the artifact (`chorus lab train-selector svm`, or the contract's JSON)",
            "`model_selection.ml.svm`",
        ),
        ("guard", "whether strangers go to the best fixed model", "true"),
    ],
    cost: "One encoder pass a request, and some microseconds; the contract's artifacts cost as many products as they \
           have support vectors.",
    fails_when: "No encoder is loaded: `on_error` decides. An artifact for another encoder or other models does not load.",
    source: "contract §1.7; FusionFactory (arXiv:2507.10540) for routing by a classifier over the query.",
    example: "algorithm:\n  type: svm\n  svm: { pretrained_path: selectors/svm.safetensors }\n",
};

/// Our own: a hyperplane a model.
#[derive(Debug)]
pub(super) struct Linear {
    weights: Vec<f32>,
    biases: Vec<f32>,
    dimension: usize,
}

impl Linear {
    pub(super) fn read(card: &Card, tables: &Tables<'_>) -> Result<Self, ArtifactFault> {
        let weights = tables.get("weight", card.dimension)?;
        let biases = tables.get("bias", card.models.len())?;
        if weights.rows != card.models.len() || biases.rows != 1 {
            return Err(ArtifactFault::Unreadable("it has not one machine a model".to_owned()));
        }
        Ok(Self { weights: weights.values, biases: biases.values, dimension: card.dimension })
    }
}

impl Predictor for Linear {
    fn predict(&self, features: &[f32], _fixed: usize) -> Prediction {
        let margin = |(weights, bias): (&[f32], &f32)| {
            let product: f32 = weights.iter().zip(features).map(|(a, b)| a * b).sum();
            logistic(f64::from(product + bias))
        };
        let machines = self.weights.chunks_exact(self.dimension.max(1)).zip(&self.biases);
        Prediction { scores: machines.map(margin).collect(), ..Prediction::default() }
    }
}

/// Margins brought to 0..=1; the order stays.
fn logistic(margin: f64) -> f64 {
    1.0 / (1.0 + (-margin).exp())
}

/// The kernel of the contract's machines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kernel {
    /// The dot product.
    Linear,
    /// exp(−γ·|a − b|²).
    Gaussian(f64),
}

/// The contract's: a machine a pair of models, over shared support vectors. Source: `libsvm`'s layout, as
/// scikit-learn's `SVC` gives it: `dual_coef` has a row for each class but one.
#[derive(Debug)]
pub(super) struct Pairwise {
    pub(super) kernel: Kernel,
    pub(super) vectors: Vec<Vec<f64>>,
    pub(super) coefficients: Vec<Vec<f64>>,
    pub(super) intercepts: Vec<f64>,
    /// Support vectors of each class, in the order of classes.
    pub(super) counts: Vec<usize>,
}

impl Pairwise {
    /// Whether all tables fit each other and the number of models.
    pub(super) fn is_whole(&self, models: usize, dimension: usize) -> bool {
        let pairs = models * models.saturating_sub(1) / 2;
        let finite = |row: &Vec<f64>| row.iter().all(|it| it.is_finite());
        models > 1
            && self.counts.len() == models
            && self.counts.iter().sum::<usize>() == self.vectors.len()
            && self.coefficients.len() == models - 1
            && self.coefficients.iter().all(|row| row.len() == self.vectors.len() && finite(row))
            && self.vectors.iter().all(|row| row.len() == dimension && finite(row))
            && self.intercepts.len() == pairs
            && finite(&self.intercepts)
    }

    fn kernel(&self, vector: &[f64], features: &[f32]) -> f64 {
        let pairs = vector.iter().zip(features).map(|(a, b)| (*a, f64::from(*b)));
        match self.kernel {
            Kernel::Linear => pairs.map(|(a, b)| a * b).sum(),
            Kernel::Gaussian(gamma) => (-gamma * pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>()).exp(),
        }
    }

    /// The sum over one class's support vectors, with that row of coefficients.
    fn part(&self, row: usize, class: usize, kernels: &[f64]) -> f64 {
        let start: usize = self.counts.iter().take(class).sum();
        let count = self.counts.get(class).copied().unwrap_or(0);
        let coefficients = self.coefficients.get(row).map(Vec::as_slice).unwrap_or_default();
        coefficients.iter().zip(kernels).skip(start).take(count).map(|(a, b)| a * b).sum()
    }
}

impl Predictor for Pairwise {
    fn predict(&self, features: &[f32], _fixed: usize) -> Prediction {
        let models = self.counts.len();
        let kernels: Vec<f64> = self.vectors.iter().map(|it| self.kernel(it, features)).collect();
        let mut votes = vec![0.0; models];
        let mut pairs = (0..models).flat_map(|one| (one + 1..models).map(move |other| (one, other)));
        for intercept in &self.intercepts {
            let Some((one, other)) = pairs.next() else { break };
            // Row `other − 1` weighs class `one` against `other`, and row `one` the reverse.
            let decision = self.part(other - 1, one, &kernels) + self.part(one, other, &kernels) + intercept;
            let winner = if decision > 0.0 { one } else { other };
            if let Some(votes) = votes.get_mut(winner) {
                *votes += 1.0;
            }
        }
        let most = models.saturating_sub(1).max(1) as f64;
        Prediction { scores: votes.into_iter().map(|it| it / most).collect(), ..Prediction::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_vote_and_an_unwhole_machine_is_told() {
        // Class 0 lies to the right, class 1 to the left, class 2 above.
        let machine = Pairwise {
            kernel: Kernel::Linear,
            vectors: vec![vec![1.0, 0.0], vec![-1.0, 0.0], vec![0.0, 1.0]],
            coefficients: vec![vec![1.0, -1.0, -1.0], vec![1.0, 1.0, -1.0]],
            intercepts: vec![0.0; 3],
            counts: vec![1, 1, 1],
        };
        assert!(machine.is_whole(3, 2) && !machine.is_whole(2, 2) && !machine.is_whole(3, 3));
        let best = |features: [f32; 2]| {
            let scores = machine.predict(&features, 0).scores;
            (0..3).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap()
        };
        assert_eq!([best([1.0, 0.0]), best([-1.0, 0.0]), best([0.0, 1.0])], [0, 1, 2]);
        let gaussian = Pairwise { kernel: Kernel::Gaussian(1.0), ..machine };
        assert_eq!(gaussian.predict(&[0.9, 0.1], 0).scores[0], 1.0);
    }
}
