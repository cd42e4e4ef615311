//! Trained rules over answers, read from the files that decisions name, before anything is served.
//!
//! It knows files and which models a decision has; what a rule sees of an answer is `chorus_collab::confidence`'s.
//! **Invariant:** a configuration whose rule cannot be read, or does not know the models that it is to measure, is not
//! served.

use chorus_collab::confidence::{LogisticScorer, Scorer, ScorerFault};
use chorus_signals::Folders;
use chorus_spec::{Algorithm, Decision, ModelId, Raters, Spec};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Longest file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Why a rule cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScorersFault {
    /// The file cannot be opened, is too long, or is no text.
    #[error("decision `{decision}`: the scorer `{file}` cannot be opened ({why})")]
    File {
        /// Whose.
        decision: String,
        /// As the configuration names it.
        file: String,
        /// Why.
        why: String,
    },
    /// The file is no rule.
    #[error("decision `{decision}`: the scorer `{file}` does not fit: {fault}")]
    Form {
        /// Whose.
        decision: String,
        /// As the configuration names it.
        file: String,
        /// Why.
        fault: ScorerFault,
    },
    /// It was trained for others.
    #[error(
        "decision `{decision}`: the scorer `{file}` does not know the models {missing:?}, whose answers it is to measure"
    )]
    Models {
        /// Whose.
        decision: String,
        /// As the configuration names it.
        file: String,
        /// Who is missing.
        missing: Vec<String>,
    },
}

/// All rules of a configuration, by the file's name in it.
#[derive(Debug, Default)]
pub struct Scorers(BTreeMap<String, Arc<LogisticScorer>>);

impl Scorers {
    /// Reads them all; a relative name starts at the configuration's folder.
    ///
    /// # Errors
    /// [`ScorersFault`].
    pub(crate) fn read(spec: &Spec, folders: &Folders) -> Result<Self, ScorersFault> {
        let mut all = Self::default();
        for decision in spec.recipes.iter().flat_map(|recipe| &recipe.decisions) {
            let Some((file, unmeasured)) = named(decision) else { continue };
            let decision_name = || decision.name.clone();
            let scorer = match all.0.get(file) {
                Some(known) => Arc::clone(known),
                None => {
                    let text = text(file, folders).map_err(|why| ScorersFault::File {
                        decision: decision_name(),
                        file: file.to_owned(),
                        why,
                    })?;
                    let read = LogisticScorer::read(&text);
                    Arc::new(read.map_err(|fault| ScorersFault::Form {
                        decision: decision_name(),
                        file: file.to_owned(),
                        fault,
                    })?)
                }
            };
            let candidates = decision.model_refs.iter().map(|it| &it.model);
            let unknown = |model: &&ModelId| !scorer.models.contains_key(model.as_str());
            let missing: Vec<String> = candidates.filter(unknown).map(ToString::to_string).collect();
            if missing.len() > unmeasured {
                return Err(ScorersFault::Models {
                    decision: decision_name(),
                    file: file.to_owned(),
                    missing,
                });
            }
            all.0.insert(file.to_owned(), scorer);
        }
        Ok(all)
    }

    /// The rule of that name.
    #[must_use]
    pub fn get(&self, file: &str) -> Option<Arc<dyn Scorer>> {
        self.0.get(file).map(|scorer| Arc::clone(scorer) as Arc<dyn Scorer>)
    }
}

/// The file that a decision names, and how many of its candidates it need not know: nobody measures the last of a
/// cascade.
fn named(decision: &Decision) -> Option<(&str, usize)> {
    match &decision.algorithm {
        Algorithm::Confidence(it) => Some((it.scorer.as_deref()?, 1)),
        Algorithm::Ratings(it) if it.raters == Raters::Scorer => Some((it.scorer.as_deref()?, 0)),
        _ => None,
    }
}

fn text(file: &str, folders: &Folders) -> Result<String, String> {
    let written = PathBuf::from(file);
    let path = match &folders.config {
        Some(folder) if written.is_relative() => folder.join(written),
        _ => written,
    };
    let opened = std::fs::File::open(path).map_err(|fault| fault.kind().to_string())?;
    let mut text = String::new();
    let read =
        opened.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(|fault| fault.kind().to_string())?;
    if read as u64 > MAX_BYTES {
        return Err(format!("it has more than {MAX_BYTES} bytes"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(algorithm: &str) -> Spec {
        let text = format!(
            "version: v0.3
providers:
  models:
    - {{ name: a, backend_refs: [{{ endpoint: 'localhost:1' }}] }}
    - {{ name: b, backend_refs: [{{ endpoint: 'localhost:2' }}] }}
routing:
  decisions:
    - {{ name: d, modelRefs: [{{ model: a }}, {{ model: b }}], algorithm: {algorithm} }}
"
        );
        let checked = chorus_spec::read(&text);
        checked.spec.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
    }

    fn scorer(models: &str) -> String {
        format!("{{\"format\":\"chorus.answer-scorer/1\",\"features\":[\"mean\"],\"models\":{{{models}}}}}")
    }

    const CASCADE: &str = "{ type: confidence, confidence: { confidence_method: learned, scorer: s.json } }";
    const RATED: &str = "{ type: ratings, ratings: { raters: scorer, aggregate: best, scorer: s.json } }";

    #[test]
    fn a_rule_must_know_whom_it_measures() {
        let folder = tempfile::tempdir().unwrap();
        let folders = Folders { config: Some(folder.path().to_owned()), knowledge: None };
        let one = "\"a\":{\"bias\":0,\"weights\":[1]}";
        let both = format!("{one},\"b\":{{\"bias\":0,\"weights\":[1]}}");
        for (file, algorithm, said) in [
            (None, CASCADE, "cannot be opened"),
            (Some(scorer(one)), CASCADE, ""),
            (Some(scorer("")), CASCADE, "does not know the models [\"a\", \"b\"]"),
            (Some(scorer(one)), RATED, "does not know the models [\"b\"]"),
            (Some(scorer(&both)), RATED, ""),
            (Some("{}".to_owned()), RATED, "does not fit"),
            (Some("x".repeat((1 << 20) + 1)), RATED, "more than"),
        ] {
            if let Some(text) = &file {
                std::fs::write(folder.path().join("s.json"), text).unwrap();
            }
            let read = Scorers::read(&spec(algorithm), &folders);
            let told = read.as_ref().err().map(ToString::to_string).unwrap_or_default();
            assert!(told.contains(said) && told.is_empty() == said.is_empty(), "{algorithm}: {told}");
            assert_eq!(read.is_ok_and(|all| all.get("s.json").is_some()), said.is_empty());
        }
    }
}
