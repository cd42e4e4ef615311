//! Tapes on disk: one file a run, which nobody else may read; the oldest make room.
//!
//! It knows no run and no record. **Invariant:** at most [`KEPT_TAPES`] are kept, and a file is there whole or not at all.

use super::{Tape, VERSION};
use crate::guard::without_personal_data;
use crate::private_folder;
use crate::publish::publish;
use serde_json::Value;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Most tapes that are kept (`kept_tapes`).
pub const KEPT_TAPES: usize = 1000;

/// A folder of tapes.
#[derive(Debug, Clone)]
pub struct Tapes {
    folder: PathBuf,
    /// Whether personal data is replaced by placeholders before anything is written.
    redacts: bool,
}

/// Why there is no tape.
#[derive(Debug, thiserror::Error)]
pub enum TapeFault {
    /// Nothing was recorded of this run.
    #[error(
        "no content was recorded of this run: `chorus serve --record content` records it, and a point with `no_retention` never does"
    )]
    NotRecorded,
    /// The file cannot be read.
    #[error("the recorded content cannot be read: {0}")]
    Unreadable(String),
    /// A newer version wrote it.
    #[error("the recorded content is of version {0}, and this program reads up to {VERSION}")]
    Newer(u32),
}

impl Tapes {
    /// The tapes below that folder, which is made if it is not there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(folder: &Path, redacts: bool) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        private_folder::close(folder)?;
        Ok(Self { folder: folder.to_owned(), redacts })
    }

    /// Keeps a tape; the oldest ones go.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self, mut tape: Tape) -> io::Result<()> {
        let run = tape.run.clone();
        tape.redacted = self.redacts;
        let mut bytes = serde_json::to_vec(&tape)?;
        if self.redacts {
            let mut value: Value = serde_json::from_slice(&bytes)?;
            without_personal_data(&mut value);
            bytes = serde_json::to_vec(&value)?;
        }
        publish(&self.file(&run), &bytes, None)?;
        self.prune()
    }

    /// The tape of a run.
    ///
    /// # Errors
    /// [`TapeFault`].
    pub fn tape(&self, run: &str) -> Result<Tape, TapeFault> {
        let bytes = match fs::read(self.file(run)) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Err(TapeFault::NotRecorded),
            other => other.map_err(|fault| TapeFault::Unreadable(fault.to_string()))?,
        };
        let unreadable = |fault: serde_json::Error| TapeFault::Unreadable(fault.to_string());
        let value: Value = serde_json::from_slice(&bytes).map_err(unreadable)?;
        let version = value.get("version").and_then(Value::as_u64).unwrap_or_default();
        match u32::try_from(version).unwrap_or(u32::MAX) {
            newer if newer > VERSION => Err(TapeFault::Newer(newer)),
            _ => serde_json::from_slice(&bytes).map_err(unreadable),
        }
    }

    fn file(&self, run: &str) -> PathBuf {
        // Ids are `run_` and hexadecimal digits; anything else must not leave the folder.
        let name: String = run.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        self.folder.join(format!("{name}.json"))
    }

    /// Ids sort by the time of their creation.
    fn prune(&self) -> io::Result<()> {
        let is_tape = |path: &PathBuf| path.extension().is_some_and(|it| it == "json");
        let files = fs::read_dir(&self.folder)?.filter_map(|entry| Some(entry.ok()?.path()));
        let mut files: Vec<PathBuf> = files.filter(is_tape).collect();
        files.sort_unstable();
        let most = files.len().saturating_sub(KEPT_TAPES);
        files.iter().take(most).try_for_each(fs::remove_file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Inbound;
    use chorus_wire::{ChatRequest, Message, Role};
    use std::time::Duration;

    fn tape(run: &str, text: &str) -> Tape {
        let request = ChatRequest::new("m", vec![Message::new(Role::User, text)]);
        Tape::begin(run, Duration::ZERO, &Inbound::of(request)).unwrap()
    }

    #[test]
    fn what_is_kept_comes_back_and_the_oldest_make_room() {
        let folder = tempfile::tempdir().unwrap();
        let tapes = Tapes::open(folder.path(), false).unwrap();
        for at in 0..KEPT_TAPES + 3 {
            tapes.keep(tape(&format!("run_{at:05}"), "hello")).unwrap();
        }
        assert!(matches!(tapes.tape("run_00002"), Err(TapeFault::NotRecorded)));
        let back = tapes.tape("run_00003").unwrap();
        assert_eq!(back.inbound().unwrap().request.last_user_text(), "hello");
        assert!(!back.redacted);
    }

    #[test]
    fn personal_data_is_not_written_where_it_is_to_be_redacted() {
        let folder = tempfile::tempdir().unwrap();
        let tapes = Tapes::open(folder.path(), true).unwrap();
        tapes.keep(tape("run_1", "Write to anna.berg@example.com")).unwrap();
        let text = fs::read_to_string(folder.path().join("run_1.json")).unwrap();
        assert!(!text.contains("anna.berg"), "{text}");
        let back = tapes.tape("run_1").unwrap();
        assert_eq!(back.inbound().unwrap().request.last_user_text(), "Write to <EMAIL_ADDRESS_1>");
        assert!(back.redacted);
    }

    #[test]
    fn a_tape_of_a_newer_version_and_a_broken_one_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let tapes = Tapes::open(folder.path(), false).unwrap();
        fs::write(folder.path().join("run_2.json"), "{\"version\": 9}").unwrap();
        fs::write(folder.path().join("run_3.json"), "{").unwrap();
        assert!(matches!(tapes.tape("run_2"), Err(TapeFault::Newer(9))));
        assert!(matches!(tapes.tape("run_3"), Err(TapeFault::Unreadable(_))));
        assert!(matches!(tapes.tape("../../etc/passwd"), Err(TapeFault::NotRecorded)));
    }
}
