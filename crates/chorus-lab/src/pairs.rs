//! Pairs of texts of which it is known how much they have to do with each other.
//!
//! It knows datasets and their labels, no encoder. Invariant: the same data give the same pairs in the same order;
//! nothing is drawn from a test part, a probe or a policy.

use std::collections::BTreeMap;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::corpus::{self, Part};
use crate::fault::LabFault;

const PARALLEL: &str = include_str!("../data/parallel.tsv");

/// Texts of one subject that take part, at most: no subject shall outweigh the others.
const TEXTS_A_SUBJECT: usize = 300;
/// The subject of all of BANKING77.
const BANKING: &str = "banking77";

/// Two texts.
pub(crate) type Pair = (String, String);

/// Pairs by how their texts are related.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    /// Requests of different subjects.
    pub(crate) unrelated: Vec<Pair>,
    /// Requests of one subject that want different things.
    pub(crate) neighbours: Vec<Pair>,
    /// Requests that want the same in other words.
    pub(crate) alike: Vec<Pair>,
}

/// A request to an assistant.
#[derive(Debug, Clone, PartialEq)]
struct Asked {
    subject: String,
    intent: String,
    text: String,
}

/// Pairs of the training parts of CLINC150 and BANKING77.
pub(crate) fn english(data: &Path) -> Result<Pairs, LabFault> {
    let subjects = corpus::clinc_subjects(data)?;
    let clinc = corpus::clinc(data, Part::Train)?
        .into_iter()
        .filter_map(|(text, intent)| Some(Asked { subject: subjects.get(&intent)?.clone(), intent, text }));
    let banking = corpus::banking(data, Part::Train)?.into_iter().map(|(text, intent)| Asked {
        subject: BANKING.to_owned(),
        intent,
        text,
    });
    Ok(pairs(clinc.chain(banking).collect()))
}

/// The same requests in many languages: pairs of two languages are alike where the request is the same, and unrelated
/// where it is not.
pub(crate) fn parallel() -> Result<Pairs, LabFault> {
    let rows = corpus::labelled_lines("parallel.tsv", PARALLEL)?;
    let mut pairs = Pairs::default();
    for (number, (request, text)) in rows.iter().enumerate() {
        for (other, other_text) in rows.iter().skip(number + 1) {
            let side = if request == other { &mut pairs.alike } else { &mut pairs.unrelated };
            side.push(((*text).to_owned(), (*other_text).to_owned()));
        }
    }
    Ok(pairs)
}

fn pairs(mut asked: Vec<Asked>) -> Pairs {
    // An order that has nothing to do with labels, and is the same in every run.
    asked.sort_by_cached_key(|asked| <[u8; 32]>::from(Sha256::digest(&asked.text)));
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    asked.retain(|asked| {
        let count = taken.entry(asked.subject.clone()).or_default();
        *count += 1;
        *count <= TEXTS_A_SUBJECT
    });
    let unrelated = couples(&asked, |left, right| left.subject != right.subject);
    asked.sort_by(|left, right| left.subject.cmp(&right.subject));
    let neighbours =
        couples(&asked, |left, right| left.subject == right.subject && left.intent != right.intent);
    asked.sort_by(|left, right| left.intent.cmp(&right.intent));
    let alike = couples(&asked, |left, right| left.intent == right.intent);
    Pairs { unrelated, neighbours, alike }
}

/// Each text with the next one, where they are related as wanted.
fn couples(asked: &[Asked], wanted: impl Fn(&Asked, &Asked) -> bool) -> Vec<Pair> {
    let neighbours = asked.iter().zip(asked.iter().skip(1));
    let couples = neighbours.filter(|(left, right)| left.text != right.text && wanted(left, right));
    couples.map(|(left, right)| (left.text.clone(), right.text.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn couples_are_what_their_name_says() {
        let asked = |subject: &str, intent: &str, text: &str| Asked {
            subject: subject.to_owned(),
            intent: intent.to_owned(),
            text: text.to_owned(),
        };
        let made = pairs(vec![
            asked("s", "i", "one"),
            asked("s", "i", "two"),
            asked("s", "j", "three"),
            asked("t", "k", "four"),
            asked("t", "k", "five"),
        ]);
        assert_eq!(made.alike.len(), 2);
        let of = |text: &str| if ["four", "five"].contains(&text) { "t" } else { "s" };
        assert!(made.unrelated.iter().all(|(left, right)| of(left) != of(right)));
        assert!(made.neighbours.iter().all(|(left, right)| of(left) == "s" && of(right) == "s"));
    }

    #[test]
    fn every_request_is_in_every_language_once() {
        let made = parallel().unwrap();
        let rows = corpus::labelled_lines("", PARALLEL).unwrap();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        rows.iter().for_each(|(request, _)| *counts.entry(request).or_default() += 1);
        let languages = counts.values().copied().max().unwrap();
        assert!(counts.len() >= 16 && languages >= 8);
        assert!(counts.values().all(|count| *count == languages), "{counts:?}");
        assert_eq!(made.alike.len(), counts.len() * languages * (languages - 1) / 2);
    }
}
