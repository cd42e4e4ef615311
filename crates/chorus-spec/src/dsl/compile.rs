//! A parsed policy becomes the routing part of a v0.3 document.
//!
//! It knows which list of the contract each block belongs to, and no field of any block: the reader checks those, at
//! the places of the policy. **Invariant:** every node of the document stands at the words that it was made from.

use super::ast::{Case, Fields, File, Recipe, Statement, StatementKind, Word};
use super::case::TestCase;
use super::code;
use super::decision::{self, Templates};
use super::node::{add, entry, field, fields, listed, map, name, text};
use super::words::{PROJECTIONS, families};
use crate::Place;
use crate::code::UNKNOWN_REFERENCE;
use crate::read::nearest::suggest;
use crate::read::report::Report;
use crate::read::yaml::{Entry, Kind, Node};
use std::collections::BTreeMap;

/// The version of documents that are written.
const VERSION: &str = "v0.3";

/// What compiling gave.
pub(super) struct Lowered {
    pub(super) root: Node,
    pub(super) tests: Vec<TestCase>,
}

/// Compiles a file.
pub(super) fn compile(file: &File, report: &Report) -> Lowered {
    let start = Place { line: 1, column: 1 };
    let all: Vec<&Statement> = file.statements.iter().map(|item| &item.it).collect();
    let mut entries = vec![entry("version", text(VERSION, start))];
    let mut scope = Scope { statements: &all, templates: Templates::default(), report };
    scope.templates = scope.with_templates(&Templates::default());
    let routing = scope.routing();
    entries.extend(routing.map(|routing| entry("routing", routing)));
    let mut tests = scope.tests(None);
    let entrypoints = all.iter().filter_map(|it| match &it.kind {
        StatementKind::Entrypoint(body) => Some(map(it.place, fields(body, report))),
        _ => None,
    });
    entries.extend(listed("entrypoints", entrypoints.collect()));
    let mut recipes = Vec::new();
    for statement in &all {
        if let StatementKind::Recipe(recipe) = &statement.kind {
            recipes.push(compile_recipe(recipe, &scope, &mut tests));
        }
    }
    entries.extend(listed("recipes", recipes));
    Lowered { root: map(start, entries), tests }
}

fn compile_recipe(recipe: &Recipe, outer: &Scope<'_, '_>, tests: &mut Vec<TestCase>) -> Node {
    let report = outer.report;
    let all: Vec<&Statement> = recipe.body.iter().collect();
    let mut scope = Scope { statements: &all, templates: Templates::default(), report };
    scope.templates = scope.with_templates(&outer.templates);
    let mut strategy = None;
    let mut entries = vec![entry("name", name(&recipe.name))];
    for it in &recipe.attributes {
        let made = field(it, report);
        if made.key == "strategy" { strategy = Some(made) } else { add(&mut entries, made, report) }
    }
    for statement in &all {
        if matches!(
            statement.kind,
            StatementKind::Model { .. } | StatementKind::Entrypoint(_) | StatementKind::Recipe(_)
        ) {
            let message = "models, entrypoints and recipes are the file's, not a recipe's".to_owned();
            let help = Some("move the block out of the recipe".to_owned());
            report.error(code::UNKNOWN_WORD, statement.place, "", message, help);
        }
    }
    let routing = scope.routing().unwrap_or_else(|| map(recipe.name.place, Vec::new()));
    entries.push(entry("routing", with_strategy(routing, strategy, report)));
    tests.extend(scope.tests(Some(&recipe.name.text)));
    map(recipe.name.place, entries)
}

/// The routing with a strategy that was written as the recipe's option.
fn with_strategy(mut routing: Node, strategy: Option<Entry>, report: &Report) -> Node {
    if let (Kind::Map(entries), Some(strategy)) = (&mut routing.kind, strategy) {
        add(entries, strategy, report);
        entries.sort_by_key(|it| it.key != "strategy");
    }
    routing
}

/// The blocks of the file, or of one recipe.
struct Scope<'f, 'r> {
    statements: &'r [&'f Statement],
    templates: Templates<'f>,
    report: &'r Report,
}

impl<'f> Scope<'f, '_> {
    /// The plugin templates that routes here can name: the scope's own before the file's.
    fn with_templates(&self, outer: &Templates<'f>) -> Templates<'f> {
        let mut own = Templates::default();
        for statement in self.statements {
            let StatementKind::Plugin { name, kind, fields } = &statement.kind else { continue };
            if own.insert(name.text.as_str(), (kind, fields)).is_some() {
                self.twice("plugin", name);
            }
        }
        for (name, template) in outer {
            own.entry(*name).or_insert(*template);
        }
        own
    }

    fn twice(&self, what: &str, name: &Word) {
        let message = format!("two {what} blocks are named `{}`", name.text);
        self.report.error(crate::code::DUPLICATE_NAME, name.place, "", message, None);
    }

    fn routing(&self) -> Option<Node> {
        let mut entries = Vec::new();
        for statement in self.statements {
            if let StatementKind::Routing(body) = &statement.kind {
                fields(body, self.report).into_iter().for_each(|it| add(&mut entries, it, self.report));
            }
        }
        entries.extend(listed("modelCards", self.models()));
        let signals = self.signals();
        let projections = self.projections();
        for (key, lists) in [("signals", signals), ("projections", projections)] {
            if let Some(place) = lists.first().map(|first| first.place) {
                entries.push(entry(key, map(place, lists)));
            }
        }
        entries.extend(listed("decisions", self.decisions()));
        let place = entries.first().map(|first| first.place)?;
        Some(map(place, entries))
    }

    fn models(&self) -> Vec<Node> {
        let models = self.statements.iter().filter_map(|it| match &it.kind {
            StatementKind::Model { name, fields } => Some(self.named(name, fields)),
            _ => None,
        });
        models.collect()
    }

    /// `{ name: …, fields … }`.
    fn named(&self, word: &Word, body: &Fields) -> Node {
        let mut entries = vec![entry("name", name(word))];
        fields(body, self.report).into_iter().for_each(|it| add(&mut entries, it, self.report));
        map(word.place, entries)
    }

    fn signals(&self) -> Vec<Entry> {
        let mut lists = BTreeMap::new();
        for statement in self.statements {
            if let StatementKind::Signal { family, name, fields } = &statement.kind {
                self.file_under(&mut lists, "signal family", families(), (family, self.named(name, fields)));
            }
        }
        in_order(lists, families())
    }

    fn projections(&self) -> Vec<Entry> {
        let mut lists = BTreeMap::new();
        for statement in self.statements {
            if let StatementKind::Projection { kind, name, fields } = &statement.kind {
                let it = (kind, self.named(name, fields));
                self.file_under(&mut lists, "projection", PROJECTIONS.into_iter(), it);
            }
        }
        in_order(lists, PROJECTIONS.into_iter())
    }

    /// Puts what a block declares into its list; a kind that does not exist is told.
    fn file_under(
        &self,
        lists: &mut BTreeMap<&'static str, Vec<Node>>,
        what: &str,
        known: impl Iterator<Item = (&'static str, &'static str)>,
        (kind, node): (&Word, Node),
    ) {
        let known: Vec<_> = known.collect();
        match known.iter().find(|(word, _)| *word == kind.text) {
            Some((_, list)) => lists.entry(list).or_default().push(node),
            None => {
                let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
                let message = format!("there is no {what} `{}`", kind.text);
                let help = suggest(&kind.text, &words, "");
                self.report.error(code::UNKNOWN_WORD, kind.place, "", message, help);
            }
        }
    }

    fn decisions(&self) -> Vec<Node> {
        let mut all = Vec::new();
        let (mut routes, mut trees) = (0, 0);
        for statement in self.statements {
            match &statement.kind {
                StatementKind::Route(route) => {
                    routes += 1;
                    all.push(decision::route(route, &self.templates, self.report));
                }
                StatementKind::Tree(tree) => {
                    all.extend(decision::tree(tree, trees, &self.templates, self.report));
                    trees += 1;
                }
                _ => {}
            }
        }
        if routes > 0 && trees > 0 {
            self.refuse_mixture();
        }
        all
    }

    fn refuse_mixture(&self) {
        for statement in self.statements {
            if let StatementKind::Tree(tree) = &statement.kind {
                let message = "a decision tree and routes stand side by side".to_owned();
                let help = "write all of them as branches, or all as routes with priorities: the tree's would win over \
                            every route";
                self.report.error(code::DECISION_TREE, tree.name.place, "", message, Some(help.to_owned()));
            }
        }
    }

    /// The names of decisions, as tests may expect them.
    fn decision_names(&self) -> Vec<String> {
        let names = self.statements.iter().flat_map(|it| match &it.kind {
            StatementKind::Route(route) => vec![route.name.text.clone()],
            StatementKind::Tree(tree) => decision::branch_names(tree),
            _ => Vec::new(),
        });
        names.collect()
    }

    fn tests(&self, recipe: Option<&str>) -> Vec<TestCase> {
        let known = self.decision_names();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let mut all = Vec::new();
        for statement in self.statements {
            let StatementKind::Test { name, cases } = &statement.kind else { continue };
            for Case { query, route } in cases.iter() {
                if !known.contains(&route.text.as_str()) {
                    let message = format!("there is no route `{}`", route.text);
                    let help = suggest(&route.text, &known, "the file has no routes");
                    self.report.error(UNKNOWN_REFERENCE, route.place, "", message, help);
                }
                all.push(TestCase {
                    test: name.text.clone(),
                    recipe: recipe.map(str::to_owned),
                    query: query.text.clone(),
                    route: route.text.clone(),
                    place: query.place,
                });
            }
        }
        all
    }
}

/// The lists in the contract's order.
fn in_order(
    mut lists: BTreeMap<&'static str, Vec<Node>>,
    order: impl Iterator<Item = (&'static str, &'static str)>,
) -> Vec<Entry> {
    order.filter_map(|(_, key)| listed(key, lists.remove(key)?)).collect()
}
