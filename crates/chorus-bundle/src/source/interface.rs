//! `mom.yaml`: the interface as a person writes it.
//!
//! It knows neither the policy nor other files; what names them is checked by the caller. **Invariant:** lists that are
//! looked up by name leave sorted by name.

use super::page::At;
use crate::mom::{
    Bounds, Capabilities, Component, DataPolicy, Decimal, Defaults, FORMAT, Gate, Mom, OperatingPoint,
    Reasoning, Suite, Weights,
};
use chorus_spec::code;

const KINDS: [&str; 4] = ["generator", "encoder", "classifier", "reranker"];
const LOCALITIES: [&str; 3] = ["any", "private", "process"];
/// Source: ModelPack's model config, `inputTypes`.
const TYPES: [&str; 6] = ["text", "image", "audio", "video", "embedding", "other"];
const OBJECTIVES: [&str; 6] = ["latency", "cost", "energy", "quality", "grounding", "safety"];
const CONSTRAINTS: [&str; 6] =
    ["fail_closed", "grounded", "local_only", "private_only", "no_retention", "no_training"];
const REASONING: [&str; 3] = ["chat_template_kwargs", "reasoning_effort", "top_level_reasoning_effort"];

/// Reads the interface; what is wrong stands in the page.
pub(crate) fn read(root: &At<'_>) -> Option<Mom> {
    root.only(&[
        "format",
        "family",
        "version",
        "licence",
        "authors",
        "description",
        "defaults",
        "reasoning_families",
        "components",
        "operating_points",
        "suites",
        "gates",
        "provenance",
    ]);
    let format = format(root);
    let family = root.required("family").filter(|family| is_name(root, "family", family));
    let version = root.required("version").filter(|version| is_version(root, version));
    let licence = root.required("licence");
    if let (Some(at), Some(text)) = (root.get("licence"), &licence) {
        check_licence(&at, text);
    }
    let components = components(root);
    let mom = Mom {
        format: format?,
        family: family?,
        version: version?,
        licence: licence?,
        authors: root.texts("authors"),
        description: root.text("description").unwrap_or_default(),
        defaults: root.get("defaults").map(|at| defaults(&at)).unwrap_or_default(),
        reasoning_families: root
            .entries("reasoning_families")
            .into_iter()
            .filter_map(|(name, at)| Some((name.to_owned(), reasoning(&at)?)))
            .collect(),
        components,
        operating_points: operating_points(root),
        suites: suites(root),
        gates: root.items("gates").iter().filter_map(gate).collect(),
        provenance: root
            .entries("provenance")
            .into_iter()
            .filter_map(|(name, at)| Some((name.to_owned(), at.as_text()?)))
            .collect(),
    };
    check_names(root, &mom);
    Some(mom)
}

fn format(root: &At<'_>) -> Option<u64> {
    root.needed("format")?;
    let format = root.whole("format", 1)?;
    if format > FORMAT {
        let message = format!("format {format} is newer than this version reads ({FORMAT})");
        root.get("format")?.error(code::BAD_VALUE, message, Some("use a newer engine"));
        return None;
    }
    Some(format)
}

fn is_name(root: &At<'_>, key: &str, name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let is_good = name.chars().all(good) && name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !is_good && let Some(at) = root.get(key) {
        at.error(
            code::BAD_VALUE,
            format!("`{name}` is not a name"),
            Some("letters, digits, `.`, `_`, `-` and `/`"),
        );
    }
    is_good
}

fn is_version(root: &At<'_>, version: &str) -> bool {
    let is_good = semver::Version::parse(version).is_ok();
    if !is_good && let Some(at) = root.get("version") {
        at.error(
            code::BAD_VALUE,
            format!("`{version}` is not a version"),
            Some("write three numbers, such as `1.0.0`"),
        );
    }
    is_good
}

/// An SPDX expression has names, `AND`, `OR`, `WITH` and parentheses; which names exist is not known here.
fn check_licence(at: &At<'_>, text: &str) {
    let is_good = text.chars().all(|c| c.is_ascii_alphanumeric() || ".-+:() ".contains(c));
    if !is_good {
        at.error(
            code::BAD_VALUE,
            format!("`{text}` is not an SPDX expression"),
            Some("such as `Apache-2.0 OR MIT`"),
        );
    }
}

fn defaults(at: &At<'_>) -> Defaults {
    at.only(&["component", "reasoning_effort"]);
    Defaults { component: at.text("component"), reasoning_effort: at.text("reasoning_effort") }
}

fn reasoning(at: &At<'_>) -> Option<Reasoning> {
    at.only(&["type", "parameter"]);
    let kind = at.needed("type").and_then(|_| at.word("type", &REASONING));
    let parameter = at.required("parameter");
    Some(Reasoning { kind: kind?, parameter: parameter? })
}

fn components(root: &At<'_>) -> Vec<Component> {
    root.needed("components");
    let all = root.named("components", "component");
    let mut all: Vec<Component> = all.into_iter().filter_map(|(name, at)| component(name, &at)).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn component(name: String, at: &At<'_>) -> Option<Component> {
    at.only(&[
        "name",
        "kind",
        "description",
        "licence",
        "capabilities",
        "context_tokens",
        "reasoning_family",
        "locality",
        "data_policy",
        "weights",
        "fallback",
    ]);
    let kind = at.needed("kind").and_then(|_| at.word("kind", &KINDS));
    let licence = at.text("licence");
    if let (Some(at), Some(text)) = (at.get("licence"), &licence) {
        check_licence(&at, text);
    }
    let weights = at.get("weights").map(|at| weights(&at));
    Some(Component {
        name,
        kind: kind?,
        description: at.text("description").unwrap_or_default(),
        licence,
        capabilities: at.get("capabilities").map(|at| capabilities(&at)).unwrap_or_default(),
        context_tokens: at.whole("context_tokens", 1),
        reasoning_family: at.text("reasoning_family"),
        locality: at.word("locality", &LOCALITIES).unwrap_or_else(|| "any".to_owned()),
        data_policy: at.get("data_policy").map(|at| data_policy(&at)).unwrap_or_default(),
        weights: weights.flatten(),
        fallback: at.text("fallback"),
    })
}

fn capabilities(at: &At<'_>) -> Capabilities {
    at.only(&[
        "inputTypes",
        "outputTypes",
        "knowledgeCutoff",
        "reasoning",
        "toolUsage",
        "reward",
        "languages",
    ]);
    Capabilities {
        input_types: at.words("inputTypes", &TYPES),
        output_types: at.words("outputTypes", &TYPES),
        knowledge_cutoff: at.text("knowledgeCutoff"),
        reasoning: at.flag("reasoning"),
        tool_usage: at.flag("toolUsage"),
        reward: at.flag("reward"),
        languages: at.texts("languages"),
    }
}

fn data_policy(at: &At<'_>) -> DataPolicy {
    at.only(&["retention_days", "training"]);
    DataPolicy { retention_days: at.whole("retention_days", 0), training: at.flag("training") }
}

fn weights(at: &At<'_>) -> Option<Weights> {
    at.only(&["reference", "digest"]);
    let digest = at.text("digest");
    if let (Some(at), Some(text)) = (at.get("digest"), &digest)
        && !crate::oci::is_digest(text)
    {
        at.error(
            code::BAD_VALUE,
            format!("`{text}` is not a digest"),
            Some("`sha256:` and 64 hexadecimal digits"),
        );
    }
    Some(Weights { reference: at.required("reference")?, digest })
}

fn operating_points(root: &At<'_>) -> Vec<OperatingPoint> {
    let point = |(name, at): (String, At<'_>)| {
        at.only(&["name", "recipe", "objective", "preferences", "bounds", "constraints", "fallback"]);
        let objective = at.needed("objective").and_then(|_| at.word("objective", &OBJECTIVES));
        Some(OperatingPoint {
            name,
            recipe: at.text("recipe").unwrap_or_else(|| "default".to_owned()),
            objective: objective?,
            preferences: at.words("preferences", &OBJECTIVES),
            bounds: at.get("bounds").map(|at| bounds(&at)).unwrap_or_default(),
            constraints: sorted(at.words("constraints", &CONSTRAINTS)),
            fallback: at.text("fallback").unwrap_or_else(|| "abstain".to_owned()),
        })
    };
    let mut all: Vec<OperatingPoint> =
        root.named("operating_points", "operating point").into_iter().filter_map(point).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn sorted(mut words: Vec<String>) -> Vec<String> {
    words.sort();
    words.dedup();
    words
}

fn bounds(at: &At<'_>) -> Bounds {
    at.only(&["max_calls", "max_tokens", "max_usd", "max_micro_usd", "max_time_ms", "max_joules"]);
    let usd = at.decimal("max_usd");
    let micro = usd.as_ref().and_then(Decimal::millionths);
    if usd.is_some()
        && micro.is_none()
        && let Some(at) = at.get("max_usd")
    {
        at.error(code::BAD_RANGE, "expected dollars with at most six decimals", None);
    }
    Bounds {
        max_calls: at.whole("max_calls", 1),
        max_tokens: at.whole("max_tokens", 1),
        max_micro_usd: micro.or_else(|| at.whole("max_micro_usd", 1)),
        max_time_ms: at.whole("max_time_ms", 1),
        max_joules: at.decimal("max_joules"),
    }
}

fn suites(root: &At<'_>) -> Vec<Suite> {
    let suite = |(name, at): (String, At<'_>)| {
        at.only(&["name", "file"]);
        let file = at.required("file")?;
        if !file.starts_with("suites/") || crate::path::check(&file).is_err() {
            at.error(code::BAD_VALUE, format!("`{file}` is not a file below suites/"), None);
        }
        Some(Suite { name, file })
    };
    let mut all: Vec<Suite> = root.named("suites", "suite").into_iter().filter_map(suite).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn gate(at: &At<'_>) -> Option<Gate> {
    at.only(&["suite", "metric", "at_least", "at_most"]);
    let (suite, metric) = (at.required("suite"), at.required("metric"));
    let (at_least, at_most) = (at.decimal("at_least"), at.decimal("at_most"));
    if at.get("at_least").is_none() && at.get("at_most").is_none() {
        at.error(code::MISSING_KEY, "a gate has `at_least`, `at_most`, or both", None);
    }
    Some(Gate { suite: suite?, metric: metric?, at_least, at_most })
}

/// What refers to something by name, and names that would lead in a circle.
fn check_names(root: &At<'_>, mom: &Mom) {
    let is_component = |name: &str| mom.components.iter().any(|it| it.name == name);
    let unknown = |at: Option<At<'_>>, what: &str, name: &str| {
        let at = at.unwrap_or_else(|| root.clone());
        at.error(code::UNKNOWN_REFERENCE, format!("no {what} is named `{name}`"), None);
    };
    if let Some(name) = mom.defaults.component.as_deref().filter(|name| !is_component(name)) {
        unknown(root.get("defaults"), "component", name);
    }
    for at in root.items("components") {
        let name = at.text("name").unwrap_or_default();
        if name == mom.family
            || mom.operating_points.iter().any(|it| it.name == name || mom.identity(&it.name) == name)
        {
            at.error(
                code::RECURSION,
                format!("`{name}` is the MoM itself or one of its operating points"),
                None,
            );
        }
        if let Some(other) = at.text("fallback").filter(|other| !is_component(other) || *other == name) {
            unknown(at.get("fallback"), "other component", &other);
        }
        if let Some(family) =
            at.text("reasoning_family").filter(|it| !mom.reasoning_families.contains_key(it))
        {
            unknown(at.get("reasoning_family"), "reasoning family", &family);
        }
    }
    for at in root.items("operating_points") {
        if let Some(name) = at.text("fallback").filter(|name| name != "abstain" && !is_component(name)) {
            unknown(at.get("fallback"), "component", &name);
        }
    }
    for at in root.items("gates") {
        if let Some(name) = at.text("suite").filter(|name| !mom.suites.iter().any(|it| it.name == *name)) {
            unknown(at.get("suite"), "suite", &name);
        }
    }
}
