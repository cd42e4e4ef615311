//! Thresholds of the built-in family's `light`: on the safe side, unless a calibration vouches for another.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that finds its fixture broken has failed"
)]

use chorus_bundle::calibration::{Footing, SAFE, footings};
use chorus_bundle::{Bundle, Files, mount, source};
use serde_json::Value;

const SET: &str = "sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// The family with that threshold, and that line of provenance.
fn reading(threshold: &str, provenance: &str) -> source::Reading {
    let mom = format!("{}{provenance}", include_str!("../../../families/mom-v1/mom.yaml"));
    let policy = include_str!("../../../families/mom-v1/policy.yaml");
    assert!(policy.contains("threshold: 0.95"));
    let policy = policy.replace("threshold: 0.95", threshold);
    let all = [
        ("mom.yaml", mom.as_str()),
        ("policy.yaml", policy.as_str()),
        ("prompts/plain.md", include_str!("../../../families/mom-v1/prompts/plain.md")),
        ("prompts/grounded.md", include_str!("../../../families/mom-v1/prompts/grounded.md")),
        ("suites/smoke.jsonl", include_str!("../../../families/mom-v1/suites/smoke.jsonl")),
    ];
    let files: Files =
        all.into_iter().map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())).collect();
    source::read(&files)
}

fn calibrated(threshold: &str) -> String {
    format!(
        "provenance:\n  calibration.light: set {SET} examples 800 risk 0.05 confidence 0.9 threshold {threshold}\n"
    )
}

/// What `light` rests on, and the threshold that it is served with.
fn served(threshold: &str, provenance: &str) -> (Footing, String) {
    let reading = reading(threshold, provenance);
    let bundle = Bundle::build(reading.source.unwrap_or_else(|| panic!("{:#?}", reading.findings))).unwrap();
    let [(point, footing)] = footings(&bundle.mom, &bundle.graph).try_into().unwrap();
    assert_eq!(point, "light");
    let graph = mount::graph(&bundle);
    let recipe = graph["recipes"].as_array().unwrap().iter().find(|it| it["name"] == "light").unwrap();
    let cascade = recipe.pointer("/routing/decisions/0/algorithm/confidence/threshold");
    (footing, cascade.and_then(Value::as_str).unwrap().to_owned())
}

#[test]
fn light_without_a_calibration_is_served_on_the_safe_side() {
    for (written, want) in [
        ("threshold: 0.95", SAFE),
        ("threshold: 0.5", SAFE),
        ("threshold: 0.99", "0.99"),
        ("samples: 3", SAFE),
    ] {
        assert_eq!(served(written, ""), (Footing::SafeSide, want.to_owned()), "{written}");
    }
}

#[test]
fn light_is_served_at_the_threshold_that_its_calibration_names_and_at_no_other() {
    let (footing, threshold) = served("threshold: 0.83", &calibrated("0.83"));
    let Footing::Calibrated(calibration) = footing else { panic!("{footing:?}") };
    assert_eq!((calibration.set.as_str(), calibration.examples, threshold.as_str()), (SET, 800, "0.83"));
    assert_eq!(served("threshold: 0.5", &calibrated("0.83")), (Footing::SafeSide, SAFE.to_owned()));
    let vain = reading("threshold: 0.5", &calibrated("0.83")).findings;
    assert!(vain.iter().any(|it| it.diagnostic.message.contains("another threshold")), "{vain:?}");
}

#[test]
fn a_calibration_of_nothing_is_refused() {
    for wrong in ["calibration.ultra: set x", "calibration.light: set sha256:1 examples 3"] {
        let found = reading(
            "threshold: 0.95",
            &format!("provenance: {{ {} }}\n", wrong.replacen(": ", ": \"", 1) + "\""),
        );
        assert!(
            found.source.is_none()
                && found.findings.iter().any(|it| it.diagnostic.message.contains("calibration.")),
            "{found:?}"
        );
    }
}
