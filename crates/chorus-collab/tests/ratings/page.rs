//! What the page of the documentation says of costs is what the code does.

use crate::stage::{plan, settings};
use chorus_spec::{Aggregate, Raters};

#[test]
fn the_costs_on_the_page_are_the_plans() {
    for (raters, calls) in [
        (Raters::None, 4),
        (Raters::Components, 4),
        (Raters::Verifier, 4),
        (Raters::Scorer, 4),
        (Raters::Peers, 2 * 4),
        (Raters::Judge, 3 + 1),
    ] {
        let plan = plan(&settings(raters, Aggregate::Vote), &["a", "b", "c", "d"]);
        assert_eq!(plan.max_calls(), calls, "{raters:?}");
    }
}
