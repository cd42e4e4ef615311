//! The `x-vsr-*` headers of an answer. Source: contract §2.7 and §4.4.

use chorus_engine::{AnswerHead, Path, RouteHead, Trace};
use chorus_spec::{Family, Retention};
use chorus_wire::Losses;
use http::header::{HeaderMap, HeaderName, HeaderValue};

/// Version of this set of headers.
const SCHEMA_VERSION: &str = "2";

/// Longest value of one header, in bytes.
const MAX_VALUE_BYTES: usize = 1024;

/// Room for the headers of a usual answer, with those that its body needs.
const USUAL: usize = 20;

/// The header that names the run of an answer.
pub(crate) static RUN: HeaderName = HeaderName::from_static("x-vsr-replay-id");
/// The header that names a request, in both directions.
pub(crate) static REQUEST: HeaderName = HeaderName::from_static("x-request-id");

/// Collects headers; a value that cannot be sent is left out.
#[derive(Debug, Default)]
pub(crate) struct Headers(HeaderMap);

impl Headers {
    /// Those that every answer of a run has.
    #[must_use]
    pub(crate) fn of_run(id: &str) -> Self {
        let mut headers = Self(HeaderMap::with_capacity(USUAL));
        headers.put("x-vsr-schema-version", SCHEMA_VERSION);
        headers.insert(RUN.clone(), id);
        headers.insert(REQUEST.clone(), id);
        headers
    }

    /// What the route says; `debug` adds the matched signals.
    pub(crate) fn route(&mut self, head: &RouteHead, debug: bool) {
        self.put("x-vsr-response-path", head.path.as_str());
        self.put("x-vsr-selected-algorithm", &head.algorithm);
        self.put("x-vsr-selected-reasoning", if head.reasoning { "on" } else { "off" });
        self.maybe("x-vsr-selected-recipe", head.recipe.as_deref());
        self.maybe("x-vsr-selected-decision", head.decision.as_deref());
        self.maybe("x-vsr-selected-confidence", head.confidence.map(|c| format!("{c:.4}")).as_deref());
        self.maybe("x-vsr-selected-category", category(head).as_deref());
        if let Some(selection) = &head.selection {
            self.selection(selection, debug);
        }
        if head.path == Path::FastResponse {
            self.put("x-vsr-fast-response", "true");
        }
        if !head.warnings.is_empty() {
            self.put("x-vsr-response-warnings", &head.warnings.join(","));
        }
        if let Some(retention) = &head.retention {
            self.retention(retention);
        }
        if debug {
            self.matched(head);
        }
    }

    /// What became of the conversation, and for debugging why that candidate. Source: contract §4.4 and §4.8.
    fn selection(&mut self, selection: &Trace, debug: bool) {
        let adapted = selection.adaptation.as_ref().map(|it| ("adaptation", it.action.as_str(), &it.reason));
        let protected = selection.session.as_ref().map(|it| ("protection", it.action.as_str(), &it.reason));
        let learning: Vec<(&str, &str, &String)> = adapted.into_iter().chain(protected).collect();
        if let Some(session) = &selection.session {
            self.put("x-vsr-session-phase", session.phase.as_str());
        }
        if !learning.is_empty() {
            let joined = |of: fn(&(&str, &str, &String)) -> String| {
                learning.iter().map(of).collect::<Vec<_>>().join(",")
            };
            self.put("x-vsr-learning-methods", &joined(|it| it.0.to_owned()));
            self.put("x-vsr-learning-actions", &joined(|it| it.1.to_owned()));
            if debug {
                self.put("x-vsr-learning-reasons", &joined(|it| it.2.clone()));
            }
        }
        if debug {
            self.put("x-vsr-selection-reason", &selection.reason);
        }
    }

    /// One header a field that the decision says something of. Source: contract §4.4.
    fn retention(&mut self, hint: &Retention) {
        let text = |flag: Option<bool>| flag.map(|flag| flag.to_string());
        let rows = [
            ("x-vsr-retention-drop", text(hint.drop)),
            ("x-vsr-retention-ttl-turns", hint.ttl_turns.map(|turns| turns.to_string())),
            ("x-vsr-retention-keep-current-model", text(hint.keep_current_model)),
            ("x-vsr-retention-prefer-prefix", text(hint.prefer_prefix_retention)),
        ];
        for (name, value) in rows {
            self.maybe(name, value.as_deref());
        }
    }

    /// Who answers.
    pub(crate) fn selected(&mut self, model: &str) {
        self.put("x-vsr-selected-model", model);
    }

    /// What the answer says; of a looper also who worked. Its account is known only of a whole answer.
    pub(crate) fn answer(&mut self, head: &AnswerHead, route: Option<&RouteHead>, whole: bool) {
        if !head.selected_model.is_empty() {
            self.selected(&head.selected_model);
        }
        for (name, value) in &head.headers {
            self.put(name, value);
        }
        if !head.warnings.is_empty() {
            let earlier = route.map(|route| route.warnings.as_slice()).unwrap_or_default();
            let all: Vec<&str> = earlier.iter().chain(&head.warnings).map(String::as_str).collect();
            self.put("x-vsr-response-warnings", &all.join(","));
        }
        let Some(route) = route.filter(|r| r.path == Path::Looper) else {
            return;
        };
        self.put("x-vsr-looper-algorithm", &route.algorithm);
        self.put("x-vsr-looper-model", &head.selected_model);
        self.put("x-vsr-looper-models-used", &head.models_used.join(","));
        self.put("x-vsr-looper-iterations", &head.calls.to_string());
        if !whole {
            return;
        }
        self.put("x-vsr-looper-latency-ms", &head.latency_ms.to_string());
        self.put("x-vsr-looper-prompt-tokens", &head.usage.prompt_tokens.to_string());
        self.put("x-vsr-looper-completion-tokens", &head.usage.completion_tokens.to_string());
        self.put("x-vsr-looper-total-tokens", &head.usage.total_tokens.to_string());
    }

    /// What the door's translation left behind. Source: contract §4.1.
    pub(crate) fn losses(&mut self, losses: &Losses) {
        if !losses.is_empty() {
            self.put("x-vsr-protocol-warnings", &losses.words().join(","));
        }
    }

    /// The headers.
    #[must_use]
    pub(crate) fn into_map(self) -> HeaderMap {
        self.0
    }

    fn matched(&mut self, head: &RouteHead) {
        let Some(verdict) = &head.verdict else { return };
        for family in Family::ALL {
            let names: Vec<&str> =
                verdict.matched.iter().filter(|(k, _)| k.family == family).map(|(k, _)| k.name()).collect();
            if !names.is_empty() {
                let family = match family {
                    Family::Projection => "projections".to_owned(),
                    Family::Preference => "preference".to_owned(),
                    other => other.bucket().replace('_', "-"),
                };
                if let Ok(name) = HeaderName::try_from(format!("x-vsr-matched-{family}")) {
                    self.insert(name, &names.join(","));
                }
            }
        }
    }

    fn maybe(&mut self, name: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    /// The name in lower case.
    fn put(&mut self, name: &'static str, value: &str) {
        self.insert(HeaderName::from_static(name), value);
    }

    fn insert(&mut self, name: HeaderName, value: &str) {
        let mut end = value.len().min(MAX_VALUE_BYTES);
        while !value.is_char_boundary(end) {
            end -= 1;
        }
        let value = value.get(..end).unwrap_or_default();
        if let Ok(value) = HeaderValue::try_from(value) {
            self.0.insert(name, value);
        }
    }
}

/// The matched domain of highest confidence.
fn category(head: &RouteHead) -> Option<String> {
    let domains = head.verdict.as_ref()?.matched.iter().filter(|(key, _)| key.family == Family::Domain);
    domains.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(key, _)| key.name().to_owned())
}
