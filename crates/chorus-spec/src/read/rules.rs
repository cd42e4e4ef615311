//! Rule trees: a node is one leaf, or one operator over its children, and nothing else.
//!
//! It knows which facts exist, not how they come about. **Invariant:** no malformed node is given a meaning.

use super::cursor::Cursor;
use super::names::Facts;
use super::nearest::suggest;
use crate::diagnostic::code;
use crate::{Condition, Family, OnAbsent, SignalKey, Test};

const OPERATORS: [&str; 3] = ["AND", "OR", "NOT"];
const LEAF_KEYS: [&str; 5] = ["type", "name", "label", "predicate", "on_error"];

/// The rule under a key. Absent or `{}` is no rule, which holds for every request.
///
/// A root that is `operator: AND` over nothing holds for every request too, with confidence 0; anywhere else, and for
/// any other operator, an empty list is an error. Source: the contract's own recipes write their last resort so.
pub(super) fn optional(parent: &Cursor<'_>, key: &str, facts: &Facts<'_>) -> Option<Condition> {
    let at = parent.get(key)?;
    if at.is_empty_map() {
        return None;
    }
    if is_last_resort(&at) { Some(Condition::And(Vec::new())) } else { node(&at, facts) }
}

fn is_last_resort(at: &Cursor<'_>) -> bool {
    let is_and = at
        .get("operator")
        .is_some_and(|it| it.node().text().is_some_and(|word| word.eq_ignore_ascii_case("and")));
    let is_empty = at.get("conditions").is_none_or(|it| it.is_empty_list());
    is_and && is_empty && LEAF_KEYS.into_iter().all(|key| at.get(key).is_none())
}

fn node(at: &Cursor<'_>, facts: &Facts<'_>) -> Option<Condition> {
    let leaf_key = LEAF_KEYS.into_iter().find(|key| at.get(key).is_some());
    let has_branch = at.get("conditions").is_some();
    match (at.get("operator"), leaf_key) {
        (Some(_), Some(key)) => {
            refuse(at, &format!("this node has both `operator` and `{key}`"), Some(SHAPES))
        }
        (Some(operator), None) => branch(at, &operator, facts),
        (None, Some(key)) if has_branch => {
            refuse(at, &format!("this node has both `conditions` and `{key}`"), Some(SHAPES))
        }
        (None, Some(_)) => leaf(at, facts),
        (None, None) if has_branch => {
            refuse(at, "`conditions` without an `operator`", Some("write `operator: AND`, `OR` or `NOT`"))
        }
        (None, None) => refuse(at, "this node is empty", Some(SHAPES)),
    }
}

const SHAPES: &str = "a node is either `type` and `name`, or `operator` and `conditions`";

fn refuse(at: &Cursor<'_>, message: &str, help: Option<&str>) -> Option<Condition> {
    at.error_help(code::BAD_RULE, message, help.map(str::to_owned));
    None
}

fn branch(at: &Cursor<'_>, operator: &Cursor<'_>, facts: &Facts<'_>) -> Option<Condition> {
    let word = operator.text()?;
    let children = at.items("conditions");
    let count = children.len();
    let conditions: Vec<Condition> = children.iter().filter_map(|child| node(child, facts)).collect();
    let word = word.trim().to_ascii_uppercase();
    if !OPERATORS.contains(&word.as_str()) {
        let help = suggest(&word, &OPERATORS, "");
        operator.error_help(code::BAD_RULE, format!("`{word}` is not an operator"), help);
        return None;
    }
    if count == 0 {
        return refuse(at, &format!("`{word}` has no conditions"), None);
    }
    match word.as_str() {
        "NOT" if count != 1 => refuse(at, &format!("`NOT` takes one condition, not {count}"), None),
        "NOT" => conditions.into_iter().next().map(|inner| Condition::Not(Box::new(inner))),
        "AND" => Some(Condition::And(conditions)),
        _ => Some(Condition::Or(conditions)),
    }
}

fn leaf(at: &Cursor<'_>, facts: &Facts<'_>) -> Option<Condition> {
    let (kind, name) = match (at.get("type"), at.get("name")) {
        (Some(kind), Some(name)) => (kind, name),
        (Some(_), None) => return refuse(at, "this leaf has a `type` and no `name`", None),
        (None, Some(_)) => return refuse(at, "this leaf has a `name` and no `type`", None),
        (None, None) => return refuse(at, "this leaf has neither `type` nor `name`", Some(SHAPES)),
    };
    let family = family(&kind)?;
    let label = at.get("label");
    if family != Family::Classifier
        && let Some(key) = ["label", "predicate"].into_iter().find(|key| at.get(key).is_some())
    {
        return refuse(at, &format!("`{key}` belongs to leaves of type `classifier`"), None);
    }
    if label.is_none() && at.get("predicate").is_some() {
        return refuse(at, "`predicate` bounds the probability of a `label`, and there is none", None);
    }
    let fact = match &label {
        Some(label) => format!("{}:{}", name.text()?, label.text()?),
        None => name.text()?,
    };
    let key = facts.demand(&name, family, &fact).then(|| SignalKey::new(family, fact));
    let on_absent = at.word("on_error", &ON_ERROR);
    let predicate = at.predicate();
    match (predicate, on_absent.unwrap_or_default()) {
        (None, OnAbsent::Unknown) => key.map(Condition::Signal),
        (predicate, on_absent) => key.map(|key| Condition::Tested(Test { key, predicate, on_absent })),
    }
}

/// The words of `on_error`; without one, an absent fact leaves the leaf unknown.
const ON_ERROR: [(&str, OnAbsent); 2] = [("no_match", OnAbsent::NoMatch), ("match", OnAbsent::Match)];

/// The family that a `type` names.
pub(super) fn family(at: &Cursor<'_>) -> Option<Family> {
    let text = at.text()?;
    let found = Family::ALL.into_iter().find(|family| family.as_str() == text.trim());
    if found.is_none() {
        let known: Vec<&str> = Family::ALL.iter().map(|family| family.as_str()).collect();
        at.error_help(
            code::BAD_RULE,
            format!("`{text}` is not a type of signal"),
            suggest(&text, &known, ""),
        );
    }
    found
}
