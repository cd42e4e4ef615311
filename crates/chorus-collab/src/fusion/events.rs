//! What a watcher of a running Fusion can see: the stages as they begin and end. It cannot change the run.

use super::analysis::Analysis;

/// Told of each stage; every method does nothing unless overridden. `()` watches nothing.
pub trait FusionEvents: Send + Sync {
    /// The panel is asked; one name a seat, in seat order.
    fn panel_started(&self, seats: &[String]) {
        let _ = seats;
    }

    /// The panel is complete: `usable` answers of `seats`.
    fn panel_finished(&self, usable: usize, seats: usize) {
        let _ = (usable, seats);
    }

    /// The judge is asked.
    fn judge_started(&self, model: &str) {
        let _ = model;
    }

    /// The judge has answered; `None` when its call failed.
    fn judge_finished(&self, analysis: Option<&Analysis>) {
        let _ = analysis;
    }

    /// The writer is asked; a second time, with another name, when the first one failed.
    fn synthesis_started(&self, model: &str) {
        let _ = model;
    }
}

impl FusionEvents for () {}
