//! The parser: policy text becomes a tree, block by block.
//!
//! Written by hand, as recursive descent: the language has ten blocks and a dozen clauses, every function is one line
//! of the grammar in `docs/dsl.md`, and an error must cost one field, not the file. It knows words and brackets, not
//! what a field means. **Invariant:** parsing any text ends, and whatever was not understood has been reported.

use super::ast::*;
use super::code;
use super::cursor::Cursor;
use super::field::{attributes, fields};
use super::route;
use super::token::{Kind, tokens};
use super::words::{PROJECTIONS, STATEMENTS};
use crate::Place;
use crate::read::nearest::{nearest, suggest};
use crate::read::report::Report;

const BRACES: (char, char) = ('{', '}');

/// Largest policy, in bytes. Source: the contract's bound of a packaged `recipe.dsl` (contract §3.2).
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// What parsing gave.
pub(super) struct Parsed {
    pub(super) file: File,
    /// Whether a whole block was lost, so that names may seem undeclared that are not.
    pub(super) lost_blocks: bool,
}

/// Parses a text.
pub(super) fn parse(text: &str, report: &Report) -> Parsed {
    let mut file = File::default();
    let mut lost_blocks = false;
    if text.len() > MAX_BYTES {
        let message = format!("the policy has {} bytes; {MAX_BYTES} are the most", text.len());
        report.error(code::SYNTAX, Place { line: 1, column: 1 }, "", message, None);
        return Parsed { file, lost_blocks };
    }
    let mut cursor = Cursor::new(tokens(text, report), report);
    while !cursor.is(Kind::End) {
        match cursor.item(statement) {
            Some(item) => file.statements.push(item),
            None => {
                lost_blocks = true;
                cursor.skip_block();
            }
        }
    }
    file.tail = cursor.comments();
    Parsed { file, lost_blocks }
}

fn statement(cursor: &mut Cursor<'_>) -> Option<Statement> {
    let place = cursor.place();
    if !cursor.is(Kind::Word) {
        return cursor.unexpected("a block", suggest("", &STATEMENTS, ""));
    }
    let word = keyword(cursor)?;
    cursor.take();
    let kind = match word {
        "ROUTING" => StatementKind::Routing(fields(cursor)?),
        "ENTRYPOINT" => StatementKind::Entrypoint(fields(cursor)?),
        "MODEL" => StatementKind::Model { name: cursor.name("the model's name")?, fields: fields(cursor)? },
        "SIGNAL" => signal(cursor)?,
        "PROJECTION" => projection(cursor)?,
        "PLUGIN" => {
            let name = cursor.name("the plugin's name")?;
            StatementKind::Plugin { name, kind: cursor.name("the plugin's type")?, fields: fields(cursor)? }
        }
        "ROUTE" => StatementKind::Route(route::route(cursor)?),
        "DECISION_TREE" => StatementKind::Tree(route::tree(cursor)?),
        "RECIPE" => StatementKind::Recipe(recipe(cursor)?),
        _ => StatementKind::Test {
            name: cursor.name("the test's name")?,
            cases: cursor.body(BRACES, true, case)?,
        },
    };
    Some(Statement { place, kind })
}

/// The block that the word opens; a misspelt one is told and then read as what it was meant to be.
fn keyword(cursor: &Cursor<'_>) -> Option<&'static str> {
    let written = cursor.peek().text.as_str();
    if let Some(word) = STATEMENTS.into_iter().find(|word| *word == written) {
        return Some(word);
    }
    let message = format!("there is no block `{written}`");
    cursor.error(code::UNKNOWN_WORD, cursor.place(), message, suggest(written, &STATEMENTS, ""));
    nearest(written, STATEMENTS)
}

fn signal(cursor: &mut Cursor<'_>) -> Option<StatementKind> {
    let family = cursor.name("the signal's family")?;
    let name = cursor.name("the signal's name")?;
    Some(StatementKind::Signal { family, name, fields: fields(cursor)? })
}

fn projection(cursor: &mut Cursor<'_>) -> Option<StatementKind> {
    let kinds = PROJECTIONS.map(|(kind, _)| kind);
    let kind = cursor.name(&format!("one of {}", kinds.join(", ")))?;
    let name = cursor.name("the projection's name")?;
    Some(StatementKind::Projection { kind, name, fields: fields(cursor)? })
}

fn recipe(cursor: &mut Cursor<'_>) -> Option<Recipe> {
    let name = cursor.name("the recipe's name")?;
    let attributes = attributes(cursor)?;
    let body = cursor.deeper(|cursor| cursor.body(BRACES, false, statement))?;
    Some(Recipe { name, attributes, body })
}

fn case(cursor: &mut Cursor<'_>) -> Option<Case> {
    let query = cursor.name("a question in quotes")?;
    if !cursor.take_if(Kind::Arrow) {
        let help = Some("a case is `\"question\" -> route`".to_owned());
        return cursor.unexpected("`->`", help);
    }
    Some(Case { query, route: cursor.name("the route's name")? })
}
