//! Signed statements: attached, read back, believed or not.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that finds its fixture broken has failed")]

use chorus_bundle::attest::{self, Attached};
use chorus_bundle::dsse::{Claim, Key, Kind};
use chorus_bundle::{Bundle, Files, archive, source, trust, verify};
use serde_json::{Value, json};

const NOW: u64 = 1_800_000_000;
const DAY: u64 = 86_400;

fn bundle(version: &str) -> Bundle {
    let interface = format!(
        "format: 1\nfamily: acme/one\nversion: {version}\nlicence: MIT\ncomponents: [{{name: g, kind: generator}}]\n"
    );
    let policy =
        "version: v0.3\nrouting:\n  decisions: [{name: all, priority: 1, modelRefs: [{model: g}]}]\n";
    let files = Files::from([
        ("mom.yaml".to_owned(), interface.into_bytes()),
        ("policy.yaml".to_owned(), policy.as_bytes().to_vec()),
    ]);
    Bundle::build(source::read(&files).source.unwrap()).unwrap()
}

fn key(seed: u8) -> Key {
    Key::of_seed(&[seed; 32])
}

fn said(bundle: &Bundle, key: &Key, kind: Kind, issued_s: u64, expires_s: Option<u64>) -> Attached {
    let (name, content) = ("acme/one".to_owned(), json!({"accuracy": "0.7"}));
    let claim = Claim { kind, bundle: bundle.digest.clone(), name, issued_s, expires_s, content };
    Attached::to(bundle, kind, &key.sign(&claim).unwrap()).unwrap()
}

fn policy(rest: &str) -> trust::TrustPolicy {
    let pem = |seed: u8| Value::from(key(seed).public().write().unwrap()).to_string();
    let text = format!("format: 1\nkeys: {{release: {}, second: {}}}\nrequire:\n{rest}", pem(1), pem(2));
    trust::read(&text).unwrap_or_else(|found| panic!("{found:?}"))
}

fn codes(policy: &trust::TrustPolicy, bundle: &Bundle, attached: &[Attached]) -> Vec<&'static str> {
    policy.judge(&bundle.digest, attached, NOW).into_iter().map(|it| it.code).collect()
}

#[test]
fn what_is_attached_travels_and_changes_no_identity() {
    let bundle = bundle("1.0.0");
    let one = said(&bundle, &key(1), Kind::Signature, NOW - DAY, None);
    let two = said(&bundle, &key(1), Kind::Scorecard, NOW - DAY, None);
    let layout = attest::layout(&bundle, &[one.clone(), two.clone(), one.clone()]).unwrap();
    let carried = archive::load(&archive::save(&layout).unwrap()).unwrap();
    assert_eq!(verify::read(&carried).unwrap().digest, bundle.digest);
    assert_eq!(attest::read(&carried, &bundle.digest).unwrap(), [one, two]);
    assert_eq!(attest::read(&carried, "sha256:00").unwrap(), []);
}

#[test]
fn a_statement_counts_only_by_a_named_key_for_this_bundle_and_in_its_time() {
    let (mine, other) = (bundle("1.0.0"), bundle("1.0.1"));
    let wants = policy("  - {statement: signature, keys: [release]}\n");
    let sign = |key: &Key, at, until| said(&mine, key, Kind::Signature, at, until);
    for (attached, want) in [
        (vec![], vec!["trust-unsigned"]),
        (vec![sign(&key(1), NOW - DAY, None)], vec![]),
        (vec![sign(&key(1), NOW - DAY, Some(NOW + 1))], vec![]),
        (vec![sign(&key(1), NOW - DAY, Some(NOW))], vec!["trust-expired"]),
        (vec![sign(&key(1), NOW + DAY, None)], vec!["trust-expired"]),
        (vec![sign(&key(2), NOW - DAY, None)], vec!["trust-unsigned"]),
        (vec![sign(&key(3), NOW - DAY, None)], vec!["trust-unsigned"]),
        (vec![said(&mine, &key(1), Kind::Approval, NOW - DAY, None)], vec!["trust-unsigned"]),
        (vec![said(&other, &key(1), Kind::Signature, NOW - DAY, None)], vec!["trust-unsigned"]),
    ] {
        assert_eq!(codes(&wants, &mine, &attached), want, "{attached:?}");
    }
}

#[test]
fn several_keys_and_several_statements_may_be_demanded() {
    let bundle = bundle("1.0.0");
    let wants = policy(
        "  - {statement: approval, keys: [release, second], threshold: 2}\n  - {statement: scorecard, keys: [second], max_age_days: 30}\n",
    );
    let approve = |seed| said(&bundle, &key(seed), Kind::Approval, NOW - DAY, None);
    let score = |days| said(&bundle, &key(2), Kind::Scorecard, NOW - days * DAY, None);
    assert_eq!(codes(&wants, &bundle, &[approve(1), approve(2), score(3)]), Vec::<&str>::new());
    assert_eq!(codes(&wants, &bundle, &[approve(1), approve(1), score(3)]), ["trust-threshold"]);
    assert_eq!(codes(&wants, &bundle, &[approve(1), approve(2), score(31)]), ["trust-expired"]);
}

#[test]
fn a_policy_that_asks_for_nothing_or_names_nobody_is_none() {
    for (text, lines) in [
        ("format: 1\nkeys: {}\nrequire: []\n", 1),
        ("format: 1\nrequire: [{statement: signature, keys: [nobody]}]\n", 1),
        ("format: 1\nkeys: {a: nonsense}\nrequire: [{statement: signature, keys: [a]}]\n", 2),
        ("format: 1\nrequire: [{statement: blessing, keys: []}]\n", 3),
    ] {
        assert_eq!(trust::read(text).unwrap_err().len(), lines, "{text}");
    }
}

#[test]
fn every_code_is_documented() {
    let page = include_str!("../../../docs/mom-spec.md");
    for (code, _) in chorus_bundle::lock::LOCK_CODES.into_iter().chain(trust::TRUST_CODES) {
        assert!(page.contains(&format!("`{code}`")), "{code}");
    }
}
