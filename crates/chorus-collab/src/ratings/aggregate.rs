//! How rated answers become one.
//!
//! **Invariant:** among equals the lower seat wins, so that the same answers and ratings give the same choice.

use super::plan::RatingsPlan;
use super::trace::RatingsTrace;
use crate::answers::Survivor;
use crate::calls::{Answer, Reply};
use crate::extract::final_answer;
use crate::fault::LoopFault;
use chorus_spec::Aggregate;
use serde_json::Value;

/// The answer; `ratings` has one an answer.
///
/// # Errors
/// [`LoopFault::Quorum`] without answers.
pub(super) fn answer(
    plan: &RatingsPlan,
    answers: Vec<Survivor>,
    ratings: &[Option<f64>],
    trace: &mut RatingsTrace,
) -> Result<Answer, LoopFault> {
    let chosen = match plan.aggregate {
        Aggregate::Choices => return choices(answers, ratings),
        Aggregate::Best => best(ratings, 0..answers.len()),
        Aggregate::Vote => {
            let weights = weights(ratings);
            let group = heaviest(&answers, &weights);
            trace.vote(group.iter().filter_map(|at| weights.get(*at)).sum(), weights.iter().sum());
            best(ratings, group)
        }
    };
    let chosen = answers.into_iter().nth(chosen).ok_or_else(nobody)?;
    trace.answered_by = Some(chosen.reply.model.clone());
    Ok(Answer::Finished(Box::new(chosen.reply)))
}

fn nobody() -> LoopFault {
    LoopFault::Quorum { wanted: 1, got: 0, failures: Vec::new() }
}

/// The place of the best-rated answer among `places`; an unrated one is below all rated ones.
fn best(ratings: &[Option<f64>], places: impl IntoIterator<Item = usize>) -> usize {
    let rating = |at: usize| ratings.get(at).copied().flatten();
    places.into_iter().reduce(|held, at| if rating(at) > rating(held) { at } else { held }).unwrap_or(0)
}

/// The ratings as weights: equal ones where nobody rated, and the mean for an answer that nobody rated.
fn weights(ratings: &[Option<f64>]) -> Vec<f64> {
    let (sum, count) = ratings.iter().flatten().fold((0.0, 0u32), |(sum, n), r| (sum + r, n + 1));
    let mean = if count == 0 { 1.0 } else { sum / f64::from(count) };
    ratings.iter().map(|rating| rating.unwrap_or(mean)).collect()
}

/// Answers that come to the same.
struct Group {
    says: Option<String>,
    weight: f64,
    places: Vec<usize>,
}

/// The places of the answers that come to the same and weigh most. An answer without a short solution stands alone.
fn heaviest(answers: &[Survivor], weights: &[f64]) -> Vec<usize> {
    let mut groups: Vec<Group> = Vec::new();
    for (at, (answer, weight)) in answers.iter().zip(weights).enumerate() {
        let says = final_answer(&answer.text);
        match groups.iter_mut().find(|group| says.is_some() && group.says == says) {
            Some(group) => {
                group.weight += weight;
                group.places.push(at);
            }
            None => groups.push(Group { says, weight: *weight, places: vec![at] }),
        }
    }
    let heavier = |held: Group, other: Group| if other.weight > held.weight { other } else { held };
    groups.into_iter().reduce(heavier).map(|group| group.places).unwrap_or_default()
}

/// All answers as choices of one reply, each with its model and its rating. Source: contract §2.3.
fn choices(answers: Vec<Survivor>, ratings: &[Option<f64>]) -> Result<Answer, LoopFault> {
    let models = answers.iter().map(|a| a.reply.model.clone()).collect::<Vec<_>>().join(",");
    let choices: Vec<Value> = answers.iter().zip(ratings).enumerate().filter_map(choice).collect();
    let mut replies = answers.into_iter().map(|answer| answer.reply);
    let Reply { mut reply, mut usage, .. } = replies.next().ok_or_else(nobody)?;
    replies.for_each(|other| usage += other.usage);
    reply.set("choices", &choices);
    reply.set("model", &models);
    reply.set("usage", &usage);
    Ok(Answer::Finished(Box::new(Reply { model: models, reply, usage })))
}

/// The first choice of an answer, under its new index.
fn choice((index, (answer, rating)): (usize, (&Survivor, &Option<f64>))) -> Option<Value> {
    let sent = answer.reply.reply.body().read::<Vec<Value>>("choices").ok()??;
    let mut choice = sent.into_iter().next()?;
    let fields = choice.as_object_mut()?;
    fields.insert("index".to_owned(), index.into());
    fields.insert("model".to_owned(), answer.reply.model.clone().into());
    if let Some(rating) = rating {
        fields.insert("rating".to_owned(), (*rating).into());
    }
    Some(choice)
}
