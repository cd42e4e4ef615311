//! The manual's pages of projections: one a kind, each with the trace of its own example.
//!
//! Plain data and how it is written; it knows no file system. **Invariant:** every example loads, and the trace on its page
//! is what the policy says of it (both held by a test).

use crate::{Evidence, Observation, Policy, Progress, Scope};
use chorus_spec::{Family, SignalKey};
use std::fmt::Write;

/// One kind of projection.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// Its container in `projections`.
    pub container: &'static str,
    /// The page's name, and the word of the policy language.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub is: &'static str,
    /// How it is computed.
    pub formula: &'static str,
    /// Its keys: path, default, meaning.
    pub keys: &'static [(&'static str, &'static str, &'static str)],
    /// What it says when a part is missing.
    pub fails: &'static str,
    /// Where it is written down.
    pub source: &'static str,
    /// The `routing` of a file: signals, projections, decisions.
    pub example: &'static str,
    /// The evidence of the trace: key and confidence; not matched when `None`.
    pub evidence: &'static [(Family, &'static str, Option<f64>)],
    /// The field of the trace that is shown.
    pub trace: &'static str,
}

/// Every kind, in the order in which they are computed.
pub const PAGES: [Page; 3] = [PARTITION, SCORE, MAPPING];

const PARTITION: Page = Page {
    container: "partitions",
    name: "partition",
    is: "Of several `domain` or `embedding` rules at most one stays matched.",
    formula: "\
The greatest confidence wins; among equals the member that is listed first. With `softmax_exclusive` and two or more
that matched, the winner's confidence becomes its share `exp(c/t) / Σ exp(cᵢ/t)` over those that matched; a lone one keeps
its own. Where none matched, `default` stays matched with confidence 0. The others count as not matched, wherever they are
asked: in decisions, in scores, in other projections.",
    keys: &[
        ("name", "required", "what traces call it"),
        ("semantics", "`exclusive`", "`exclusive`, `softmax_exclusive`"),
        ("temperature", "1", "of the softmax; greater is flatter"),
        ("members", "required", "names of `domain` rules, or of `embedding` rules"),
        ("default", "", "the member that stays where none matched"),
    ],
    fails: "\
While one member is not asked or absent, no member is the winner: the missing one could be. Members that did not match
are settled all the same.",
    source: "contract §1.5 (`partitions`).",
    example: "\
signals:
  domains: [{ name: law }, { name: health }, { name: other }]
projections:
  partitions:
    - name: subject
      semantics: softmax_exclusive
      temperature: 0.1
      members: [law, health, other]
      default: other
decisions:
  - { name: legal, rules: { type: domain, name: law }, modelRefs: [{ model: m }] }",
    evidence: &[
        (Family::Domain, "law", Some(0.6)),
        (Family::Domain, "health", Some(0.5)),
        (Family::Domain, "other", None),
    ],
    trace: "partitions",
};

const SCORE: Page = Page {
    container: "scores",
    name: "score",
    is: "A weighted sum of what signals, knowledge bases and other projections say.",
    formula: "\
`total = Σ weight · value`. With `binary` the value is `match` (1) where the source matched and `miss` (0) where not; with
`confidence` the confidence where it matched, else 0; with `raw` the raw value, matched or not; of another score, and of
a `kb_metric`, the value itself. A score may read the outputs of mappings over earlier scores; a circle is an error.

A term that is not known yet lies between bounds: `match` and `miss`, 0 and 1, or nothing at all for a raw value. So the
sum has bounds too, and a mapping settles what all of them agree on. That is why a word can decide without the encoder.",
    keys: &[
        ("name", "required", "what mappings and traces call it"),
        ("method", "`weighted_sum`", "the only one"),
        ("inputs[].type", "required", "a signal's type, `projection` or `kb_metric`"),
        ("inputs[].name", "required", "the signal, output or score; not for `kb_metric`"),
        ("inputs[].kb", "", "for `kb_metric`: the knowledge base"),
        ("inputs[].metric", "", "for `kb_metric`: the metric"),
        ("inputs[].weight", "required", "the factor; may be negative"),
        ("inputs[].value_source", "`binary`", "`binary`, `confidence`, `raw`, `score`"),
        ("inputs[].match", "1", "for `binary`: the value of a match"),
        ("inputs[].miss", "0", "for `binary`: the value of a miss"),
    ],
    fails: "\
A term that is absent leaves the total unknown: no number is made up, and the score is not in the trace. The bands that
the term could not change are settled all the same; the others are unknown, and a decision that asks one says so.",
    source: "contract §1.5 (`scores`).",
    example: "\
signals:
  keywords: [{ name: sources, keywords: [cite sources] }]
  domains: [{ name: law }]
projections:
  scores:
    - name: pressure
      method: weighted_sum
      inputs:
        - { type: keyword, name: sources, weight: 0.4 }
        - { type: domain, name: law, weight: 0.5, value_source: confidence }
  mappings:
    - { name: band, source: pressure, method: threshold_bands, outputs: [{ name: verify, gte: 0.35 }] }
decisions:
  - { name: verified, rules: { type: projection, name: verify }, modelRefs: [{ model: m }] }",
    evidence: &[(Family::Keyword, "sources", Some(1.0)), (Family::Domain, "law", Some(0.6))],
    trace: "scores",
};

const MAPPING: Page = Page {
    container: "mappings",
    name: "mapping",
    is: "Names for bands of a score, which decisions ask as `type: projection`.",
    formula: "\
`threshold_bands` emits the first band that holds the total, `multi_emit` every one. A band holds what is above `gt` or
`gte` and below `lt` or `lte`; without bounds it holds everything. Confidence is 1; with a calibration it is
`1 / (1 + e^(−slope · distance))` of the distance to the band's nearest bound, so .5 on the edge. A band without bounds has
distance 1.",
    keys: &[
        ("name", "required", "what traces call it"),
        ("source", "required", "the score"),
        ("method", "`threshold_bands`", "`threshold_bands`, `multi_emit`"),
        ("calibration.method", "", "`sigmoid_distance`"),
        ("calibration.slope", "12", "how fast confidence grows with the distance"),
        ("outputs[].name", "required", "what decisions ask"),
        ("outputs[].gt", "", "above"),
        ("outputs[].gte", "", "at or above"),
        ("outputs[].lt", "", "below"),
        ("outputs[].lte", "", "at or below"),
    ],
    fails: "\
A band is settled as soon as every total that is still possible is inside it, or outside. Otherwise it is unknown for the
reason for which the total is: a signal that could not run, or one that this version does not run. `check` warns of bands
that overlap and of gaps between them.",
    source: "contract §1.5 (`mappings`).",
    example: "\
signals:
  keywords: [{ name: proof, keywords: [prove] }]
  domains: [{ name: math }]
projections:
  scores:
    - name: difficulty
      method: weighted_sum
      inputs:
        - { type: keyword, name: proof, weight: 0.3 }
        - { type: domain, name: math, weight: 0.5, value_source: confidence }
  mappings:
    - name: band
      source: difficulty
      method: threshold_bands
      calibration: { method: sigmoid_distance, slope: 10 }
      outputs: [{ name: easy, lt: 0.3 }, { name: medium, gte: 0.3, lt: 0.6 }, { name: hard, gte: 0.6 }]
decisions:
  - { name: think, rules: { type: projection, name: hard }, modelRefs: [{ model: m }] }",
    evidence: &[(Family::Keyword, "proof", Some(1.0)), (Family::Domain, "math", Some(0.8))],
    trace: "mappings",
};

/// Every page with its path below `docs`, and the index.
#[must_use]
pub fn files() -> Vec<(String, String)> {
    let mut index = String::from(
        "# Projections\n\nEvidence, combined before decisions look at it; computed in this order, once a request, and only as far \
         as a decision depends on it.\nOne page a kind, written by `cargo xtask docs`.\n\n| kind | what |\n|---|---|\n",
    );
    for page in &PAGES {
        let _ = writeln!(index, "| [{0}](projections/{0}.md) | {1} |", page.name, page.is);
    }
    let pages = PAGES.iter().map(|page| (format!("projections/{}.md", page.name), text(page)));
    std::iter::once(("projections.md".to_owned(), index)).chain(pages).collect()
}

fn text(page: &Page) -> String {
    let mut out = format!("# {}\n\n{}\n\n{}\n\n", page.name, page.is, page.formula);
    let _ = writeln!(
        out,
        "## Keys\n\n`projections.{}[]`:\n\n| key | default | says |\n|---|---|---|",
        page.container
    );
    for (path, default, says) in page.keys {
        let _ = writeln!(out, "| `{path}` | {default} | {says} |");
    }
    let _ = writeln!(out, "\n## When a part is missing\n\n{}\n", page.fails);
    let _ = writeln!(out, "## Example\n\n```yaml\n{}\n```\n", page.example);
    let said = page.evidence.iter().map(|(family, name, confidence)| match confidence {
        Some(confidence) => format!("`{family}:{name}` matches with {confidence}"),
        None => format!("`{family}:{name}` does not match"),
    });
    let said: Vec<String> = said.collect();
    let _ = writeln!(out, "## Trace\n\n{}:\n\n```json\n{}\n```\n", said.join(", "), trace(page));
    let _ = writeln!(out, "*Source:* {}", page.source);
    out
}

/// A file around an example.
#[must_use]
pub fn file_of(page: &Page) -> String {
    let routing: String = page.example.lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "version: v0.3\nproviders:\n  defaults: {{ default_model: m }}\n  models: [{{ name: m, backend_refs: [{{ endpoint: \
         \"127.0.0.1:1\" }}] }}]\nrouting:\n{routing}"
    )
}

/// What the policy says of the example; empty when it does not load.
fn trace(page: &Page) -> String {
    let Some(recipe) =
        chorus_spec::read(&file_of(page)).spec.and_then(|spec| spec.recipes.into_iter().next())
    else {
        return String::new();
    };
    let mut evidence = Evidence::default();
    for (family, name, confidence) in page.evidence {
        let observation = match confidence {
            Some(confidence) => Observation::Matched { confidence: *confidence, raw: Some(*confidence) },
            None => Observation::Unmatched { raw: Some(0.0) },
        };
        evidence.insert(SignalKey::new(*family, *name), observation);
    }
    let Progress::Done(verdict) = Policy::compile(&recipe, &|_| 0).explain(&evidence, &Scope::All) else {
        return String::new();
    };
    let shown = serde_json::to_value(&verdict.projections).unwrap_or_default();
    let shown = shown.get(page.trace).and_then(|all| all.get(0)).cloned().unwrap_or_default();
    serde_json::to_string_pretty(&shown).unwrap_or_default()
}
