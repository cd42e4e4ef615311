//! What is counted for operators: one place for every metric, its name and its labels.
//!
//! It knows no HTTP but the words that a door gives. **Invariant:** a label is a word of ours or of the configuration,
//! never one of a request: junk in requests makes no series (case I01).

mod lately;
mod plugins;

pub use plugins::CompressionStats;

use crate::backends::BackendState;
use chorus_signals::Timing;
use chorus_store::{CallRecord, CallStatus, Losses, RunRecord, RunStatus, SignalState, StoreFault};
use chorus_upstream::reliability::BreakerState;
use lately::Lately;
use plugins::PluginMeters;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Bounds of request and call times, in seconds.
const SECONDS: [f64; 14] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0];
/// Bounds of signal times, in seconds.
const SIGNAL_SECONDS: [f64; 10] = [0.00001, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5];
/// Most decisions and models that have a series of their own; with very many reloads of other names the rest is `other`.
const MOST_NAMES: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RunLabels {
    decision: String,
    algorithm: String,
    status: &'static str,
    code: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    model: String,
    backend: String,
    outcome: String,
    cause: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TokenLabels {
    model: String,
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BackendLabels {
    model: String,
    backend: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResponseLabels {
    plane: &'static str,
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Named {
    name: String,
}

impl Named {
    fn of(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

/// What one attempt adds to.
#[derive(Debug, Clone)]
struct CallSeries {
    calls: Counter,
    seconds: Histogram,
    prompt_tokens: Counter,
    completion_tokens: Counter,
    micro_usd: Counter,
}

type Seconds<L> = Family<L, Histogram, fn() -> Histogram>;

/// Every metric of this process.
pub struct Meters {
    registry: Registry,
    names: Mutex<BTreeSet<String>>,
    responses: Family<ResponseLabels, Counter>,
    runs: Family<RunLabels, Counter>,
    run_seconds: Seconds<Named>,
    calls: Family<CallLabels, Counter>,
    call_seconds: Seconds<Named>,
    first_output_seconds: Seconds<Named>,
    tokens: Family<TokenLabels, Counter>,
    micro_usd: Family<Named, Counter>,
    budgets_spent: Family<Named, Counter>,
    limits_refused: Family<Named, Counter>,
    degraded: Family<Named, Counter>,
    sessions_alone: Counter,
    records_lost: Counter,
    signal_seconds: Seconds<Named>,
    signals_absent: Family<Named, Counter>,
    plugins: PluginMeters,
    breakers: Family<BackendLabels, Gauge>,
    in_flight: Family<BackendLabels, Gauge>,
    responses_lately: Lately<ResponseLabels, Counter>,
    runs_lately: Lately<RunLabels, (Counter, Histogram)>,
    calls_lately: Lately<CallLabels, CallSeries>,
    signals_lately: Lately<chorus_spec::Family, Histogram>,
}

impl Default for Meters {
    fn default() -> Self {
        let seconds: fn() -> Histogram = || Histogram::new(SECONDS);
        let signal_seconds: fn() -> Histogram = || Histogram::new(SIGNAL_SECONDS);
        let mut it = Self {
            registry: Registry::with_prefix("chorus"),
            names: Mutex::default(),
            responses: Family::default(),
            runs: Family::default(),
            run_seconds: Family::new_with_constructor(seconds),
            calls: Family::default(),
            call_seconds: Family::new_with_constructor(seconds),
            first_output_seconds: Family::new_with_constructor(seconds),
            tokens: Family::default(),
            micro_usd: Family::default(),
            budgets_spent: Family::default(),
            limits_refused: Family::default(),
            degraded: Family::default(),
            sessions_alone: Counter::default(),
            records_lost: Counter::default(),
            signal_seconds: Family::new_with_constructor(signal_seconds),
            signals_absent: Family::default(),
            plugins: PluginMeters::default(),
            breakers: Family::default(),
            in_flight: Family::default(),
            responses_lately: Lately::default(),
            runs_lately: Lately::default(),
            calls_lately: Lately::default(),
            signals_lately: Lately::default(),
        };
        it.register();
        it
    }
}

impl Meters {
    fn register(&mut self) {
        let it = &mut self.registry;
        it.register("http_responses", "Answers by plane, route and status", self.responses.clone());
        it.register("runs", "Requests by decision, algorithm, end and error code", self.runs.clone());
        let help = "Time of a request, by algorithm";
        it.register_with_unit("run_duration", help, Unit::Seconds, self.run_seconds.clone());
        it.register("calls", "Attempts at model calls, by backend, outcome and cause", self.calls.clone());
        let help = "Time of an attempt, by model";
        it.register_with_unit("call_duration", help, Unit::Seconds, self.call_seconds.clone());
        let help = "Time to the first output of a streamed attempt, by model";
        it.register_with_unit("call_first_output", help, Unit::Seconds, self.first_output_seconds.clone());
        it.register("tokens", "Tokens read and written, by model", self.tokens.clone());
        it.register("cost_micro_usd", "Millionths of a dollar, by model", self.micro_usd.clone());
        it.register("budgets_spent", "Requests whose budget was spent, by bound", self.budgets_spent.clone());
        let help = "Requests refused by a limit on their caller, by limit";
        it.register("limits_refused", help, self.limits_refused.clone());
        it.register("degraded", "Answers that were given up on in part, by reason", self.degraded.clone());
        let help = "Turns whose conversation this replica knew alone: the shared store was away";
        it.register("sessions_alone", help, self.sessions_alone.clone());
        let help = "Run records that could not be kept: no room where they wait, or a store that failed";
        it.register("records_lost", help, self.records_lost.clone());
        let help = "Time of a signal, by family";
        it.register_with_unit("signal_duration", help, Unit::Seconds, self.signal_seconds.clone());
        it.register(
            "signals_absent",
            "Signals that could not be had, by family",
            self.signals_absent.clone(),
        );
        self.plugins.register(it);
        let help = "What a backend's breaker lets pass: 0 everything, 1 one call, 2 nothing";
        it.register("backend_breaker", help, self.breakers.clone());
        it.register("backend_in_flight", "Calls under way at a backend", self.in_flight.clone());
    }

    /// An answer left a door; `route` is a pattern of ours, never a path as sent.
    pub fn responded(&self, plane: &'static str, route: &str, status: u16) {
        let is = |it: &ResponseLabels| it.plane == plane && it.route == route && it.status == status;
        let series = self.responses_lately.series(is, || {
            let labels = ResponseLabels { plane, route: route.to_owned(), status };
            let series = self.responses.get_or_create_owned(&labels);
            (labels, series)
        });
        series.inc();
    }

    /// A request was refused because of its caller's limit of that name.
    pub fn refused(&self, limit: &str) {
        self.limits_refused.get_or_create(&Named::of(self.known(limit))).inc();
    }

    /// What has become of requests on routes that shorten.
    #[must_use]
    pub fn compression(&self) -> CompressionStats {
        self.plugins.compression()
    }

    /// The shared store of conversations could not be asked.
    pub(crate) fn session_alone(&self) {
        self.sessions_alone.inc();
    }

    /// Signals were looked at.
    pub(crate) fn signals(&self, timings: &[Timing]) {
        for timing in timings {
            let series = self.signals_lately.series(
                |family| *family == timing.family,
                || {
                    let name = Named::of(timing.family.to_string());
                    (timing.family, self.signal_seconds.get_or_create_owned(&name))
                },
            );
            series.observe(Duration::from_micros(timing.micros).as_secs_f64());
        }
    }

    /// A request has ended.
    pub(crate) fn run(&self, record: &RunRecord) {
        let status = match record.status {
            RunStatus::Ok => "ok",
            RunStatus::Failed => "failed",
            RunStatus::Cancelled => "cancelled",
        };
        let decision = record.decision.as_deref().unwrap_or("none");
        let algorithm = record.algorithm.as_deref().unwrap_or("none");
        let code = record.error_code.as_deref().unwrap_or_default();
        let is = |it: &RunLabels| {
            it.decision == decision && it.algorithm == algorithm && it.status == status && it.code == code
        };
        let (runs, times) = self.runs_lately.series(is, || {
            let named = record.decision.as_deref().map_or_else(|| "none".to_owned(), |name| self.known(name));
            let labels =
                RunLabels { decision: named, algorithm: algorithm.to_owned(), status, code: code.to_owned() };
            let times = self.run_seconds.get_or_create_owned(&Named::of(algorithm));
            let runs = self.runs.get_or_create_owned(&labels);
            (labels, (runs, times))
        });
        runs.inc();
        times.observe(seconds(record.duration_ms));
        record.calls.iter().for_each(|call| self.call(call));
        let spent = record.traces.get("budget").and_then(|budget| budget.get("spent")?.as_str());
        if let Some(bound) = spent {
            self.budgets_spent.get_or_create(&Named::of(bound)).inc();
        }
        if let Some(notes) = record.traces.get("plugins") {
            self.plugins.count(notes);
        }
        for reason in &record.degraded {
            self.degraded.get_or_create(&Named::of(self.known(word(reason)))).inc();
        }
        for signal in record.signals.iter().filter(|signal| signal.state == SignalState::Absent) {
            let family = signal.key.split(':').next().unwrap_or_default();
            self.signals_absent.get_or_create(&Named::of(family)).inc();
        }
    }

    fn call(&self, call: &CallRecord) {
        let outcome = match call.status {
            CallStatus::Ok => "ok",
            CallStatus::Cancelled => "cancelled",
            CallStatus::Failed => call.error.as_deref().unwrap_or("failed"),
        };
        let backend = call.backend.as_deref().unwrap_or_default();
        let cause = cause(call.cause.as_deref());
        let is = |it: &CallLabels| {
            it.model == call.model && it.backend == backend && it.outcome == outcome && it.cause == cause
        };
        let series = self.calls_lately.series(is, || {
            let labels = CallLabels {
                model: self.known(&call.model),
                backend: self.known(backend),
                outcome: outcome.to_owned(),
                cause,
            };
            let series = self.call_series(&labels);
            (labels, series)
        });
        series.calls.inc();
        series.seconds.observe(seconds(call.latency_ms));
        if let Some(first) = call.first_token_ms {
            let named = Named::of(self.known(&call.model));
            self.first_output_seconds.get_or_create(&named).observe(seconds(first));
        }
        series.prompt_tokens.inc_by(call.usage.prompt_tokens);
        series.completion_tokens.inc_by(call.usage.completion_tokens);
        series.micro_usd.inc_by(call.cost_micro_usd);
    }

    fn call_series(&self, labels: &CallLabels) -> CallSeries {
        let named = Named::of(labels.model.clone());
        let tokens = |kind| TokenLabels { model: labels.model.clone(), kind };
        CallSeries {
            calls: self.calls.get_or_create_owned(labels),
            seconds: self.call_seconds.get_or_create_owned(&named),
            prompt_tokens: self.tokens.get_or_create_owned(&tokens("prompt")),
            completion_tokens: self.tokens.get_or_create_owned(&tokens("completion")),
            micro_usd: self.micro_usd.get_or_create_owned(&named),
        }
    }

    /// All of them as text for Prometheus (OpenMetrics), with how the backends are doing now.
    #[must_use]
    pub fn text(&self, backends: &[BackendState]) -> String {
        self.breakers.clear();
        self.in_flight.clear();
        for it in backends {
            let labels = BackendLabels { model: it.model.clone(), backend: it.backend.clone() };
            let state = match it.breaker {
                BreakerState::Closed => 0,
                BreakerState::HalfOpen => 1,
                BreakerState::Open => 2,
            };
            self.breakers.get_or_create(&labels).set(state);
            let in_flight = i64::try_from(it.in_flight).unwrap_or(i64::MAX);
            self.in_flight.get_or_create(&labels).set(in_flight);
        }
        let mut text = String::new();
        // Written to memory: there is nothing that could fail.
        let _ = text::encode(&mut text, &self.registry);
        text
    }

    /// A name of the configuration, unless there have been too many.
    fn known(&self, name: &str) -> String {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.contains(name) || (names.len() < MOST_NAMES && names.insert(name.to_owned())) {
            name.to_owned()
        } else {
            "other".to_owned()
        }
    }
}

impl Losses for Meters {
    /// Counts it, and says why. That nothing more fits the store says itself, once.
    fn lost(&self, fault: &StoreFault) {
        self.records_lost.inc();
        if !matches!(fault, StoreFault::Full(_)) {
            tracing::error!(%fault, "a run record could not be kept");
        }
    }
}

impl std::fmt::Debug for Meters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meters")
    }
}

fn seconds(millis: u64) -> f64 {
    Duration::from_millis(millis).as_secs_f64()
}

/// The word before the particulars of a reason.
fn word(reason: &str) -> &str {
    let word = reason.split([':', ' ', '=']).next().unwrap_or_default();
    if word.len() <= 40 { word } else { "other" }
}

fn cause(cause: Option<&str>) -> &'static str {
    let word = cause.and_then(|cause| cause.split([' ', ':']).next());
    ["retry", "fallback", "hedge"].into_iter().find(|known| word == Some(known)).unwrap_or("first")
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::Usage;

    fn record(requested: &str) -> RunRecord {
        let call = CallRecord {
            model: "small".into(),
            backend: Some("main".into()),
            cause: Some("retry: upstream_status 503".to_owned()),
            usage: Usage { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10, estimated: false },
            cost_micro_usd: 13,
            latency_ms: 20,
            ..CallRecord::default()
        };
        RunRecord {
            requested_model: requested.into(),
            decision: Some("greet".into()),
            algorithm: Some("static".into()),
            calls: vec![call],
            degraded: vec!["budget_spent: max_calls".to_owned()],
            ..RunRecord::default()
        }
    }

    #[test]
    fn a_run_is_counted_by_what_it_took() {
        let meters = Meters::default();
        meters.run(&record("auto"));
        meters.responded("data", "/v1/chat/completions", 200);
        let text = meters.text(&[]);
        for line in [
            "chorus_runs_total{decision=\"greet\",algorithm=\"static\",status=\"ok\",code=\"\"} 1",
            "chorus_calls_total{model=\"small\",backend=\"main\",outcome=\"ok\",cause=\"retry\"} 1",
            "chorus_tokens_total{model=\"small\",kind=\"prompt\"} 7",
            "chorus_cost_micro_usd_total{name=\"small\"} 13",
            "chorus_degraded_total{name=\"budget_spent\"} 1",
            "chorus_http_responses_total{plane=\"data\",route=\"/v1/chat/completions\",status=\"200\"} 1",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn i01_names_of_requests_make_no_series() {
        let meters = Meters::default();
        meters.run(&record("auto"));
        let before = meters.text(&[]).lines().count();
        for n in 0..5000 {
            meters.run(&record(&format!("x-{n}")));
        }
        meters.run(&record(&"x".repeat(10_000)));
        assert_eq!(meters.text(&[]).lines().count(), before);
    }

    #[test]
    fn very_many_names_of_configurations_are_others() {
        let meters = Meters::default();
        for n in 0..2 * MOST_NAMES {
            let mut record = record("auto");
            record.decision = Some(format!("d{n}").into());
            meters.run(&record);
        }
        let text = meters.text(&[]);
        assert!(text.contains("decision=\"other\""));
        assert!(text.lines().filter(|line| line.starts_with("chorus_runs_total")).count() <= MOST_NAMES + 1);
    }

    #[test]
    fn how_backends_are_doing_is_what_it_is_now() {
        let meters = Meters::default();
        let state = |backend: &str, breaker| BackendState {
            model: "m".to_owned(),
            backend: backend.to_owned(),
            breaker,
            in_flight: 2,
        };
        assert!(meters.text(&[state("gone", BreakerState::Closed)]).contains("gone"));
        let text = meters.text(&[state("here", BreakerState::Open)]);
        assert!(!text.contains("gone"));
        assert!(text.contains("chorus_backend_breaker{model=\"m\",backend=\"here\"} 2"), "{text}");
    }
}
