//! Presets of a Fusion: a panel and a judge seated from the candidates by what their cards declare.
//!
//! It knows prices and qualities, not names of models. **Invariant:** what a request or a policy names itself stays.

use chorus_collab::fusion::FusionOverlay;
use chorus_spec::{FusionPreset, FusionSettings, Model, ModelId};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Most seats of `general-high`. Source: `OpenRouter`'s cap of a panel.
const HIGH_SEATS: usize = 8;
/// Most seats of `general-low`.
const LOW_SEATS: usize = 3;
/// Seats of `self`.
const SELF_SEATS: usize = 3;

/// The preset that counts: the request's own, else the policy's; none where a panel is named.
pub(crate) fn wanted(overlay: Option<&FusionOverlay>, base: Option<&FusionSettings>) -> Option<FusionPreset> {
    if overlay.is_some_and(|own| own.panel.is_some()) {
        return None;
    }
    let of_policy = base.filter(|base| base.panel.is_empty()).and_then(|base| base.preset);
    overlay.and_then(|own| own.preset).or(of_policy)
}

/// Seats the panel, and the judge where nobody named one; a quorum stays within reach.
pub(crate) fn seat(
    preset: FusionPreset,
    models: &BTreeMap<ModelId, Model>,
    candidates: &[ModelId],
    settings: &mut FusionSettings,
) {
    let quality = |id: &ModelId| models.get(id).and_then(|model| model.card.quality_score);
    let price = |id: &ModelId| {
        let pricing = models.get(id).map(|model| model.pricing).unwrap_or_default();
        // A model without a price is not a cheap one.
        Some(pricing.completion_micro_usd_per_1m).filter(|price| *price > 0)
    };
    let mut best: Vec<ModelId> = candidates.to_vec();
    best.sort_by(|a, b| descending(quality(a), quality(b)));
    let mut cheap: Vec<ModelId> = candidates.to_vec();
    cheap.sort_by_key(|id| price(id).unwrap_or(u64::MAX));
    let panel: Vec<ModelId> = match preset {
        FusionPreset::GeneralHigh => best.iter().take(HIGH_SEATS).cloned().collect(),
        FusionPreset::GeneralLow => cheap.into_iter().take(LOW_SEATS).collect(),
        FusionPreset::SelfPanel => best.first().into_iter().cycle().take(SELF_SEATS).cloned().collect(),
    };
    if panel.is_empty() {
        return;
    }
    let judge = best.into_iter().find(|id| panel.contains(id));
    settings.judge = settings.judge.take().or(judge);
    settings.min_successful_responses =
        settings.min_successful_responses.map(|wanted| wanted.min(panel.len()));
    settings.overrides.retain(|own| panel.contains(&own.model));
    settings.panel = panel;
}

/// Greater first, unknown last; equal ones stay in their order.
fn descending(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four models: quality .5, .9, unknown, .7; price 4, 9, none, 1.
    fn models() -> BTreeMap<ModelId, Model> {
        let text = "version: v0.3
providers:
  models:
    - { name: a, pricing: { completion_per_1m: 4 }, backend_refs: [{ endpoint: 'localhost:1' }] }
    - { name: b, pricing: { completion_per_1m: 9 }, backend_refs: [{ endpoint: 'localhost:2' }] }
    - { name: c, backend_refs: [{ endpoint: 'localhost:3' }] }
    - { name: d, pricing: { completion_per_1m: 1 }, backend_refs: [{ endpoint: 'localhost:4' }] }
routing:
  modelCards:
    - { name: a, quality_score: 0.5 }
    - { name: b, quality_score: 0.9 }
    - { name: c }
    - { name: d, quality_score: 0.7 }
";
        let checked = chorus_spec::read(text);
        checked.spec.unwrap_or_else(|| panic!("{:?}", checked.diagnostics)).models
    }

    fn names(list: &[&str]) -> Vec<ModelId> {
        list.iter().map(|name| ModelId::new(*name)).collect()
    }

    #[test]
    fn presets_seat_by_quality_by_price_or_one_model_thrice() {
        for (preset, panel, judge) in [
            (FusionPreset::GeneralHigh, vec!["b", "d", "a", "c"], "b"),
            (FusionPreset::GeneralLow, vec!["d", "a", "b"], "b"),
            (FusionPreset::SelfPanel, vec!["b", "b", "b"], "b"),
        ] {
            let mut settings =
                FusionSettings { min_successful_responses: Some(9), ..FusionSettings::default() };
            seat(preset, &models(), &names(&["a", "b", "c", "d"]), &mut settings);
            assert_eq!((&settings.panel, settings.judge), (&names(&panel), Some(ModelId::new(judge))));
            assert_eq!(settings.min_successful_responses, Some(panel.len()));
        }
    }

    #[test]
    fn what_is_named_stays() {
        let base = FusionSettings { preset: Some(FusionPreset::GeneralLow), ..FusionSettings::default() };
        let own = FusionOverlay { preset: Some(FusionPreset::SelfPanel), ..FusionOverlay::default() };
        let named = FusionOverlay { panel: Some(names(&["a"])), ..own.clone() };
        assert_eq!(wanted(None, Some(&base)), Some(FusionPreset::GeneralLow));
        assert_eq!(wanted(Some(&own), Some(&base)), Some(FusionPreset::SelfPanel));
        assert_eq!(wanted(Some(&named), Some(&base)), None);
        let panel = FusionSettings { panel: names(&["a"]), ..base };
        assert_eq!(wanted(None, Some(&panel)), None);
        let mut judged = FusionSettings { judge: Some(ModelId::new("c")), ..FusionSettings::default() };
        seat(FusionPreset::GeneralHigh, &models(), &names(&["a", "b"]), &mut judged);
        assert_eq!(judged.judge, Some(ModelId::new("c")));
    }
}
