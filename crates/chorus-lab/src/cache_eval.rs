//! How many paraphrases a lookup by meaning finds, and how many questions it wrongly takes for one.
//!
//! Every pair goes through the cache itself: the answer of one question is kept, the other is looked up. The least
//! similarity is chosen on one half of the families of questions and reported on the other. It knows no request and no
//! route. **Invariant:** what is reported has no part in what is chosen.

use crate::cache_intents;
use crate::cache_pairs::{Asked, Half, Relation, pairs};
use crate::fault::LabFault;
use chorus_cache::{Answers, Bounds, Difference, Labels, NewAnswer, Question, Reading, Worded, difference};
use chorus_infer::{EncodeFault, TextEncoder};
use chorus_signals::{Calibration, SharedPass, language_of};
use chorus_spec::{CacheEviction, Permille};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Largest share of near misses that may be hits where a least similarity is chosen.
const FALSE_HITS: f64 = 0.01;

/// The share of paraphrases that is given up for a greater least similarity: a wrong answer costs more than a call.
const GIVEN_UP: f64 = 0.02;

const BOUNDS: Bounds = Bounds { entries: 1, bytes: usize::MAX, eviction: CacheEviction::Fifo };

/// An evaluation of the cache.
#[derive(Debug, Default)]
pub struct EvalCache {
    /// Least similarity, on the scale of configuration files; chosen where `None`.
    pub threshold: Option<Permille>,
    /// Folder of the public datasets, where pairs of `intents/` are to be reported too.
    pub data: Option<PathBuf>,
}

/// One row of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheRow {
    /// How the questions are related.
    pub relation: Relation,
    /// Pairs.
    pub pairs: usize,
    /// Those that were hits.
    pub hits: usize,
    /// Those that would have been, had no guard refused them.
    pub unguarded: usize,
}

/// What was found.
#[derive(Debug)]
pub struct CacheReport {
    /// The encoder.
    pub encoder: String,
    /// Least similarity on the scale of configuration files.
    pub threshold: Permille,
    /// The same as a cosine.
    pub cosine: f64,
    /// Whether it was chosen here.
    pub chosen: bool,
    /// What other least similarities would come to on the half that it was chosen on: hits on paraphrases, and hits on near
    /// misses, as shares.
    pub curve: Vec<(Permille, f64, f64)>,
    /// On the half that it was chosen on.
    pub chosen_on: Vec<CacheRow>,
    /// On the other half.
    pub reported: Vec<CacheRow>,
    /// On pairs of public sets of intents, where those are at hand; nothing is chosen on them.
    pub intents: Vec<CacheRow>,
    /// Of the half that it was chosen on, so that nobody learns from the other: near misses that no guard refuses, and
    /// paraphrases that were no hits, each with what refused it and its similarity. Of the pairs of intents, what an
    /// assistant was asked and was wrongly found; nobody looks at what a bank was asked.
    pub wrong: Vec<(Relation, String, String, Option<Difference>, f64)>,
}

/// A pair with its vectors.
struct Read {
    pair: Asked,
    kept: Worded,
    asked: Worded,
    /// On the scale of configuration files.
    similarity: f64,
    differs: Option<Difference>,
}

impl EvalCache {
    /// Chooses and reports.
    ///
    /// # Errors
    /// [`LabFault`].
    pub fn run(
        &self,
        encoder: &dyn TextEncoder,
        progress: &mut dyn FnMut(&str),
    ) -> Result<CacheReport, LabFault> {
        let calibration = Calibration::of(encoder);
        let mut pass = SharedPass::new();
        let mut read = |pairs: Vec<Asked>| -> Result<Vec<Read>, LabFault> {
            pairs.into_iter().map(|pair| read_pair(pair, encoder, &calibration, &mut pass)).collect()
        };
        progress("encoding the questions");
        let (chosen_on, reported) = (read(pairs(Half::Chosen)?)?, read(pairs(Half::Reported)?)?);
        let intents = self.data.as_deref().map(cache_intents::pairs).transpose()?.unwrap_or_default();
        let intents = read(intents)?;
        let threshold = self.threshold.unwrap_or_else(|| choose(&chosen_on));
        let cosine = calibration.cosine(threshold.as_similarity());
        let wrong = chosen_on.iter().chain(&intents).filter(|it| match it.pair.relation {
            Relation::Paraphrase => !is_hit(it, cosine),
            Relation::OtherIntent => is_hit(it, cosine),
            Relation::Tenant | Relation::SameIntent | Relation::OtherBankingIntent => false,
            _ => it.differs.is_none(),
        });
        Ok(CacheReport {
            encoder: encoder.digest().to_owned(),
            threshold,
            cosine,
            chosen: self.threshold.is_none(),
            curve: (650..=950).step_by(25).map(Permille).map(|it| shares(&chosen_on, it)).collect(),
            chosen_on: rows(&chosen_on, cosine),
            reported: rows(&reported, cosine),
            intents: rows(&intents, cosine),
            wrong: wrong
                .map(|it| {
                    (it.pair.relation, it.pair.kept.clone(), it.pair.asked.clone(), it.differs, it.similarity)
                })
                .collect(),
        })
    }
}

fn read_pair(
    pair: Asked,
    encoder: &dyn TextEncoder,
    calibration: &Calibration,
    pass: &mut SharedPass,
) -> Result<Read, LabFault> {
    let mut worded = |text: &str, partition: &str| -> Result<Worded, LabFault> {
        let encoded = pass.encode(encoder, text).map_err(|why| LabFault::Encode(EncodeFault(why)))?;
        let (vector, language) = (encoded.mean.clone(), language_of(text));
        Ok(Worded { partition: partition.to_owned(), text: text.to_owned(), language, vector })
    };
    let kept = worded(&pair.kept, "one tenant")?;
    let tenant = if pair.relation == Relation::Tenant { "another tenant" } else { "one tenant" };
    let asked = worded(&pair.asked, tenant)?;
    let cosine: f64 = kept.vector.iter().zip(&asked.vector).map(|(a, b)| f64::from(a * b)).sum();
    let reading = |worded: &Worded| Reading::of(&worded.text, worded.language);
    let differs = difference(&reading(&kept), &reading(&asked));
    Ok(Read { similarity: calibration.apply(cosine).clamp(0.0, 1.0), pair, kept, asked, differs })
}

/// Whether the cache gives one the answer to the other.
fn is_hit(read: &Read, least: f64) -> bool {
    let mut answers = Answers::default();
    let new = NewAnswer {
        id: "kept".to_owned(),
        exact: "kept".to_owned(),
        worded: Some(read.kept.clone()),
        labels: Labels::default(),
        body: Arc::from(&b"{}"[..]),
        ttl_ms: u64::MAX,
    };
    answers.put(new, BOUNDS, 0);
    answers.alike(Question { worded: &read.asked, least, max_age_ms: None }, 1).found.is_some()
}

/// The greatest least similarity that finds nearly as many paraphrases as any at which no more than so many near misses are
/// hits.
fn choose(read: &[Read]) -> Permille {
    let all: Vec<(Permille, f64, f64)> = (500..=1000)
        .map(|permille| shares(read, Permille(permille)))
        .filter(|it| it.2 <= FALSE_HITS)
        .collect();
    let most = all.iter().map(|it| it.1).fold(0.0, f64::max);
    let nearly = all.iter().rev().find(|it| it.1 >= most - GIVEN_UP);
    nearly.map_or(Permille(1000), |it| it.0)
}

/// The shares of paraphrases and of near misses that would be hits; other tenants do not count, they never are.
fn shares(read: &[Read], least: Permille) -> (Permille, f64, f64) {
    let share = |of: &[&Read]| {
        let hits =
            of.iter().filter(|it| it.differs.is_none() && it.similarity >= least.as_similarity()).count();
        hits as f64 / of.len().max(1) as f64
    };
    let (same, other): (Vec<&Read>, Vec<&Read>) = read
        .iter()
        .filter(|it| it.pair.relation != Relation::Tenant)
        .partition(|it| it.pair.relation == Relation::Paraphrase);
    (least, share(&same), share(&other))
}

fn rows(read: &[Read], least: f64) -> Vec<CacheRow> {
    let mut rows: BTreeMap<Relation, CacheRow> = BTreeMap::new();
    for it in read {
        let relation = it.pair.relation;
        let row = rows.entry(relation).or_insert(CacheRow { relation, pairs: 0, hits: 0, unguarded: 0 });
        let cosine: f64 = it.kept.vector.iter().zip(&it.asked.vector).map(|(a, b)| f64::from(a * b)).sum();
        row.pairs += 1;
        row.hits += usize::from(is_hit(it, least));
        row.unguarded += usize::from(relation != Relation::Tenant && cosine >= least);
    }
    rows.into_values().collect()
}

impl fmt::Display for CacheReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "encoder {}", self.encoder)?;
        let how = if self.chosen { "chosen on one half of the questions" } else { "as given" };
        writeln!(
            f,
            "least similarity {:.3} (cosine {:.3}), {how}",
            self.threshold.as_similarity(),
            self.cosine
        )?;
        let curve = self
            .curve
            .iter()
            .map(|(least, found, wrong)| format!("{:.3}: {found:.3}/{wrong:.4}", least.as_similarity()));
        writeln!(
            f,
            "least similarity: hits/false hits on that half: {}",
            curve.collect::<Vec<_>>().join("  ")
        )?;
        for (name, rows) in [("that half", &self.chosen_on), ("the other half", &self.reported)] {
            writeln!(
                f,
                "{name}: {:<16} {:>6} {:>6} {:>7} {:>15}",
                "pairs of", "pairs", "hits", "share", "without guards"
            )?;
            let near = rows.iter().filter(|row| row.relation != Relation::Paraphrase);
            for row in rows {
                line(f, row.relation.as_str(), row.pairs, row.hits, row.unguarded)?;
            }
            let (pairs, hits, unguarded) =
                near.fold((0, 0, 0), |sum, row| (sum.0 + row.pairs, sum.1 + row.hits, sum.2 + row.unguarded));
            line(f, "all near misses", pairs, hits, unguarded)?;
        }
        if !self.intents.is_empty() {
            writeln!(f, "public sets of intents:")?;
        }
        self.intents
            .iter()
            .try_for_each(|row| line(f, row.relation.as_str(), row.pairs, row.hits, row.unguarded))
    }
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, pairs: usize, hits: usize, unguarded: usize) -> fmt::Result {
    let share = hits as f64 / pairs.max(1) as f64;
    writeln!(f, "  {name:<24} {pairs:>6} {hits:>6} {share:>7.3} {unguarded:>15}")
}
