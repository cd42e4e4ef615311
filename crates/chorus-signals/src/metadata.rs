//! `metadata`: a key of the request's `metadata`.
//!
//! *Measures:* whether the value of a key equals a text, is one of several, or is there at all.
//! *Inputs:* the object `metadata` of the request's body.
//! *Cost:* 0, one look-up
//! *Fails when:* the client says what is not so: metadata is its own word and proves nothing.
//! *Source:* contract §1.4 (`metadata`).
//!
//! A value is compared as text; a number or a truth value by its JSON text. A key with the value `null` is not there.
//! **Invariant:** `equals` and `in` never hold for a key that is not there.

use crate::doc::SignalDoc;
use crate::subject::Subject;
use chorus_policy::Observation;
use chorus_spec::{Family, MetadataPredicate, MetadataSignal};

/// The row of the table.
pub const DOC: SignalDoc = SignalDoc {
    family: Family::Metadata,
    measures: "whether the value of a key equals a text, is one of several, or is there at all.",
    inputs: "the object `metadata` of the request's body.",
    cost: 0,
    fails_when: "the client says what is not so: metadata is its own word and proves nothing.",
    source: "contract §1.4 (`metadata`).",
};

/// What the rule says of a request.
pub(crate) fn observe(signal: &MetadataSignal, subject: &Subject<'_>) -> Observation {
    let value = subject.metadata(&signal.key);
    let holds = match &signal.predicate {
        MetadataPredicate::Equals(text) => value == Some(text),
        MetadataPredicate::In(texts) => value.is_some_and(|value| texts.iter().any(|text| text == value)),
        MetadataPredicate::Exists(wanted) => value.is_some() == *wanted,
    };
    if holds {
        Observation::Matched { confidence: 1.0, raw: None }
    } else {
        Observation::Unmatched { raw: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::ChatRequest;

    fn holds(metadata: &str, key: &str, predicate: MetadataPredicate) -> bool {
        let body = format!(r#"{{"model":"m",{metadata}"messages":[{{"role":"user","content":"hello"}}]}}"#);
        let request = ChatRequest::parse(body.as_bytes(), &Default::default()).unwrap();
        let signal = MetadataSignal { key: key.to_owned(), predicate };
        matches!(observe(&signal, &Subject::of(&request)), Observation::Matched { .. })
    }

    #[test]
    fn values_are_compared_as_text() {
        use MetadataPredicate as P;
        let metadata = r#""metadata":{"tier":"gold","retries":3,"beta":true,"gone":null},"#;
        let text = |text: &str| P::Equals(text.to_owned());
        for (key, predicate, want) in [
            ("tier", text("gold"), true),
            ("tier", text("Gold"), false),
            ("tier", P::In(vec!["silver".to_owned(), "gold".to_owned()]), true),
            ("retries", text("3"), true),
            ("beta", text("true"), true),
            ("tier", P::Exists(true), true),
            ("tier", P::Exists(false), false),
            ("gone", P::Exists(true), false),
            ("nowhere", P::Exists(false), true),
            ("nowhere", text(""), false),
        ] {
            assert_eq!(holds(metadata, key, predicate.clone()), want, "{key} {predicate:?}");
        }
    }

    #[test]
    fn without_an_object_no_key_is_there() {
        for metadata in ["", r#""metadata":null,"#, r#""metadata":"tier","#, r#""metadata":[1],"#] {
            assert!(holds(metadata, "tier", MetadataPredicate::Exists(false)), "{metadata}");
        }
    }
}
