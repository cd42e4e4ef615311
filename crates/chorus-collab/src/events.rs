//! What a watcher of a running looper can see: its stages as they begin and end. It cannot change the run.

/// A moment of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LoopEvent<'a> {
    /// Members are asked, all at once.
    RoundStarted {
        /// From 1.
        round: usize,
        /// Rounds in all, the last one included.
        rounds: usize,
        /// One model a seat.
        seats: &'a [String],
    },
    /// The round is over.
    RoundFinished {
        /// From 1.
        round: usize,
        /// Usable answers.
        usable: usize,
        /// Seats asked.
        seats: usize,
    },
    /// The judge compares the answers.
    JudgeStarted(&'a str),
    /// The judge is done.
    JudgeFinished {
        /// Whether there is an analysis.
        analysed: bool,
        /// Points on which members contradict each other.
        disagreements: usize,
    },
    /// One model was tried and its answer measured.
    Tried {
        /// The model.
        model: &'a str,
        /// In 0..=1; `None` when there was no evidence.
        confidence: Option<f64>,
        /// Whether its answer is the answer.
        accepted: bool,
    },
    /// A plan stands.
    Planned {
        /// Its steps.
        steps: usize,
    },
    /// A step of a plan begins.
    StepStarted {
        /// Its id.
        step: &'a str,
        /// One model a worker.
        workers: &'a [String],
    },
    /// The final answer is being written.
    SynthesisStarted(&'a str),
}

/// Whoever watches.
pub trait LoopEvents: Send + Sync {
    /// It happened. Must return at once.
    fn tell(&self, event: LoopEvent<'_>);
}

/// Nobody watches.
impl LoopEvents for () {
    fn tell(&self, _event: LoopEvent<'_>) {}
}
