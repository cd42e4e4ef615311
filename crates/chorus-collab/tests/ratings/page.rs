//! The page of the documentation says what the code does.

use crate::stage::{plan, settings};
use chorus_spec::{Aggregate, BudgetSettings, OnError, Raters, RatingsSettings};

const PAGE: &str = include_str!("../../../../docs/loopers/ratings.md");

#[test]
fn every_parameter_stands_on_the_page_with_its_default() {
    // A new field does not compile here until it has its row.
    let RatingsSettings {
        max_concurrent: None,
        raters: Raters::None,
        aggregate: Aggregate::Choices,
        judge: None,
        rubric: None,
        round_timeout: None,
        on_error: OnError::Skip,
        budget: BudgetSettings { max_calls: None, .. },
    } = RatingsSettings::default()
    else {
        panic!("a default has changed: mend the page and this test");
    };
    let (_, section) = PAGE.split_once("## Parameters").unwrap();
    let table = section.lines().filter(|line| line.starts_with("| `")).take(8);
    let keys: Vec<&str> = table.map(|row| row.split('`').nth(1).unwrap()).collect();
    let want = [
        "max_concurrent",
        "raters",
        "aggregate",
        "judge",
        "rubric",
        "round_timeout_seconds",
        "on_error",
        "budget",
    ];
    assert_eq!(keys, want);
}

#[test]
fn the_costs_on_the_page_are_the_plans() {
    for (raters, calls) in
        [(Raters::None, 4), (Raters::Components, 4), (Raters::Peers, 2 * 4), (Raters::Judge, 3 + 1)]
    {
        let plan = plan(&settings(raters, Aggregate::Vote), &["a", "b", "c", "d"]);
        assert_eq!(plan.max_calls(), calls, "{raters:?}");
    }
}
