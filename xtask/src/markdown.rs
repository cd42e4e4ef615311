//! What generated pages are made of: quotations, and the fields of a JSON text.

use serde_json::Value;

/// Columns of quoted answers.
const WIDTH: usize = 110;

/// The items of a list; none where there is no list.
pub(crate) fn items<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// A text; empty where there is none.
pub(crate) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A count; 0 where there is none.
pub(crate) fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

/// A Markdown quotation: prose wrapped, code as it is.
pub(crate) fn quote(text: &str) -> String {
    let (mut lines, mut code) = (Vec::new(), false);
    for paragraph in text.trim().lines() {
        let fence = paragraph.trim_start().starts_with("```");
        code ^= fence;
        if code || fence {
            lines.push(format!("> {paragraph}"));
            continue;
        }
        let mut line = String::from(">");
        for word in paragraph.split_whitespace() {
            if line.chars().count() + word.chars().count() + 1 > WIDTH {
                lines.push(std::mem::replace(&mut line, String::from(">")));
            }
            line.push(' ');
            line.push_str(word);
        }
        lines.push(line);
    }
    // An answer that was cut amid a block would take the rest of the page with it.
    lines.extend(code.then(|| "> ```".to_owned()));
    lines.join("\n")
}
