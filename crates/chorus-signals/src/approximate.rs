//! Keywords looked for approximately: BM25, character n-grams, edit distance.
//!
//! It knows no rule's operator. **Invariant:** one [`Found`] a keyword, in the rule's order; confidence in 0..=1.

use crate::literal::{LiteralSet, Presence};
use crate::text::{Case, Comparable};
use chorus_infer::fnv;
use std::collections::{BTreeMap, BTreeSet};

/// What one keyword found in a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Found {
    /// The best score, hit or not.
    pub(crate) score: f64,
    /// In 0..=1 when it hit.
    pub(crate) confidence: Option<f64>,
}

impl Found {
    pub(crate) const NOTHING: Self = Self { score: 0.0, confidence: None };
    pub(crate) const CERTAIN: Self = Self { score: 1.0, confidence: Some(1.0) };

    fn scored(score: f64, threshold: f64) -> Self {
        Self { score, confidence: (score > 0.0 && score >= threshold).then_some(score.min(1.0)) }
    }
}

/// Term saturation. Source: Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework", §3.
const K1: f64 = 1.2;

/// BM25 with keywords as queries and the user's text as the document.
///
/// The corpus is that one text, so its length is the average length, the length factor is 1 whatever `b`, and a long
/// text is not punished for being long. Rarity cannot come from one document: it is taken over the rule's keywords
/// (a word that many of them share says little). Source: Robertson and Zaragoza 2009.
#[derive(Debug)]
pub(crate) struct Bm25 {
    case: Case,
    threshold: f64,
    presence: Presence,
    terms: BTreeMap<String, f64>,
    keywords: Vec<Vec<String>>,
}

impl Bm25 {
    pub(crate) fn build(keywords: &[String], case: Case, threshold: f64) -> Result<Self, String> {
        let keywords = keywords.iter().map(|k| words_of(k, case)).collect::<Result<Vec<_>, _>>()?;
        let distinct: BTreeSet<&String> = keywords.iter().flatten().collect();
        let presence = Presence::of(&distinct.iter().collect::<Vec<_>>())?;
        let total = keywords.len() as f64;
        let rarity = |term: &String| {
            let holding = keywords.iter().filter(|k| k.contains(term)).count() as f64;
            (1.0 + (total - holding + 0.5) / (holding + 0.5)).ln()
        };
        let terms = distinct.into_iter().map(|term| (term.clone(), rarity(term))).collect();
        Ok(Self { case, threshold, presence, terms, keywords })
    }

    pub(crate) fn case(&self) -> Case {
        self.case
    }

    /// The words of all keywords in comparable form.
    pub(crate) fn terms(&self) -> impl Iterator<Item = &str> {
        self.terms.keys().map(String::as_str)
    }

    pub(crate) fn look(&self, text: &Comparable) -> Vec<Found> {
        if !self.presence.in_text(text.text()) {
            return vec![Found::NOTHING; self.keywords.len()];
        }
        let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
        for word in text.runs(1) {
            if let Some((term, _)) = self.terms.get_key_value(word) {
                *counts.entry(term).or_default() += 1.0;
            }
        }
        let weight = |term: &String| {
            let count = counts.get(term.as_str()).copied().unwrap_or_default();
            self.terms.get(term).copied().unwrap_or_default() * count * (K1 + 1.0) / (count + K1)
        };
        self.keywords.iter().map(|k| Found::scored(k.iter().map(weight).sum(), self.threshold)).collect()
    }
}

fn words_of(keyword: &str, case: Case) -> Result<Vec<String>, String> {
    let words: Vec<String> = Comparable::of(keyword, case).runs(1).map(str::to_owned).collect();
    if words.is_empty() {
        return Err(format!("the keyword `{keyword}` holds no word that this method could look for"));
    }
    Ok(words)
}

/// Similarity of character n-grams (Dice) between a keyword and each run of as many words in the text.
#[derive(Debug)]
pub(crate) struct Ngram {
    case: Case,
    threshold: f64,
    arity: usize,
    keywords: Vec<(usize, Vec<u64>)>,
}

impl Ngram {
    pub(crate) fn build(
        keywords: &[String],
        case: Case,
        threshold: f64,
        arity: usize,
    ) -> Result<Self, String> {
        if arity == 0 {
            return Err("ngram_arity must be at least 1".to_owned());
        }
        let prepare = |keyword: &String| {
            let keyword = Comparable::of(keyword, case);
            words_of(keyword.text(), case).map(|words| (words.len(), grams(keyword.text(), arity)))
        };
        let keywords = keywords.iter().map(prepare).collect::<Result<_, _>>()?;
        Ok(Self { case, threshold, arity, keywords })
    }

    pub(crate) fn case(&self) -> Case {
        self.case
    }

    pub(crate) fn look(&self, text: &Comparable) -> Vec<Found> {
        let mut runs: BTreeMap<usize, Vec<Vec<u64>>> = BTreeMap::new();
        let mut look = |(width, wanted): &(usize, Vec<u64>)| {
            let runs = runs.entry(*width).or_insert_with(|| {
                distinct_runs(text, *width).into_iter().map(|run| grams(run, self.arity)).collect()
            });
            let best = runs.iter().map(|run| dice(wanted, run)).fold(0.0, f64::max);
            Found::scored(best, self.threshold)
        };
        self.keywords.iter().map(&mut look).collect()
    }
}

/// Runs of words, each once: a padded text costs no more than one copy of it. A text shorter than the width is one run.
fn distinct_runs(text: &Comparable, width: usize) -> BTreeSet<&str> {
    if text.units() < width {
        return text.runs(text.units()).collect();
    }
    text.runs(width).collect()
}

/// Hashes of all runs of `arity` characters, sorted; a shorter text is one gram.
fn grams(text: &str, arity: usize) -> Vec<u64> {
    let chars: Vec<char> = text.chars().collect();
    let mut grams: Vec<u64> =
        chars.windows(arity.min(chars.len()).max(1)).map(|gram| fnv::of(gram.iter().copied())).collect();
    grams.sort_unstable();
    grams
}

/// Dice similarity of two sorted multisets, in 0..=1.
fn dice(a: &[u64], b: &[u64]) -> f64 {
    let mut right = b.iter().peekable();
    let mut shared = 0.0;
    for gram in a {
        while right.next_if(|other| *other < gram).is_some() {}
        if right.next_if_eq(&gram).is_some() {
            shared += 1.0;
        }
    }
    2.0 * shared / ((a.len() + b.len()) as f64).max(1.0)
}

/// Edit distance (insert, delete, replace, swap neighbours) between a keyword and each run of as many words.
///
/// The distance allowed is `max_distance`, but at most a third of the keyword's letters less one: three letters must
/// be exact, four to six may err once, seven to nine twice ("tax" is neither "cat" nor "max").
#[derive(Debug)]
pub(crate) struct Fuzzy {
    exact: LiteralSet,
    keywords: Vec<Loose>,
}

#[derive(Debug)]
struct Loose {
    text: String,
    letters: usize,
    words: usize,
    allowed: usize,
}

impl Fuzzy {
    pub(crate) fn build(keywords: &[String], case: Case, max_distance: usize) -> Result<Self, String> {
        let loose = |keyword: &String| {
            let keyword = Comparable::of(keyword, case);
            let letters = keyword.text().chars().count();
            let allowed = max_distance.min(letters.saturating_sub(1) / 3);
            Loose { letters, words: keyword.units(), allowed, text: keyword.text().to_owned() }
        };
        Ok(Self { exact: LiteralSet::build(keywords, case)?, keywords: keywords.iter().map(loose).collect() })
    }

    pub(crate) fn case(&self) -> Case {
        self.exact.case()
    }

    pub(crate) fn look(&self, text: &Comparable) -> Vec<Found> {
        let exact: BTreeSet<usize> = self.exact.hits(text.text()).map(|hit| hit.keyword).collect();
        let mut runs: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
        let mut look = |(at, keyword): (usize, &Loose)| {
            if exact.contains(&at) {
                return Found::CERTAIN;
            }
            if keyword.allowed == 0 || keyword.words == 0 {
                return Found::NOTHING;
            }
            let runs = runs.entry(keyword.words).or_insert_with(|| text.runs(keyword.words).collect());
            keyword.nearest(runs)
        };
        self.keywords.iter().enumerate().map(&mut look).collect()
    }
}

impl Loose {
    fn nearest(&self, runs: &BTreeSet<&str>) -> Found {
        let near = |run: &&&str| run.chars().count().abs_diff(self.letters) <= self.allowed;
        let distance = runs.iter().filter(near).map(|run| strsim::osa_distance(&self.text, run)).min();
        match distance {
            Some(distance) if distance <= self.allowed => {
                let similarity = 1.0 - distance as f64 / self.letters as f64;
                Found { score: similarity, confidence: Some(similarity) }
            }
            _ => Found::NOTHING,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(|w| (*w).to_owned()).collect()
    }

    fn text(text: &str) -> Comparable {
        Comparable::of(text, Case::Folded)
    }

    #[test]
    fn bm25_by_hand() {
        // One keyword of one term: rarity ln(1 + 0.5/1.5) = 0.28768; a single occurrence weighs (1.2+1)/(1+1.2) = 1.
        let single = Bm25::build(&owned(&["invoice"]), Case::Folded, 0.1).unwrap();
        let found = single.look(&text("where is my Invoice?"));
        assert!((found[0].score - 0.287_682).abs() < 1e-6);
        assert_eq!(single.look(&text("nothing here")), [Found::NOTHING]);
        // Length does not dilute: all of a padded text counts.
        let padded = format!("{} invoice", "filler ".repeat(20_000));
        assert_eq!(single.look(&text(&padded))[0], found[0]);
        // A shared word is worth less than a word of one keyword only.
        let shared = Bm25::build(&owned(&["refund request", "invoice request"]), Case::Folded, 0.1).unwrap();
        let by_rare = shared.look(&text("refund"))[0].score;
        assert!(by_rare > shared.look(&text("request"))[0].score);
        assert!(Bm25::build(&owned(&["++"]), Case::Folded, 0.1).is_err());
    }

    #[test]
    fn ngrams_find_misspelled_words() {
        let ngram = Ngram::build(&owned(&["kubernetes", "tax"]), Case::Folded, 0.4, 3).unwrap();
        let hits = |t: &str| ngram.look(&text(t)).iter().map(|f| f.confidence.is_some()).collect::<Vec<_>>();
        assert_eq!(hits("deploy to kubernets now"), [true, false]);
        assert_eq!(hits("taxonomy of birds"), [false, false]);
        assert_eq!(hits("income TAX"), [false, true]);
        assert_eq!(hits(""), [false, false]);
        // {abc,bcd} and {abc,bcx}: 2·1/(2+2).
        assert!((dice(&grams("abcd", 3), &grams("abcx", 3)) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn fuzzy_allows_less_for_short_words() {
        let fuzzy =
            Fuzzy::build(&owned(&["tax", "urgent", "root cause analysis", "C++"]), Case::Folded, 2).unwrap();
        for (said, want) in [
            ("a cat and a max", [false; 4]),
            ("this is urgnet", [false, true, false, false]),
            ("do a root cuase anlysis", [false, false, true, false]),
            ("income tax in C++", [true, false, false, true]),
            ("plain c", [false; 4]),
        ] {
            let hits: Vec<bool> = fuzzy.look(&text(said)).iter().map(|f| f.confidence.is_some()).collect();
            assert_eq!(hits, want, "{said}");
        }
        let found = fuzzy.look(&text("urgnet"))[1];
        assert!((found.confidence.unwrap() - (1.0 - 1.0 / 6.0)).abs() < 1e-9);
    }
}
