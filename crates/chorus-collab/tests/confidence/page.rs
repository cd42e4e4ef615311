//! The page of the documentation says what the code does.

use crate::stage::{plan, settings};
use chorus_spec::ConfidenceMethod;

const PAGE: &str = include_str!("../../../../docs/loopers/confidence.md");

#[test]
fn every_method_stands_on_the_page_with_its_threshold() {
    let (_, section) = PAGE.split_once("## Methods").unwrap();
    for method in [
        ConfidenceMethod::AvgLogprob,
        ConfidenceMethod::Margin,
        ConfidenceMethod::Hybrid,
        ConfidenceMethod::QuantileLogprob,
        ConfidenceMethod::Learned,
        ConfidenceMethod::SelfVerify,
        ConfidenceMethod::AutomixEntailment,
        ConfidenceMethod::Agreement,
    ] {
        let plan = plan(&settings(method), &["a", "b"]);
        let row = section.lines().find(|line| line.starts_with(&format!("| `{}` |", plan.method)));
        let row = row.unwrap_or_else(|| panic!("{} has no row", plan.method));
        let threshold: f64 = row.split('|').nth(3).unwrap().trim().parse().unwrap();
        assert!((threshold - plan.threshold).abs() < 1e-12, "{row}");
    }
}

#[test]
fn the_costs_on_the_page_are_the_plans() {
    // Two candidates before the last, three samples.
    for (method, calls) in [
        (ConfidenceMethod::Margin, 2 + 1),
        (ConfidenceMethod::SelfVerify, 2 * 2 + 1),
        (ConfidenceMethod::AutomixEntailment, (1 + 3) * 2 + 1),
        (ConfidenceMethod::Agreement, 3 * 2 + 1),
    ] {
        let plan = plan(&settings(method), &["a", "b", "c"]);
        assert_eq!(plan.max_calls(), calls, "{:?}", plan.measure);
    }
}
