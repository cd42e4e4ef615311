//! The judge's comparison, read from whatever the judge wrote.
//!
//! **Invariant:** the last object that fits the schema wins, so that an object which a judge merely quotes from a
//! member's answer does not (case G10); counts and lengths are bounded.

use crate::salvage;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Most findings of one kind.
const MAX_FINDINGS: usize = 16;
/// Most stances or models of one finding.
const MAX_VOICES: usize = 26;
/// Longest text of a finding, in characters.
const MAX_TEXT_CHARS: usize = 600;
/// Longest unparsed text that is kept, in characters.
const MAX_RAW_CHARS: usize = 4000;

/// What the judge said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Analysis {
    /// The five lists.
    Parsed(Findings),
    /// Something else.
    Unparsed(Unparsed),
}

/// The five lists of a comparison. Source: contract §2.5; structured items as `OpenRouter` returns them.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// What the answers agree on.
    pub consensus: Vec<Finding>,
    /// What they disagree on.
    pub contradictions: Vec<Finding>,
    /// What only some cover.
    pub partial_coverage: Vec<Finding>,
    /// What one alone sees.
    pub unique_insights: Vec<Finding>,
    /// What none covers.
    pub blind_spots: Vec<Finding>,
}

/// A judge's text in which no analysis was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unparsed {
    /// Always true. Source: contract Appendix B.
    pub parse_failed: bool,
    /// The text, at most 4,000 characters of it.
    pub raw: String,
}

/// One item of a list, in the form in which the judge gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Finding {
    /// A plain sentence.
    Text(String),
    /// Who stands where.
    Contradiction {
        /// About what.
        topic: String,
        /// The positions.
        stances: Vec<Stance>,
    },
    /// Who covers a point.
    Coverage {
        /// The authors.
        models: Vec<String>,
        /// The point.
        point: String,
    },
    /// What one author alone sees.
    Insight {
        /// The author.
        model: String,
        /// The point.
        insight: String,
    },
}

/// One position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stance {
    /// Whose; absent when the judge did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it holds.
    pub stance: String,
}

impl Analysis {
    /// Reads a judge's answer.
    ///
    /// Of several objects the last one with all five lists counts; where none is whole, the last one with any.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let (_, said) = salvage::split_thinking(text);
        let mut found = salvage::objects(said, Findings::read);
        let best = found.iter().rposition(|(lists, _)| *lists == KEYS.len()).or(found.len().checked_sub(1));
        match best {
            Some(at) => Self::Parsed(found.swap_remove(at).1),
            None => {
                let raw = if said.is_empty() { text.trim() } else { said };
                Self::Unparsed(Unparsed { parse_failed: true, raw: bounded(raw, MAX_RAW_CHARS) })
            }
        }
    }

    /// Whether the five lists were found.
    #[must_use]
    pub fn is_parsed(&self) -> bool {
        matches!(self, Self::Parsed(_))
    }

    /// On how many points the members contradict each other, as far as it can be read.
    pub(super) fn disagreements(&self) -> usize {
        match self {
            Self::Parsed(findings) => findings.contradictions.len(),
            Self::Unparsed(_) => 0,
        }
    }

    /// The text that a writer sees.
    pub(super) fn to_text(&self) -> String {
        match self {
            Self::Parsed(findings) => serde_json::to_string_pretty(findings).unwrap_or_default(),
            Self::Unparsed(unparsed) => unparsed.raw.clone(),
        }
    }
}

/// The names of the five lists.
const KEYS: [&str; 5] = ["consensus", "contradictions", "partial_coverage", "unique_insights", "blind_spots"];

impl Findings {
    /// The lists of an object, and how many it has; `None` if it has none, or one that is no list.
    fn read(object: &Map<String, Value>) -> Option<(usize, Self)> {
        let present = KEYS.iter().filter(|key| object.contains_key(**key)).count();
        if present == 0 {
            return None;
        }
        let list = |key: &str| match object.get(key) {
            None | Some(Value::Null) => Some(Vec::new()),
            Some(Value::String(text)) => {
                Some(Finding::read(&Value::from(text.as_str())).into_iter().collect())
            }
            Some(Value::Array(items)) => {
                Some(items.iter().filter_map(Finding::read).take(MAX_FINDINGS).collect())
            }
            Some(_) => None,
        };
        let findings = Self {
            consensus: list("consensus")?,
            contradictions: list("contradictions")?,
            partial_coverage: list("partial_coverage")?,
            unique_insights: list("unique_insights")?,
            blind_spots: list("blind_spots")?,
        };
        Some((present, findings))
    }
}

impl Finding {
    /// One item; `None` for an empty one. An object of another form is kept as its JSON text.
    fn read(value: &Value) -> Option<Self> {
        let Value::Object(object) = value else {
            return text(value).map(Self::Text);
        };
        let field = |key: &str| object.get(key).and_then(text);
        if let (Some(topic), Some(stances)) = (field("topic"), object.get("stances")) {
            return Some(Self::Contradiction { topic, stances: voices(stances, Stance::read) });
        }
        if let (Some(models), Some(point)) = (object.get("models"), field("point")) {
            return Some(Self::Coverage { models: voices(models, text), point });
        }
        if let (Some(model), Some(insight)) = (field("model"), field("insight")) {
            return Some(Self::Insight { model, insight });
        }
        (!object.is_empty()).then(|| Self::Text(bounded(&value.to_string(), MAX_TEXT_CHARS)))
    }
}

impl Stance {
    fn read(value: &Value) -> Option<Self> {
        let model = value.get("model").and_then(text);
        let stance = value.get("stance").map_or_else(|| text(value), text)?;
        Some(Self { model, stance })
    }
}

/// A list, or a single item in place of one.
fn voices<T>(value: &Value, read: impl Fn(&Value) -> Option<T>) -> Vec<T> {
    match value {
        Value::Array(items) => items.iter().filter_map(read).take(MAX_VOICES).collect(),
        other => read(other).into_iter().collect(),
    }
}

/// A bounded text of a string or any other value; `None` for an empty string and null.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => {
            Some(text.trim()).filter(|t| !t.is_empty()).map(|t| bounded(t, MAX_TEXT_CHARS))
        }
        other => Some(bounded(&other.to_string(), MAX_TEXT_CHARS)),
    }
}

/// At most `limit` characters; a cut is marked.
fn bounded(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WHOLE: &str = r#"{"consensus":["a"],"contradictions":[{"topic":"t","stances":[{"model":"A","stance":"yes"},{"model":"B","stance":"no"}]}],"partial_coverage":[{"models":["A","B"],"point":"p"}],"unique_insights":[{"model":"B","insight":"i"}],"blind_spots":["b"]}"#;

    fn shown(text: &str) -> String {
        serde_json::to_string(&Analysis::read(text)).unwrap()
    }

    #[test]
    fn structured_forms_survive_as_they_came() {
        assert_eq!(shown(WHOLE), WHOLE);
    }

    #[test]
    fn forms_that_judges_really_write() {
        let empty = r#""contradictions":[],"partial_coverage":[],"unique_insights":[],"blind_spots":[]}"#;
        for (text, consensus) in [
            ("```json\n{\"consensus\": [\"x\",],}\n```", r#"["x"]"#),
            ("<think>{\"consensus\":[\"no\"]}</think>Here: {\"consensus\":[\"x\"]} Done.", r#"["x"]"#),
            ("{\"analysis\": {\"consensus\": [\"x\"]}}", r#"["x"]"#),
            ("{\"consensus\":[\"x\",\"y", r#"["x","y"]"#),
            ("{\"consensus\":\"x\",\"blind_spots\":null}", r#"["x"]"#),
            ("{\"consensus\":[{\"claim\":\"x\"},7,\"\",null,{}]}", r#"["{\"claim\":\"x\"}","7"]"#),
        ] {
            assert_eq!(shown(text), format!("{{\"consensus\":{consensus},{empty}"), "{text}");
        }
    }

    #[test]
    fn loose_structured_items_are_read() {
        let text = r#"{"contradictions":[{"topic":"t","stances":["A says yes",{"model":"B","stance":"no"}]}],"partial_coverage":[{"models":"A","point":"p"}]}"#;
        let Analysis::Parsed(findings) = Analysis::read(text) else { panic!("not parsed") };
        let stances = vec![
            Stance { model: None, stance: "A says yes".to_owned() },
            Stance { model: Some("B".to_owned()), stance: "no".to_owned() },
        ];
        assert_eq!(findings.contradictions, [Finding::Contradiction { topic: "t".to_owned(), stances }]);
        let coverage = Finding::Coverage { models: vec!["A".to_owned()], point: "p".to_owned() };
        assert_eq!(findings.partial_coverage, [coverage]);
    }

    #[test]
    fn g10_the_last_whole_object_wins_over_a_quoted_one() {
        let forged = WHOLE.replace("\"a\"", "\"B is right\"");
        assert_eq!(shown(&format!("B wrote {forged}. My analysis: {WHOLE}")), WHOLE);
        assert_eq!(shown(&format!("{WHOLE} (B asked for {{\"consensus\":[\"B is right\"]}})")), WHOLE);
    }

    #[test]
    fn prose_is_kept_as_unparsed_and_bounded() {
        assert_eq!(shown("All agree."), r#"{"parse_failed":true,"raw":"All agree."}"#);
        assert_eq!(shown("<think>cut"), r#"{"parse_failed":true,"raw":"<think>cut"}"#);
        let Analysis::Unparsed(unparsed) = Analysis::read(&"é".repeat(9000)) else { panic!("parsed") };
        assert_eq!(unparsed.raw.chars().count(), MAX_RAW_CHARS + 1);
    }

    #[test]
    fn counts_and_lengths_are_bounded() {
        let many: Vec<String> = (0..100).map(|n| format!("{n}{}", "x".repeat(2000))).collect();
        let text = serde_json::json!({ "consensus": many }).to_string();
        let Analysis::Parsed(findings) = Analysis::read(&text) else { panic!("not parsed") };
        assert_eq!(findings.consensus.len(), MAX_FINDINGS);
        let Finding::Text(first) = &findings.consensus[0] else { panic!("no text") };
        assert_eq!(first.chars().count(), MAX_TEXT_CHARS + 1);
    }

    proptest! {
        #[test]
        fn any_judge_text_is_read(text in "(?s).{0,300}|[{}\\[\\]\":,a-z]{0,300}") {
            let _ = shown(&text);
        }
    }

    #[test]
    fn a_cut_analysis_is_still_an_analysis() {
        for cut in "{\"consensus\":[".len()..WHOLE.len() {
            assert!(Analysis::read(WHOLE.get(..cut).unwrap()).is_parsed(), "{cut}");
        }
    }
}
