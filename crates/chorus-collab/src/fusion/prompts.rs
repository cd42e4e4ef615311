//! The texts of the stages: files with a version and a digest.

use super::fault::PlanFault;
use crate::member::NO_TOOLS;
use chorus_spec::{Digest, FusionSettings};

/// The version word of the built-in prompts.
const VERSION: &str = "fusion-v1";
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
            panel: NO_TOOLS.trim().to_owned(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::has_slot;

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
