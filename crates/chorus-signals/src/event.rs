//! `event`: an event that an application reports.
//!
//! *Measures:* how many of the rule's criteria an event meets: its type, severity, action code, and that it has a time.
//! *Inputs:* `metadata` of the request; else fields in the last user message, as JSON, YAML or `key=value`.
//! *Cost:* 1, one pass over the text where the rule reads it
//! *Fails when:* the text only talks about such an event; a field has a name of its own.
//! *Source:* contract §1.4 (`events`).
//!
//! Fields: `event_type` (or `event`), `severity` (or `level`), `action_code` (or `action`), and `timestamp` (or `time`,
//! `occurred_at`); `metadata` goes before the text. A type or a code also counts where it stands in the text as a word,
//! because both are identifiers; a severity does not, because "high" is an ordinary word. A date with a time of day is a
//! time. Letters are folded, and `-`, `_` and space are one. Any criterion suffices; confidence is .5 + .5 · met /
//! written, raw the number met. A rule without criteria wants an event of any kind. **Invariant:** raw is at most the
//! number of criteria.

use crate::doc::SignalDoc;
use crate::literal::LiteralSet;
use crate::subject::Subject;
use crate::text::Case;
use chorus_policy::Observation;
use chorus_spec::{EventSignal, Family};
use regex::Regex;

/// The row of the table.
pub const DOC: SignalDoc = SignalDoc {
    family: Family::Event,
    measures: "how many of the rule's criteria an event meets: its type, severity, action code, and that it has a time.",
    inputs: "`metadata` of the request; else fields in the last user message, as JSON, YAML or `key=value`.",
    cost: 1,
    fails_when: "the text only talks about such an event; a field has a name of its own.",
    source: "contract §1.4 (`events`).",
};

/// Names of the field that says what happened.
const TYPE: &[&str] = &["event_type", "event"];
/// Names of the field that says how bad it is.
const SEVERITY: &[&str] = &["severity", "level"];
/// Names of the field that says what is to be done.
const ACTION: &[&str] = &["action_code", "action"];
/// Names of the field that says when.
const TIME: &[&str] = &["timestamp", "time", "occurred_at"];

/// A date with a time of day. Source: RFC 3339 §5.6.
const INSTANT: &str = r"\b\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}";

/// An event rule, compiled.
#[derive(Debug)]
pub(crate) struct Event {
    criteria: Vec<Criterion>,
}

/// Something that an event must have.
#[derive(Debug)]
struct Criterion {
    /// The names under which `metadata` has it.
    names: &'static [&'static str],
    /// The same names in a text, with a value behind.
    field: Regex,
    /// Values that count, folded; any when empty.
    values: Vec<String>,
    /// The form of value that counts in a text without a name in front.
    bare: Option<Bare>,
}

#[derive(Debug)]
enum Bare {
    Words(LiteralSet),
    Pattern(Regex),
}

impl Event {
    /// Compiles a rule; the error is a sentence for people.
    pub(crate) fn prepare(signal: &EventSignal) -> Result<Self, String> {
        let mut criteria = Vec::new();
        let any = signal.event_types.is_empty()
            && signal.severities.is_empty()
            && signal.action_codes.is_empty()
            && !signal.temporal;
        if any || !signal.event_types.is_empty() {
            criteria.push(Criterion::prepare(TYPE, &signal.event_types, words(&signal.event_types)?)?);
        }
        if !signal.severities.is_empty() {
            criteria.push(Criterion::prepare(SEVERITY, &signal.severities, None)?);
        }
        if !signal.action_codes.is_empty() {
            criteria.push(Criterion::prepare(ACTION, &signal.action_codes, words(&signal.action_codes)?)?);
        }
        if signal.temporal {
            let instant = Regex::new(INSTANT).map_err(|fault| fault.to_string())?;
            criteria.push(Criterion::prepare(TIME, &[], Some(Bare::Pattern(instant)))?);
        }
        Ok(Self { criteria })
    }

    /// What the rule says of a request.
    pub(crate) fn observe(&self, subject: &Subject<'_>) -> Observation {
        let met = self.criteria.iter().filter(|criterion| criterion.is_met(subject)).count() as f64;
        let raw = Some(met);
        if met > 0.0 {
            let confidence = 0.5 + 0.5 * met / self.criteria.len() as f64;
            Observation::Matched { confidence, raw }
        } else {
            Observation::Unmatched { raw }
        }
    }
}

impl Criterion {
    fn prepare(
        names: &'static [&'static str],
        values: &[String],
        bare: Option<Bare>,
    ) -> Result<Self, String> {
        let pattern = format!(
            r#"(?i)(?:^|[^\w-])["']?(?:{})["']?\s*[:=]\s*(?:"([^"\n]*)"|'([^'\n]*)'|([^\s,;}}\]"']+))"#,
            names.join("|").replace('_', "[_-]?")
        );
        let field = Regex::new(&pattern).map_err(|fault| fault.to_string())?;
        Ok(Self { names, field, values: values.iter().map(|value| folded(value)).collect(), bare })
    }

    fn is_met(&self, subject: &Subject<'_>) -> bool {
        if let Some(value) = self.names.iter().find_map(|name| subject.metadata(name)) {
            return self.counts(value);
        }
        let text = subject.text();
        let value =
            |found: regex::Captures<'_>| found.iter().skip(1).flatten().any(|v| self.counts(v.as_str()));
        self.field.captures_iter(text).any(value)
            || match &self.bare {
                Some(Bare::Words(words)) => {
                    words.hits(&folded(subject.comparable(Case::Folded).text())).next().is_some()
                }
                Some(Bare::Pattern(pattern)) => pattern.is_match(text),
                None => false,
            }
    }

    fn counts(&self, value: &str) -> bool {
        let value = folded(value);
        !value.is_empty() && (self.values.is_empty() || self.values.contains(&value))
    }
}

/// Identifiers that count as words of a text; none when none is listed.
fn words(values: &[String]) -> Result<Option<Bare>, String> {
    if values.is_empty() {
        return Ok(None);
    }
    let values: Vec<String> = values.iter().map(|value| folded(value)).collect();
    LiteralSet::build(&values, Case::Folded).map(|words| Some(Bare::Words(words)))
}

fn folded(text: &str) -> String {
    text.trim().to_lowercase().replace(['-', '_'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::{ChatRequest, Message, Role};

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn outage() -> EventSignal {
        EventSignal {
            event_types: owned(&["payment_failed", "disk-full"]),
            severities: owned(&["critical", "high"]),
            action_codes: owned(&["PAGE-7"]),
            temporal: true,
        }
    }

    fn observe(signal: &EventSignal, request: &ChatRequest) -> Observation {
        Event::prepare(signal).unwrap().observe(&Subject::of(request))
    }

    fn met(text: &str) -> f64 {
        let request = ChatRequest::new("m", vec![Message::new(Role::User, text)]);
        match observe(&outage(), &request) {
            Observation::Matched { confidence, raw: Some(met) } => {
                assert!((confidence - (0.5 + met / 8.0)).abs() < 1e-12, "{text}");
                met
            }
            Observation::Unmatched { raw: Some(met) } => met,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn criteria_are_counted_in_every_notation() {
        for (text, want) in [
            (
                r#"{"event_type":"payment_failed","severity":"critical","action_code":"PAGE-7","time":"9:00"}"#,
                4.0,
            ),
            ("event: disk_full\nlevel: HIGH\noccurred_at: 2031-02-03", 3.0),
            ("event_type=payment-failed severity=low", 1.0),
            ("Please look at payment_failed, page 7, since 2031-02-03T09:00Z", 3.0),
            ("Severity = 'critical'", 1.0),
        ] {
            assert_eq!(met(text), want, "{text}");
        }
    }

    #[test]
    fn ordinary_words_are_no_event() {
        for text in [
            "Is a high school diploma critical for this job?",
            "What time is it in Oslo?",
            "Explain how payments work",
            "the next-level: great",
            "",
        ] {
            assert_eq!(met(text), 0.0, "{text}");
        }
    }

    #[test]
    fn metadata_goes_before_the_text() {
        let body = br#"{"model":"m","metadata":{"severity":"low","event_type":"Disk Full"},
            "messages":[{"role":"user","content":"severity: critical"}]}"#;
        let request = ChatRequest::parse(body, &Default::default()).unwrap();
        assert_eq!(observe(&outage(), &request), Observation::Matched { confidence: 0.625, raw: Some(1.0) });
    }

    #[test]
    fn a_rule_without_criteria_wants_any_event() {
        let any =
            EventSignal { event_types: vec![], severities: vec![], action_codes: vec![], temporal: false };
        for (text, want) in [("event_type: order_shipped", true), ("a party is an event", false)] {
            let request = ChatRequest::new("m", vec![Message::new(Role::User, text)]);
            assert_eq!(matches!(observe(&any, &request), Observation::Matched { .. }), want, "{text}");
        }
    }
}
