//! The progress of a model download: a bar where somebody watches, a line every tenth where not.

use crate::terminal::{is_watched, note};
use chorus_infer::store::Progress;
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::{Mutex, PoisonError};

/// Shows a pull.
pub(crate) enum PullProgress {
    /// A bar on the terminal.
    Bar(ProgressBar),
    /// Lines in a log.
    Lines(Mutex<Tenths>),
}

/// How far a file is.
#[derive(Debug, Default)]
pub(crate) struct Tenths {
    what: String,
    total: u64,
    have: u64,
    told: u64,
}

impl PullProgress {
    /// The one that fits standard error.
    pub(crate) fn of_terminal() -> Box<Self> {
        Box::new(if is_watched() { Self::Bar(ProgressBar::hidden()) } else { Self::Lines(Mutex::default()) })
    }
}

impl Progress for PullProgress {
    fn start(&self, what: &str, total: u64) {
        match self {
            Self::Bar(bar) => {
                let style = "{msg:<40!} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
                bar.set_style(
                    ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
                );
                bar.reset();
                bar.set_length(total);
                bar.set_message(what.to_owned());
                bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
            }
            Self::Lines(state) => {
                note(&format!("fetching {what} ({} MB)", total / 1_000_000));
                *state.lock().unwrap_or_else(PoisonError::into_inner) =
                    Tenths { what: what.to_owned(), total, have: 0, told: 0 };
            }
        }
    }

    fn advance(&self, bytes: u64) {
        match self {
            Self::Bar(bar) => bar.inc(bytes),
            Self::Lines(state) => {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                state.have += bytes;
                let tenth = (state.have * 10).checked_div(state.total).unwrap_or(10);
                if tenth > state.told {
                    state.told = tenth;
                    note(&format!("  {} {}0%", state.what, tenth));
                }
            }
        }
    }

    fn done(&self) {
        if let Self::Bar(bar) = self {
            bar.finish();
        }
    }

    fn note(&self, text: &str) {
        match self {
            Self::Bar(bar) => bar.println(text),
            Self::Lines(_) => note(&format!("  {text}")),
        }
    }
}
