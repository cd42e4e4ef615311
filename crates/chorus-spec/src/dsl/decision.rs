//! Routes and branches of trees as the contract's decisions.
//!
//! It knows the contract's keys of a decision, not their values. **Invariant:** at most one branch of a tree can match a
//! request, and one always does: branch *i* carries the negation of every branch before it.

use super::ast::*;
use super::code;
use super::node::{add, entry, field, fields, list, listed, literal, map, name, text, word};
use super::words::MODEL_OPTIONS;
use crate::Place;
use crate::code::UNKNOWN_KEY;
use crate::read::nearest::suggest;
use crate::read::report::Report;
use crate::read::yaml::{Entry, Node};
use std::collections::BTreeMap;

/// The priority of a file's first branch. Source: contract §5; so do the two steps.
const TREE_PRIORITY: usize = 1_000_000;
/// How far the next tree of the file begins below.
const TREE_STEP: usize = 1_000;

/// The order of a decision's keys in a written document; others follow.
const ORDER: [&str; 10] = [
    "name",
    "description",
    "priority",
    "tier",
    "rules",
    "modelRefs",
    "candidateIterations",
    "algorithm",
    "plugins",
    "emits",
];

/// Plugin templates by name: their type and their fields.
pub(super) type Templates<'f> = BTreeMap<&'f str, (&'f Word, &'f Fields)>;

/// One route.
pub(super) fn route(route: &Route, templates: &Templates<'_>, report: &Report) -> Node {
    let mut decision = Draft::new(name(&route.name), templates, report);
    route.attributes.iter().for_each(|it| decision.set(field(it, report)));
    route.clauses.iter().for_each(|clause| decision.clause(clause));
    decision.finish(route.name.place)
}

/// The branches of a tree; `number` counts the trees before it in its scope.
pub(super) fn tree(tree: &Tree, number: usize, templates: &Templates<'_>, report: &Report) -> Vec<Node> {
    check_branches(tree, report);
    let mut before: Vec<Node> = Vec::new();
    let mut all = Vec::new();
    for (at, Item { it: branch, .. }) in tree.branches.iter().enumerate() {
        let name = text(branch_name(tree, at, branch), branch.place);
        let mut decision = Draft::new(name, templates, report);
        let priority = TREE_PRIORITY.saturating_sub(number * TREE_STEP + at);
        decision.set(entry("priority", literal(priority.to_string(), branch.place)));
        let own = branch.condition.as_ref().map(|it| node(it, report));
        if let Some(rules) = all_of(own_parts(branch.condition.as_ref(), report), &before, branch.place) {
            decision.set(entry("rules", rules));
        }
        before.extend(own);
        branch.clauses.iter().for_each(|clause| decision.clause(clause));
        all.push(decision.finish(branch.place));
    }
    all
}

/// The names of a tree's branches.
pub(super) fn branch_names(tree: &Tree) -> Vec<String> {
    tree.branches.iter().enumerate().map(|(at, item)| branch_name(tree, at, &item.it)).collect()
}

/// What `NAME` says, else the tree's name and the branch's number. Source: the form of names in contract §5.
fn branch_name(tree: &Tree, at: usize, branch: &Branch) -> String {
    let named = branch.clauses.iter().find_map(|clause| match &clause.kind {
        ClauseKind::Name(word) => Some(word.text.clone()),
        _ => None,
    });
    named.unwrap_or_else(|| format!("{}__branch_{:02}", tree.name.text, at + 1))
}

fn check_branches(tree: &Tree, report: &Report) {
    let say = |place: Place, message: &str, help: &str| {
        report.error(code::DECISION_TREE, place, "", message.to_owned(), Some(help.to_owned()));
    };
    let last = tree.branches.len().saturating_sub(1);
    for (at, Item { it: branch, .. }) in tree.branches.iter().enumerate() {
        match (at, branch.is_else, branch.condition.is_some()) {
            (0, true, _) => say(branch.place, "a decision tree begins with `IF`", "take `ELSE` away"),
            (1.., false, _) => say(branch.place, "this `IF` follows another branch", "write `ELSE IF`"),
            (_, _, false) if at < last => {
                say(branch.place, "no branch after this `ELSE` is ever reached", "make it the last one");
            }
            _ => {}
        }
    }
    if tree.branches.last().is_none_or(|item| item.it.condition.is_some()) {
        let help = "end it with `ELSE { … }`: what happens to a request that no branch takes";
        say(tree.name.place, "this decision tree has no `ELSE`", help);
    }
}

/// The parts of a branch's own condition that stand beside the negated ones.
fn own_parts(condition: Option<&Expression>, report: &Report) -> Vec<Node> {
    match condition {
        None => Vec::new(),
        Some(Expression::And(_, parts)) => parts.iter().map(|it| node(it, report)).collect(),
        Some(other) => vec![node(other, report)],
    }
}

/// All of `own`, and none of `before`.
fn all_of(own: Vec<Node>, before: &[Node], place: Place) -> Option<Node> {
    let negated = before.iter().map(|it| operator("NOT", it.place, vec![it.clone()]));
    let mut parts: Vec<Node> = own.into_iter().chain(negated).collect();
    match parts.len() {
        0 => None,
        1 => parts.pop().map(rooted),
        _ => Some(operator("AND", place, parts)),
    }
}

/// A rule as the root of a decision.
fn rule(expression: &Expression, report: &Report) -> Node {
    rooted(node(expression, report))
}

/// The contract's root is an operator; a lone leaf stands under an `AND`.
fn rooted(node: Node) -> Node {
    if node.entry("operator").is_some() { node } else { operator("AND", node.place, vec![node]) }
}

fn operator(word: &str, place: Place, conditions: Vec<Node>) -> Node {
    map(place, vec![entry("operator", text(word, place)), entry("conditions", list(place, conditions))])
}

fn node(expression: &Expression, report: &Report) -> Node {
    let all = |parts: &[Expression]| parts.iter().map(|it| node(it, report)).collect();
    match expression {
        Expression::And(place, parts) => operator("AND", *place, all(parts)),
        Expression::Or(place, parts) => operator("OR", *place, all(parts)),
        Expression::Not(place, inner) => operator("NOT", *place, vec![node(inner, report)]),
        Expression::Leaf(leaf) => {
            let mut entries = vec![entry("type", name(&leaf.family)), entry("name", name(&leaf.name))];
            leaf.options.iter().for_each(|it| add(&mut entries, field(it, report), report));
            map(leaf.family.place, entries)
        }
    }
}

/// A decision in the making.
struct Draft<'d> {
    entries: Vec<Entry>,
    models: Vec<Node>,
    iterations: Vec<Node>,
    plugins: Vec<Node>,
    emits: Vec<Node>,
    templates: &'d Templates<'d>,
    report: &'d Report,
}

impl<'d> Draft<'d> {
    fn new(name: Node, templates: &'d Templates<'d>, report: &'d Report) -> Self {
        Self {
            entries: vec![entry("name", name)],
            models: Vec::new(),
            iterations: Vec::new(),
            plugins: Vec::new(),
            emits: Vec::new(),
            templates,
            report,
        }
    }

    fn set(&mut self, it: Entry) {
        add(&mut self.entries, it, self.report);
    }

    fn clause(&mut self, Clause { place, kind }: &Clause) {
        let own = |key: &str, value: Node| Entry { key: key.to_owned(), place: *place, value };
        match kind {
            ClauseKind::Name(_) => {}
            ClauseKind::Description(it) => self.set(own("description", name(it))),
            ClauseKind::Priority(it) => self.set(own("priority", word(it))),
            ClauseKind::Tier(it) => self.set(own("tier", word(it))),
            ClauseKind::When(it) => {
                let rules = rule(it, self.report);
                self.set(own("rules", rules));
            }
            ClauseKind::Models(all) => {
                let refs: Vec<Node> = all.iter().map(|item| candidate(&item.it, self.report)).collect();
                self.models.extend(refs);
            }
            ClauseKind::Algorithm { kind, fields } => {
                let value = self.algorithm(kind, fields.as_ref());
                self.set(own("algorithm", value));
            }
            ClauseKind::Plugin { name, fields } => {
                let plugin = self.plugin(name, fields.as_ref());
                self.plugins.push(plugin);
            }
            ClauseKind::For(it) => self.iteration(*place, it),
            ClauseKind::Emit { kind, fields: body } => {
                let directive = map(kind.place, fields(body, self.report));
                let entries = vec![entry("kind", name(kind)), entry(&kind.text, directive)];
                self.emits.push(map(*place, entries));
            }
            ClauseKind::Raw(it) => self.set(field(it, self.report)),
        }
    }

    fn algorithm(&self, kind: &Word, body: Option<&Fields>) -> Node {
        let mut entries = vec![entry("type", name(kind))];
        let options = body.map(|body| fields(body, self.report)).unwrap_or_default();
        if !options.is_empty() {
            entries.push(entry(&kind.text, map(kind.place, options)));
        }
        map(kind.place, entries)
    }

    /// A template with what the route changes of it, or a plugin's own type.
    fn plugin(&self, word: &Word, body: Option<&Fields>) -> Node {
        let mut options = body.map(|body| fields(body, self.report)).unwrap_or_default();
        let kind = match self.templates.get(word.text.as_str()) {
            Some((kind, template)) => {
                let shared = fields(template, &Report::default());
                let missing: Vec<Entry> =
                    shared.into_iter().filter(|it| options.iter().all(|own| own.key != it.key)).collect();
                options = missing.into_iter().chain(options).collect();
                plugin_type(kind)
            }
            None => plugin_type(word),
        };
        let mut entries = vec![entry("type", kind)];
        if !options.is_empty() {
            entries.push(entry("configuration", map(word.place, options)));
        }
        map(word.place, entries)
    }

    fn iteration(&mut self, place: Place, it: &Iteration) {
        let mut entries = vec![entry("variable", name(&it.variable))];
        match &it.source {
            IterationSource::Named(word) => entries.push(entry("source", name(word))),
            IterationSource::Models(all) => {
                let models: Vec<Node> = all.iter().map(|item| candidate(&item.it, self.report)).collect();
                entries.push(entry("source", text("models", place)));
                if it.models.iter().any(|given| given.text == it.variable.text) {
                    let fresh: Vec<Node> = models.iter().filter(|it| !self.has_model(it)).cloned().collect();
                    self.models.extend(fresh);
                }
                entries.push(entry("models", list(place, models)));
            }
        }
        let outputs = it.models.iter().map(|given| {
            map(given.place, vec![entry("type", text("model", given.place)), entry("value", name(given))])
        });
        entries.push(entry("outputs", list(place, outputs.collect())));
        self.iterations.push(map(place, entries));
    }

    /// Whether a model stands among the candidates with that adapter.
    fn has_model(&self, it: &Node) -> bool {
        let said = |node: &Node, key: &str| node.entry(key).and_then(|e| e.value.text().map(str::to_owned));
        self.models.iter().any(|known| {
            said(known, "model") == said(it, "model") && said(known, "lora_name") == said(it, "lora_name")
        })
    }

    fn finish(mut self, place: Place) -> Node {
        let lists = [
            ("modelRefs", std::mem::take(&mut self.models)),
            ("candidateIterations", std::mem::take(&mut self.iterations)),
            ("plugins", std::mem::take(&mut self.plugins)),
            ("emits", std::mem::take(&mut self.emits)),
        ];
        for (key, items) in lists {
            if let Some(entry) = listed(key, items) {
                self.set(entry);
            }
        }
        if self.entries.iter().all(|it| it.key != "rules") {
            self.set(entry("rules", operator("AND", place, Vec::new())));
        }
        self.entries.sort_by_key(|it| ORDER.iter().position(|key| *key == it.key).unwrap_or(ORDER.len()));
        map(place, self.entries)
    }
}

/// The type of a plugin; the language also takes it with hyphens.
fn plugin_type(word: &Word) -> Node {
    text(word.text.replace('-', "_"), word.place)
}

/// One model of a route, as the contract's reference.
fn candidate(it: &Candidate, report: &Report) -> Node {
    let mut entries = vec![entry("model", name(&it.model))];
    for option in &it.options {
        let mut made = field(option, report);
        match MODEL_OPTIONS.into_iter().find(|(word, _)| *word == made.key) {
            Some((_, key)) => {
                made.key = key.to_owned();
                add(&mut entries, made, report);
            }
            None => {
                let words: Vec<&str> = MODEL_OPTIONS.iter().map(|(word, _)| *word).collect();
                let message = format!("a route's model has no option `{}`", made.key);
                report.error(UNKNOWN_KEY, made.place, "", message, suggest(&made.key, &words, ""));
            }
        }
    }
    map(it.model.place, entries)
}
