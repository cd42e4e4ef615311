//! What a policy stands on: the document that says where its models can be called.
//!
//! It knows which parts of a document a policy owns. **Invariant:** a place of the laid-over document says which of the
//! two texts it is of.

use super::node::{entry, list, map, text};
use crate::read::yaml::{Entry, Kind, Node};
use crate::{Diagnostic, Place};

/// Lines of the base are counted from here while both texts are one tree. More than any text has: both are bounded in
/// bytes.
const BASE_LINES: usize = 1 << 40;

/// Stands for the address of a model that a policy without a base can call nowhere.
const NOWHERE: &str = "unbound:1";

/// Keys of a decision that have no clause, so that a base may hold what its policy leaves out: a policy compiled over its
/// file must not lose `adaptations: { mode: bypass }` of a route that contains suspicious requests.
const KEPT: [&str; 4] = ["adaptations", "output_contract", "output_contract_spec", "annotations"];

/// The policy over its base, with places that tell the two apart.
pub(super) fn lay_over(policy: Node, base: &Node) -> Node {
    let mut base = base.clone();
    move_down(&mut base);
    merged(policy, &base)
}

/// The policy over its base.
pub(super) fn merged(policy: Node, base: &Node) -> Node {
    let (Kind::Map(own), Kind::Map(below)) = (policy.kind, &base.kind) else {
        return base.clone();
    };
    let mut entries: Vec<Entry> = below.clone();
    for mut part in own {
        match entries.iter_mut().find(|it| it.key == part.key) {
            Some(_) if part.key == "version" => {}
            Some(known) => {
                keep(&mut part.value, &known.value, &part.key);
                *known = part;
            }
            None => entries.push(part),
        }
    }
    map(base.place, entries)
}

/// Puts into a part of the policy what it leaves to its base.
fn keep(own: &mut Node, below: &Node, key: &str) {
    match key {
        "routing" => keep_in_routing(own, below),
        "recipes" => {
            for (recipe, known) in pairs(own, below) {
                if let (Some(own), Some(below)) = (entry_mut(recipe, "routing"), known.entry("routing")) {
                    keep_in_routing(own, &below.value);
                }
            }
        }
        _ => {}
    }
}

fn keep_in_routing(own: &mut Node, below: &Node) {
    if own.entry("modelCards").is_none() {
        push(own, below.entry("modelCards").cloned());
    }
    let (Some(decisions), Some(known)) = (entry_mut(own, "decisions"), below.entry("decisions")) else {
        return;
    };
    for (decision, known) in pairs(decisions, &known.value) {
        for key in KEPT {
            if decision.entry(key).is_none() {
                push(decision, known.entry(key).cloned());
            }
        }
    }
}

/// Items of two lists that have one name.
fn pairs<'n>(own: &'n mut Node, below: &'n Node) -> Vec<(&'n mut Node, &'n Node)> {
    let name = |it: &Node| it.entry("name").and_then(|e| e.value.text()).map(str::to_owned);
    let (Kind::Seq(own), Kind::Seq(below)) = (&mut own.kind, &below.kind) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for item in own {
        let known = name(item).and_then(|wanted| below.iter().find(|it| name(it).as_ref() == Some(&wanted)));
        all.extend(known.map(|known| (item, known)));
    }
    all
}

fn entry_mut<'n>(node: &'n mut Node, key: &str) -> Option<&'n mut Node> {
    match &mut node.kind {
        Kind::Map(entries) => entries.iter_mut().find(|it| it.key == key).map(|it| &mut it.value),
        _ => None,
    }
}

fn push(node: &mut Node, added: Option<Entry>) {
    if let (Kind::Map(entries), Some(added)) = (&mut node.kind, added) {
        entries.push(added);
    }
}

/// The policy with a model behind every model card, so that it can be checked by itself.
pub(super) fn unbound(mut policy: Node) -> Node {
    let cards = policy.entry("routing").and_then(|it| it.value.entry("modelCards")).map(|it| &it.value.kind);
    let mut models = Vec::new();
    if let Some(Kind::Seq(cards)) = cards {
        for name in cards.iter().filter_map(|card| card.entry("name")).map(|it| &it.value) {
            let backend = map(name.place, vec![entry("endpoint", text(NOWHERE, name.place))]);
            let refs = entry("backend_refs", list(name.place, vec![backend]));
            models.push(map(name.place, vec![entry("name", name.clone()), refs]));
        }
    }
    let place = policy.place;
    let providers = map(place, vec![entry("models", list(place, models))]);
    push(&mut policy, Some(entry("providers", providers)));
    policy
}

/// The finding with its place in the base; `Err` when it is of the policy.
pub(super) fn of_base(mut found: Diagnostic) -> Result<Diagnostic, Diagnostic> {
    match found.place.line.checked_sub(BASE_LINES) {
        Some(line) => {
            found.place.line = line;
            Ok(found)
        }
        None => Err(found),
    }
}

fn move_down(node: &mut Node) {
    let down = |place: &mut Place| place.line = place.line.saturating_add(BASE_LINES);
    down(&mut node.place);
    match &mut node.kind {
        Kind::Map(entries) => {
            for it in entries {
                down(&mut it.place);
                move_down(&mut it.value);
            }
        }
        Kind::Seq(items) => items.iter_mut().for_each(move_down),
        Kind::Scalar { .. } => {}
    }
}
