//! `elo`: the candidate with the greatest rating from comparisons.

use crate::ask::SelectionAsk;
use crate::choice::{Choice, first_greatest};
use crate::doc::SelectorDoc;
use crate::learned::{ArtifactFault, FORMAT, VERSION};
use crate::selector::Selector;
use chorus_spec::EloSettings;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Rating points for which the odds are ten to one. Source: Elo's scale.
const SCALE: f64 = 400.0;

/// The row of the table.
pub const DOC: SelectorDoc = SelectorDoc {
    kind: "elo",
    what: "Picks the greatest rating. Ratings are a Bradley–Terry fit of pairwise comparisons on Elo's scale, over all \
           requests and for each category; scores are the expected share of wins against the other candidates.",
    when: "Preferences or graded answers of your own traffic exist, and requests differ less than models do.",
    parameters: &[
        ("pretrained_path", "the ratings (`chorus lab train-selector elo`)", "`model_selection.ml.elo`"),
        ("initial_rating", "rating of a model that was compared too seldom", "1500"),
        ("min_comparisons", "comparisons from which a rating counts", "10"),
        (
            "category_weighted",
            "ratings of the request's category are preferred where there are enough",
            "true",
        ),
        ("cost_scaling_factor", "rating points that a dollar per million tokens costs", "0"),
    ],
    cost: "Some microseconds.",
    fails_when: "There is no artifact: `on_error` decides. A rating is one number for all requests of a category.",
    source: "Bradley and Terry 1952; hidden in the contract (§1.7), where each outcome moves the ratings of the running \
             process. Here ratings are fitted offline and served as they are.",
    example: "algorithm:\n  type: elo\n  elo: { pretrained_path: ratings.json, cost_scaling_factor: 10 }\n",
};

/// What is known of one model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rating {
    /// On Elo's scale.
    pub rating: f64,
    /// Comparisons that it took part in.
    pub comparisons: u64,
    /// Of these, won.
    pub wins: u64,
    /// Of these, lost; the rest are ties.
    pub losses: u64,
}

/// Ratings by model, overall and by category: the artifact of `elo`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ratings {
    /// Always `chorus-selector`.
    pub format: String,
    /// Of the format.
    pub version: u32,
    /// Always `elo`.
    pub algorithm: String,
    /// Digest of the data that they were fitted on.
    pub data: String,
    /// Over all requests.
    pub ratings: BTreeMap<String, Rating>,
    /// By category.
    #[serde(default)]
    pub categories: BTreeMap<String, BTreeMap<String, Rating>>,
}

impl Ratings {
    /// Ratings as an artifact holds them.
    #[must_use]
    pub fn new(
        data: String,
        ratings: BTreeMap<String, Rating>,
        categories: BTreeMap<String, BTreeMap<String, Rating>>,
    ) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            algorithm: "elo".to_owned(),
            data,
            ratings,
            categories,
        }
    }

    /// Reads an artifact.
    ///
    /// # Errors
    /// [`ArtifactFault`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ArtifactFault> {
        let it: Self =
            serde_json::from_slice(bytes).map_err(|it| ArtifactFault::Unreadable(it.to_string()))?;
        if it.format != FORMAT || it.version != VERSION || it.algorithm != "elo" {
            return Err(ArtifactFault::Format(format!("{} {} of {}", it.format, it.version, it.algorithm)));
        }
        if it
            .ratings
            .values()
            .chain(it.categories.values().flat_map(BTreeMap::values))
            .any(|it| !it.rating.is_finite())
        {
            return Err(ArtifactFault::Unreadable("a rating is no number".to_owned()));
        }
        Ok(it)
    }

    /// Refuses ratings that do not know one of the models (case D20).
    ///
    /// # Errors
    /// [`ArtifactFault::Models`].
    pub fn fit(&self, pool: &[&str]) -> Result<(), ArtifactFault> {
        let known = self.ratings.keys().map(String::as_str).collect::<Vec<_>>();
        ArtifactFault::pool(&known, pool)
    }

    /// What is known of a model for that category, where it is known well enough.
    #[must_use]
    pub fn of(&self, model: &str, category: Option<&str>, least: u64) -> Option<Rating> {
        let of_category = category.and_then(|it| self.categories.get(it)?.get(model)).copied();
        let enough = |it: &Rating| it.comparisons >= least;
        of_category.filter(enough).or_else(|| self.ratings.get(model).copied().filter(enough))
    }

    /// Each candidate's expected share of wins against the others, in 0..=1.
    pub(crate) fn expected(&self, ask: &SelectionAsk<'_>) -> Vec<Option<f64>> {
        let known: Vec<Option<f64>> =
            ask.candidates.iter().map(|it| self.of(it.model, ask.category, 1).map(|it| it.rating)).collect();
        expected_shares(&known)
    }
}

/// Expected share of wins against the others; 0.5 for one that is alone.
fn expected_shares(ratings: &[Option<f64>]) -> Vec<Option<f64>> {
    let share = |at: usize, own: f64| {
        let others = ratings.iter().enumerate().filter(|(other, _)| *other != at).filter_map(|(_, it)| *it);
        let wins: Vec<f64> = others.map(|other| 1.0 / (1.0 + 10f64.powf((other - own) / SCALE))).collect();
        if wins.is_empty() { 0.5 } else { wins.iter().sum::<f64>() / wins.len() as f64 }
    };
    ratings.iter().enumerate().map(|(at, own)| own.map(|own| share(at, own))).collect()
}

/// The selector.
#[derive(Debug, Clone)]
pub struct Elo {
    settings: EloSettings,
    ratings: Ratings,
}

impl Elo {
    /// It, over these ratings.
    #[must_use]
    pub fn new(settings: EloSettings, ratings: Ratings) -> Self {
        Self { settings, ratings }
    }
}

impl Selector for Elo {
    fn choose(&self, ask: &SelectionAsk<'_>) -> Choice {
        let category = ask.category.filter(|_| self.settings.category_weighted);
        let found: Vec<Option<Rating>> = ask
            .candidates
            .iter()
            .map(|it| self.ratings.of(it.model, category, self.settings.min_comparisons))
            .collect();
        let rating = |(found, it): (&Option<Rating>, &crate::ask::Candidate<'_>)| {
            let rating = found.map_or(self.settings.initial_rating, |it| it.rating);
            Some(rating - self.settings.cost_scaling_factor * it.usd_per_1m)
        };
        let ratings: Vec<Option<f64>> = found.iter().zip(ask.candidates).map(rating).collect();
        let shares = expected_shares(&ratings);
        let mut choice = match first_greatest(&ratings) {
            Some(pick) => Choice::picked(ask, pick, &shares, "the greatest rating"),
            None => Choice::none(ask, "there are no candidates"),
        };
        for (at, (rating, found)) in ratings.iter().zip(&found).enumerate() {
            let known = if found.is_some() { "" } else { ", assumed" };
            choice.note(at, format!("rating {:.0}{known}", rating.unwrap_or_default()));
        }
        choice
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::Candidate;

    pub(crate) fn ratings() -> Ratings {
        let of = |rating, comparisons| Rating {
            rating,
            comparisons,
            wins: comparisons / 2,
            losses: comparisons / 2,
        };
        let all = [("a", of(1600.0, 50)), ("b", of(1500.0, 50)), ("c", of(1900.0, 3))];
        let law = [("a", of(1400.0, 40)), ("b", of(1550.0, 40))];
        let named = |it: &[(&str, Rating)]| it.iter().map(|(name, it)| ((*name).to_owned(), *it)).collect();
        Ratings::new("sha256:x".to_owned(), named(&all), BTreeMap::from([("law".to_owned(), named(&law))]))
    }

    fn pick(settings: EloSettings, category: Option<&str>) -> Option<String> {
        let candidates = ["a", "b", "c"].map(|model| Candidate {
            model,
            usd_per_1m: if model == "a" { 5.0 } else { 1.0 },
            ..Candidate::default()
        });
        let ask = SelectionAsk { candidates: &candidates, query: None, category, seed: 0 };
        Elo::new(settings, ratings()).choose(&ask).model().map(str::to_owned)
    }

    #[test]
    fn the_greatest_rating_wins_by_category_and_price_and_few_comparisons_do_not_count() {
        let defaults = EloSettings::default();
        assert_eq!(pick(defaults.clone(), None).as_deref(), Some("a"));
        assert_eq!(pick(defaults.clone(), Some("law")).as_deref(), Some("b"));
        assert_eq!(
            pick(EloSettings { category_weighted: false, ..defaults.clone() }, Some("law")).as_deref(),
            Some("a")
        );
        assert_eq!(pick(EloSettings { min_comparisons: 1, ..defaults.clone() }, None).as_deref(), Some("c"));
        assert_eq!(pick(EloSettings { cost_scaling_factor: 50.0, ..defaults }, None).as_deref(), Some("b"));
    }

    #[test]
    fn d20_ratings_of_another_pool_are_refused() {
        let it = ratings();
        assert!(it.fit(&["a", "b"]).is_ok());
        let fault = it.fit(&["a", "d"]).unwrap_err().to_string();
        assert!(fault.contains("`d`") && fault.contains('a'), "{fault}");
        assert_eq!(Ratings::parse(&serde_json::to_vec(&it).unwrap()).unwrap(), it);
        assert!(Ratings::parse(b"{}").is_err());
    }
}
