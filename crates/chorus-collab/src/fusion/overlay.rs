//! What a request's `fusion` plugin says, and what it makes of the policy's settings.
//!
//! **Invariant:** an overlay changes one run and never the policy: it makes new settings.

use super::fault::PlanFault;
use chorus_spec::{FusionOverride, FusionPreset, FusionSettings, GroundingSettings, ModelId, OnError};
use std::time::Duration;

/// A checked plugin; a field that is absent (or null) changes nothing.
#[derive(Debug, Clone, Default)]
pub struct FusionOverlay {
    /// Whether it applies at all (default true).
    pub enabled: bool,
    /// The judge and writer.
    pub judge: Option<ModelId>,
    /// The panel.
    pub panel: Option<Vec<ModelId>>,
    /// `preset`: whom to seat where it names no panel.
    pub preset: Option<FusionPreset>,
    /// `grounding`: what answers are held against; `Some(None)` switches it off.
    pub grounding: Option<Option<GroundingSettings>>,
    /// Settings of single members; they stand in for those of the policy for the same model.
    pub overrides: Option<Vec<FusionOverride>>,
    /// Most panel calls at once; 0 is all.
    pub max_concurrent: Option<usize>,
    /// Cap of each inner call in tokens.
    pub max_completion_tokens: Option<u64>,
    /// How long the panel, and then the judge, may take.
    pub round_timeout: Option<Duration>,
    /// Usable answers that are enough and needed.
    pub min_successful_responses: Option<usize>,
    /// Sampling temperature of the panel, 0 to 2.
    pub temperature: Option<f64>,
    /// Whether the trace shows the analysis.
    pub include_analysis: Option<bool>,
    /// Whether the trace shows the panel's answers.
    pub include_intermediate_responses: Option<bool>,
    /// What a failure does.
    pub on_error: Option<OnError>,
    /// Own judge prompt.
    pub analysis_template: Option<String>,
    /// Own synthesis prompt.
    pub synthesis_template: Option<String>,
    /// Version word of the prompts.
    pub judge_prompt_version: Option<String>,
}

impl FusionOverlay {
    /// The settings of one run: `base` with what the plugin says in its place; without a base, the defaults.
    ///
    /// A panel of its own keeps those overrides of the base that name one of its members, and lowers an inherited
    /// quorum to the size of the panel. A disabled plugin changes nothing.
    ///
    /// # Errors
    /// [`PlanFault::NoPanel`] when neither the plugin, nor the base, nor `candidates` name a panel;
    /// [`PlanFault::QuorumUnreachable`] when the plugin's own quorum is larger than the panel.
    pub fn apply(
        &self,
        base: Option<&FusionSettings>,
        candidates: &[ModelId],
    ) -> Result<FusionSettings, PlanFault> {
        let mut settings = base.cloned().unwrap_or_default();
        if settings.panel.is_empty() {
            settings.panel = candidates.to_vec();
        }
        if self.enabled {
            self.apply_roles(&mut settings)?;
            self.apply_bounds(&mut settings);
        }
        if settings.panel.is_empty() {
            return Err(PlanFault::NoPanel);
        }
        Ok(settings)
    }

    fn apply_roles(&self, settings: &mut FusionSettings) -> Result<(), PlanFault> {
        if let Some(panel) = &self.panel {
            settings.panel.clone_from(panel);
            settings.overrides.retain(|o| panel.contains(&o.model));
            let seats = panel.len();
            settings.min_successful_responses =
                settings.min_successful_responses.map(|wanted| wanted.min(seats));
        }
        if let Some(judge) = &self.judge {
            settings.judge = Some(judge.clone());
        }
        if let Some(overrides) = &self.overrides {
            settings.overrides.retain(|old| overrides.iter().all(|new| new.model != old.model));
            settings.overrides.extend(overrides.iter().cloned());
        }
        if let Some(wanted) = self.min_successful_responses {
            let seats = settings.panel.len();
            if wanted > seats && seats > 0 {
                return Err(PlanFault::QuorumUnreachable { wanted, seats });
            }
            settings.min_successful_responses = Some(wanted);
        }
        Ok(())
    }

    fn apply_bounds(&self, settings: &mut FusionSettings) {
        put_some(&mut settings.max_concurrent, self.max_concurrent);
        put_some(&mut settings.max_completion_tokens, self.max_completion_tokens);
        put_some(&mut settings.round_timeout, self.round_timeout);
        put_some(&mut settings.temperature, self.temperature);
        put_some(&mut settings.analysis_template, self.analysis_template.clone());
        put_some(&mut settings.synthesis_template, self.synthesis_template.clone());
        put(&mut settings.include_analysis, self.include_analysis);
        put(&mut settings.include_intermediate_responses, self.include_intermediate_responses);
        put(&mut settings.on_error, self.on_error);
        put(&mut settings.grounding, self.grounding);
        put(&mut settings.judge_prompt_version, self.judge_prompt_version.clone());
    }
}

fn put<T>(slot: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *slot = value;
    }
}

fn put_some<T>(slot: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *slot = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(fields: &str) -> Result<FusionOverlay, PlanFault> {
        FusionOverlay::parse(&format!("{{\"id\":\"fusion\"{fields}}}"))
    }

    fn models(names: &[&str]) -> Vec<ModelId> {
        names.iter().map(|name| ModelId::new(*name)).collect()
    }

    #[test]
    fn an_overlay_changes_one_run_and_not_the_policy() {
        let kept = |model: &str, temperature| FusionOverride {
            model: ModelId::new(model),
            temperature: Some(temperature),
            max_completion_tokens: None,
        };
        let base = FusionSettings {
            judge: Some(ModelId::new("j")),
            panel: models(&["a", "b", "c"]),
            overrides: vec![kept("a", 0.1), kept("c", 0.2)],
            min_successful_responses: Some(3),
            temperature: Some(0.5),
            ..FusionSettings::default()
        };
        let overlay = parse(
            r#","analysis_models":["a","d"],"temperature":0,"include_analysis":false,"max_concurrent":2,
            "on_error":"fail","round_timeout_seconds":1.5,"analysis_overrides":[{"model":"d","max_completion_tokens":9}]"#,
        );
        let settings = overlay.unwrap().apply(Some(&base), &[]).unwrap();
        assert_eq!(settings.panel, models(&["a", "d"]));
        assert_eq!(settings.judge, Some(ModelId::new("j")));
        let overrides: Vec<_> =
            settings.overrides.iter().map(|o| (o.model.as_str(), o.temperature)).collect();
        assert_eq!(overrides, [("a", Some(0.1)), ("d", None)]);
        assert_eq!(settings.min_successful_responses, Some(2));
        assert_eq!((settings.temperature, settings.max_concurrent), (Some(0.0), Some(2)));
        assert!(!settings.include_analysis && settings.on_error == OnError::Fail);
        assert_eq!(settings.round_timeout, Some(Duration::from_millis(1500)));
        assert_eq!(base.panel.len(), 3);
    }

    #[test]
    fn a_disabled_overlay_changes_nothing() {
        let base = FusionSettings { panel: models(&["a"]), ..FusionSettings::default() };
        let overlay = parse(r#","enabled":false,"analysis_models":["b"]"#).unwrap();
        assert_eq!(overlay.apply(Some(&base), &[]).unwrap().panel, models(&["a"]));
    }

    #[test]
    fn a_panel_must_come_from_somewhere() {
        let overlay = parse("").unwrap();
        assert_eq!(overlay.apply(None, &[]).unwrap_err(), PlanFault::NoPanel);
        assert_eq!(overlay.apply(None, &models(&["a"])).unwrap().panel, models(&["a"]));
        let greedy = parse(r#","min_successful_responses":3"#).unwrap();
        let fault = greedy.apply(None, &models(&["a"])).unwrap_err();
        assert_eq!(fault, PlanFault::QuorumUnreachable { wanted: 3, seats: 1 });
    }
}
