//! How many paraphrases a lookup by meaning finds, and how many questions it wrongly takes for one.
//!
//! Every pair goes through the cache itself: the answer of one question is kept, the other is looked up. The least
//! similarity is chosen on one half of the families of questions and on the training parts of public sets of intents, and
//! reported on the other half and on the test parts. It knows no request and no route. **Invariant:** what is reported has
//! no part in what is chosen.

use crate::cache_intents;
use crate::cache_pairs::{Asked, Half, Relation, pairs};
use crate::corpus::Part;
use crate::fault::LabFault;
use chorus_cache::{
    Answers, Bounds, Difference, Labels, Least, NewAnswer, Question, Reading, WORDING, Worded, difference,
    least_alike, least_alike_by, shared,
};
use chorus_infer::{EncodeFault, TextEncoder};
use chorus_signals::{Calibration, SharedPass, language_of};
use chorus_spec::{CacheEviction, Permille};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Largest share of near misses of each set that may be hits where a least similarity is chosen: half of what is promised, for
/// other questions are not the same.
const FALSE_HITS: f64 = 0.005;

const BOUNDS: Bounds = Bounds { entries: 1, bytes: usize::MAX, eviction: CacheEviction::Fifo };

/// An evaluation of the cache.
#[derive(Debug, Default)]
pub struct EvalCache {
    /// Least similarity, on the scale of configuration files; chosen where `None`.
    pub threshold: Option<Permille>,
    /// Folder of the public datasets, where pairs of `intents/` are to be chosen and reported on too.
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
    /// The same as a cosine, for questions that share no word.
    pub cosine: f64,
    /// Whether it was chosen here.
    pub chosen: bool,
    /// What other least similarities would come to on the questions that it was chosen on.
    pub curve: Vec<Shares>,
    /// What it would come to there if sharing every word asked for so much more likeness; each at the least similarity that
    /// would then be chosen.
    pub wordings: Vec<(f64, Shares)>,
    /// On the questions that it was chosen on.
    pub chosen_on: Vec<CacheRow>,
    /// On the others.
    pub reported: Vec<CacheRow>,
    /// Of the questions that it was chosen on, so that nobody learns from the others: near misses that no guard refuses,
    /// and paraphrases that were no hits, each with what refused it and its similarity. What a bank was asked, nobody looks
    /// at.
    pub wrong: Vec<(Relation, String, String, Option<Difference>, f64)>,
}

/// What a least similarity comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shares {
    /// The least similarity.
    pub least: Permille,
    /// Hits on paraphrases, as a share.
    pub hits: f64,
    /// Hits on near misses of the set that has most of them, as a share.
    pub false_hits: f64,
}

/// A pair with its vectors.
struct Read {
    pair: Asked,
    kept: Worded,
    asked: Worded,
    /// On the scale of configuration files.
    similarity: f64,
    /// The part of their words that both have.
    shared: f64,
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
        let mut read = |half: Half, part: Part| -> Result<Vec<Read>, LabFault> {
            let intents = self.data.as_deref().map(|data| cache_intents::pairs(data, part)).transpose()?;
            let all = pairs(half)?.into_iter().chain(intents.unwrap_or_default());
            all.map(|pair| read_pair(pair, encoder, &calibration, &mut pass)).collect()
        };
        progress("encoding the questions");
        let (chosen_on, reported) = (read(Half::Chosen, Part::Train)?, read(Half::Reported, Part::Test)?);
        let threshold = self.threshold.unwrap_or_else(|| choose(&chosen_on, WORDING).least);
        let least = Least::of(threshold.as_similarity(), |it| calibration.cosine(it));
        let wrong = chosen_on.iter().filter(|it| match it.pair.relation {
            Relation::Paraphrase => !is_hit(it, least),
            Relation::OtherIntent => is_hit(it, least),
            Relation::Tenant | Relation::SameIntent | Relation::OtherBankingIntent => false,
            _ => it.differs.is_none(),
        });
        Ok(CacheReport {
            encoder: encoder.digest().to_owned(),
            threshold,
            cosine: least.of_any(),
            chosen: self.threshold.is_none(),
            curve: (650..=950).step_by(25).map(|it| shares(&chosen_on, Permille(it), WORDING)).collect(),
            wordings: (0..=8)
                .map(|step| f64::from(step) / 20.0)
                .map(|it| (it, choose(&chosen_on, it)))
                .collect(),
            chosen_on: rows(&chosen_on, least),
            reported: rows(&reported, least),
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
    let (own, other) = (reading(&kept), reading(&asked));
    let similarity = calibration.apply(cosine).clamp(0.0, 1.0);
    let (shared, differs) = (shared(&own, &other), difference(&own, &other));
    Ok(Read { pair, kept, asked, similarity, shared, differs })
}

/// Whether the cache gives one the answer to the other.
fn is_hit(read: &Read, least: Least) -> bool {
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

/// The least similarity at which no more than so many near misses are hits, where sharing every word asks for `wording` more.
fn choose(read: &[Read], wording: f64) -> Shares {
    let mut all = (500..=1000).map(|permille| shares(read, Permille(permille), wording));
    all.find(|it| it.false_hits <= FALSE_HITS).unwrap_or_else(|| shares(read, Permille(1000), wording))
}

/// The shares of paraphrases, and of near misses of each set, that would be hits. Other tenants do not count, they never are;
/// questions of one intent neither, they may ask for two things.
fn shares(read: &[Read], least: Permille, wording: f64) -> Shares {
    let least_of = |it: &Read| least_alike_by(wording, least.as_similarity(), it.shared);
    let is_hit = |it: &&Read| it.differs.is_none() && it.similarity >= least_of(it);
    let share = |is_in: &dyn Fn(Relation) -> bool| {
        let of = || read.iter().filter(|it| is_in(it.pair.relation));
        of().filter(is_hit).count() as f64 / of().count().max(1) as f64
    };
    let own = [Relation::Negated, Relation::Number, Relation::Entity, Relation::Language];
    let near = [
        share(&|it| own.contains(&it)),
        share(&|it| it == Relation::OtherIntent),
        share(&|it| it == Relation::OtherBankingIntent),
    ];
    let hits = share(&|it| it == Relation::Paraphrase);
    Shares { least, hits, false_hits: near.into_iter().fold(0.0, f64::max) }
}

fn rows(read: &[Read], least: Least) -> Vec<CacheRow> {
    let mut rows: BTreeMap<Relation, CacheRow> = BTreeMap::new();
    for it in read {
        let relation = it.pair.relation;
        let row = rows.entry(relation).or_insert(CacheRow { relation, pairs: 0, hits: 0, unguarded: 0 });
        let cosine: f64 = it.kept.vector.iter().zip(&it.asked.vector).map(|(a, b)| f64::from(a * b)).sum();
        row.pairs += 1;
        row.hits += usize::from(is_hit(it, least));
        row.unguarded += usize::from(relation != Relation::Tenant && cosine >= least.of_any());
    }
    rows.into_values().collect()
}

impl fmt::Display for CacheReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "encoder {}", self.encoder)?;
        let how = if self.chosen { "chosen on the first questions below" } else { "as given" };
        let (least, cosine) = (self.threshold.as_similarity(), self.cosine);
        writeln!(f, "least similarity {least:.3} (cosine {cosine:.3}) without a word in common, {how};")?;
        writeln!(f, "{:.3} where every word is in both", least_alike(least, 1.0))?;
        let point =
            |it: &Shares| format!("{:.3}: {:.3}/{:.4}", it.least.as_similarity(), it.hits, it.false_hits);
        let curve = self.curve.iter().map(point).collect::<Vec<_>>().join("  ");
        writeln!(f, "least similarity: hits/false hits on those questions: {curve}")?;
        writeln!(f, "the same, were this more for every word in both:")?;
        for (wording, chosen) in &self.wordings {
            writeln!(f, "  {wording:.2}: {}", point(chosen))?;
        }
        for (name, rows) in [("chosen on", &self.chosen_on), ("reported on", &self.reported)] {
            writeln!(
                f,
                "{name}: {:<13} {:>6} {:>6} {:>7} {:>15}",
                "pairs of", "pairs", "hits", "share", "without guards"
            )?;
            for row in rows {
                line(f, row.relation.as_str(), row.pairs, row.hits, row.unguarded)?;
            }
            let near = rows.iter().filter(|row| Relation::MISSES.contains(&row.relation));
            let (pairs, hits, unguarded) =
                near.fold((0, 0, 0), |sum, row| (sum.0 + row.pairs, sum.1 + row.hits, sum.2 + row.unguarded));
            line(f, "all near misses of ours", pairs, hits, unguarded)?;
        }
        Ok(())
    }
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, pairs: usize, hits: usize, unguarded: usize) -> fmt::Result {
    let share = hits as f64 / pairs.max(1) as f64;
    writeln!(f, "  {name:<24} {pairs:>6} {hits:>6} {share:>7.3} {unguarded:>15}")
}
