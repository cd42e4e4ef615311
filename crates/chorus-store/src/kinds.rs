//! Kinds of runs: what lists look for, written once for all runs that have it in common.
//!
//! It knows no record. A client chooses the model that it asks for, so there may be as many kinds as there are runs: those
//! that are remembered have a bound, and the others are looked up.
//!
//! **Invariant:** a kind that was written is never changed nor removed.

use crate::{RunFilter, RunStatus};
use rusqlite::{Connection, OptionalExtension, params};
use smol_str::SmolStr;

/// Most kinds that are remembered. Those of a configuration are few.
const REMEMBERED: usize = 64;

/// What a run has in common with others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    /// The decision that won.
    pub(crate) decision: Option<SmolStr>,
    /// The model name that the client sent.
    pub(crate) requested_model: SmolStr,
    /// How it ended.
    pub(crate) status: RunStatus,
    /// Digest of the configuration.
    pub(crate) spec_digest: SmolStr,
}

/// Numbers of kinds that were written lately.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    known: Vec<(Kind, i64)>,
}

impl Kinds {
    /// The number of a kind; a new one is written.
    pub(crate) fn number(&mut self, change: &Connection, kind: &Kind) -> rusqlite::Result<i64> {
        if let Some((_, number)) = self.known.iter().find(|(known, _)| known == kind) {
            return Ok(*number);
        }
        let number = match kept(change, kind)? {
            Some(number) => number,
            None => write(change, kind)?,
        };
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        self.known.push((kind.clone(), number));
        Ok(number)
    }

    /// Remembers none any more: what was written with them has been undone.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }
}

fn kept(connection: &Connection, kind: &Kind) -> rusqlite::Result<Option<i64>> {
    let mut query = connection.prepare_cached(
        "SELECT number FROM kinds
         WHERE requested_model = ?1 AND decision IS ?2 AND status = ?3 AND spec_digest = ?4",
    )?;
    query.query_row(words(kind), |row| row.get(0)).optional()
}

fn write(change: &Connection, kind: &Kind) -> rusqlite::Result<i64> {
    change
        .prepare_cached(
            "INSERT INTO kinds (requested_model, decision, status, spec_digest) VALUES (?1, ?2, ?3, ?4)",
        )?
        .insert(words(kind))
}

fn words(kind: &Kind) -> (&str, Option<&str>, &str, &str) {
    (kind.requested_model.as_str(), kind.decision.as_deref(), kind.status.as_str(), kind.spec_digest.as_str())
}

/// The kinds of which a filter speaks; `None` where it speaks of all.
pub(crate) fn matching(connection: &Connection, filter: &RunFilter) -> rusqlite::Result<Option<Vec<i64>>> {
    let RunFilter { decision, requested_model, status, spec_digest, since_ms: _ } = filter;
    let words = [decision.as_deref(), requested_model.as_deref(), spec_digest.as_deref()];
    let [decision, requested_model, spec_digest] = words;
    let status = status.map(RunStatus::as_str);
    if words.iter().all(Option::is_none) && status.is_none() {
        return Ok(None);
    }
    let mut query = connection.prepare_cached(
        "SELECT number FROM kinds
         WHERE (?1 IS NULL OR decision = ?1) AND (?2 IS NULL OR requested_model = ?2)
         AND (?3 IS NULL OR status = ?3) AND (?4 IS NULL OR spec_digest = ?4)",
    )?;
    let numbers =
        query.query_map(params![decision, requested_model, status, spec_digest], |row| row.get(0))?;
    Ok(Some(numbers.collect::<rusqlite::Result<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrate::migrate;
    use std::path::Path;

    fn kind(requested_model: &str, decision: Option<&str>) -> Kind {
        Kind {
            decision: decision.map(SmolStr::new),
            requested_model: requested_model.into(),
            status: RunStatus::Ok,
            spec_digest: "sha256:abc".into(),
        }
    }

    #[test]
    fn a_kind_has_one_number_remembered_or_not() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Path::new(":memory:")).unwrap();
        let mut kinds = Kinds::default();
        let first = kinds.number(&connection, &kind("auto", None)).unwrap();
        let other = kinds.number(&connection, &kind("auto", Some("d"))).unwrap();
        assert_ne!(first, other);
        for name in 0..10 * REMEMBERED {
            kinds.number(&connection, &kind(&name.to_string(), None)).unwrap();
            assert!(kinds.known.len() <= REMEMBERED);
        }
        assert_eq!(kinds.number(&connection, &kind("auto", None)).unwrap(), first);
        assert_eq!(Kinds::default().number(&connection, &kind("auto", Some("d"))).unwrap(), other);
        let of_d = RunFilter { decision: Some("d".to_owned()), ..RunFilter::default() };
        assert_eq!(matching(&connection, &of_d).unwrap(), Some(vec![other]));
        assert_eq!(
            matching(&connection, &RunFilter { since_ms: Some(7), ..RunFilter::default() }).unwrap(),
            None
        );
    }
}
