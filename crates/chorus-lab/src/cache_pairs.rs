//! Pairs of questions of which it is known whether one may be given the answer to the other.
//!
//! It knows the file of questions, no encoder. **Invariant:** the same file gives the same pairs in the same order, and no
//! family stands in both halves.

use crate::fault::LabFault;
use std::collections::BTreeMap;
use std::path::Path;

const NAME: &str = "cache_intents.tsv";
const QUESTIONS: &str = include_str!("../data/cache_intents.tsv");

/// How the two questions of a pair are related.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// The same question, worded otherwise.
    Paraphrase,
    /// The contrary.
    Negated,
    /// Another number.
    Number,
    /// Another entity.
    Entity,
    /// Another language.
    Language,
    /// Another tenant; the question is the same, word for word.
    Tenant,
    /// A question of the same intent of a public set, where the intent has no slot.
    SameIntent,
    /// A question of another intent of the same public set that shares many words.
    OtherIntent,
    /// The same of a set of a bank.
    OtherBankingIntent,
}

impl Relation {
    /// Every relation of the questions written for this that must not be a hit.
    pub const MISSES: [Self; 5] = [Self::Negated, Self::Number, Self::Entity, Self::Language, Self::Tenant];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Paraphrase => "paraphrase",
            Self::Negated => "negated",
            Self::Number => "other number",
            Self::Entity => "other entity",
            Self::Language => "other language",
            Self::Tenant => "other tenant",
            Self::SameIntent => "same intent",
            Self::OtherIntent => "other intent",
            Self::OtherBankingIntent => "other banking intent",
        }
    }
}

/// Two questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) relation: Relation,
    /// Whose answer is kept.
    pub(crate) kept: String,
    /// Who may, or may not, be given it.
    pub(crate) asked: String,
}

/// Which families.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    /// Those that a threshold is chosen on.
    Chosen,
    /// Those that it is reported on.
    Reported,
}

/// A list of values.
struct Values {
    is_number: bool,
    all: Vec<&'static str>,
}

/// One family: its wordings by kind.
#[derive(Default)]
struct Family {
    asks: Vec<&'static str>,
    contraries: Vec<&'static str>,
    translations: Vec<&'static str>,
}

/// Values of each list that a family is drawn with.
const DRAWS: usize = 6;

/// At most so many pairs of every relation of one half.
pub(crate) const PARAPHRASES: usize = 500;
/// See [`PARAPHRASES`]; of each kind of near miss.
pub(crate) const NEAR_MISSES: usize = 100;

/// The pairs of one half.
///
/// # Errors
/// [`LabFault`] for a line that is not of the file's form.
pub(crate) fn pairs(half: Half) -> Result<Vec<Asked>, LabFault> {
    let (families, lists) = read()?;
    let mut all: BTreeMap<Relation, Vec<Asked>> = BTreeMap::new();
    for (at, family) in families.iter().enumerate() {
        if (at % 2 == 0) == (half == Half::Chosen) {
            for pair in of_family(family, &lists) {
                all.entry(pair.relation).or_default().push(pair);
            }
        }
    }
    let most = |relation| if relation == Relation::Paraphrase { PARAPHRASES } else { NEAR_MISSES };
    Ok(all.into_iter().flat_map(|(relation, pairs)| spread(pairs, most(relation))).collect())
}

fn of_family(family: &Family, lists: &BTreeMap<&str, Values>) -> Vec<Asked> {
    let mut found = Vec::new();
    let mut add = |relation, kept: &str, asked: &str| {
        if relation == Relation::Tenant || kept != asked {
            found.push(Asked { relation, kept: kept.to_owned(), asked: asked.to_owned() });
        }
    };
    for draw in 0..DRAWS {
        let filled = |text: &str| fill(text, lists, draw, None);
        for (at, kept) in family.asks.iter().enumerate() {
            let kept_text = filled(kept);
            add(Relation::Tenant, &kept_text, &kept_text);
            for asked in family.asks.iter().skip(at + 1) {
                add(Relation::Paraphrase, &kept_text, &filled(asked));
            }
            for asked in &family.contraries {
                add(Relation::Negated, &kept_text, &filled(asked));
            }
            for asked in &family.translations {
                add(Relation::Language, &kept_text, &filled(asked));
            }
            for asked in &family.asks {
                for (name, values) in lists.iter().filter(|(name, _)| kept.contains(&format!("[{name}]"))) {
                    let relation = if values.is_number { Relation::Number } else { Relation::Entity };
                    add(relation, &kept_text, &fill(asked, lists, draw, Some(name)));
                }
            }
        }
    }
    found.sort_by(|a, b| (a.relation, &a.kept, &a.asked).cmp(&(b.relation, &b.kept, &b.asked)));
    found.dedup();
    found
}

/// The text with a value in every place; of the list `other` the next one.
fn fill(text: &str, lists: &BTreeMap<&str, Values>, draw: usize, other: Option<&str>) -> String {
    let mut text = text.to_owned();
    for (name, values) in lists {
        let place = format!("[{name}]");
        let at = if other == Some(*name) { draw + 1 } else { draw };
        if let Some(value) = values.all.get(at % values.all.len().max(1)) {
            text = text.replace(&place, value);
        }
    }
    text
}

/// So many of them, evenly from the first to the last.
fn spread(pairs: Vec<Asked>, most: usize) -> Vec<Asked> {
    let count = pairs.len();
    if count <= most {
        return pairs;
    }
    let taken = |at: &usize| (at * most) / count != ((at + 1) * most) / count;
    pairs.into_iter().enumerate().filter(|(at, _)| taken(at)).map(|(_, pair)| pair).collect()
}

fn read() -> Result<(Vec<Family>, BTreeMap<&'static str, Values>), LabFault> {
    let (mut families, mut lists): (Vec<(&str, Family)>, _) = (Vec::new(), BTreeMap::new());
    for (number, line) in QUESTIONS.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fields: Vec<&'static str> = line.split('\t').collect();
        let [name, kind, text] = fields.as_slice() else {
            return Err(LabFault::content(Path::new(NAME), number + 1, &"expected three fields"));
        };
        if let Some(list) = name.strip_prefix('@') {
            let values = Values { is_number: *kind == "number", all: text.split('|').collect() };
            lists.insert(list, values);
            continue;
        }
        if families.last().is_none_or(|(last, _)| last != name) {
            families.push((name, Family::default()));
        }
        if let Some((_, family)) = families.last_mut() {
            match *kind {
                "ask" | "alt" => family.asks.push(text),
                "not" => family.contraries.push(text),
                _ => family.translations.push(text),
            }
        }
    }
    Ok((families.into_iter().map(|(_, family)| family).collect(), lists))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_half_has_its_pairs_and_no_place_is_left_open() {
        let of = |half| pairs(half).unwrap();
        let (chosen, reported) = (of(Half::Chosen), of(Half::Reported));
        for half in [&chosen, &reported] {
            let count = |relation| half.iter().filter(|pair| pair.relation == relation).count();
            assert_eq!(count(Relation::Paraphrase), PARAPHRASES);
            for relation in Relation::MISSES {
                assert_eq!(count(relation), NEAR_MISSES, "{}", relation.as_str());
            }
            assert!(half.iter().all(|pair| !pair.kept.contains('[') && !pair.asked.contains('[')));
        }
        assert!(chosen.iter().all(|pair| !reported.iter().any(|other| other.kept == pair.kept)));
    }
}
