//! A tree as policy text: one way to write everything, with every comment where its author put it.
//!
//! It knows the layout and no meaning. **Invariant:** printing is idempotent, and the print parses to the same tree.

use super::ast::*;
use super::inline::{candidate, name, options, quote, scalar};
use super::layout::{WIDTH, block, braced, expression, field, indented, item_lines};
use super::token::Comment;

/// The whole file.
pub(super) fn print(file: &File) -> String {
    let mut lines = statements(&file.statements);
    lines.extend(block_tail(&file.tail, lines.is_empty()));
    let mut text = lines.join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Comments at the end of a body.
fn block_tail(tail: &[Comment], is_first: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, comment) in tail.iter().enumerate() {
        if comment.gap && !(is_first && at == 0) {
            lines.push(String::new());
        }
        lines.push(comment.text.clone());
    }
    lines
}

/// Blocks, a blank line between them.
fn statements(all: &[Item<Statement>]) -> Vec<String> {
    let mut lines = Vec::new();
    for item in all {
        let below = item_lines(&item.around, statement(&item.it), true);
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(below);
    }
    lines
}

fn statement(it: &Statement) -> Vec<String> {
    match &it.kind {
        StatementKind::Routing(body) => braced("ROUTING", body),
        StatementKind::Entrypoint(body) => braced("ENTRYPOINT", body),
        StatementKind::Model { name: it, fields } => braced(&format!("MODEL {}", name(it)), fields),
        StatementKind::Signal { family, name: it, fields } => {
            braced(&format!("SIGNAL {} {}", name(family), name(it)), fields)
        }
        StatementKind::Projection { kind, name: it, fields } => {
            braced(&format!("PROJECTION {} {}", name(kind), name(it)), fields)
        }
        StatementKind::Plugin { name: it, kind, fields } => {
            braced(&format!("PLUGIN {} {}", name(it), name(kind)), fields)
        }
        StatementKind::Route(route) => {
            let head = format!("ROUTE {}{}", name(&route.name), options(&route.attributes));
            block(&head, &route.clauses, clause)
        }
        StatementKind::Tree(it) => tree(it),
        StatementKind::Recipe(it) => {
            let head = format!("RECIPE {}{} {{", name(&it.name), options(&it.attributes));
            let mut inner = statements(&it.body.items);
            inner.extend(block_tail(&it.body.tail, inner.is_empty()));
            enclose(head, inner)
        }
        StatementKind::Test { name: it, cases } => block(&format!("TEST {}", name(it)), cases, |it| {
            vec![format!("{} -> {}", quote(&it.query.text), name(&it.route))]
        }),
    }
}

fn tree(it: &Tree) -> Vec<String> {
    let head = format!("DECISION_TREE {}{} {{", name(&it.name), options(&it.attributes));
    let mut inner = Vec::new();
    for item in &it.branches {
        let is_first = inner.is_empty();
        inner.extend(item_lines(&item.around, branch(&item.it), is_first));
    }
    inner.extend(block_tail(&it.tail, inner.is_empty()));
    enclose(head, inner)
}

/// A head that opens a brace, lines one level in, and the closing brace.
fn enclose(head: String, inner: Vec<String>) -> Vec<String> {
    let mut lines = vec![head];
    lines.extend(inner.into_iter().map(|line| indented(&line)));
    lines.push("}".to_owned());
    lines
}

fn branch(it: &Branch) -> Vec<String> {
    let word = match (it.is_else, it.condition.is_some()) {
        (true, true) => "ELSE IF ",
        (true, false) => "ELSE",
        _ => "IF ",
    };
    let mut head = match &it.condition {
        Some(condition) => expression(condition, word, WIDTH.saturating_sub(4)),
        None => vec![word.to_owned()],
    };
    let Some(last) = head.pop() else { return head };
    head.extend(block(&last, &it.clauses, clause));
    head
}

fn clause(it: &Clause) -> Vec<String> {
    match &it.kind {
        ClauseKind::Name(it) => vec![format!("NAME {}", name(it))],
        ClauseKind::Description(it) => vec![format!("DESCRIPTION {}", quote(&it.text))],
        ClauseKind::Priority(it) => vec![format!("PRIORITY {}", scalar(it))],
        ClauseKind::Tier(it) => vec![format!("TIER {}", scalar(it))],
        ClauseKind::When(it) => expression(it, "WHEN ", WIDTH.saturating_sub(2)),
        ClauseKind::Models(all) => candidates(all),
        ClauseKind::Algorithm { kind, fields } => {
            optional(&format!("ALGORITHM {}", name(kind)), fields.as_ref())
        }
        ClauseKind::Plugin { name: it, fields } => optional(&format!("PLUGIN {}", name(it)), fields.as_ref()),
        ClauseKind::For(it) => vec![iteration(it)],
        ClauseKind::Emit { kind, fields } => braced(&format!("EMIT {}", name(kind)), fields),
        ClauseKind::Raw(it) => field(it, WIDTH.saturating_sub(2)),
    }
}

fn optional(head: &str, fields: Option<&Fields>) -> Vec<String> {
    fields.map_or_else(|| vec![head.to_owned()], |fields| braced(head, fields))
}

/// One model a line, the first behind the keyword.
fn candidates(all: &[Item<Candidate>]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let last = all.len().saturating_sub(1);
    let above = all.iter().take(1).flat_map(|item| &item.around.above);
    lines.extend(above.map(|comment| comment.text.clone()));
    for (at, item) in all.iter().enumerate() {
        let lead = if at == 0 { "MODEL " } else { "      " };
        if at > 0 {
            lines.extend(item.around.above.iter().map(|comment| format!("{lead}{}", comment.text)));
        }
        let comma = if at < last { "," } else { "" };
        let behind = item.around.behind.as_ref().map(|it| format!(" {}", it.text)).unwrap_or_default();
        lines.push(format!("{lead}{}{comma}{behind}", candidate(&item.it)));
    }
    lines
}

fn iteration(it: &Iteration) -> String {
    let source = match &it.source {
        IterationSource::Named(word) => name(word),
        IterationSource::Models(all) => {
            let models: Vec<String> = all.iter().map(|item| candidate(&item.it)).collect();
            format!("[{}]", models.join(", "))
        }
    };
    let models: Vec<String> = it.models.iter().map(|word| format!("MODEL {}", name(word))).collect();
    format!("FOR {} IN {source} {{ {} }}", name(&it.variable), models.join(" "))
}
