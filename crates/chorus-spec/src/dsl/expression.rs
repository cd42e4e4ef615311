//! Boolean rules: `OR` binds loosest, then `AND`, then `NOT`; parentheses group.
//!
//! It knows no signal. **Invariant:** the tree is grouped as written: parentheses around an `AND` inside an `AND` stay,
//! for they change its confidence (the mean of its children; contract §1.6).

use super::ast::{Expression, Field, Leaf};
use super::code;
use super::cursor::Cursor;
use super::field::value;
use super::token::Kind;

/// `all { OR all }`.
pub(super) fn any_of(cursor: &mut Cursor<'_>) -> Option<Expression> {
    let place = cursor.place();
    let mut parts = vec![all_of(cursor)?];
    while operator(cursor, "OR") {
        parts.push(all_of(cursor)?);
    }
    Some(only(parts).unwrap_or_else(|parts| Expression::Or(place, parts)))
}

/// `one { AND one }`.
fn all_of(cursor: &mut Cursor<'_>) -> Option<Expression> {
    let place = cursor.place();
    let mut parts = vec![one(cursor)?];
    while operator(cursor, "AND") {
        parts.push(one(cursor)?);
    }
    Some(only(parts).unwrap_or_else(|parts| Expression::And(place, parts)))
}

/// The only part, or the parts back.
fn only(mut parts: Vec<Expression>) -> Result<Expression, Vec<Expression>> {
    match parts.pop() {
        Some(part) if parts.is_empty() => Ok(part),
        Some(part) => {
            parts.push(part);
            Err(parts)
        }
        None => Err(parts),
    }
}

fn one(cursor: &mut Cursor<'_>) -> Option<Expression> {
    let place = cursor.place();
    if operator(cursor, "NOT") {
        let inner = cursor.deeper(one)?;
        return Some(Expression::Not(place, Box::new(inner)));
    }
    if cursor.take_if(Kind::Mark('(')) {
        let inner = cursor.deeper(any_of)?;
        cursor.expect(')')?;
        return Some(inner);
    }
    if !(cursor.is(Kind::Word) && cursor.next_is(Kind::Mark('('))) {
        let help = Some("a condition is a family and a name, such as `keyword(\"greeting\")`".to_owned());
        return cursor.unexpected("a condition", help);
    }
    leaf(cursor).map(Expression::Leaf)
}

/// Whether the operator stands here; it is taken. In small letters it is told, and taken too.
fn operator(cursor: &mut Cursor<'_>, word: &str) -> bool {
    if cursor.take_word(word) {
        return true;
    }
    let is_small = cursor.is(Kind::Word) && cursor.peek().text.eq_ignore_ascii_case(word);
    if is_small {
        let message = format!("`{}` is written `{word}`", cursor.peek().text);
        cursor.error(code::SYNTAX, cursor.place(), message, None);
        cursor.take();
    }
    is_small
}

fn leaf(cursor: &mut Cursor<'_>) -> Option<Leaf> {
    let family = cursor.word();
    cursor.expect('(')?;
    let name = cursor.name("the signal's name")?;
    let mut options = Vec::new();
    cursor.take_if(Kind::Mark(','));
    while !cursor.take_if(Kind::Mark(')')) {
        let key = cursor.name("an option, or `)`")?;
        cursor.expect(':')?;
        options.push(Field { key, value: value(cursor)? });
        cursor.take_if(Kind::Mark(','));
    }
    Some(Leaf { family, name, options })
}
