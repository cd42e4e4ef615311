//! Routes and decision trees: the clauses of each.
//!
//! It knows the order of words in a clause, not what a clause does. **Invariant:** an unknown clause is told with the
//! nearest known one, and costs itself alone.

use super::ast::*;
use super::code;
use super::cursor::Cursor;
use super::expression::any_of;
use super::field::{attributes, field, fields};
use super::token::Kind;
use super::words::{BRANCH_CLAUSES, ROUTE_CLAUSES};
use crate::read::nearest::suggest;

const BRACES: (char, char) = ('{', '}');

/// `name (options) { clauses }`.
pub(super) fn route(cursor: &mut Cursor<'_>) -> Option<Route> {
    let name = cursor.name("the route's name")?;
    let attributes = attributes(cursor)?;
    let clauses = cursor.body(BRACES, true, |cursor| clause(cursor, &ROUTE_CLAUSES))?;
    Some(Route { name, attributes, clauses })
}

/// `name { IF … ELSE IF … ELSE … }`.
pub(super) fn tree(cursor: &mut Cursor<'_>) -> Option<Tree> {
    let name = cursor.name("the tree's name")?;
    let attributes = attributes(cursor)?;
    let Body { items, tail } = cursor.body(BRACES, true, branch)?;
    Some(Tree { name, attributes, branches: items, tail })
}

fn branch(cursor: &mut Cursor<'_>) -> Option<Branch> {
    let place = cursor.place();
    let is_else = cursor.take_word("ELSE");
    let condition = if cursor.take_word("IF") {
        Some(any_of(cursor)?)
    } else if is_else {
        None
    } else {
        return cursor.unexpected("`IF` or `ELSE`", None);
    };
    let clauses = cursor.body(BRACES, true, |cursor| clause(cursor, &BRANCH_CLAUSES))?;
    Some(Branch { place, is_else, condition, clauses })
}

fn clause(cursor: &mut Cursor<'_>, known: &[&str]) -> Option<Clause> {
    let place = cursor.place();
    if !cursor.is(Kind::Word) {
        return cursor.unexpected("a clause", suggest("", known, ""));
    }
    if cursor.next_is(Kind::Mark(':')) {
        return Some(Clause { place, kind: ClauseKind::Raw(field(cursor)?) });
    }
    let word = cursor.peek().text.clone();
    if !known.contains(&word.as_str()) {
        let message = format!("there is no clause `{word}` here");
        cursor.error(code::UNKNOWN_WORD, place, message, suggest(&word, known, ""));
        return None;
    }
    cursor.take();
    let kind = match word.as_str() {
        "NAME" => ClauseKind::Name(cursor.name("a name")?),
        "DESCRIPTION" => ClauseKind::Description(cursor.name("a text")?),
        "PRIORITY" => ClauseKind::Priority(cursor.name("a whole number")?),
        "TIER" => ClauseKind::Tier(cursor.name("a whole number")?),
        "WHEN" => ClauseKind::When(any_of(cursor)?),
        "MODEL" => ClauseKind::Models(candidates(cursor)?),
        "ALGORITHM" => {
            ClauseKind::Algorithm { kind: cursor.name("the algorithm's type")?, fields: braced(cursor)? }
        }
        "PLUGIN" => ClauseKind::Plugin { name: cursor.name("the plugin's name")?, fields: braced(cursor)? },
        "FOR" => ClauseKind::For(iteration(cursor)?),
        _ => ClauseKind::Emit { kind: cursor.name("what is emitted")?, fields: fields(cursor)? },
    };
    Some(Clause { place, kind })
}

/// Fields, if a brace opens here.
fn braced(cursor: &mut Cursor<'_>) -> Option<Option<Fields>> {
    if cursor.is(Kind::Mark('{')) { fields(cursor).map(Some) } else { Some(None) }
}

/// `model (options), model (options), …`; a comma at the end is forgiven.
fn candidates(cursor: &mut Cursor<'_>) -> Option<Vec<Item<Candidate>>> {
    let mut all = Vec::new();
    loop {
        let mut has_more = false;
        let item = cursor.item(|cursor| {
            let model = cursor.name("the model's name")?;
            let candidate = Candidate { model, options: attributes(cursor)? };
            has_more = cursor.is(Kind::Mark(','));
            Some(candidate)
        })?;
        all.push(item);
        if !has_more || !begins_candidate(cursor) {
            return Some(all);
        }
    }
}

/// Whether the word is a model's name and not the next clause or the end of the list.
fn begins_candidate(cursor: &Cursor<'_>) -> bool {
    let token = cursor.peek();
    let is_clause = ROUTE_CLAUSES.contains(&token.text.as_str()) || cursor.next_is(Kind::Mark(':'));
    token.kind == Kind::Text || (token.kind == Kind::Word && !is_clause)
}

fn iteration(cursor: &mut Cursor<'_>) -> Option<Iteration> {
    let variable = cursor.name("a variable")?;
    if !cursor.take_word("IN") {
        return cursor.unexpected("`IN`", None);
    }
    let source = if cursor.take_if(Kind::Mark('[')) {
        let mut models = candidates(cursor)?;
        cursor.expect(']')?;
        cursor.hoist(&mut models);
        IterationSource::Models(models)
    } else {
        IterationSource::Named(cursor.name("`decision.candidates`, or models in brackets")?)
    };
    let mut rounds = cursor.body(BRACES, true, |cursor| {
        if !cursor.take_word("MODEL") {
            return cursor.unexpected("`MODEL`", None);
        }
        cursor.name("the variable")
    })?;
    cursor.hoist(&mut rounds.items);
    cursor.pass(rounds.tail);
    Some(Iteration { variable, source, models: rounds.items.into_iter().map(|item| item.it).collect() })
}
