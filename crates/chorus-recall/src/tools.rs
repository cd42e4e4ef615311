//! How relevant a tool is to a task: by meaning, shared words, tags, the words of its name, and its category.
//!
//! It knows descriptions of tools, not requests. **Invariant:** the order of tools of equal relevance is the given one.

use crate::terms::{identifier_terms, share, terms};

/// A tool as it is described.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ToolCard {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Words that people use for what it does.
    pub tags: Vec<String>,
    /// The domain that it belongs to; empty for none.
    pub category: String,
}

impl ToolCard {
    /// What is encoded of it.
    #[must_use]
    pub fn text(&self) -> String {
        let name = identifier_terms(&self.name).join(" ");
        let tags = self.tags.join(", ");
        [name, self.description.clone(), tags]
            .into_iter()
            .filter(|it| !it.is_empty())
            .collect::<Vec<_>>()
            .join(". ")
    }
}

/// Share of each measure; they need not add up to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shares {
    /// Of meaning.
    pub embed: f64,
    /// Of shared words.
    pub lexical: f64,
    /// Of shared tags.
    pub tag: f64,
    /// Of words of the tool's name.
    pub name: f64,
    /// Of the category.
    pub category: f64,
}

/// What is asked of tools.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// The user's task.
    pub text: &'a str,
    /// Its domain, where one is known.
    pub category: Option<&'a str>,
}

/// How relevant one tool is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Relevance {
    /// By meaning alone, in 0..=1.
    pub meaning: f64,
    /// All measures by their shares, in 0..=1.
    pub combined: f64,
    /// Words that the task and the tool share.
    pub overlap: usize,
}

/// How relevant a tool is to a task; `meaning` is the similarity of their vectors, in 0..=1, where there is one. Without
/// it the other measures share its weight.
#[must_use]
pub fn relevance(task: Task<'_>, tool: &ToolCard, meaning: Option<f64>, shares: &Shares) -> Relevance {
    let asked = terms(task.text);
    let described = terms(&tool.text());
    let overlap = {
        let mut shared: Vec<&String> = asked.iter().filter(|term| described.contains(term)).collect();
        shared.sort();
        shared.dedup();
        shared.len()
    };
    let tags: Vec<String> = tool.tags.iter().flat_map(|tag| terms(tag)).collect();
    let in_category = task.category.is_some_and(|category| category.eq_ignore_ascii_case(&tool.category));
    let measures = [
        (meaning.map_or(0.0, |_| shares.embed), meaning.unwrap_or(0.0)),
        (shares.lexical, share(&described, &asked)),
        (shares.tag, share(&tags, &asked)),
        (shares.name, share(&identifier_terms(&tool.name), &asked)),
        (shares.category, f64::from(u8::from(in_category))),
    ];
    let total: f64 = measures.iter().map(|(weight, _)| weight).sum();
    let sum: f64 = measures.iter().map(|(weight, value)| weight * value).sum();
    let combined = if total > 0.0 { sum / total } else { share(&described, &asked) };
    Relevance { meaning: meaning.unwrap_or(0.0), combined, overlap }
}

/// The order of tools by score, best first; equals as given.
#[must_use]
pub fn best_first(scores: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    let score = |at: &usize| scores.get(*at).copied().unwrap_or(f64::NEG_INFINITY);
    order.sort_by(|a, b| score(b).total_cmp(&score(a)));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(name: &str, description: &str, tags: &[&str], category: &str) -> ToolCard {
        ToolCard {
            name: name.to_owned(),
            description: description.to_owned(),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            category: category.to_owned(),
        }
    }

    const SHARES: Shares = Shares { embed: 0.6, lexical: 0.15, tag: 0.1, name: 0.1, category: 0.05 };

    #[test]
    fn every_measure_counts_by_its_share() {
        let tool = card("get_weather", "", &["rain", "wind"], "weather");
        let task = Task { text: "get the weather: rain?", category: Some("Weather") };
        let it = relevance(task, &tool, Some(0.5), &SHARES);
        // Text: get weather rain wind: three of four words; one of two tags; both words of the name; the category.
        let want = 0.6 * 0.5 + 0.15 * 0.75 + 0.1 * 0.5 + 0.1 + 0.05;
        assert!((it.combined - want).abs() < 1e-12, "{it:?}");
        assert_eq!(it.overlap, 3);
    }

    #[test]
    fn without_meaning_the_others_share_its_weight() {
        let task = Task { text: "send mail", category: None };
        let mail = card("send_mail", "send mail", &[], "");
        let it = relevance(task, &mail, None, &SHARES);
        assert!((it.combined - 0.25 / 0.4).abs() < 1e-12, "{it:?}");
        let only = Shares { embed: 1.0, lexical: 0.0, tag: 0.0, name: 0.0, category: 0.0 };
        assert!((relevance(task, &mail, None, &only).combined - 1.0).abs() < 1e-12);
    }

    #[test]
    fn equals_stay_in_order() {
        assert_eq!(best_first(&[0.1, 0.9, 0.1, 0.9]), [1, 3, 0, 2]);
    }
}
