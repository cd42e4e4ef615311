//! The figures of a selector, as Markdown. It knows no selector.

use std::fmt;

/// What a selector reaches.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectorReport {
    /// The contract's type word.
    pub kind: String,
    /// Models to choose from.
    pub models: usize,
    /// Training questions.
    pub trained_on: usize,
    /// Held-out questions.
    pub questions: usize,
    /// Digest of the training data.
    pub data: String,
    /// Mean score of a model drawn by lot.
    pub random: f64,
    /// Mean score of the model that is best on the training data.
    pub best_fixed: f64,
    /// Its name.
    pub best_fixed_model: String,
    /// Mean of the best score of each question.
    pub oracle: f64,
    /// Mean score of whom the selector picks without its guard, where it has one.
    pub unguarded: Option<f64>,
    /// Mean score of whom it picks.
    pub reached: f64,
    /// What it reaches on each task that was left out of its training.
    pub left_out: Vec<LeftOut>,
}

/// A task that was left out.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOut {
    /// Its name.
    pub task: String,
    /// Its questions.
    pub questions: usize,
    /// Mean score of the model that is best on all other tasks.
    pub best_fixed: f64,
    /// Mean score of whom the selector picks without its guard.
    pub unguarded: f64,
    /// Mean score of whom it picks.
    pub guarded: f64,
    /// Standard error of its difference to the best fixed model: what chance alone makes of so many questions.
    pub error: f64,
    /// Share of questions that it called strangers.
    pub strangers: f64,
}

impl SelectorReport {
    /// Mean difference to the best fixed model over all questions of left-out tasks.
    #[must_use]
    pub fn left_out_difference(&self) -> f64 {
        let total: usize = self.left_out.iter().map(|it| it.questions).sum();
        let sum: f64 =
            self.left_out.iter().map(|it| (it.guarded - it.best_fixed) * it.questions as f64).sum();
        sum / total.max(1) as f64
    }
}

impl fmt::Display for SelectorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# Selector: {}\n", self.kind)?;
        writeln!(
            f,
            "{} questions with graded answers of {} models; training data `{}`.\n",
            self.trained_on, self.models, self.data
        )?;
        writeln!(f, "| on {} held-out questions | mean score |\n|---|---|", self.questions)?;
        writeln!(f, "| by lot | {:.3} |", self.random)?;
        writeln!(f, "| best fixed (`{}`) | {:.3} |", self.best_fixed_model, self.best_fixed)?;
        if let Some(unguarded) = self.unguarded {
            writeln!(f, "| {} without its guard | {unguarded:.3} |", self.kind)?;
        }
        writeln!(f, "| {} | {:.3} |", self.kind, self.reached)?;
        writeln!(f, "| oracle | {:.3} |", self.oracle)?;
        if self.left_out.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "\n| task left out of training | questions | best fixed | without guard | with guard | difference | standard error | strangers |\n\
             |---|---|---|---|---|---|---|---|"
        )?;
        for it in &self.left_out {
            writeln!(
                f,
                "| {} | {} | {:.3} | {:.3} | {:.3} | {:+.3} | {:.3} | {:.0}% |",
                it.task,
                it.questions,
                it.best_fixed,
                it.unguarded,
                it.guarded,
                it.guarded - it.best_fixed,
                it.error,
                it.strangers * 100.0
            )?;
        }
        writeln!(f, "\nOver all of them: {:+.4}.", self.left_out_difference())
    }
}
