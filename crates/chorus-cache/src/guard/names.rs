//! Names, quotations and pieces of code: words that stand for one thing alone.
//!
//! It knows how they are written, not what they are. **Invariant:** a name of one text is looked for among all words of the
//! other, in whatever case.

use super::words::{Kind, Words};
use std::collections::BTreeSet;

/// The names of a text, in lower case.
pub(super) fn of(text: &str, words: &Words) -> BTreeSet<String> {
    let written = words.all().iter().filter(|word| {
        let is_name = word.kind == Kind::Content && is_capital(&word.written) && !word.first;
        is_name || is_code(&word.written)
    });
    let mut names: BTreeSet<String> = written.map(|word| word.folded.clone()).collect();
    // What opens a sentence has a capital in any case: it is a name where no word before a mark follows the usual opening.
    let opening = words.all().iter().filter(|word| word.first && word.kind == Kind::Content);
    names.extend(opening.filter(|word| is_capital(&word.written)).map(|word| format!("?{}", word.folded)));
    names.extend(quotations(text));
    names
}

/// Whether a name stands neither among the names nor among the words of another text.
pub(super) fn differ(names: &BTreeSet<String>, others: &BTreeSet<String>, other: &Words) -> bool {
    let mut missing = names.iter().filter(|name| !others.contains(*name));
    missing.any(|name| match name.strip_prefix('?') {
        Some(name) => !is_there(name, other) && has_opening_name(other),
        None => !is_there(name, other),
    })
}

fn is_there(name: &str, other: &Words) -> bool {
    name.split_whitespace().all(|part| other.has(part))
}

/// Whether the other text, too, opens with a word that may be a name.
fn has_opening_name(other: &Words) -> bool {
    other.all().iter().any(|word| word.first && word.kind == Kind::Content && is_capital(&word.written))
}

fn is_capital(written: &str) -> bool {
    written.chars().next().is_some_and(char::is_uppercase)
}

/// Underscores, inner capitals, digits among letters, dots or colons between letters: nobody writes prose like that.
fn is_code(written: &str) -> bool {
    let mut chars = written.chars();
    let begins_in_lower_case = chars.next().is_some_and(char::is_lowercase);
    let has = |is: &dyn Fn(char) -> bool| written.chars().any(is);
    let mixes = has(&|c| c.is_ascii_digit()) && has(&char::is_alphabetic) && !is_quantity(written);
    let inner =
        written.contains('_') || written.contains("::") || written.contains('@') || written.contains('#');
    let dotted = written.split('.').filter(|part| part.len() > 1).count() > 1;
    inner || dotted || mixes || (begins_in_lower_case && chars.any(char::is_uppercase))
}

/// `10mg`, `2nd`: the numbers' guard looks at them.
fn is_quantity(written: &str) -> bool {
    written.starts_with(|c: char| c.is_ascii_digit())
}

/// What stands between quotation marks or ticks, its words in lower case.
fn quotations(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (open, close) in [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»'), ('`', '`'), ('‘', '’')]
    {
        let mut rest = text;
        while let Some((_, after)) = rest.split_once(open) {
            let Some((inner, later)) = after.split_once(close) else { break };
            found.push(inner);
            rest = later;
        }
    }
    // A single mark is a quotation only where a blank stands before it and none after it.
    let mut rest = text;
    while let Some(at) = rest.find(" '") {
        let after = rest.get(at + 2..).unwrap_or_default();
        let Some(end) = after.find('\'') else { break };
        found.push(after.get(..end).unwrap_or_default());
        rest = after.get(end + 1..).unwrap_or_default();
    }
    let words = |inner: &str| {
        let words = Words::of(inner);
        words.all().iter().map(|word| word.folded.clone()).collect::<Vec<_>>().join(" ")
    };
    found.into_iter().map(words).filter(|inner| !inner.is_empty()).collect()
}
