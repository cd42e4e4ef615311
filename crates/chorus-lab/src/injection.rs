//! `lab train-injection`: the injection head, from data to its file and card.
//!
//! It knows the stages. Invariant: the scale is set by folds of the learnt data alone; the measured sets are looked at
//! once, after everything is chosen, and through the signal itself.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use chorus_infer::TextEncoder;
use chorus_infer::mixed::{MixedCard, MixedHead, MixedWeights};
use chorus_signals::jailbreak::features::{FEATURES, PLACES, features};
use chorus_signals::jailbreak::plain::plain;
use sha2::{Digest, Sha256};

use crate::fault::LabFault;
use crate::injection_data::{FOLDS, Lesson, lessons};
use crate::injection_eval::{InjectionReport, evaluate};
use crate::injection_fit::{MixedModel, MixedRow, PENALTY, Scale, fit, scale};

/// The share of the reference's attempts that are found at the operating point, on unseen folds. The last model learns
/// from all folds and finds a little more. The card says how it was chosen.
const RECALL: f64 = 0.948;
/// The score of the operating point: the contract's default threshold. Source: contract, `prompt_guard.threshold`.
const OPERATING_POINT: f32 = 0.7;
/// Texts that are encoded between two lines of progress.
const ENCODED_AT_ONCE: usize = 2048;

/// A training run of the injection head.
#[derive(Debug, Clone)]
pub struct TrainInjection {
    /// Folder of the public datasets: `safety/`, `intents/`, `tasks/`.
    pub data_dir: PathBuf,
    /// Folder that gets `injection.safetensors` and `injection.md`.
    pub out_dir: PathBuf,
}

/// Lessons as numbers.
struct Encoded {
    lessons: Vec<Lesson>,
    vectors: Vec<Vec<f32>>,
    features: Vec<Vec<(u32, f32)>>,
}

impl TrainInjection {
    /// Trains, measures and writes; `progress` gets a line now and then.
    ///
    /// # Errors
    /// [`LabFault`] when a dataset is absent or broken, or a file cannot be written.
    pub fn run(
        &self,
        encoder: &dyn TextEncoder,
        progress: &mut dyn FnMut(&str),
    ) -> Result<InjectionReport, LabFault> {
        let encoded = encode(lessons(&self.data_dir)?, encoder, progress)?;
        let (with, with_scale) = encoded.fit(encoder.dimension(), progress);
        let (alone, alone_scale) = encoded.fit(0, progress);
        let card = MixedCard {
            label: "attack".to_owned(),
            encoder_digest: encoder.digest().to_owned(),
            data_digest: encoded.digest(),
            features: FEATURES.to_owned(),
        };
        let weights = MixedWeights {
            dense: with.dense,
            sparse: with.sparse,
            bias: with.bias,
            alone: alone.sparse,
            alone_bias: alone.bias,
        };
        let head = MixedHead::new(card, weights)?;
        fs::create_dir_all(&self.out_dir).map_err(|cause| LabFault::file(&self.out_dir, cause))?;
        self.write("injection.safetensors", &head.to_bytes()?)?;
        let head: &'static MixedHead = Box::leak(Box::new(head));
        let report = evaluate(&self.data_dir, head, encoder, progress)?;
        let text = card_text(&encoded, head, [with_scale, alone_scale], &report);
        self.write("injection.md", text.as_bytes())?;
        Ok(report)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), LabFault> {
        let path = self.out_dir.join(name);
        fs::write(&path, bytes).map_err(|cause| LabFault::file(&path, cause))
    }
}

fn encode(
    lessons: Vec<Lesson>,
    encoder: &dyn TextEncoder,
    progress: &mut dyn FnMut(&str),
) -> Result<Encoded, LabFault> {
    let mut vectors = Vec::with_capacity(lessons.len());
    for part in lessons.chunks(ENCODED_AT_ONCE) {
        let texts: Vec<&str> = part.iter().map(|lesson| lesson.text.as_str()).collect();
        vectors.extend(encoder.encode(&texts)?);
        progress(&format!("encoded {} of {}", vectors.len(), lessons.len()));
    }
    let features = lessons.iter().map(|lesson| features(&plain(&lesson.text))).collect();
    Ok(Encoded { lessons, vectors, features })
}

impl Encoded {
    /// The rows of some lessons; without their vectors where `dimension` is 0.
    fn rows(&self, dimension: usize, keep: impl Fn(&Lesson) -> bool) -> Vec<MixedRow<'_>> {
        let all = self.lessons.iter().zip(&self.vectors).zip(&self.features);
        let kept = all.filter(|((lesson, _), _)| keep(lesson));
        kept.map(|((lesson, vector), features)| MixedRow {
            vector: vector.get(..dimension).unwrap_or(vector),
            features,
            attack: lesson.attack,
            weight: lesson.weight,
        })
        .collect()
    }

    /// The model of all lessons on the scale that unseen folds ask for.
    fn fit(&self, dimension: usize, progress: &mut dyn FnMut(&str)) -> (MixedModel, Scale) {
        let mut unseen = Vec::new();
        for fold in 0..FOLDS {
            let model = fit(&self.rows(dimension, |lesson| lesson.fold != fold), dimension, PLACES);
            let reference = self.rows(dimension, |lesson| lesson.reference && lesson.fold == fold);
            unseen.extend(reference.iter().map(|row| (model.logit(row), row.attack)));
            progress(&format!("dimension {dimension}: fold {} of {FOLDS}", fold + 1));
        }
        let scale = scale(&unseen, RECALL);
        progress(&format!("dimension {dimension}: {scale:?}"));
        let operating = (OPERATING_POINT / (1.0 - OPERATING_POINT)).ln();
        let model = fit(&self.rows(dimension, |_| true), dimension, PLACES);
        (model.rescaled(scale.slope, scale.threshold, operating), scale)
    }

    /// `sha256:…` over every lesson in its order.
    fn digest(&self) -> String {
        let mut digest = Sha256::new();
        for lesson in &self.lessons {
            digest.update(format!("{}\t{}\t{}\n", lesson.attack, lesson.weight, lesson.text));
        }
        format!("sha256:{}", hex::encode(digest.finalize()))
    }
}

const PURPOSE: &str = "\
The probability that a text tries to take over the model: logistic regression over the encoder's vector and hashed \
features of the plain text (character n-grams within words, pairs of near words). A second set of weights for the \
features alone says which windows and decodings of a text are worth a pass of the encoder.

Learnt from S-Labs' training part, attacks in several languages and attempts seen in the wild (a fifth of both held \
out), and texts of this project. Against over-blocking: requests that people made, tasks that models were set, questions \
of exams, sentences of ordinary prose, intents of customers, exercises in several languages, own harmless sentences full of \
the words that attempts use, own requests of engineers, and harmless texts into which such words were strewn. Nothing of the measured sets is learnt; the neuralchemy set is left out, \
because its format would cost a large dependency.

The scale is set so that 0.7 finds the share below of S-Labs' attempts on folds that the model had not seen. It is a \
scale for thresholds, not an honest probability of an attack in anyone's traffic.

What was seen before: the kinds of harmless texts that are learnt were chosen while looking at total figures of the \
measured sets a few times, and the share was lowered from 95% by a fifth of a point after such a look; a few texts of NotInject \
and BIPIA were read before our own were written, and what resembled them was taken out again, but for one rule about code \
snippets in foreign text. The set `own, engineering` was written after two harmless requests of engineers, of a conformance \
suite, were found to score above 0.9; it holds no sentence of that suite, and nothing was chosen by it. The requests of engineers that are learnt were written \
after it, for the same reason, and hold none either; that they, tasks and exams are learnt was chosen by folds and by a look at \
total figures.

The sets `own, developers` and `own, by language, written last` were written later; the second is meant to be subtle. Whoever wrote the \
rules of other languages had read the set `own, by language`, and left its wordings out.";

fn card_text(encoded: &Encoded, head: &MixedHead, scales: [Scale; 2], report: &InjectionReport) -> String {
    let count = |attack: bool| encoded.lessons.iter().filter(|lesson| lesson.attack == attack).count();
    let mut text = format!(
        "# Head: injection\n\n{PURPOSE}\n\n| | |\n|---|---|\n| encoder | `{}` |\n| features | {} |\n\
         | training data | `{}` |\n| attempts, harmless texts | {}, {} |\n| L2 penalty | {PENALTY:e} |\n",
        head.card().encoder_digest,
        head.card().features,
        head.card().data_digest,
        count(true),
        count(false),
    );
    for (name, scale) in ["with the vector", "features alone"].iter().zip(scales) {
        let _ = writeln!(
            text,
            "| unseen folds, {name} | {:.1}% of attempts found at {:.1}% false positives |",
            RECALL * 100.0,
            scale.false_positives * 100.0
        );
    }
    text.push_str("\nRepeat with `chorus lab train-injection --data DATA --out OUT`, measure again with ");
    text.push_str("`chorus lab eval-injection --data DATA`.\n\n## Measured\n\n");
    text.push_str(&report.to_string());
    text
}
