//! Personal data: the tagger of names is trained here, and all recognisers are measured.
//!
//! It knows labelled texts; the recognisers are in `chorus-signals`. **Invariant:** nothing is learnt from, or chosen on,
//! a template of the held-out half.

mod corpus;
mod evaluate;
mod perceptron;
mod silver;
mod templates;
mod train;

pub use evaluate::{EvalPii, PiiReport, TypeFigures};
pub use train::{NamesReport, TrainNames};
