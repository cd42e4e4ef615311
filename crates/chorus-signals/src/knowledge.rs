//! Where the files that a configuration names are found, and the labelled exemplars of knowledge bases.
//!
//! A file is looked for beside the configuration and in every folder above it, then in the folder of `--knowledge`; for
//! the contract's own knowledge bases (`privacy_kb`, `mmlu_kb`) the project's exemplars come last. It knows no score.
//!
//! **Invariant:** a manifest that loads has at least one exemplar for each of its labels, and every label that the
//! declaration names.

use chorus_spec::{Digest, KnowledgeBase};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Largest file that is read: 16 MiB.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Most exemplars of a knowledge base: each costs an encoder pass when the configuration is loaded.
const MAX_EXEMPLARS: usize = 10_000;

/// The project's own exemplars, by the name of the knowledge base that they serve.
const BUILT_IN: &[(&str, &str)] = &[
    ("mmlu_kb", include_str!("../data/knowledge/mmlu.json")),
    ("privacy_kb", include_str!("../data/knowledge/privacy.json")),
];

/// Where the files that a configuration names are looked for.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Folders {
    /// The folder of the configuration, absolute; `None` for one that is no file.
    pub config: Option<PathBuf>,
    /// The folder of `--knowledge`.
    pub knowledge: Option<PathBuf>,
}

/// Where a knowledge base came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgeUse {
    /// The knowledge base.
    pub name: String,
    /// The manifest; `None` for the project's own exemplars.
    pub file: Option<PathBuf>,
    /// Digest of the manifest's bytes.
    pub digest: Digest,
    /// Its labels.
    pub labels: usize,
    /// Its exemplars.
    pub exemplars: usize,
}

/// Exemplars by label, each label with at least one.
pub(crate) type Exemplars = BTreeMap<String, Vec<String>>;

#[derive(Deserialize)]
struct ManifestWire {
    #[serde(default)]
    labels: BTreeMap<String, LabelWire>,
}

#[derive(Deserialize)]
struct LabelWire {
    #[serde(default)]
    exemplars: Vec<String>,
}

impl Folders {
    /// The bytes of a file that the configuration names; the error is a sentence for people.
    ///
    /// # Errors
    /// It is nowhere, or cannot be read.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let file = self.find(path).ok_or_else(|| self.nowhere(path))?;
        read(&file)
    }

    fn find(&self, path: &str) -> Option<PathBuf> {
        let path = Path::new(path);
        let above = self.config.iter().flat_map(|folder| folder.ancestors()).map(|folder| folder.join(path));
        let beside = self.knowledge.iter().flat_map(|folder| tails(path).map(|tail| folder.join(tail)));
        above.chain(beside).find(|file| file.is_file())
    }

    fn nowhere(&self, path: &str) -> String {
        let mut places = Vec::new();
        if let Some(folder) = &self.config {
            places.push(format!("{} and the folders above it", folder.display()));
        }
        if let Some(folder) = &self.knowledge {
            places.push(folder.display().to_string());
        }
        if places.is_empty() {
            places.push("a configuration that is no file has no folder".to_owned());
        }
        format!("there is no file `{path}`; looked in: {}", places.join("; "))
    }
}

/// The exemplars of a knowledge base, and where they came from; the error is a sentence for people.
pub(crate) fn load(base: &KnowledgeBase, folders: &Folders) -> Result<(Exemplars, KnowledgeUse), String> {
    let path = Path::new(&base.path).join(&base.manifest);
    let path = path.to_string_lossy();
    let (file, text) = match (folders.find(&path), built_in(&base.name)) {
        (Some(file), _) => {
            let text = String::from_utf8(read(&file)?)
                .map_err(|_| format!("{} is not UTF-8 text", file.display()))?;
            (Some(file), text)
        }
        (None, Some(text)) => (None, text.to_owned()),
        (None, None) => return Err(folders.nowhere(&path)),
    };
    let name =
        file.as_ref().map_or_else(|| "the built-in manifest".to_owned(), |file| file.display().to_string());
    let exemplars = exemplars(base, &text).map_err(|why| format!("{name}: {why}"))?;
    let origin = KnowledgeUse {
        name: base.name.clone(),
        file,
        digest: Digest::of(text.as_bytes()),
        labels: exemplars.len(),
        exemplars: exemplars.values().map(Vec::len).sum(),
    };
    Ok((exemplars, origin))
}

/// The path, and what is left of it without its first folders; the last folder stays, because it says whose file it is.
fn tails(path: &Path) -> impl Iterator<Item = PathBuf> {
    let parts: Vec<_> = path.components().collect();
    (0..parts.len().saturating_sub(1).max(1)).map(move |from| parts.iter().skip(from).collect())
}

fn built_in(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    let fault = |cause: std::io::Error| format!("cannot read {}: {cause}", file.display());
    let size = std::fs::metadata(file).map_err(fault)?.len();
    if size > MAX_BYTES {
        return Err(format!("{} has {size} bytes; at most {MAX_BYTES} are read", file.display()));
    }
    std::fs::read(file).map_err(fault)
}

fn exemplars(base: &KnowledgeBase, text: &str) -> Result<Exemplars, String> {
    let manifest: ManifestWire = serde_json::from_str(text).map_err(|fault| fault.to_string())?;
    if manifest.labels.is_empty() {
        return Err("it has no label".to_owned());
    }
    let mut exemplars = Exemplars::new();
    for (label, wire) in manifest.labels {
        let written: Vec<String> =
            wire.exemplars.into_iter().filter(|exemplar| !exemplar.trim().is_empty()).collect();
        if written.is_empty() {
            return Err(format!("the label `{label}` has no exemplar"));
        }
        exemplars.insert(label, written);
    }
    let count: usize = exemplars.values().map(Vec::len).sum();
    if count > MAX_EXEMPLARS {
        return Err(format!("it has {count} exemplars; at most {MAX_EXEMPLARS} are taken"));
    }
    let grouped = base.groups.iter().flat_map(|(_, labels)| labels);
    let named = grouped.chain(base.label_thresholds.iter().map(|(label, _)| label));
    match named.into_iter().find(|label| !exemplars.contains_key(*label)) {
        Some(label) => Err(format!("it has no label `{label}`, which the knowledge base names")),
        None => Ok(exemplars),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::knowledge_base;
    use std::fs;

    const MANIFEST: &str = r#"{"version":"1","description":"d","labels":{
        "a":{"description":"first","exemplars":["one","two"]},"b":{"exemplars":["three"," "]}}}"#;

    fn write(folder: &Path, file: &str, text: &str) {
        let file = folder.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    #[test]
    fn a_manifest_is_looked_for_upwards_then_in_knowledge_then_built_in() {
        let root = tempfile::tempdir().unwrap();
        let config = root.path().join("recipes/own");
        fs::create_dir_all(&config).unwrap();
        let other = root.path().join("elsewhere");
        let folders = Folders { config: Some(config), knowledge: Some(other.clone()) };
        let base = knowledge_base("privacy_kb", "kbs/privacy/", &[]);

        let (_, origin) = load(&base, &folders).unwrap();
        assert_eq!((origin.file, origin.labels > 10), (None, true));
        write(&other, "privacy/labels.json", MANIFEST);
        let (exemplars, origin) = load(&base, &folders).unwrap();
        assert_eq!(origin.file, Some(other.join("privacy/labels.json")));
        assert_eq!((origin.labels, origin.exemplars), (2, 3));
        assert_eq!(exemplars.get("b").unwrap(), &["three"]);
        write(root.path(), "kbs/privacy/labels.json", MANIFEST);
        let (_, origin) = load(&base, &folders).unwrap();
        assert_eq!(origin.file, Some(root.path().join("kbs/privacy/labels.json")));
    }

    #[test]
    fn a_base_without_exemplars_is_refused_at_load() {
        let root = tempfile::tempdir().unwrap();
        let folders = Folders { config: Some(root.path().to_owned()), knowledge: None };
        let base = knowledge_base("own", "kb", &[("group", &["a", "missing"])]);
        let refused = || load(&base, &folders).unwrap_err();
        assert!(refused().contains("there is no file `kb/labels.json`"), "{}", refused());
        for (text, why) in [
            ("", "EOF"),
            ("{}", "it has no label"),
            (r#"{"labels":{}}"#, "it has no label"),
            (r#"{"labels":{"a":{"exemplars":[]}}}"#, "`a` has no exemplar"),
            (r#"{"labels":{"a":{"exemplars":["  "]}}}"#, "`a` has no exemplar"),
            (r#"{"labels":{"a":{"exemplars":"x"}}}"#, "invalid type"),
            (MANIFEST, "no label `missing`"),
        ] {
            write(root.path(), "kb/labels.json", text);
            assert!(refused().contains(why), "{text}: {}", refused());
        }
    }

    #[test]
    fn the_built_in_exemplars_serve_the_contracts_names() {
        for (name, _) in BUILT_IN {
            let (exemplars, _) = load(&knowledge_base(name, "nowhere", &[]), &Folders::default()).unwrap();
            for (label, written) in &exemplars {
                let mut distinct = written.clone();
                distinct.sort_unstable();
                distinct.dedup();
                assert!((8..=15).contains(&distinct.len()), "{name} {label}: {}", distinct.len());
            }
        }
    }
}
