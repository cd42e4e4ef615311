//! The log on standard error: a line an event, its fields as `name=value`.
//!
//! It knows no event. **Invariant:** nobody waits for whoever reads it.

use crate::terminal::is_watched;
use std::error::Error;
use std::fmt::{self, Debug};
use std::io::{self, BufWriter, Write};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::{RecordFields, VisitOutput};
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultVisitor, Writer};

/// Lines of the log that wait to be written (`max_log_lines`); a reader that does not read costs lines, and no answer.
const LOG_LINES: usize = 8192;

/// How long lines wait for others at most.
const REST: Duration = Duration::from_millis(10);

/// Starts the log, written by a thread of its own: lines that come together leave together. The rest of them leaves when
/// the guard is dropped.
pub(crate) fn start(filter: &str) -> WorkerGuard {
    let filter = EnvFilter::try_new(filter).unwrap_or_default();
    let lines = NonBlockingBuilder::default().buffered_lines_limit(LOG_LINES).thread_name("log");
    let (writer, guard) = lines.finish(Together(BufWriter::new(io::stderr())));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    if is_watched() {
        log.init();
    } else {
        log.with_ansi(false).fmt_fields(Plain).init();
    }
    guard
}

/// Where lines leave together: the library's thread writes what waits and then flushes, and has a rest here. Without it the
/// thread would look for the next line again and again, on a core that has answers to give.
struct Together<W>(W);

impl<W: Write> Write for Together<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.0.flush();
        std::thread::sleep(REST);
        flushed
    }
}

/// Fields without colours, as the library writes them; numbers and plain words without its detour by way of styles.
struct Plain;

impl<'w> FormatFields<'w> for Plain {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut line = Line { writer, is_empty: true, result: Ok(()) };
        fields.record(&mut line);
        line.result
    }
}

struct Line<'w> {
    writer: Writer<'w>,
    is_empty: bool,
    result: fmt::Result,
}

impl Line<'_> {
    /// Writes pieces that need no look, if all before them could be written.
    fn write(&mut self, field: &Field, value: [&str; 3]) {
        let space = if std::mem::take(&mut self.is_empty) { "" } else { " " };
        let [before, text, after] = value;
        for piece in [space, field.name(), "=", before, text, after] {
            self.result = self.result.and_then(|()| self.writer.write_str(piece));
        }
    }

    /// Has the library write a field.
    fn by_library(&mut self, record: impl FnOnce(&mut DefaultVisitor<'_>)) {
        if self.result.is_ok() {
            let mut library = DefaultVisitor::new(self.writer.by_ref(), std::mem::take(&mut self.is_empty));
            record(&mut library);
            self.result = library.finish();
        }
    }
}

impl Visit for Line<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if is_bare(field.name()) {
            self.write(field, ["", itoa::Buffer::new().format(value), ""]);
        } else {
            self.by_library(|library| library.record_u64(field, value));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        // What `Debug` writes as it is.
        let is_plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\');
        if is_plain && is_bare(field.name()) {
            self.write(field, ["\"", value, "\""]);
        } else {
            self.by_library(|library| library.record_str(field, value));
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.by_library(|library| library.record_debug(field, value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.by_library(|library| library.record_error(field, value));
    }
}

/// Whether a field's name is written as it is: not the event's own words, nor a name that is a word of Rust's.
fn is_bare(name: &str) -> bool {
    name != "message" && !name.starts_with("r#")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// Keeps what is written.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Kept {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn events() {
        let (id, gone) = (String::from("run_1"), io::Error::other("it is\u{1b}gone"));
        let (none, some): (Option<&str>, _) = (None, Some("a \"word\"\n"));
        tracing::info!(run = %id, status = ?some, decision = "rest", none, some, calls = 3_u64, "run ended");
        tracing::warn!(
            at = -7,
            share = 0.5,
            is = true,
            text = "é",
            r#type = "t",
            fault = &gone as &dyn Error
        );
        tracing::error!("it\u{7}\u{1b}[31m failed: {gone}");
        tracing::info_span!("within", door = "chat", n = 1_u64)
            .in_scope(|| tracing::info!(empty = "", "in a span"));
    }

    #[test]
    fn it_reads_as_the_library_writes_it() {
        let (ours, theirs) = (Kept::default(), Kept::default());
        let (at, to) = (ours.clone(), theirs.clone());
        let log = tracing_subscriber::fmt().without_time().with_ansi(false);
        let plain = log.fmt_fields(Plain).with_writer(move || at.clone()).finish();
        tracing::subscriber::with_default(plain, events);
        let log = tracing_subscriber::fmt().without_time().with_ansi(false);
        tracing::subscriber::with_default(log.with_writer(move || to.clone()).finish(), events);
        assert_eq!(ours.text(), theirs.text());
        assert!(ours.text().contains("run ended run=run_1 status=Some("), "{}", ours.text());
    }
}
