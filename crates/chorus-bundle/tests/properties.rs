//! Random graphs under random bindings: what DESIGN.md says may never happen.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that finds its fixture broken has failed"
)]

use chorus_bundle::binding::{self, Binding, Deployment};
use chorus_bundle::lock::{Lock, Observed, Prober, Runtime};
use chorus_bundle::place::place;
use chorus_bundle::{Bundle, Component, Files, OperatingPoint, graph, mount, source};
use proptest::prelude::*;
use serde_json::Value;

const SECRET: &str = "sk-never-to-be-seen-0123456789";
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// A component: its locality, and how long its texts may be kept.
#[derive(Debug, Clone)]
struct Part {
    locality: &'static str,
    retention: Option<u64>,
    training: Option<bool>,
}

/// A deployment of a component.
#[derive(Debug, Clone)]
struct Spot {
    trust: &'static str,
    preference: u64,
    retention: Option<u64>,
    training: Option<bool>,
    latency: Option<u64>,
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let part = (
        prop::sample::select(vec!["any", "private", "process"]),
        prop::option::of(0..3_u64),
        prop::option::of(any::<bool>()),
    );
    prop::collection::vec(part, NAMES.len()).prop_map(|all| {
        all.into_iter()
            .map(|(locality, retention, training)| Part { locality, retention, training })
            .collect()
    })
}

fn spots() -> impl Strategy<Value = Vec<Vec<Spot>>> {
    let spot = (
        prop::sample::select(vec!["process", "private", "public"]),
        0..3_u64,
        prop::option::of(0..3_u64),
        prop::option::of(any::<bool>()),
        prop::option::of(1..900_u64),
    );
    let spot = spot.prop_map(|(trust, preference, retention, training, latency)| Spot {
        trust,
        preference,
        retention,
        training,
        latency,
    });
    prop::collection::vec(prop::collection::vec(spot, 1..4), NAMES.len())
}

fn constraints() -> impl Strategy<Value = Vec<&'static str>> {
    let all = ["fail_closed", "local_only", "private_only", "no_retention", "no_training"];
    prop::sample::subsequence(all.to_vec(), 0..=all.len())
}

/// Decisions: candidates by number, whether a guard stands before them, and whether it says what absence counts as.
fn decisions() -> impl Strategy<Value = Vec<(Vec<usize>, bool, bool)>> {
    let candidates = prop::sample::subsequence((0..NAMES.len()).collect::<Vec<_>>(), 1..=NAMES.len());
    prop::collection::vec((candidates, any::<bool>(), any::<bool>()), 1..5)
}

fn option(key: &str, value: Option<impl std::fmt::Display>) -> String {
    value.map(|value| format!(", {key}: {value}")).unwrap_or_default()
}

fn interface(parts: &[Part], constraints: &[&str]) -> String {
    let mut text = "format: 1\nfamily: acme/any\nversion: 1.0.0\nlicence: MIT\ncomponents:\n".to_owned();
    for (name, part) in NAMES.iter().zip(parts) {
        let policy = format!(
            "retention_days: {}{}",
            part.retention.map_or("9".to_owned(), |days| days.to_string()),
            option("training", part.training)
        );
        // Only the first is sure to have a place: it stands in for every other one.
        let fallback = if *name == "a" { "" } else { ", fallback: a" };
        let locality = if *name == "a" { "any" } else { part.locality };
        text += &format!(
            "  - {{name: {name}, kind: generator, locality: {locality}, data_policy: {{{policy}}}{fallback}}}\n"
        );
    }
    let words = constraints.join(", ");
    text + &format!(
        "operating_points:\n  - {{name: fast, objective: latency, constraints: [{words}]}}\n  - {{name: plain, objective: quality}}\n"
    )
}

fn policy(decisions: &[(Vec<usize>, bool, bool)]) -> String {
    let mut text = "version: v0.3\nrouting:\n  signals:\n    jailbreak: [{name: attack, threshold: 0.8}]\n    keywords: [{name: k, operator: OR, keywords: [x]}]\n  decisions:\n".to_owned();
    for (at, (candidates, guarded, says)) in decisions.iter().enumerate() {
        let refs: Vec<String> = candidates.iter().map(|it| format!("{{model: {}}}", NAMES[*it])).collect();
        let on_error = if *says { ", on_error: no_match" } else { "" };
        let rules = if *guarded {
            format!(
                "{{operator: AND, conditions: [{{type: keyword, name: k}}, {{operator: NOT, conditions: [{{type: jailbreak, name: attack{on_error}}}]}}]}}"
            )
        } else {
            "{type: keyword, name: k}".to_owned()
        };
        let refs = refs.join(", ");
        text += &format!("    - {{name: d{at}, priority: {at}, rules: {rules}, modelRefs: [{refs}]}}\n");
    }
    text
}

fn bundle(parts: &[Part], constraints: &[&str], decisions: &[(Vec<usize>, bool, bool)]) -> Bundle {
    let files = Files::from([
        ("mom.yaml".to_owned(), interface(parts, constraints).into_bytes()),
        ("policy.yaml".to_owned(), policy(decisions).into_bytes()),
    ]);
    let reading = source::read(&files);
    Bundle::build(reading.source.unwrap_or_else(|| panic!("{:?}", reading.findings))).unwrap()
}

fn bound(spots: &[Vec<Spot>]) -> String {
    let mut text = "format: 1\ncomponents:\n".to_owned();
    for (name, spots) in NAMES.iter().zip(spots) {
        text += &format!("  {name}:\n    deployments:\n");
        if *name == "a" {
            text += "      - {name: home, preference: 9, trust: process, backend: {type: local, model: smollm2-135m-instruct}}\n";
        }
        for (at, spot) in spots.iter().enumerate() {
            let backend = match spot.trust {
                "process" => "{type: local, model: smollm2-135m-instruct}".to_owned(),
                _ => format!("{{endpoint: \"host{at}.example:80\", api_key: {SECRET}}}"),
            };
            let rest = option("retention_days", spot.retention)
                + &option("training", spot.training)
                + &option("latency_ms", spot.latency);
            text += &format!(
                "      - {{name: s{at}, preference: {}, trust: {}, backend: {backend}{rest}}}\n",
                spot.preference, spot.trust
            );
        }
    }
    text
}

/// The rule, written once more and otherwise: whether a place may serve a component at a point.
fn may_serve(it: &Deployment, component: &Component, point: Option<&OperatingPoint>) -> bool {
    let demands = |word: &str| point.is_some_and(|point| point.constraints.iter().any(|it| it == word));
    let own = it.trust == "process" || it.trust == "private";
    let here = it.trust == "process";
    let place = match component.locality.as_str() {
        "process" => here,
        "private" => own,
        _ => true,
    };
    let keeps =
        component.data_policy.retention_days.into_iter().chain(demands("no_retention").then_some(0)).min();
    let kept = own || keeps.is_none_or(|most| it.retention_days.is_some_and(|days| days <= most));
    let untrained = component.data_policy.training == Some(false) || demands("no_training");
    let trained = own || !untrained || it.training == Some(false);
    place && kept && trained && (!demands("local_only") || here) && (!demands("private_only") || own)
}

fn found<'b>(binding: &'b Binding, name: &str) -> &'b Deployment {
    let (component, deployment) = name.split_once('/').unwrap();
    let (_, all) = binding.components.iter().find(|(name, _)| name == component).unwrap();
    all.iter().find(|it| it.name == deployment).unwrap()
}

struct Nothing;

impl Prober for Nothing {
    fn probe(&self, _: &Component, _: &Deployment) -> Observed {
        Observed::Unseen { why: "a test".to_owned() }
    }
}

fn runtime() -> Runtime {
    Runtime { version: "1".to_owned(), platform: "test".to_owned(), instruction_set: Vec::new() }
}

/// Guards of a rule tree that do not say that absence is a hit.
fn open_guards(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(open_guards).sum(),
        Value::Object(fields) => {
            let is_guard = fields.get("type").and_then(Value::as_str) == Some("jailbreak");
            let is_open = is_guard && !fields.contains_key("on_error");
            usize::from(is_open) + fields.values().map(open_guards).sum::<usize>()
        }
        _ => 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn invariant_1_under_any_two_bindings_the_served_graph_is_the_same_bytes(
        parts in parts(), words in constraints(), decisions in decisions(), one in spots(), two in spots(),
    ) {
        let bundle = bundle(&parts, &words, &decisions);
        let graphs = [one, two].map(|spots| {
            let read = binding::read(&bound(&spots), &bundle.mom).unwrap();
            let mounted = mount::mount(&bundle, &read, None).unwrap();
            let all: Vec<String> = mounted.documents.iter().map(|it| graph::of(&it.document).to_string()).collect();
            (all[0].clone(), all.iter().all(|it| *it == all[0]))
        });
        prop_assert_eq!(&graphs[0], &graphs[1]);
        prop_assert!(graphs[0].1);
        prop_assert_eq!(&graphs[0].0, &mount::graph(&bundle).to_string());
    }

    #[test]
    fn invariant_2_no_component_runs_where_a_constraint_bars_it(
        parts in parts(), words in constraints(), decisions in decisions(), spots in spots(),
    ) {
        let bundle = bundle(&parts, &words, &decisions);
        let binding = binding::read(&bound(&spots), &bundle.mom).unwrap();
        let points = bundle.mom.operating_points.iter().map(Some).chain([None]);
        for point in points {
            for (seat, component) in place(&bundle.mom, &binding, point, None).iter().zip(&bundle.mom.components) {
                for name in seat.chosen() {
                    let deployment = found(&binding, &name);
                    prop_assert!(may_serve(deployment, component, point), "{name} serves {}", component.name);
                }
                let own = binding.components.iter().find(|(name, _)| *name == component.name);
                let any = own.is_some_and(|(_, all)| all.iter().any(|it| may_serve(it, component, point)));
                prop_assert!(!any || seat.stand_in.is_none(), "a stand-in where there is a place");
            }
        }
    }

    #[test]
    fn invariant_3_an_identity_is_no_candidate(parts in parts(), decisions in decisions(), point in 0..2_usize) {
        let identity = ["acme/any-fast", "acme/any-plain"][point];
        let text = policy(&decisions).replacen("{model: ", &format!("{{model: {identity}}}, {{model: "), 1);
        let files = Files::from([
            ("mom.yaml".to_owned(), interface(&parts, &[]).into_bytes()),
            ("policy.yaml".to_owned(), text.into_bytes()),
        ]);
        prop_assert!(source::read(&files).source.is_none());
    }

    #[test]
    fn invariant_8_at_a_fail_closed_point_absence_is_a_hit_unless_the_policy_says_otherwise(
        parts in parts(), words in constraints(), decisions in decisions(),
    ) {
        let bundle = bundle(&parts, &words, &decisions);
        let open = open_guards(&mount::graph(&bundle)["routing"]["decisions"]);
        let before = open_guards(&bundle.graph["routing"]["decisions"]);
        let closed = words.contains(&"fail_closed");
        prop_assert_eq!(open, if closed { 0 } else { before });
    }

    #[test]
    fn invariant_9_no_credential_of_a_binding_is_in_a_lock_or_moves_a_digest(
        parts in parts(), words in constraints(), decisions in decisions(), spots in spots(),
    ) {
        let bundle = bundle(&parts, &words, &decisions);
        let text = bound(&spots);
        let read = binding::read(&text, &bundle.mom).unwrap();
        let digest = binding::digest(&text).unwrap();
        let lock = Lock::resolve(&bundle, (&read, &digest), runtime(), &Nothing).unwrap();
        let written = lock.write().unwrap();
        prop_assert!(!written.contains(SECRET) && !written.contains("host0.example"));
        prop_assert_eq!(Lock::read(&written).unwrap().write().unwrap(), written);
        prop_assert_eq!(binding::digest(&text.replace(SECRET, "another-credential-9876543210")).unwrap(), digest);
    }
}
