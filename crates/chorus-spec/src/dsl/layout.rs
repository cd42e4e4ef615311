//! How the printer breaks lines: bodies, values and rules that do not fit on one.
//!
//! It knows brackets and width, not blocks. **Invariant:** a comment forces its body onto several lines, so none is
//! lost.

use super::ast::*;
use super::inline::{flat, flat_expression, grouped, name};

/// The longest line that is written where there is a choice, in characters.
pub(super) const WIDTH: usize = 110;

/// An item's lines, with the comments above and behind it.
pub(super) fn item_lines(around: &Around, own: Vec<String>, is_first: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, comment) in around.above.iter().enumerate() {
        if comment.gap && !(is_first && at == 0) {
            lines.push(String::new());
        }
        lines.push(comment.text.clone());
    }
    if around.gap && !(is_first && around.above.is_empty()) {
        lines.push(String::new());
    }
    lines.extend(own);
    if let (Some(last), Some(behind)) = (lines.last_mut(), &around.behind) {
        last.push(' ');
        last.push_str(&behind.text);
    }
    lines
}

/// `head { … }` with an item a line.
pub(super) fn block<T>(head: &str, body: &Body<T>, lines_of: impl Fn(&T) -> Vec<String>) -> Vec<String> {
    if body.is_empty() {
        return vec![format!("{head} {{}}")];
    }
    let mut lines = vec![format!("{head} {{")];
    lines.extend(body_lines(body, |it| lines_of(it)));
    lines.push("}".to_owned());
    lines
}

/// `head { key: value … }`.
pub(super) fn braced(head: &str, fields: &Fields) -> Vec<String> {
    block(head, fields, |it| field(it, WIDTH.saturating_sub(4)))
}

/// The items of a body and its last comments, one level in.
fn body_lines<T>(body: &Body<T>, lines_of: impl Fn(&T) -> Vec<String>) -> Vec<String> {
    let mut lines = Vec::new();
    for item in &body.items {
        lines.extend(item_lines(&item.around, lines_of(&item.it), lines.is_empty()));
    }
    for (at, comment) in body.tail.iter().enumerate() {
        if comment.gap && !(lines.is_empty() && at == 0) {
            lines.push(String::new());
        }
        lines.push(comment.text.clone());
    }
    lines.iter().map(|line| indented(line)).collect()
}

/// `head value`: on one line if it fits and nobody commented on a part of it.
pub(super) fn value_lines(head: &str, value: &Value, width: usize) -> Vec<String> {
    let line = format!("{head}{}", flat(value));
    if !has_comments(value) && (line.chars().count() <= width || matches!(value, Value::One(_))) {
        return vec![line];
    }
    let inner = width.saturating_sub(2);
    let (open, close, body) = match value {
        Value::One(_) => return vec![line],
        Value::List(_, items) => ("[", "]", body_lines(items, |it| with_comma(value_lines("", it, inner)))),
        Value::Map(_, fields) => ("{", "}", body_lines(fields, |it| field(it, inner))),
    };
    let mut lines = vec![format!("{head}{open}")];
    lines.extend(body);
    lines.push(close.to_owned());
    lines
}

fn with_comma(mut lines: Vec<String>) -> Vec<String> {
    if let Some(last) = lines.last_mut() {
        last.push(',');
    }
    lines
}

fn has_comments(value: &Value) -> bool {
    fn around<T>(item: &Item<T>) -> bool {
        !item.around.above.is_empty() || item.around.behind.is_some()
    }
    match value {
        Value::One(_) => false,
        Value::List(_, body) => {
            !body.tail.is_empty() || body.items.iter().any(|item| around(item) || has_comments(&item.it))
        }
        Value::Map(_, body) => {
            !body.tail.is_empty()
                || body.items.iter().any(|item| around(item) || has_comments(&item.it.value))
        }
    }
}

/// A rule behind `lead`: on one line if it fits, else an operand a line.
pub(super) fn expression(it: &Expression, lead: &str, width: usize) -> Vec<String> {
    let line = format!("{lead}{}", flat_expression(it));
    if line.chars().count() <= width || matches!(it, Expression::Leaf(_)) {
        return vec![line];
    }
    match it {
        Expression::Leaf(_) => vec![line],
        Expression::Not(_, inner) => operand(inner, &format!("{lead}NOT "), width),
        Expression::And(_, parts) => chain(parts, "AND ", lead, width),
        Expression::Or(_, parts) => chain(parts, "OR ", lead, width),
    }
}

/// Operands below each other, the operator in front of each but the first.
fn chain(parts: &[Expression], word: &str, lead: &str, width: usize) -> Vec<String> {
    let inner = width.saturating_sub(2);
    let mut lines = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        match at {
            0 => lines.extend(operand(part, lead, inner)),
            _ => lines.extend(operand(part, word, inner).iter().map(|line| indented(line))),
        }
    }
    lines
}

/// An operand of a chain: what binds looser, or alike, stands in parentheses.
fn operand(it: &Expression, lead: &str, width: usize) -> Vec<String> {
    let line = format!("{lead}{}", grouped(it));
    if line.chars().count() <= width {
        return vec![line];
    }
    match it {
        Expression::Leaf(_) => vec![line],
        Expression::Not(_, inner) => operand(inner, &format!("{lead}NOT "), width),
        Expression::And(_, parts) => parenthesised(parts, "AND ", lead, width),
        Expression::Or(_, parts) => parenthesised(parts, "OR ", lead, width),
    }
}

fn parenthesised(parts: &[Expression], word: &str, lead: &str, width: usize) -> Vec<String> {
    let mut lines = vec![format!("{lead}(")];
    for (at, part) in parts.iter().enumerate() {
        let own = operand(part, if at == 0 { "" } else { word }, width.saturating_sub(2));
        lines.extend(own.iter().map(|line| indented(line)));
    }
    lines.push(")".to_owned());
    lines
}

/// A line one level in; a blank one stays blank.
pub(super) fn indented(line: &str) -> String {
    if line.is_empty() { String::new() } else { format!("  {line}") }
}

/// `key: value`, in as many lines as the value needs.
pub(super) fn field(it: &Field, width: usize) -> Vec<String> {
    value_lines(&format!("{}: ", name(&it.key)), &it.value, width)
}
