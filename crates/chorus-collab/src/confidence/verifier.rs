//! Whoever checks answers besides the models. What it is, and how it is reached, is the caller's affair.

use crate::calls::CallFault;
use futures_util::future::BoxFuture;
use std::fmt;
use std::time::Duration;

/// One answer to check, as text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Check<'a> {
    /// The question.
    pub question: &'a str,
    /// The rest of the conversation; may be empty.
    pub context: &'a str,
    /// The answer.
    pub answer: &'a str,
    /// The confidence from which the answer is accepted, in 0..=1.
    pub threshold: f64,
}

/// Whoever can tell whether an answer is supported: a local entailment head, or an AutoMix server. It does the I/O.
pub trait Verifier: fmt::Debug + Send + Sync {
    /// How far the answer is supported, in 0..=1, within `timeout`. A fault is no evidence.
    fn verify<'a>(&'a self, check: Check<'a>, timeout: Duration) -> BoxFuture<'a, Result<f64, CallFault>>;
}
