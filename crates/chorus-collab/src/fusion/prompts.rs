//! The texts of the stages: files with a version, a digest, and slots that are filled in one pass.
//!
//! **Invariant:** what is put into a slot is never searched for slots.

use super::fault::PlanFault;
use chorus_spec::{Digest, FusionSettings};

/// The version word of the built-in prompts.
const VERSION: &str = "fusion-v1";
const PANEL: &str = include_str!("../../prompts/fusion-v1/panel.md");
const JUDGE: &str = include_str!("../../prompts/fusion-v1/judge.md");
const SYNTHESIS: &str = include_str!("../../prompts/fusion-v1/synthesis.md");

/// The texts of one plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompts {
    /// The version word (`fusion-v1`), or what the settings call their own templates.
    pub version: String,
    /// Added for panel members of a conversation that speaks of tools.
    pub panel: String,
    /// Asks for the analysis. Slots: `{{original}}`, `{{responses}}`; also `{{context}}` and `{{key}}`.
    pub judge: String,
    /// Asks for the final answer. Slots: `{{original}}`, `{{responses}}`, `{{analysis}}`; also `{{key}}`.
    pub synthesis: String,
}

/// What fills the slots.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Slots<'a> {
    pub(super) original: &'a str,
    pub(super) context: &'a str,
    pub(super) responses: &'a str,
    pub(super) analysis: &'a str,
    pub(super) key: &'a str,
}

impl Prompts {
    /// The built-in prompts, with the settings' own templates in their place.
    ///
    /// # Errors
    /// [`PlanFault::UnknownPrompts`], unless both templates are the settings' own and the version is their name.
    pub fn from_settings(settings: &FusionSettings) -> Result<Self, PlanFault> {
        let own = (&settings.analysis_template, &settings.synthesis_template);
        if settings.judge_prompt_version != VERSION && !matches!(own, (Some(_), Some(_))) {
            return Err(PlanFault::UnknownPrompts(settings.judge_prompt_version.clone()));
        }
        Ok(Self {
            version: settings.judge_prompt_version.clone(),
            panel: PANEL.trim().to_owned(),
            judge: own.0.clone().unwrap_or_else(|| JUDGE.trim().to_owned()),
            synthesis: own.1.clone().unwrap_or_else(|| SYNTHESIS.trim().to_owned()),
        })
    }

    /// The digest of the three texts.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of([&*self.panel, &*self.judge, &*self.synthesis].join("\0").as_bytes())
    }
}

/// Whether a template has that slot.
pub(super) fn has_slot(template: &str, name: &str) -> bool {
    template.contains(&format!("{{{{{name}}}}}"))
}

/// Fills the slots of a template; an unknown `{{word}}` stays as it is.
pub(super) fn fill(template: &str, slots: &Slots<'_>) -> String {
    let mut out = String::with_capacity(template.len() + slots.responses.len() + slots.analysis.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let slot = after.split_once("}}").and_then(|(name, tail)| Some((slots.named(name.trim())?, tail)));
        if let Some((value, tail)) = slot {
            out.push_str(value);
            rest = tail;
        } else {
            out.push_str("{{");
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

impl<'a> Slots<'a> {
    fn named(&self, name: &str) -> Option<&'a str> {
        match name {
            "original" => Some(self.original),
            "context" => Some(self.context),
            "responses" => Some(self.responses),
            "analysis" => Some(self.analysis),
            "key" => Some(self.key),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_filled_once_and_never_inside_what_fills_them() {
        let slots = Slots { original: "{{responses}} {{key}}", responses: "R", key: "k", ..Slots::default() };
        for (template, expect) in [
            ("Q: {{original}} A: {{responses}}", "Q: {{responses}} {{key}} A: R"),
            ("{{ responses }}", "R"),
            ("{{nobody}} {{responses}}", "{{nobody}} R"),
            ("{{ open", "{{ open"),
            ("{{{responses}}}", "{{{responses}}}"),
            ("", ""),
        ] {
            assert_eq!(fill(template, &slots), expect, "{template}");
        }
    }

    #[test]
    fn built_in_prompts_use_the_slots_they_need() {
        let prompts = Prompts::from_settings(&FusionSettings::default()).unwrap();
        assert!(["original", "context", "responses", "key"].iter().all(|s| has_slot(&prompts.judge, s)));
        assert!(["analysis", "responses", "key"].iter().all(|s| has_slot(&prompts.synthesis, s)));
        assert!(!prompts.panel.contains("{{"));
    }

    #[test]
    fn an_unknown_version_needs_both_own_templates_and_changes_the_digest() {
        let mut settings =
            FusionSettings { judge_prompt_version: "mine-1".to_owned(), ..FusionSettings::default() };
        settings.analysis_template = Some("{{responses}}".to_owned());
        assert_eq!(Prompts::from_settings(&settings), Err(PlanFault::UnknownPrompts("mine-1".to_owned())));
        settings.synthesis_template = Some("{{analysis}}".to_owned());
        let own = Prompts::from_settings(&settings).unwrap();
        let built_in = Prompts::from_settings(&FusionSettings::default()).unwrap();
        assert_ne!(own.digest(), built_in.digest());
    }
}
