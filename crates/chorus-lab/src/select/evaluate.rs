//! What a trained selector reaches: on the held-out part, and on tasks that it has not seen.

use super::graded::Graded;
use super::report::{LeftOut, SelectorReport};
use super::{fitted, served};
use crate::fault::LabFault;
use chorus_select::elo::{Elo, Ratings};
use chorus_select::learned::Kind;
use chorus_select::{Candidate, SelectionAsk, Selector};

/// A learned selector, as the engine would use it.
pub(super) fn learned(
    kind: Kind,
    bytes: &[u8],
    train: &Graded,
    test: &Graded,
    encoder: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<SelectorReport, LabFault> {
    let mut report = baselines(kind.as_str(), train, test);
    report.unguarded = Some(reached(&served(kind, bytes, false)?, test).mean());
    report.reached = reached(&served(kind, bytes, true)?, test).mean();
    for task in train.task_names() {
        progress(&format!("without the task {task}"));
        let (own, others) = train.split(&task);
        let bytes = fitted(kind, &others, encoder)?;
        let guarded = reached(&served(kind, &bytes, true)?, &own);
        let fixed = best(&others);
        report.left_out.push(LeftOut {
            questions: own.len(),
            best_fixed: mean_of(&own, fixed),
            unguarded: reached(&served(kind, &bytes, false)?, &own).mean(),
            guarded: guarded.mean(),
            error: guarded.error(&own, fixed),
            strangers: guarded.strangers,
            task,
        });
    }
    Ok(report)
}

/// Ratings, by which every request goes to one model.
pub(super) fn rated(ratings: &Ratings, train: &Graded, test: &Graded) -> SelectorReport {
    let selector = Elo::new(chorus_spec::EloSettings::default(), ratings.clone());
    let mut report = baselines("elo", train, test);
    report.reached = reached(&selector, test).mean();
    report
}

fn baselines(kind: &str, train: &Graded, test: &Graded) -> SelectorReport {
    let cells = test.scores.len().max(1) as f64;
    let greatest = |row: &[f32]| f64::from(row.iter().copied().fold(0.0, f32::max));
    SelectorReport {
        kind: kind.to_owned(),
        models: train.models.len(),
        trained_on: train.len(),
        questions: test.len(),
        data: train.digest(),
        random: test.scores.iter().map(|it| f64::from(*it)).sum::<f64>() / cells,
        best_fixed: mean_of(test, best(train)),
        best_fixed_model: train.models.get(best(train)).cloned().unwrap_or_default(),
        oracle: test.grades().map(greatest).sum::<f64>() / test.len().max(1) as f64,
        unguarded: None,
        reached: 0.0,
        left_out: Vec::new(),
    }
}

/// The model that is best on the whole.
fn best(train: &Graded) -> usize {
    let means = train.means();
    let all = means.iter().enumerate();
    all.max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0))).map_or(0, |it| it.0)
}

fn mean_of(set: &Graded, model: usize) -> f64 {
    let sum: f64 = set.grades().filter_map(|row| row.get(model)).map(|it| f64::from(*it)).sum();
    sum / set.len().max(1) as f64
}

/// What those reached whom a selector picked.
struct Reached {
    /// One a question.
    grades: Vec<f64>,
    /// Share of requests that it called strangers.
    strangers: f64,
}

impl Reached {
    fn mean(&self) -> f64 {
        self.grades.iter().sum::<f64>() / self.grades.len().max(1) as f64
    }

    /// The standard error of the mean difference to one model.
    fn error(&self, set: &Graded, fixed: usize) -> f64 {
        let own = |row: &[f32]| row.get(fixed).copied().map_or(0.0, f64::from);
        let differences: Vec<f64> =
            self.grades.iter().zip(set.grades()).map(|(it, row)| it - own(row)).collect();
        let count = differences.len().max(1) as f64;
        let mean = differences.iter().sum::<f64>() / count;
        let variance = differences.iter().map(|it| (it - mean) * (it - mean)).sum::<f64>() / count;
        (variance / count).sqrt()
    }
}

fn reached(selector: &dyn Selector, set: &Graded) -> Reached {
    let candidates: Vec<Candidate<'_>> =
        set.models.iter().map(|model| Candidate { model, ..Candidate::default() }).collect();
    let (mut all, mut strangers) = (Vec::with_capacity(set.len()), 0.0);
    for (row, grades) in set.rows().zip(set.grades()) {
        let ask = SelectionAsk { candidates: &candidates, query: Some(row), category: None, seed: 0 };
        let choice = selector.choose(&ask);
        let grade = choice.pick.and_then(|pick| grades.get(pick)).copied().unwrap_or(0.0);
        all.push(f64::from(grade));
        strangers += f64::from(u8::from(choice.reason.contains("times as far")));
    }
    Reached { grades: all, strangers: strangers / set.len().max(1) as f64 }
}

#[cfg(test)]
mod tests {
    use super::super::graded::tests::two_tasks;
    use super::*;

    #[test]
    fn every_kind_learns_two_tasks_and_keeps_away_from_a_third() {
        let train = two_tasks();
        for kind in [Kind::Knn, Kind::Kmeans, Kind::Svm, Kind::Mlp] {
            let bytes = fitted(kind, &train, "sha256:test").unwrap();
            assert_eq!(bytes, fitted(kind, &train, "sha256:test").unwrap(), "{kind:?}: not the same bytes");
            let score = reached(&served(kind, &bytes, false).unwrap(), &train).mean();
            assert!(score > 0.95, "{kind:?} reaches {score}");
            let mut stranger = train.clone();
            stranger.vectors = [0.0, 1.0, 0.0, 0.0].repeat(train.len());
            let strangers = reached(&served(kind, &bytes, true).unwrap(), &stranger).strangers;
            assert!(strangers > 0.99, "{kind:?}: {strangers} are strangers");
        }
    }
}
