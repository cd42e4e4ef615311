//! The tasks that a head can be trained for: their names, purposes and labels.
//!
//! It knows no dataset and no training.

use crate::{complexity, domain};

/// What a head is to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Which of the 14 categories of MMLU-Pro.
    Domain,
    /// Easy or hard.
    Complexity,
}

impl Task {
    /// Every task.
    pub const ALL: [Self; 2] = [Self::Domain, Self::Complexity];

    /// Its name, also that of its files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Domain => "domain",
            Self::Complexity => "complexity",
        }
    }

    pub(crate) fn purpose(self) -> &'static str {
        match self {
            Self::Domain => {
                "Tells which of the 14 MMLU-Pro categories a text belongs to: a linear softmax over the \
                 encoder's vector.\n\nLearnt from MMLU-Pro questions with and without their options, MMLU \
                 questions, a few requests to assistants (all of them `other`), and short everyday questions \
                 written for this project in English, with some in German, Spanish, French and Chinese. The \
                 encoder is an English one: other languages work where words are shared, and no further.\n\n\
                 Penalty and temperature leave the least loss on a part of the learnt data that was kept out of the \
                 fit until they were chosen: exam questions and everyday questions, each kind with half of the \
                 weight. One temperature serves both: short everyday questions still get less \
                 confidence than they earn, so a threshold of 0.5 is stricter on them than it looks."
            }
            Self::Complexity => {
                "A prior of how hard a text is for a language model: a linear softmax over the encoder's \
                 vector.\n\nA question is hard when fewer than 35% of the models that answered it were right, \
                 easy when more than 65% were; requests to assistants and short everyday questions count as \
                 easy; own expert prompts in several languages count as hard. The figures \
                 leave out the questions between, which flatters them, and the models are of 2024: most of what \
                 they failed at is easier now. Use it as one piece of evidence among others."
            }
        }
    }

    pub(crate) fn labels(self) -> &'static [&'static str] {
        match self {
            Self::Domain => &domain::LABELS,
            Self::Complexity => &complexity::LABELS,
        }
    }
}
