//! Trains the tagger of names.
//!
//! It knows where sentences come from and how the weights are kept. **Invariant:** the held-out half of the public set is
//! measured once, after everything is chosen, and never learnt from.

use std::fs;
use std::path::PathBuf;

use chorus_signals::pii::Entity;
use chorus_signals::pii::names::{Label, Model, Token, features, tokens};
use sha2::{Digest, Sha256};

use super::corpus::{self, Half, Labelled};
use super::evaluate::TypeFigures;
use super::perceptron::{Perceptron, Sentence};
use super::silver;
use super::templates::{Dice, Made, Maker, label_of};
use crate::corpus::{intents, mmlu_pro};
use crate::fault::LabFault;

/// Passes over the sentences.
const EPOCHS: usize = 8;
/// Seed of everything that is drawn.
const SEED: u64 = 20_261_129;
/// Texts of other data sets that have no name in them.
const NAMELESS: usize = 6_000;
/// In how many of 100 names, and of 100 other words, the tagger may not look at its lists.
const HIDDEN_NAMES: usize = 20;
const HIDDEN_WORDS: usize = 10;

/// A training run.
#[derive(Debug, Clone)]
pub struct TrainNames {
    /// Folder of the public datasets: `pii/`, `outcomes/`, `intents/`.
    pub data_dir: PathBuf,
    /// Folder that gets `names.bin` and `names.md`.
    pub out_dir: PathBuf,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct NamesReport {
    /// Sentences learnt from.
    pub learnt: usize,
    /// `sha256:…` over them.
    pub data_digest: String,
    /// Per kind, on the held-out half: the tagger alone.
    pub held_out: Vec<(Entity, TypeFigures)>,
}

impl TrainNames {
    /// Trains, measures and writes; `progress` gets a line now and then.
    ///
    /// # Errors
    /// [`LabFault`] when a dataset is absent or broken, or a file cannot be written.
    pub fn run(&self, progress: &mut dyn FnMut(&str)) -> Result<NamesReport, LabFault> {
        let labelled = corpus::read(&self.data_dir)?;
        let half = |half| labelled.iter().filter(move |text| text.half == half).collect::<Vec<&Labelled>>();
        let mut texts = Maker::new(SEED).make(&half(Half::Development));
        texts.extend(half(Half::Development).into_iter().map(as_made));
        texts.extend(self.nameless()?);
        texts.extend(self.told_by_lists()?);
        let data_digest = digest(&texts);
        let model = learn(&texts, progress)?;
        let report =
            NamesReport { learnt: texts.len(), data_digest, held_out: measure(&model, &half(Half::HeldOut)) };
        fs::create_dir_all(&self.out_dir).map_err(|cause| LabFault::file(&self.out_dir, cause))?;
        for (name, bytes) in [("names.bin", model.to_bytes()), ("names.md", card(&report).into_bytes())] {
            let path = self.out_dir.join(name);
            fs::write(&path, bytes).map_err(|cause| LabFault::file(&path, cause))?;
        }
        Ok(report)
    }

    /// Questions and requests in which no capital word is on a list of names.
    fn nameless(&self) -> Result<Vec<Made>, LabFault> {
        let questions = mmlu_pro(&self.data_dir)?.into_iter().map(|question| question.question);
        let requests = intents(&self.data_dir)?.into_iter().rev();
        let is_nameless =
            |text: &String| text.len() < 600 && tokens(text).iter().all(|token| !token.may_be_name());
        let texts = questions
            .filter(is_nameless)
            .take(NAMELESS)
            .chain(requests.filter(is_nameless).take(NAMELESS / 2));
        Ok(texts.map(|text| Made { text, names: Vec::new() }).collect())
    }
}

impl TrainNames {
    /// Word problems and exam questions whose every capital word is clearly a name or clearly none by the lists.
    fn told_by_lists(&self) -> Result<Vec<Made>, LabFault> {
        let questions = mmlu_pro(&self.data_dir)?.into_iter().map(|question| question.question);
        let problems = corpus::word_problems(&self.data_dir)?;
        let texts = problems.into_iter().chain(questions).filter(|text| text.len() < 600);
        Ok(texts.filter_map(silver::label).collect())
    }
}

/// A labelled text with places in bytes.
fn as_made(labelled: &Labelled) -> Made {
    let bytes: Vec<usize> =
        labelled.text.char_indices().map(|(at, _)| at).chain([labelled.text.len()]).collect();
    let byte = |character: usize| bytes.get(character).copied().unwrap_or(labelled.text.len());
    let names =
        labelled.spans.iter().map(|(entity, place)| (label_of(*entity), byte(place.start)..byte(place.end)));
    Made { text: labelled.text.clone(), names: names.collect() }
}

fn learn(texts: &[Made], progress: &mut dyn FnMut(&str)) -> Result<Model, LabFault> {
    let mut dice = Dice(SEED);
    let mut perceptron = Perceptron::new();
    let mut order: Vec<usize> = (0..texts.len()).collect();
    for epoch in 1..=EPOCHS {
        for at in (1..order.len()).rev() {
            order.swap(at, dice.roll(at + 1));
        }
        let (mut wrong, mut all) = (0, 0);
        for text in order.iter().filter_map(|at| texts.get(*at)) {
            let sentence = sentence(text, &mut dice);
            wrong += perceptron.learn(&sentence);
            all += sentence.labels.len();
        }
        progress(&format!("epoch {epoch}: {wrong} of {all} words wrong before they were learnt"));
    }
    perceptron.model().map_err(|fault| LabFault::content("names.bin".as_ref(), 1, &fault))
}

/// Features and labels of a text; some words forget their lists, so that the tagger learns to do without.
fn sentence(made: &Made, dice: &mut Dice) -> Sentence {
    let mut cut = tokens(&made.text);
    let labels: Vec<usize> = cut.iter().map(|token| label(made, token)).collect();
    for (token, label) in cut.iter_mut().zip(&labels) {
        if dice.roll(100) < if *label == 0 { HIDDEN_WORDS } else { HIDDEN_NAMES } {
            token.forget_lists();
        }
    }
    Sentence { features: (0..cut.len()).map(|at| features(&cut, at)).collect(), labels }
}

/// The place of a token's label among all labels.
fn label(made: &Made, token: &Token) -> usize {
    let within =
        made.names.iter().find(|(_, place)| place.start < token.bytes.end && token.bytes.start < place.end);
    within.and_then(|(label, _)| Label::ALL.iter().position(|known| known == label)).unwrap_or(0)
}

/// Exact places of the tagger alone.
fn measure(model: &Model, texts: &[&Labelled]) -> Vec<(Entity, TypeFigures)> {
    let entities = Label::ALL.into_iter().filter_map(Label::entity);
    let mut figures: Vec<(Entity, TypeFigures)> =
        entities.map(|entity| (entity, TypeFigures::default())).collect();
    for made in texts.iter().map(|labelled| as_made(labelled)) {
        let cut = tokens(&made.text);
        let tagged = model.tag(&cut);
        for (token, (guess, _)) in cut.iter().zip(tagged) {
            let truth = Label::ALL.get(label(&made, token)).copied().and_then(Label::entity);
            for (entity, sum) in &mut figures {
                let (is, said) = (truth == Some(*entity), guess.entity() == Some(*entity));
                sum.labelled += usize::from(is);
                sum.found += usize::from(said);
                sum.right += usize::from(is && said);
            }
        }
    }
    figures
}

fn digest(texts: &[Made]) -> String {
    let mut digest = Sha256::new();
    for made in texts {
        digest.update(format!("{:?}\t{}\n", made.names, made.text));
    }
    format!("sha256:{}", hex::encode(digest.finalize()))
}

/// The card beside the weights.
fn card(report: &NamesReport) -> String {
    let rows: String = report
        .held_out
        .iter()
        .map(|(entity, f)| {
            format!(
                "| {} | {} | {:.3} | {:.3} | {:.3} |\n",
                entity.name(),
                f.labelled,
                f.precision(),
                f.recall(),
                f.f1()
            )
        })
        .collect();
    format!(
        "# Tagger of names\n\nTells which words of a text name a person, place, body, street address, nationality or \
         title: a linear model over hashed features of a word and its neighbours, with first-order transitions, \
         trained as an averaged perceptron of {EPOCHS} passes.\n\nLearnt from sentences written for this project and \
         filled from the lists beside it (README.md), from the development half of the public Presidio set (half of \
         its templates, by digest), as it is and with other names, from exam questions and bank customers' requests without \
         names, and from word problems and exam questions whose names the lists tell. In {HIDDEN_NAMES}% of the learnt names the lists were hidden.\n\nThe public set is synthetic, \
         and the lists share sources with what filled it: expect less on real letters. Names in scripts other than \
         Latin are hardly found.\n\n| | |\n|---|---|\n| learnt sentences | {} |\n| training data | `{}` |\n\n\
         Repeat with `chorus lab train-names --data DATA --out OUT`.\n\n## Measured, words of the held-out half\n\n\
         | kind | words | precision | recall | F1 |\n|---|---|---|---|---|\n{rows}",
        report.learnt, report.data_digest,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_follow_the_places() {
        let text = "é Ada Smith, Paris";
        let labelled = Labelled {
            text: text.to_owned(),
            spans: vec![(Entity::Person, 2..11), (Entity::Gpe, 13..18), (Entity::Age, 0..0)],
            half: Half::Development,
        };
        let made = as_made(&labelled);
        let labels: Vec<usize> = tokens(text).iter().map(|token| label(&made, token)).collect();
        assert_eq!(labels, [0, 1, 1, 0, 2]);
    }
}
