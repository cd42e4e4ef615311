//! When a request is shortened, and to what length.

use super::super::at_work::Scene;
use crate::run::Controls;
use chorus_collab::ModelCalls;
use chorus_spec::{CompressionSettings, ModelId};
use chorus_wire::ChatRequest;

/// The window of a model that declares none, in tokens: the smallest that current models of providers have.
const USUAL_WINDOW: u64 = 32_768;
/// Tokens kept free for an answer that names no length.
const USUAL_OUTPUT: u64 = 4096;
/// Most of a window that the free part takes: one of so many parts.
const MOST_OUTPUT_SHARE: u64 = 4;
/// Percent of the room for a prompt from which it is shortened, and to which.
const TRIGGER_PERCENT: u64 = 80;
const TARGET_PERCENT: u64 = 60;

/// When a request is shortened, and to what length, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) trigger: u64,
    pub(super) target: u64,
}

/// What the request's header asks for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wish {
    /// To be left as it is.
    pub(super) bypass: bool,
    /// Tokens of each shortened tool result.
    pub(super) target: Option<u64>,
}

impl Bounds {
    pub(super) fn of(settings: &CompressionSettings, scene: &Scene, request: &ChatRequest) -> Self {
        let models = scene.calls.candidates.iter().map(|candidate| candidate.model.as_str());
        let chosen = scene.model.as_ref().map(ModelId::as_str);
        let names: Vec<&str> = chosen.map_or_else(|| models.collect(), |model| vec![model]);
        let windows = names.iter().filter_map(|name| scene.calls.context_window(name));
        Self::within(settings, windows.min(), request.max_output_tokens())
    }

    /// Within a window, for a request that may ask for so much output.
    pub(super) fn within(settings: &CompressionSettings, window: Option<u64>, output: Option<u64>) -> Self {
        let window = window.unwrap_or(USUAL_WINDOW);
        let usual = output.unwrap_or(USUAL_OUTPUT).min(window / MOST_OUTPUT_SHARE);
        let room = window.saturating_sub(settings.reserve_output_tokens.unwrap_or(usual));
        let trigger = settings.trigger_tokens.unwrap_or(room * TRIGGER_PERCENT / 100);
        let target = settings.target_tokens.unwrap_or(room * TARGET_PERCENT / 100);
        Self { trigger, target: target.min(trigger) }
    }
}

/// Estimated tokens of a prompt, without what is reserved for the answer.
pub(super) fn tokens(request: &ChatRequest) -> u64 {
    let all = chorus_wire::tokens::of_request(request);
    all.saturating_sub(request.max_output_tokens().unwrap_or(0))
}

/// What the request may ask for, of what it does ask for: `bypass`, `target=N`, separated by commas.
pub(super) fn wish(settings: &CompressionSettings, controls: &Controls) -> Wish {
    let Some(allowed) = &settings.controls else { return Wish::default() };
    let mut wish = Wish::default();
    for word in controls.get(&allowed.header).unwrap_or_default().split(',').map(str::trim) {
        if word.eq_ignore_ascii_case("bypass") {
            wish.bypass = allowed.bypass;
        } else if let Some((name, count)) = word.split_once('=')
            && allowed.target
            && name.trim().eq_ignore_ascii_case("target")
        {
            let count = count.trim().parse::<u64>().ok().filter(|count| *count > 0);
            wish.target = count.map(|count| count.min(allowed.max_target_tokens)).or(wish.target);
        }
    }
    wish
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_spec::CompressionControls;

    #[test]
    fn bounds_come_from_the_window_unless_they_are_written() {
        let auto = CompressionSettings::default();
        assert_eq!(Bounds::within(&auto, Some(10_000), Some(1000)), Bounds { trigger: 7200, target: 5400 });
        let written = CompressionSettings { trigger_tokens: Some(100), target_tokens: Some(50), ..auto };
        assert_eq!(Bounds::within(&written, Some(10_000), None), Bounds { trigger: 100, target: 50 });
        let reserve =
            CompressionSettings { reserve_output_tokens: Some(5000), ..CompressionSettings::default() };
        assert_eq!(Bounds::within(&reserve, Some(10_000), None), Bounds { trigger: 4000, target: 3000 });
    }

    #[test]
    fn a_header_gives_what_the_route_allows() {
        let ask = |controls: Option<CompressionControls>, value: &str| {
            let settings = CompressionSettings { controls, ..CompressionSettings::default() };
            let header = ("x-vsr-compression-control".to_owned(), value.to_owned());
            wish(&settings, &Controls::of([header]))
        };
        let all = || Some(CompressionControls::default());
        assert_eq!(ask(all(), "bypass"), Wish { bypass: true, target: None });
        assert_eq!(ask(all(), "target=900"), Wish { bypass: false, target: Some(900) });
        assert_eq!(ask(all(), "Target = 99999999"), Wish { bypass: false, target: Some(16_000) });
        assert_eq!(ask(all(), "target=0, target=x"), Wish::default());
        assert_eq!(ask(None, "bypass"), Wish::default());
        let no_bypass = CompressionControls { bypass: false, ..CompressionControls::default() };
        assert_eq!(ask(Some(no_bypass), "bypass"), Wish::default());
    }
}
