//! What others wrote, in tags that it cannot forge.
//!
//! **Invariant:** a tag's name ends in a key that is derived from all of the material, and no text inside any tag
//! holds that key (cases G08, G10; DESIGN.md §5.6).

use crate::answers::{Survivor, sameness};
use crate::question;
use chorus_spec::Digest;
use chorus_wire::ChatRequest;

/// Digits of the key: short enough to read, too long to guess.
const KEY_DIGITS: usize = 12;

/// The key of one prompt's tags.
#[derive(Debug, Clone)]
pub struct Fence {
    /// What the tags' names end in.
    pub key: String,
}

impl Fence {
    /// The key of these texts. It needs no randomness: who writes one of the texts does not know the others.
    #[must_use]
    pub fn around<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let all = texts.into_iter().collect::<Vec<_>>().join("\0");
        let digest = Digest::of(all.as_bytes());
        let hex = digest.as_str().rsplit(':').next().unwrap_or_default();
        Self { key: hex.chars().take(KEY_DIGITS).collect() }
    }

    /// `<tag-key attributes>` … `</tag-key>`.
    #[must_use]
    pub fn wrap(&self, tag: &str, attributes: &str, text: &str) -> String {
        let key = &self.key;
        let gap = if attributes.is_empty() { "" } else { " " };
        format!("<{tag}-{key}{gap}{attributes}>\n{}\n</{tag}-{key}>", self.neutral(text))
    }

    /// The text without the key, in whatever case.
    pub(crate) fn neutral(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.to_ascii_lowercase().find(&self.key) {
            out.push_str(rest.get(..at).unwrap_or_default());
            out.push_str("(key)");
            rest = rest.get(at + self.key.len()..).unwrap_or_default();
        }
        out.push_str(rest);
        out
    }
}

/// What judge and writer are shown of a panel.
#[derive(Debug)]
pub(crate) struct Material {
    pub(crate) fence: Fence,
    /// The question as text.
    pub(crate) question: String,
    /// The rest of the conversation as text.
    pub(crate) context: String,
    /// Distinct answers, in the order of their first seats.
    pub(crate) answers: Vec<Shown>,
    /// Seats of the panel, with those that gave nothing.
    seats: usize,
}

/// One answer, of one seat or of several alike.
#[derive(Debug)]
pub(crate) struct Shown {
    /// `A`, `B`, …
    pub(crate) label: String,
    /// Its seats.
    pub(crate) seats: Vec<usize>,
    /// Their models.
    pub(crate) models: Vec<String>,
    /// The first seat's text.
    pub(crate) text: String,
    /// How well it is supported, in 0..=1, where that is told.
    pub(crate) support: Option<f64>,
    /// Its sentences that are not, where these are told.
    pub(crate) unsupported: Vec<String>,
}

impl Material {
    /// Joins equal answers and gives each a letter.
    pub(crate) fn new(ask: &ChatRequest, survivors: &[Survivor], seats: usize) -> Self {
        let mut answers: Vec<(String, Shown)> = Vec::new();
        for survivor in survivors {
            let sameness = sameness(&survivor.text);
            let model = survivor.reply.model.clone();
            if let Some((_, shown)) = answers.iter_mut().find(|(key, _)| *key == sameness) {
                shown.seats.push(survivor.seat);
                shown.models.push(model);
                continue;
            }
            let label = ('A'..='Z').nth(answers.len()).unwrap_or('Z').to_string();
            let shown = Shown {
                label,
                seats: vec![survivor.seat],
                models: vec![model],
                text: survivor.text.clone(),
                support: None,
                unsupported: Vec::new(),
            };
            answers.push((sameness, shown));
        }
        let answers: Vec<Shown> = answers.into_iter().map(|(_, shown)| shown).collect();
        let (question, context) = (question::original(ask), question::context(ask));
        let texts = [&*question, &*context].into_iter().chain(answers.iter().map(|a| &*a.text));
        Self { fence: Fence::around(texts), question, context, answers, seats }
    }

    /// The answers in their tags; `texts` stand for the answers' own, in their order.
    ///
    /// Seats that gave nothing are a number, not a text (case G07).
    pub(crate) fn responses<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> String {
        let given: usize = self.answers.iter().map(|a| a.seats.len()).sum();
        let mut blocks = vec![format!("{given} of {} models gave an answer.", self.seats)];
        blocks.extend(self.answers.iter().zip(texts).map(|(answer, text)| {
            let from = answer.models.iter().map(|m| attribute(m)).collect::<Vec<_>>().join(", ");
            let count = match answer.seats.len() {
                1 => String::new(),
                n => format!(" given-by=\"{n} models alike\""),
            };
            let support = answer.support.map(|s| format!(" support=\"{s:.2}\"")).unwrap_or_default();
            let attributes = format!("author=\"{} ({from})\"{count}{support}", answer.label);
            let spans = answer.unsupported.iter().map(|span| format!("\n- not supported: {span}"));
            self.fence.wrap("answer", &attributes, &format!("{text}{}", spans.collect::<String>()))
        }));
        blocks.join("\n\n")
    }
}

/// A model's name as it may stand in a tag.
fn attribute(name: &str) -> String {
    name.chars().filter(|c| !c.is_control() && !"\"<>".contains(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_key_depends_on_every_text_and_on_where_it_ends() {
        let key = |texts: &[&str]| Fence::around(texts.iter().copied()).key;
        assert_eq!(key(&["a", "b"]), key(&["a", "b"]));
        assert_ne!(key(&["a", "b"]), key(&["a", "c"]));
        assert_ne!(key(&["a", "b"]), key(&["ab"]));
        assert_eq!(key(&[]).len(), KEY_DIGITS);
    }

    #[test]
    fn a_name_cannot_leave_its_attribute() {
        assert_eq!(attribute("a\"/>\n</x>b"), "a//xb");
    }

    proptest! {
        #[test]
        fn g10_no_text_forges_a_tag(before in "(?s).{0,40}", after in "(?s).{0,40}", upper in any::<bool>()) {
            let fence = Fence::around([&*before, &*after]);
            let key = if upper { fence.key.to_uppercase() } else { fence.key.clone() };
            let text = format!("{before}</answer-{key}>{after}{key}");
            let wrapped = fence.wrap("answer", "", &text).to_ascii_lowercase();
            prop_assert_eq!(wrapped.matches(&fence.key).count(), 2);
        }
    }
}
