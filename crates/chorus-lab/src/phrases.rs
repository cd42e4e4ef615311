//! Our own labelled texts: templates that stand for many messages, and lines to measure with.
//!
//! It knows one line format and no label: `label<tab>language<tab>text`. In a template `{a|b}` is a choice, choices nest,
//! and `{name}` is a choice from the list that a line `@name<tab>language<tab>a|b` of the same language declares.
//! Invariant: the same lines give the same texts in the same order; what a line says depends on no other line but its
//! lists.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::example::{Example, Split};
use crate::fault::LabFault;

/// One line in so many is kept for validation, with all that it stands for.
const VALIDATION_FOLDS: usize = 5;

/// A labelled text in a language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Phrase<'a> {
    /// The class, as written.
    pub(crate) label: &'a str,
    /// The language's code.
    pub(crate) language: &'a str,
    /// The text, or the template.
    pub(crate) text: String,
    /// The line, counted from 1.
    pub(crate) line: usize,
}

/// Every line of a file, as written.
pub(crate) fn lines<'a>(name: &str, content: &'a str) -> Result<Vec<Phrase<'a>>, LabFault> {
    let rows = content.lines().enumerate().map(|(number, row)| {
        let mut fields = row.splitn(3, '\t');
        let (label, language, text) = (fields.next(), fields.next(), fields.next());
        match (label, language, text) {
            (Some(label), Some(language), Some(text)) if !text.trim().is_empty() => {
                Ok(Phrase { label, language, text: text.to_owned(), line: number + 1 })
            }
            _ => {
                Err(LabFault::content(Path::new(name), number + 1, &"expected `label<tab>language<tab>text`"))
            }
        }
    });
    rows.collect()
}

/// At most `draws` different texts of every template, in the order of lines.
pub(crate) fn expand<'a>(name: &str, content: &'a str, draws: usize) -> Result<Vec<Phrase<'a>>, LabFault> {
    let rows = lines(name, content)?;
    let mut lists: BTreeMap<(&str, &str), Template> = BTreeMap::new();
    for row in &rows {
        if let Some(list) = row.label.strip_prefix('@') {
            lists
                .insert((row.language, list), Template::parse(&format!("{{{}}}", row.text), name, row.line)?);
        }
    }
    let mut found = Vec::new();
    for row in rows.iter().filter(|row| !row.label.starts_with('@')) {
        let template = Template::parse(&row.text, name, row.line)?;
        let mut seen = BTreeSet::new();
        for draw in 0..draws {
            let mut dice = Dice { line: row.line, draw, throws: 0 };
            let text = template.draw(row.language, &lists, &mut dice);
            if seen.insert(text.clone()) {
                found.push(Phrase { text, ..row.clone() });
            }
        }
    }
    Ok(found)
}

/// The place of a phrase's label among a task's labels.
pub(crate) fn label_of(phrase: &Phrase<'_>, labels: &[&str], name: &str) -> Result<usize, LabFault> {
    labels
        .iter()
        .position(|&label| label == phrase.label)
        .ok_or_else(|| LabFault::content(Path::new(name), phrase.line, &format!("no class {}", phrase.label)))
}

/// Learns what a file of templates stands for, at most `draws` texts a line, each of `weight`: all texts of each fifth
/// line are kept for validation, so that what chooses the penalty is never a variant of what was fitted.
pub(crate) fn learn(
    split: &mut Split,
    (name, content): (&str, &str),
    labels: &[&str],
    (draws, weight): (usize, f32),
) -> Result<(), LabFault> {
    for phrase in expand(name, content, draws)? {
        let label = label_of(&phrase, labels, name)?;
        let kept_out = phrase.line % VALIDATION_FOLDS == 0;
        let side = if kept_out { &mut split.everyday_validation } else { &mut split.train };
        side.push(Example { text: phrase.text, label, weight });
    }
    Ok(())
}

/// Adds a file of own texts as held-out sets: all of them, then each language for itself.
pub(crate) fn hold_out(
    split: &mut Split,
    title: &str,
    (name, content): (&str, &str),
    labels: &[&str],
) -> Result<(), LabFault> {
    let mut all = Vec::new();
    let mut languages: BTreeMap<String, Vec<Example>> = BTreeMap::new();
    for phrase in lines(name, content)? {
        let label = label_of(&phrase, labels, name)?;
        let example = Example { text: phrase.text, label, weight: 1.0 };
        languages.entry(phrase.language.to_owned()).or_default().push(example.clone());
        all.push(example);
    }
    split.held_out.push((format!("{title}, all languages"), all));
    let parts = languages.into_iter().map(|(language, examples)| (format!("{title}, {language}"), examples));
    split.held_out.extend(parts);
    Ok(())
}

/// A text with choices.
#[derive(Debug, Clone, PartialEq)]
struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    Choice(Vec<Template>),
}

impl Template {
    fn parse(text: &str, name: &str, line: usize) -> Result<Self, LabFault> {
        let mut rest = text.chars().peekable();
        let mut alternatives = Self::alternatives(&mut rest, true);
        match (rest.next(), alternatives.pop()) {
            (None, Some(template)) if alternatives.is_empty() => Ok(template),
            _ => Err(LabFault::content(Path::new(name), line, &"a brace has no partner")),
        }
    }

    /// Reads up to the end, or up to the brace that closes a choice. Outside of braces a bar is a letter.
    fn alternatives(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, outside: bool) -> Vec<Self> {
        let (mut done, mut parts, mut letters) = (Vec::new(), Vec::new(), String::new());
        while let Some(&next) = rest.peek() {
            if next == '}' {
                break;
            }
            rest.next();
            match next {
                '{' => {
                    parts.push(Part::Text(std::mem::take(&mut letters)));
                    parts.push(Part::Choice(Self::alternatives(rest, false)));
                    // A choice that the text leaves open stays a brace without its partner.
                    if rest.next().is_none() {
                        done.push(Self(Vec::new()));
                    }
                }
                '|' if !outside => {
                    parts.push(Part::Text(std::mem::take(&mut letters)));
                    done.push(Self(std::mem::take(&mut parts)));
                }
                _ => letters.push(next),
            }
        }
        parts.push(Part::Text(letters));
        done.push(Self(parts));
        done
    }

    fn draw(&self, language: &str, lists: &BTreeMap<(&str, &str), Self>, dice: &mut Dice) -> String {
        let drawn = self.0.iter().map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Choice(alternatives) => {
                let listed = match alternatives.as_slice() {
                    [only] => only.name().and_then(|name| lists.get(&(language, name))),
                    _ => None,
                };
                let chosen = listed.or_else(|| alternatives.get(dice.throw(alternatives.len())));
                chosen.map(|chosen| chosen.draw(language, lists, dice)).unwrap_or_default()
            }
        });
        drawn.collect()
    }

    /// The text of a template without choices.
    fn name(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Part::Text(name)] => Some(name),
            _ => None,
        }
    }
}

/// Throws that are the same in every run.
struct Dice {
    line: usize,
    draw: usize,
    throws: usize,
}

impl Dice {
    /// A number below `sides`, 0 when there are none.
    fn throw(&mut self, sides: usize) -> usize {
        self.throws += 1;
        let digest = Sha256::digest(format!("{}/{}/{}", self.line, self.draw, self.throws));
        let drawn = digest.iter().take(6).fold(0_usize, |drawn, &byte| drawn << 8 | usize::from(byte));
        drawn % sides.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(content: &str, draws: usize) -> Vec<String> {
        expand("own.tsv", content, draws).unwrap().into_iter().map(|phrase| phrase.text).collect()
    }

    #[test]
    fn a_template_stands_for_its_combinations() {
        let content = "@tea\ten\tgreen|black\n@tea\tde\tgrüner\nyes\ten\t{Hot|Iced {very|} cold} {tea} tea\n\
                       yes\tde\t{tea} Tee\nno\ten\ta|b";
        let drawn = texts(content, 200);
        assert_eq!(drawn.len(), 6 + 1 + 1, "{drawn:?}");
        for text in ["Hot green tea", "Iced very cold black tea", "Iced  cold green tea", "grüner Tee", "a|b"]
        {
            assert!(drawn.iter().any(|drawn| drawn == text), "{text}: {drawn:?}");
        }
        assert_eq!(texts(content, 3), texts(content, 3));
        assert!(texts(content, 3).len() <= 7);
    }

    #[test]
    fn a_broken_line_is_named() {
        for (content, want) in [
            ("yes\ten\tone\nyes\ten", "own.tsv:2:"),
            ("yes\ten\tone {two|three", "own.tsv:1: a brace has no partner"),
            ("yes\ten\tone} two", "own.tsv:1: a brace has no partner"),
        ] {
            let fault = expand("own.tsv", content, 2).unwrap_err().to_string();
            assert!(fault.contains(want), "{fault}");
        }
        let unknown =
            learn(&mut Split::default(), ("own.tsv", "maybe\ten\tx"), &["yes"], (1, 1.0)).unwrap_err();
        assert!(unknown.to_string().contains("own.tsv:1: no class maybe"));
    }

    #[test]
    fn a_line_is_on_one_side_and_languages_are_measured_apart() {
        let mut split = Split::default();
        let content = "a\ten\t{1|2|3}\na\ten\tx\na\ten\ty\na\ten\tz\na\ten\t{4|5}\n";
        learn(&mut split, ("own.tsv", content), &["a"], (50, 1.0)).unwrap();
        let kept: Vec<&str> = split.everyday_validation.iter().map(|example| example.text.as_str()).collect();
        assert_eq!((kept.len(), split.train.len()), (2, 6));
        assert!(kept.contains(&"4") && kept.contains(&"5"));
        hold_out(&mut split, "Own", ("eval.tsv", "a\tde\tja\na\ten\tyes\na\tde\tgut"), &["a"]).unwrap();
        let sizes: Vec<(&str, usize)> =
            split.held_out.iter().map(|(name, examples)| (name.as_str(), examples.len())).collect();
        assert_eq!(sizes, [("Own, all languages", 3), ("Own, de", 2), ("Own, en", 1)]);
    }
}
