//! A document's routing part becomes policy text.
//!
//! It knows the shapes that the compiler writes; what has another shape is written as a field under its own key, so
//! nothing is lost. **Invariant:** compiling the text gives the document's routing part again, in normal form.

use super::ast::*;
use super::node::is_literal;
use super::token::Comment;
use super::words::{MODEL_OPTIONS, PROJECTIONS, families};
use crate::Place;
use crate::read::yaml::{Entry, Kind, Node};

const NOWHERE: Place = Place { line: 0, column: 0 };

/// A document's routing part as a tree, and the keys that no block holds.
pub(super) fn decompile(root: &Node) -> (File, Vec<String>) {
    let mut draft = Draft::default();
    if let Some(routing) = root.entry("routing") {
        draft.routing(&routing.value, "routing");
    }
    for item in items(root, "entrypoints") {
        draft.begin("Entrypoints");
        draft.push(StatementKind::Entrypoint(fields(item, &[])));
    }
    for item in items(root, "recipes") {
        draft.begin("Recipes");
        draft.recipe(item);
    }
    (File { statements: draft.statements, tail: Vec::new() }, draft.left_out)
}

/// Blocks in the making.
#[derive(Default)]
struct Draft {
    statements: Vec<Item<Statement>>,
    section: Option<&'static str>,
    /// The heading of the section whose first block has not been written yet.
    heading: Option<&'static str>,
    left_out: Vec<String>,
}

impl Draft {
    fn begin(&mut self, section: &'static str) {
        if self.section != Some(section) {
            self.section = Some(section);
            self.heading = Some(section);
        }
    }

    fn push(&mut self, kind: StatementKind) {
        let mut item = Item::bare(Statement { place: NOWHERE, kind });
        if let Some(heading) = self.heading.take() {
            item.around.above.push(Comment { text: format!("# {heading}"), line: 0, gap: true });
            item.around.gap = true;
        }
        self.statements.push(item);
    }

    fn routing(&mut self, routing: &Node, path: &str) {
        for Entry { key, value, .. } in entries(routing) {
            let known = ["strategy", "modelCards", "signals", "projections", "decisions"];
            if !known.contains(&key.as_str()) && !value.is_null() {
                self.left_out.push(format!("{path}.{key}"));
            }
        }
        if let Some(strategy) = routing.entry("strategy").filter(|it| !it.value.is_null()) {
            self.push(StatementKind::Routing(Body::of(vec![field("strategy", &strategy.value)])));
        }
        for card in items(routing, "modelCards") {
            self.begin("Models");
            self.named(card, path, |name, fields| StatementKind::Model { name, fields });
        }
        let signals = routing.entry("signals").map(|it| &it.value);
        self.lists(signals, "Signals", path, &families().collect::<Vec<_>>(), |family, name, fields| {
            StatementKind::Signal { family, name, fields }
        });
        let projections = routing.entry("projections").map(|it| &it.value);
        self.lists(projections, "Projections", path, &PROJECTIONS, |kind, name, fields| {
            StatementKind::Projection { kind, name, fields }
        });
        for decision in items(routing, "decisions") {
            self.begin("Routes");
            match route(decision) {
                Some(route) => self.push(StatementKind::Route(route)),
                None => self.left_out.push(format!("{path}.decisions: one without a name")),
            }
        }
    }

    fn lists(
        &mut self,
        lists: Option<&Node>,
        section: &'static str,
        path: &str,
        known: &[(&str, &str)],
        make: impl Fn(Word, Word, Fields) -> StatementKind,
    ) {
        let Some(lists) = lists else { return };
        for (word, list) in known {
            for item in items(lists, list) {
                self.begin(section);
                self.named(item, path, |name, fields| make(bare(word), name, fields));
            }
        }
        for Entry { key, .. } in entries(lists) {
            if known.iter().all(|(_, list)| list != key) {
                self.left_out.push(format!("{path}.{}.{key}", section.to_lowercase()));
            }
        }
    }

    fn named(&mut self, item: &Node, path: &str, make: impl FnOnce(Word, Fields) -> StatementKind) {
        match said(item, "name") {
            Some(name) => self.push(make(quoted(&name), fields(item, &["name"]))),
            None => self.left_out.push(format!("{path}: an item without a name")),
        }
    }

    fn recipe(&mut self, item: &Node) {
        let Some(name) = said(item, "name") else {
            return self.left_out.push("recipes: one without a name".to_owned());
        };
        let mut inner = Self::default();
        if let Some(routing) = item.entry("routing") {
            inner.routing(&routing.value, &format!("recipes.{name}.routing"));
        }
        self.left_out.append(&mut inner.left_out);
        let attributes = fields(item, &["name", "routing"]).items.into_iter().map(|item| item.it).collect();
        let body = Body { items: inner.statements, tail: Vec::new() };
        self.push(StatementKind::Recipe(Recipe { name: quoted(&name), attributes, body }));
    }
}

/// A decision as a route; a key whose value has a shape of its own becomes a field.
fn route(decision: &Node) -> Option<Route> {
    let name = said(decision, "name")?;
    let (mut attributes, mut clauses) = (Vec::new(), Vec::new());
    for Entry { key, value, .. } in entries(decision) {
        if key == "name" || value.is_null() {
            continue;
        }
        if key == "description" && value.text().is_some() {
            attributes.push(field(key, value));
            continue;
        }
        let kinds = clause_kinds(key, value).unwrap_or_else(|| vec![ClauseKind::Raw(field(key, value))]);
        clauses.extend(kinds.into_iter().map(|kind| (rank(&kind), Clause { place: NOWHERE, kind })));
    }
    clauses.sort_by_key(|(rank, _)| *rank);
    let clauses = Body::of(clauses.into_iter().map(|(_, clause)| clause).collect());
    Some(Route { name: quoted(&name), attributes, clauses })
}

/// Where a clause stands in a route.
fn rank(kind: &ClauseKind) -> usize {
    match kind {
        ClauseKind::Name(_) | ClauseKind::Description(_) => 0,
        ClauseKind::Priority(_) => 1,
        ClauseKind::Tier(_) => 2,
        ClauseKind::When(_) => 3,
        ClauseKind::Models(_) => 4,
        ClauseKind::For(_) => 5,
        ClauseKind::Algorithm { .. } => 6,
        ClauseKind::Raw(_) => 7,
        ClauseKind::Plugin { .. } => 8,
        ClauseKind::Emit { .. } => 9,
    }
}

/// The clauses that say what stands under a key, where there are any.
fn clause_kinds(key: &str, value: &Node) -> Option<Vec<ClauseKind>> {
    match key {
        "priority" => Some(vec![ClauseKind::Priority(scalar(value)?)]),
        "tier" => Some(vec![ClauseKind::Tier(scalar(value)?)]),
        "rules" if is_always(value) => Some(Vec::new()),
        "rules" => Some(vec![ClauseKind::When(expression(value)?)]),
        "modelRefs" => {
            let all: Vec<Candidate> = elements(value).iter().map(candidate).collect::<Option<_>>()?;
            let all: Vec<Item<Candidate>> = all.into_iter().map(Item::bare).collect();
            Some(if all.is_empty() { Vec::new() } else { vec![ClauseKind::Models(all)] })
        }
        "algorithm" => algorithm(value).map(|it| vec![it]),
        "plugins" => elements(value).iter().map(plugin).collect(),
        "emits" => elements(value).iter().map(emit).collect(),
        "candidateIterations" => {
            elements(value).iter().map(|it| iteration(it).map(ClauseKind::For)).collect()
        }
        _ => None,
    }
}

/// Whether a root holds for every request.
fn is_always(root: &Node) -> bool {
    let is_and = said(root, "operator").is_none_or(|word| word.eq_ignore_ascii_case("and"));
    is_and
        && entries(root).iter().all(|it| matches!(it.key.as_str(), "operator" | "conditions"))
        && items(root, "conditions").is_empty()
}

/// A rule, unless some node of it has a shape that the language does not write.
fn expression(node: &Node) -> Option<Expression> {
    let Some(operator) = said(node, "operator") else {
        let options = fields(node, &["type", "name"]);
        let leaf = Leaf {
            family: bare(&said(node, "type").filter(|family| is_name(family))?),
            name: quoted(&said(node, "name")?),
            options: options.items.into_iter().map(|item| item.it).collect(),
        };
        return Some(Expression::Leaf(leaf));
    };
    let is_plain = entries(node).iter().all(|it| matches!(it.key.as_str(), "operator" | "conditions"));
    let mut parts: Vec<Expression> =
        items(node, "conditions").iter().map(expression).collect::<Option<_>>()?;
    match (operator.to_ascii_uppercase().as_str(), parts.len()) {
        _ if !is_plain => None,
        ("AND" | "OR", 1) => parts.pop(),
        ("AND", 2..) => Some(Expression::And(NOWHERE, parts)),
        ("OR", 2..) => Some(Expression::Or(NOWHERE, parts)),
        ("NOT", 1) => parts.pop().map(|inner| Expression::Not(NOWHERE, Box::new(inner))),
        _ => None,
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(super::token::is_word)
}

fn candidate(node: &Node) -> Option<Candidate> {
    let mut options = Vec::new();
    for Entry { key, value, .. } in entries(node).iter().filter(|it| it.key != "model") {
        let (word, _) = MODEL_OPTIONS.into_iter().find(|(_, contract)| contract == key)?;
        options.push(field(word, value));
    }
    Some(Candidate { model: quoted(&said(node, "model")?), options })
}

/// `{type, <type>: {…}}`.
fn algorithm(node: &Node) -> Option<ClauseKind> {
    let kind = said(node, "type").filter(|kind| is_name(kind))?;
    let mut body = None;
    for Entry { key, value, .. } in entries(node).iter().filter(|it| it.key != "type") {
        if *key != kind || !matches!(value.kind, Kind::Map(_)) {
            return None;
        }
        body = Some(fields(value, &[])).filter(|body| !body.is_empty());
    }
    Some(ClauseKind::Algorithm { kind: bare(&kind), fields: body })
}

/// `{type, configuration: {…}}`.
fn plugin(node: &Node) -> Option<ClauseKind> {
    let kind = said(node, "type").filter(|kind| is_name(kind))?;
    let mut body = None;
    for Entry { key, value, .. } in entries(node).iter().filter(|it| it.key != "type") {
        if key != "configuration" || !(matches!(value.kind, Kind::Map(_)) || value.is_null()) {
            return None;
        }
        body = Some(fields(value, &[])).filter(|body| !body.is_empty());
    }
    Some(ClauseKind::Plugin { name: bare(&kind), fields: body })
}

/// `{kind, <kind>: {…}}`.
fn emit(node: &Node) -> Option<ClauseKind> {
    let kind = said(node, "kind").filter(|kind| is_name(kind))?;
    let others: Vec<&Entry> = entries(node).iter().filter(|it| it.key != "kind").collect();
    let fields = match others.as_slice() {
        [] => Body::default(),
        [only] if only.key == kind && matches!(only.value.kind, Kind::Map(_)) => fields(&only.value, &[]),
        _ => return None,
    };
    Some(ClauseKind::Emit { kind: bare(&kind), fields })
}

fn iteration(node: &Node) -> Option<Iteration> {
    let known = ["variable", "source", "models", "outputs"];
    if entries(node).iter().any(|it| !known.contains(&it.key.as_str())) {
        return None;
    }
    let output = |it: &Node| {
        let is_model = said(it, "type").as_deref() == Some("model") && entries(it).len() == 2;
        if is_model { said(it, "value").map(|value| quoted(&value)) } else { None }
    };
    let source = match said(node, "source")?.as_str() {
        "models" => {
            let all: Vec<Candidate> = items(node, "models").iter().map(candidate).collect::<Option<_>>()?;
            IterationSource::Models(some(all)?.into_iter().map(Item::bare).collect())
        }
        named => IterationSource::Named(bare(named)),
    };
    let models = some(items(node, "outputs").iter().map(output).collect::<Option<_>>()?)?;
    Some(Iteration { variable: quoted(&said(node, "variable")?), source, models })
}

/// The list, unless it is empty.
fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

// Values

fn entries(node: &Node) -> &[Entry] {
    match &node.kind {
        Kind::Map(entries) => entries,
        _ => &[],
    }
}

fn elements(node: &Node) -> &[Node] {
    match &node.kind {
        Kind::Seq(items) => items,
        _ => &[],
    }
}

fn items<'n>(node: &'n Node, key: &str) -> &'n [Node] {
    node.entry(key).map(|it| elements(&it.value)).unwrap_or_default()
}

fn said(node: &Node, key: &str) -> Option<String> {
    node.entry(key)?.value.text().map(str::to_owned)
}

fn bare(text: &str) -> Word {
    Word { text: text.to_owned(), place: NOWHERE, quoted: false }
}

fn quoted(text: &str) -> Word {
    Word { text: text.to_owned(), place: NOWHERE, quoted: true }
}

fn scalar(node: &Node) -> Option<Word> {
    match &node.kind {
        Kind::Scalar { text, plain } => {
            let text = if node.is_null() { "null" } else { text };
            Some(if *plain && is_literal(text) { bare(text) } else { quoted(text) })
        }
        _ => None,
    }
}

fn field(key: &str, node: &Node) -> Field {
    Field { key: quoted(key), value: value(node) }
}

/// The fields of a mapping but those.
fn fields(node: &Node, without: &[&str]) -> Fields {
    let kept = entries(node).iter().filter(|it| !without.contains(&it.key.as_str()));
    Body::of(kept.map(|it| field(&it.key, &it.value)).collect())
}

fn value(node: &Node) -> Value {
    match &node.kind {
        Kind::Map(_) => Value::Map(NOWHERE, fields(node, &[])),
        Kind::Seq(items) => Value::List(NOWHERE, Body::of(items.iter().map(value).collect())),
        Kind::Scalar { .. } => Value::One(scalar(node).unwrap_or_else(|| quoted(""))),
    }
}
