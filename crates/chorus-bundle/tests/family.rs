//! The built-in family: it builds, mounts on the models that travel with the program, and is small.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that finds its fixture broken has failed")]

use chorus_bundle::{Bundle, Files, archive, binding, mount, source, verify};

const MOST_BYTES: usize = 5 * 1024 * 1024;

fn family() -> Bundle {
    let all = [
        ("mom.yaml", include_str!("../../../families/mom-v1/mom.yaml")),
        ("policy.yaml", include_str!("../../../families/mom-v1/policy.yaml")),
        ("prompts/plain.md", include_str!("../../../families/mom-v1/prompts/plain.md")),
        ("prompts/grounded.md", include_str!("../../../families/mom-v1/prompts/grounded.md")),
        ("suites/smoke.jsonl", include_str!("../../../families/mom-v1/suites/smoke.jsonl")),
        ("README.md", include_str!("../../../families/mom-v1/README.md")),
    ];
    let files: Files =
        all.into_iter().map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())).collect();
    let reading = source::read(&files);
    Bundle::build(reading.source.unwrap_or_else(|| panic!("{:#?}", reading.findings))).unwrap()
}

#[test]
fn it_builds_verifies_and_is_small() {
    let bundle = family();
    assert_eq!(verify::read(&bundle.layout().unwrap()).unwrap(), bundle);
    assert!(archive::save(&bundle.layout().unwrap()).unwrap().len() <= MOST_BYTES);
    let points: Vec<String> =
        bundle.mom.operating_points.iter().map(|it| bundle.mom.identity(&it.name)).collect();
    let want = ["flash", "halu", "light", "secu", "ultra"].map(|it| format!("vllm-sr/mom-v1-{it}"));
    assert_eq!(points, want);
}

#[test]
fn it_is_bound_to_the_embedded_models_by_default_and_no_point_abstains() {
    let bundle = family();
    let text =
        binding::embedded(&bundle.mom, &|name| name.starts_with("smollm2-") || name.starts_with("qwen2.5-"));
    let bound = binding::read(&text, &bundle.mom).unwrap();
    let mounted = mount::mount(&bundle, &bound, None).unwrap();
    assert_eq!(mounted.abstaining, []);
    assert_eq!(mounted.documents.len(), 1, "every point has the same places");
    let document = &mounted.documents[0];
    assert_eq!(document.points.len(), 5);
    // What is served is a text: it must read as the document does.
    let read = chorus_spec::read(&format!("# bundle\n{}", document.document.to_yaml()));
    let spec = read.spec.unwrap_or_else(|| panic!("{:#?}", read.diagnostics));
    assert_eq!(spec.recipes.len(), 6);
    assert_eq!(spec.models.len(), 3);
}

#[test]
fn a_public_provider_that_promises_nothing_serves_no_safe_point() {
    let bundle = family();
    let text = "format: 1\ncomponents:\n  generalist:\n    deployments: [{name: far, backend: {endpoint: \"h:1\"}}]\n";
    let bound = binding::read(text, &bundle.mom).unwrap();
    let mounted = mount::mount(&bundle, &bound, None).unwrap();
    let abstaining: Vec<&str> = mounted.abstaining.iter().map(|it| it.point.as_str()).collect();
    assert_eq!(abstaining, ["secu"]);
    assert!(mounted.abstaining[0].why.contains("private_only"), "{}", mounted.abstaining[0].why);
}
