//! One training run: data → vectors → penalty, temperature, head → figures and files.
//!
//! It knows the stages and no dataset. Invariant: the held-out sets are looked at once, after everything is chosen.

use std::fs;
use std::path::PathBuf;

use chorus_infer::TextEncoder;
use chorus_infer::heads::{Head, HeadCard};
use chorus_infer::lexical::WithFeatures;
use chorus_signals::language_of;
use sha2::{Digest, Sha256};

use crate::card;
use crate::example::{Example, Split};
use crate::fault::LabFault;
use crate::metrics::{Metrics, Reported, auroc};
use crate::regression::{self, Linear, Row, Scored, log_softmax};
use crate::report::{EvaluatedSet, Report};
use crate::task::Task;

/// Texts that are encoded between two lines of progress.
const ENCODED_AT_ONCE: usize = 1_024;

/// A training run.
#[derive(Debug, Clone)]
pub struct TrainHead {
    /// What the head is to tell.
    pub task: Task,
    /// Folder of the public datasets: `outcomes/`, `intents/`.
    pub data_dir: PathBuf,
    /// Bytes of the longest text that is learnt, all when none: most of an encoder's time goes into exam questions that are
    /// longer than requests. Held-out texts are measured whatever their length.
    pub longest_bytes: Option<usize>,
    /// Folder that gets `TASK.safetensors` and `TASK.md`.
    pub out_dir: PathBuf,
}

/// Examples with their vectors.
struct Encoded {
    examples: Vec<Example>,
    vectors: Vec<Vec<f32>>,
}

impl Encoded {
    fn rows<'a>(&'a self, class_weights: &'a [f32]) -> impl Iterator<Item = Row<'a>> {
        self.examples.iter().zip(&self.vectors).map(|(example, vector)| {
            let balance = class_weights.get(example.label).copied().unwrap_or(1.0);
            Row { vector, label: example.label, weight: example.weight * balance }
        })
    }

    /// Logits by whether a text is in another language than English.
    fn logits_by_language(&self, model: &Linear, elsewhere: bool) -> Scored {
        let rows = self.examples.iter().zip(&self.vectors);
        let rows = rows.filter(|(example, _)| is_elsewhere(&example.text) == elsewhere);
        rows.map(|(example, vector)| (model.logits(vector), example.label)).collect()
    }

    fn logits(&self, model: &Linear) -> Scored {
        let rows = self.examples.iter().zip(&self.vectors);
        rows.map(|(example, vector)| (model.logits(vector), example.label)).collect()
    }
}

impl TrainHead {
    /// Trains, measures and writes a head; `progress` gets a line now and then.
    ///
    /// # Errors
    /// [`LabFault`] when a dataset is absent or broken, or a file cannot be written.
    pub fn run(&self, encoder: &dyn TextEncoder, progress: &mut dyn FnMut(&str)) -> Result<Report, LabFault> {
        let mut split = self.task.split(&self.data_dir)?;
        for learnt in [&mut split.train, &mut split.validation, &mut split.everyday_validation] {
            learnt.retain(|example| self.longest_bytes.is_none_or(|longest| example.text.len() <= longest));
        }
        let report = if self.task.sees_words() {
            self.train(split, &WithFeatures::new(encoder), progress)?
        } else {
            self.train(split, encoder, progress)?
        };
        fs::create_dir_all(&self.out_dir).map_err(|cause| LabFault::file(&self.out_dir, cause))?;
        let files = [
            (format!("{}.safetensors", self.task.name()), report.head.to_bytes()?),
            (
                format!("{}.md", self.task.name()),
                card::write(self.task, self.longest_bytes, &report).into_bytes(),
            ),
        ];
        for (name, content) in files {
            let path = self.out_dir.join(name);
            fs::write(&path, content).map_err(|cause| LabFault::file(&path, cause))?;
        }
        Ok(report)
    }

    fn train(
        &self,
        split: Split,
        encoder: &dyn TextEncoder,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Report, LabFault> {
        let labels = self.task.labels();
        let data_digest = data_digest(&split);
        let mut train = encode(split.train, "train", encoder, progress)?;
        let kinds = [
            encode(split.validation, "validation", encoder, progress)?,
            encode(split.everyday_validation, "everyday validation", encoder, progress)?,
        ];
        let [_, everyday] = &kinds;
        let phrases = self.task.phrase_figures(&everyday.examples);
        let balance = class_weights(&train.examples, labels)?;
        let (penalty, temperatures) = choose(self.task, &train, &kinds, &balance, progress);

        for kind in kinds {
            train.examples.extend(kind.examples);
            train.vectors.extend(kind.vectors);
        }
        let model = regression::fit(&train.rows(&balance).collect::<Vec<_>>(), labels.len(), penalty);
        let card = HeadCard {
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
            encoder_digest: encoder.digest().to_owned(),
            data_digest,
            temperature: temperatures.here,
            temperature_elsewhere: temperatures.elsewhere,
        };
        let head = Head::new(card, model.weight, model.bias)?;
        let mut sets = Vec::new();
        for (name, examples) in split.held_out {
            let set = encode(examples, &name, encoder, progress)?;
            sets.push(evaluate(self.task, name, &set, &head));
        }
        Ok(Report { head, trained_on: train.examples.len(), penalty, sets, phrases })
    }
}

fn encode(
    examples: Vec<Example>,
    name: &str,
    encoder: &dyn TextEncoder,
    progress: &mut dyn FnMut(&str),
) -> Result<Encoded, LabFault> {
    let mut vectors = Vec::with_capacity(examples.len());
    for part in examples.chunks(ENCODED_AT_ONCE) {
        vectors
            .extend(encoder.encode(&part.iter().map(|example| example.text.as_str()).collect::<Vec<_>>())?);
        progress(&format!("encoded {} of {}: {name}", vectors.len(), examples.len()));
    }
    Ok(Encoded { examples, vectors })
}

/// Factors that move every class half of the way (on a logarithmic scale) to an equal share: full balance would let
/// the rarest class outweigh what requests look like.
fn class_weights(examples: &[Example], labels: &[&str]) -> Result<Vec<f32>, LabFault> {
    let mut totals = vec![0.0_f32; labels.len()];
    for example in examples {
        if let Some(total) = totals.get_mut(example.label) {
            *total += example.weight;
        }
    }
    let mean = totals.iter().sum::<f32>() / labels.len() as f32;
    let factors = totals.iter().zip(labels).map(|(&total, &label)| {
        if total > 0.0 { Ok((mean / total).sqrt()) } else { Err(LabFault::EmptyClass(label.to_owned())) }
    });
    factors.collect()
}

/// What logits are divided by, in English and elsewhere.
#[derive(Debug, Clone, Copy)]
struct Temperatures {
    here: f32,
    elsewhere: Option<f32>,
}

impl Temperatures {
    /// Those that validation texts ask for, of the last kind that has any.
    fn of(task: Task, kinds: &[Encoded], model: &Linear) -> Self {
        let served = kinds.iter().rfind(|kind| !kind.examples.is_empty());
        let temper = |scored: Scored| regression::temper(&[scored]).temperature;
        match served {
            Some(kind) if task.is_by_language() => {
                let elsewhere = kind.logits_by_language(model, true);
                let elsewhere = (!elsewhere.is_empty()).then(|| temper(elsewhere));
                Self { here: temper(kind.logits_by_language(model, false)), elsewhere }
            }
            Some(kind) => Self { here: temper(kind.logits(model)), elsewhere: None },
            None => Self { here: 1.0, elsewhere: None },
        }
    }
}

/// The penalty that leaves the least loss on the validation parts, each kind of text counting the same, and the
/// temperatures that everyday questions ask for: they, not exams, are what thresholds meet.
fn choose(
    task: Task,
    train: &Encoded,
    kinds: &[Encoded],
    balance: &[f32],
    progress: &mut dyn FnMut(&str),
) -> (f64, Temperatures) {
    let rows: Vec<Row<'_>> = train.rows(balance).collect();
    let mut best = (f64::INFINITY, 0.0, Temperatures { here: 1.0, elsewhere: None });
    for &penalty in task.penalties() {
        let model = regression::fit(&rows, balance.len(), penalty);
        let scored: Vec<Scored> = kinds.iter().map(|kind| kind.logits(&model)).collect();
        let loss = regression::temper(&scored).loss;
        let temperatures = Temperatures::of(task, kinds, &model);
        progress(&format!("penalty {penalty:e}: validation loss {loss:.4}, {temperatures:?}"));
        for kind in scored.iter().filter(|kind| !kind.is_empty()) {
            let metrics = Metrics::of(&probabilities(kind, temperatures.here), balance.len());
            progress(&format!(
                "    of {}: top-1 {:.4}, macro-F1 {:.4}, calibration error {:.4}",
                metrics.count, metrics.top1, metrics.macro_f1, metrics.calibration_error
            ));
        }
        if loss < best.0 {
            best = (loss, penalty, temperatures);
        }
    }
    (best.1, best.2)
}

fn probabilities(scored: &Scored, temperature: f32) -> Scored {
    let tempered = scored.iter().map(|(logits, label)| {
        let logits = log_softmax(logits.iter().map(|logit| logit / temperature).collect());
        (logits.into_iter().map(f32::exp).collect(), *label)
    });
    tempered.collect()
}

/// As the signal has them: by the text's language where the head is.
fn probabilities_of(head: &Head, vector: &[f32], text: &str) -> Vec<f32> {
    if is_elsewhere(text) { head.probabilities_elsewhere(vector) } else { head.probabilities(vector) }
}

fn is_elsewhere(text: &str) -> bool {
    language_of(text).is_some_and(|language| language != "en")
}

fn evaluate(task: Task, name: String, set: &Encoded, head: &Head) -> EvaluatedSet {
    let pairs = set.examples.iter().zip(&set.vectors);
    let rows: Vec<(Vec<f32>, usize)> = pairs
        .map(|(example, vector)| (probabilities_of(head, vector, &example.text), example.label))
        .collect();
    let classes = head.labels().len();
    let auroc = (classes == 2).then(|| {
        let scores = rows.iter().filter_map(|(row, label)| Some((*row.get(1)?, *label == 1)));
        auroc(&scores.collect::<Vec<_>>())
    });
    let reported = task.reported().map(|(threshold, quiet)| Reported::of(&rows, threshold, quiet));
    let weighed = set.examples.iter().zip(&rows).filter_map(|(example, (row, label))| {
        Some((task.with_phrases(head.labels(), row.clone(), &example.text)?, *label))
    });
    let weighed: Vec<(Vec<f32>, usize)> = weighed.collect();
    let with_phrases = task.reported().filter(|_| !weighed.is_empty());
    let with_phrases = with_phrases.map(|(threshold, quiet)| Reported::of(&weighed, threshold, quiet));
    EvaluatedSet { name, metrics: Metrics::of(&rows, classes), auroc, reported, with_phrases }
}

/// `sha256:…` over every learnt example in its order.
fn data_digest(split: &Split) -> String {
    let mut digest = Sha256::new();
    for example in split.train.iter().chain(&split.validation).chain(&split.everyday_validation) {
        digest.update(format!("{}\t{}\t{}\n", example.label, example.weight, example.text));
    }
    format!("sha256:{}", hex::encode(digest.finalize()))
}
