//! The page of the documentation says what the code does.

use crate::stage::{plan, settings};
use chorus_spec::{
    BudgetSettings, ConfidenceMethod, ConfidenceSettings, EscalationOrder, OnError, TokenFilter,
};

const PAGE: &str = include_str!("../../../../docs/loopers/confidence.md");

/// Key and default of each row under that heading of a page.
fn rows(page: &str, heading: &str) -> Vec<(String, String)> {
    let (_, section) = page.split_once(heading).unwrap();
    let table =
        section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = table.skip(2).map(|row| row.split('|').map(|cell| cell.trim().replace('`', "")).collect());
    cells.map(|cells: Vec<String>| (cells[1].clone(), cells[2].clone())).collect()
}

#[test]
fn every_parameter_stands_on_the_page_with_its_default() {
    // A new field does not compile here until it has its row.
    let ConfidenceSettings {
        method: ConfidenceMethod::AvgLogprob,
        threshold: None,
        hopeless: None,
        hybrid_weights: (0.5, 0.5),
        order: EscalationOrder::Size,
        cost_quality_tradeoff,
        token_filter: TokenFilter::All,
        samples,
        quantile,
        verifier_url: None,
        verifier_timeout,
        on_error: OnError::Skip,
        budget: BudgetSettings { max_calls: None, .. },
    } = ConfidenceSettings::default()
    else {
        panic!("a default has changed: mend the page and this test");
    };
    let want = [
        ("confidence_method", "avg_logprob".to_owned()),
        ("threshold", "the method's".to_owned()),
        ("hopeless_threshold", "none".to_owned()),
        ("hybrid_weights", "0.5 and 0.5".to_owned()),
        ("escalation_order", "size".to_owned()),
        ("cost_quality_tradeoff", cost_quality_tradeoff.to_string()),
        ("token_filter", "all".to_owned()),
        ("samples", samples.to_string()),
        ("quantile", quantile.to_string()),
        ("verifier_server_url", "none".to_owned()),
        ("verifier_timeout_seconds", verifier_timeout.as_secs().to_string()),
        ("on_error", "skip".to_owned()),
        ("budget", "none".to_owned()),
    ];
    let want: Vec<_> = want.into_iter().map(|(key, default)| (key.to_owned(), default)).collect();
    assert_eq!(rows(PAGE, "## Parameters"), want);
}

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
