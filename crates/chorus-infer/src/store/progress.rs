//! What a pull tells the person who waits for it.

/// Receives the progress of a pull. Called from the pulling thread; calls must return quickly.
pub trait Progress {
    /// A file begins; `total` is its size in bytes.
    fn start(&self, what: &str, total: u64);
    /// So many more bytes are there. The sum over a file never exceeds its total.
    fn advance(&self, bytes: u64);
    /// The file is complete and verified, or given up.
    fn done(&self);
    /// Something worth a line: a source that failed, a partial file taken up again.
    fn note(&self, text: &str);
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn start(&self, _what: &str, _total: u64) {}
    fn advance(&self, _bytes: u64) {}
    fn done(&self) {}
    fn note(&self, _text: &str) {}
}

/// Counts towards a total and never past it.
pub(super) struct Meter<'a> {
    progress: &'a dyn Progress,
    left: u64,
}

impl<'a> Meter<'a> {
    pub(super) fn start(progress: &'a dyn Progress, what: &str, total: u64) -> Self {
        progress.start(what, total);
        Self { progress, left: total }
    }

    pub(super) fn advance(&mut self, bytes: u64) {
        let counted = bytes.min(self.left);
        self.left -= counted;
        if counted > 0 {
            self.progress.advance(counted);
        }
    }

    pub(super) fn note(&self, text: &str) {
        self.progress.note(text);
    }

    pub(super) fn finish(mut self) {
        self.advance(self.left);
        self.progress.done();
    }

    pub(super) fn give_up(self) {
        self.progress.done();
    }
}
