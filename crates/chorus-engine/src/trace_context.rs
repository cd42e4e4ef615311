//! Whose trace a run is a part of, and what its calls are called in it. Source: W3C Trace Context, section 3.2.
//!
//! Ids are made of the run's own id, so that whoever writes the spans later makes the same ones. It knows no collector.
//! **Invariant:** what is handed to a backend names a trace and nothing else: no baggage, no header of a client.

use chorus_spec::Digest;

/// The header.
pub(crate) const TRACEPARENT: &str = "traceparent";

/// The span that a request comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceParent {
    /// 32 hex digits.
    pub trace: String,
    /// 16 hex digits.
    pub span: String,
    /// Whether whoever began the trace keeps it.
    pub sampled: bool,
}

impl TraceParent {
    /// Reads a `traceparent`; `None` where it is none.
    #[must_use]
    pub fn read(header: &str) -> Option<Self> {
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

/// How a request is traced, where anything is.
#[derive(Debug, Clone, PartialEq)]
pub struct Tracing {
    /// The span that it comes from, where it says.
    pub parent: Option<TraceParent>,
    /// Share of the other requests that are traced, 0 to 1.
    pub rate: f64,
}

/// Whether a run is traced: as its client's trace is, else by its own name, which is random where it matters.
#[must_use]
pub fn is_sampled(run: &str, parent: Option<&TraceParent>, rate: f64) -> bool {
    if let Some(parent) = parent {
        return parent.sampled;
    }
    let low = run.get(run.len().saturating_sub(8)..).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    low.is_some_and(|low| f64::from(low) < rate * f64::from(u32::MAX)) || rate >= 1.0
}

/// The trace of a run: its client's, else one of its own.
#[must_use]
pub fn trace_id(run: &str, parent: Option<&TraceParent>) -> String {
    parent.map_or_else(|| run.trim_start_matches("run_").to_owned(), |parent| parent.trace.clone())
}

/// The span of a place in a run: the same for the same run, wherever it is made.
#[must_use]
pub fn span_id(run: &str, place: &str) -> String {
    let digest = Digest::of(format!("{run}{place}").as_bytes()).to_string();
    digest.trim_start_matches("sha256:").chars().take(16).collect()
}

/// The span of a run's call, by its number among all attempts, from 0.
#[must_use]
pub fn call_span_id(run: &str, call: usize) -> String {
    span_id(run, &format!("call {call}"))
}

/// One run, for the headers of its calls.
#[derive(Debug, Clone)]
pub struct RunTrace {
    run: String,
    trace: String,
    sampled: bool,
}

impl RunTrace {
    pub(crate) fn of(tracing: &Tracing, run: &str) -> Self {
        let parent = tracing.parent.as_ref();
        let sampled = is_sampled(run, parent, tracing.rate);
        Self { run: run.to_owned(), trace: trace_id(run, parent), sampled }
    }

    /// The headers of an attempt: its own place in the trace, and then what the route sets, which may say otherwise.
    pub(crate) fn headers(&self, call: usize, others: &[(String, String)]) -> Vec<(String, String)> {
        let Self { run, trace, sampled } = self;
        let value = format!("00-{trace}-{}-0{}", call_span_id(run, call), u8::from(*sampled));
        let own = (TRACEPARENT.to_owned(), value);
        std::iter::once(own).chain(others.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_read_and_anything_else_is_not() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        let parent = TraceParent::read(&format!("00-{trace}-{span}-01")).unwrap();
        assert_eq!((parent.trace.as_str(), parent.span.as_str(), parent.sampled), (trace, span, true));
        assert!(!TraceParent::read(&format!("00-{trace}-{span}-00")).unwrap().sampled);
        assert!(TraceParent::read(&format!("01-{trace}-{span}-01-more")).is_some());
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
            assert_eq!(TraceParent::read(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_share_of_runs_is_traced_and_a_client_s_own_choice_is_kept() {
        let runs: Vec<String> = (0..2000).map(|_| chorus_store::RunId::new().to_string()).collect();
        let sampled = |rate| runs.iter().filter(|run| is_sampled(run, None, rate)).count();
        assert_eq!((sampled(0.0), sampled(1.0)), (0, 2000));
        assert!((350..650).contains(&sampled(0.25)), "{}", sampled(0.25));
        let parent = |sampled| TraceParent { trace: String::new(), span: String::new(), sampled };
        assert!(is_sampled("run_0", Some(&parent(true)), 0.0));
        assert!(!is_sampled("run_0", Some(&parent(false)), 1.0));
    }

    #[test]
    fn each_attempt_has_its_own_place_and_a_route_s_own_header_counts() {
        let run = "run_0197ffffffff7000800000000000abcd";
        let own = RunTrace::of(&Tracing { parent: None, rate: 1.0 }, run);
        let (first, second) = (own.headers(0, &[]), own.headers(1, &[]));
        assert_ne!(first, second);
        let read = TraceParent::read(&first[0].1).unwrap();
        assert_eq!((read.trace.as_str(), read.span, read.sampled), (&run[4..], call_span_id(run, 0), true));
        let parent = TraceParent::read("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00");
        let joined = RunTrace::of(&Tracing { parent, rate: 1.0 }, run);
        let route = [(TRACEPARENT.to_owned(), "other".to_owned())];
        let headers = joined.headers(0, &route);
        assert!(
            headers[0].1.starts_with("00-0af7651916cd43dd8448eb211c80319c-") && headers[0].1.ends_with("-00")
        );
        assert_eq!(headers[1], route[0]);
    }
}
