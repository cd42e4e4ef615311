//! Whose trace a run is a part of, as its client says. Source: W3C Trace Context, section 3.2.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// Parents that wait for their runs' records; the oldest goes first.
const MOST: usize = 8192;

/// The span that a request comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parent {
    /// 32 hex digits.
    pub(crate) trace: String,
    /// 16 hex digits.
    pub(crate) span: String,
    /// Whether whoever began the trace keeps it.
    pub(crate) sampled: bool,
}

impl Parent {
    /// Reads a `traceparent`; `None` where it is none.
    pub(crate) fn read(header: &str) -> Option<Self> {
        let mut parts = header.trim().split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_hex = |text: &str, digits: usize| {
            text.len() == digits && text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'))
        };
        // A later version may say more behind it; the first one may not.
        let fits = is_hex(version, 2) && version != "ff" && (version != "00" || parts.next().is_none());
        let names = |text: &str, digits: usize| is_hex(text, digits) && text.bytes().any(|b| b != b'0');
        if !(fits && names(trace, 32) && names(span, 16) && is_hex(flags, 2)) {
            return None;
        }
        let sampled = u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1);
        Some(Self { trace: trace.to_owned(), span: span.to_owned(), sampled })
    }
}

/// Parents by run, between a response's head and the run's record.
#[derive(Default)]
pub(super) struct Parents(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    by_run: BTreeMap<String, Parent>,
    order: VecDeque<String>,
}

impl Parents {
    pub(super) fn join(&self, run: &str, parent: Parent) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.by_run.insert(run.to_owned(), parent);
        waiting.order.push_back(run.to_owned());
        if waiting.order.len() > MOST
            && let Some(oldest) = waiting.order.pop_front()
        {
            waiting.by_run.remove(&oldest);
        }
    }

    pub(super) fn take(&self, run: &str) -> Option<Parent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_run.remove(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_read_and_anything_else_is_not() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        let parent = Parent::read(&format!("00-{trace}-{span}-01")).unwrap();
        assert_eq!((parent.trace.as_str(), parent.span.as_str(), parent.sampled), (trace, span, true));
        assert!(!Parent::read(&format!("00-{trace}-{span}-00")).unwrap().sampled);
        assert!(Parent::read(&format!("01-{trace}-{span}-01-more")).is_some());
        let zero = "0".repeat(32);
        for wrong in [
            String::new(),
            format!("00-{trace}-{span}"),
            format!("ff-{trace}-{span}-01"),
            format!("00-{trace}-{span}-01-more"),
            format!("00-{zero}-{span}-01"),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-{trace}-{span}-1"),
        ] {
            assert_eq!(Parent::read(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn parents_of_runs_that_left_no_record_do_not_gather() {
        let parents = Parents::default();
        let parent = Parent { trace: "t".to_owned(), span: "s".to_owned(), sampled: true };
        for run in 0..=MOST {
            parents.join(&run.to_string(), parent.clone());
        }
        assert_eq!(parents.take("0"), None);
        assert_eq!(parents.take("1"), Some(parent));
    }
}
