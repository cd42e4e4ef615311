//! The family that travels inside the program: `builtin:mom-v1` wherever a bundle is named.

use chorus_bundle::Files;
use std::path::Path;

/// What stands before the name of a built-in family.
const PREFIX: &str = "builtin:";

/// The source of the built-in family, file by file.
const MOM_V1: [(&str, &str); 6] = [
    ("mom.yaml", include_str!("../../../../../families/mom-v1/mom.yaml")),
    ("policy.yaml", include_str!("../../../../../families/mom-v1/policy.yaml")),
    ("prompts/plain.md", include_str!("../../../../../families/mom-v1/prompts/plain.md")),
    ("prompts/grounded.md", include_str!("../../../../../families/mom-v1/prompts/grounded.md")),
    ("suites/smoke.jsonl", include_str!("../../../../../families/mom-v1/suites/smoke.jsonl")),
    ("README.md", include_str!("../../../../../families/mom-v1/README.md")),
];

/// The files of the family that the path names, if it names one.
pub(super) fn files(path: &Path) -> Option<Files> {
    let name = path.to_str()?.strip_prefix(PREFIX)?;
    let all = MOM_V1.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
    (name == "mom-v1").then(|| Files::from(all))
}
