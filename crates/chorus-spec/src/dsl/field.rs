//! Fields, options and values: what stands in braces, in parentheses and in brackets.
//!
//! It knows no key. **Invariant:** a value nests at most as deep as the cursor allows.

use super::ast::{Field, Fields, Value};
use super::cursor::Cursor;
use super::token::Kind;

/// `{ key: value … }`.
pub(super) fn fields(cursor: &mut Cursor<'_>) -> Option<Fields> {
    cursor.deeper(|cursor| cursor.body(('{', '}'), true, field))
}

/// `key: value`.
pub(super) fn field(cursor: &mut Cursor<'_>) -> Option<Field> {
    let key = cursor.name("a field")?;
    if cursor.is(Kind::Mark('=')) {
        let help = Some(format!("in braces a field is `{}: …`", key.text));
        return cursor.unexpected("`:`", help);
    }
    cursor.expect(':')?;
    Some(Field { key, value: value(cursor)? })
}

/// `(key = value, …)`, or nothing.
pub(super) fn attributes(cursor: &mut Cursor<'_>) -> Option<Vec<Field>> {
    if !cursor.take_if(Kind::Mark('(')) {
        return Some(Vec::new());
    }
    let mut all = Vec::new();
    while !cursor.take_if(Kind::Mark(')')) {
        let key = cursor.name("an option")?;
        if cursor.is(Kind::Mark(':')) {
            let help = Some(format!("in parentheses an option is `{} = …`", key.text));
            return cursor.unexpected("`=`", help);
        }
        cursor.expect('=')?;
        all.push(Field { key, value: value(cursor)? });
        cursor.take_if(Kind::Mark(','));
    }
    Some(all)
}

/// A value: one word or text, a list, or fields.
pub(super) fn value(cursor: &mut Cursor<'_>) -> Option<Value> {
    let place = cursor.place();
    match cursor.peek().kind {
        Kind::Word | Kind::Text => Some(Value::One(cursor.word())),
        Kind::Mark('{') => Some(Value::Map(place, fields(cursor)?)),
        Kind::Mark('[') => {
            let list = cursor.deeper(|cursor| cursor.body(('[', ']'), true, value))?;
            Some(Value::List(place, list))
        }
        _ => cursor.unexpected("a value", None),
    }
}
