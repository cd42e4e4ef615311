//! Policy text as tokens, each with its place and the comments in front of it.
//!
//! It knows no block and no clause: `ROUTE` is a word like any other. **Invariant:** the last token is [`Kind::End`];
//! no character is lost silently, for what is no token is reported and skipped.

use super::code;
use crate::Place;
use crate::read::report::Report;
use std::iter::Peekable;
use std::str::Chars;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Bare: a keyword, a name, a number, a truth value.
    Word,
    /// In double quotes; the token holds the text without them, unescaped.
    Text,
    /// One of `{ } ( ) [ ] : , =`.
    Mark(char),
    /// `->` or `→`.
    Arrow,
    /// The end of the text.
    End,
}

/// One token.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) text: String,
    pub(super) place: Place,
    /// Whether nothing but space stands before it on its line.
    pub(super) opens_line: bool,
    /// Whether a blank line stands above it (above it alone, when comments precede it).
    pub(super) gap: bool,
    /// Comments between the token before and this one.
    pub(super) comments: Vec<Comment>,
}

/// One comment, from `#` to the end of its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Comment {
    pub(super) text: String,
    pub(super) line: usize,
    /// Whether a blank line stands above it.
    pub(super) gap: bool,
}

/// Cuts a text into tokens; what is none is reported.
pub(super) fn tokens(text: &str, report: &Report) -> Vec<Token> {
    let mut lexer = Lexer {
        rest: text.strip_prefix('\u{feff}').unwrap_or(text).chars().peekable(),
        at: Place { line: 1, column: 1 },
        last_line: 0,
        report,
    };
    let mut all = Vec::new();
    loop {
        let token = lexer.token();
        let ends = token.kind == Kind::End;
        all.push(token);
        if ends {
            return all;
        }
    }
}

/// Whether a character can stand in a bare word.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || "_-./+@%*~$".contains(c)
}

struct Lexer<'t> {
    rest: Peekable<Chars<'t>>,
    at: Place,
    /// The line on which the last token or comment ended; 0 before the first.
    last_line: usize,
    report: &'t Report,
}

impl Lexer<'_> {
    fn token(&mut self) -> Token {
        let mut comments = Vec::new();
        loop {
            self.skip_space();
            let gap = self.last_line > 0 && self.at.line > self.last_line + 1;
            let (place, opens_line) = (self.at, self.at.line != self.last_line);
            let Some(first) = self.bump() else {
                return Token { kind: Kind::End, text: String::new(), place, opens_line, gap, comments };
            };
            self.last_line = place.line;
            if first == '#' {
                let text = self.line_from(first);
                comments.push(Comment { text, line: place.line, gap });
                continue;
            }
            if let Some((kind, text)) = self.kind_of(first, place) {
                return Token { kind, text, place, opens_line, gap, comments };
            }
        }
    }

    fn kind_of(&mut self, first: char, place: Place) -> Option<(Kind, String)> {
        match first {
            '{' | '}' | '(' | ')' | '[' | ']' | ':' | ',' | '=' => {
                Some((Kind::Mark(first), first.to_string()))
            }
            '→' => Some((Kind::Arrow, first.to_string())),
            '-' if self.rest.peek() == Some(&'>') => {
                self.bump();
                Some((Kind::Arrow, "->".to_owned()))
            }
            '"' => Some((Kind::Text, self.quoted(place))),
            _ if is_word(first) => Some((Kind::Word, self.word(first))),
            other => self.foreign(other, place),
        }
    }

    fn word(&mut self, first: char) -> String {
        let mut text = first.to_string();
        while let Some(next) = self.rest.peek().copied().filter(|c| is_word(*c)) {
            if next == '-' && self.rest.clone().nth(1) == Some('>') {
                break;
            }
            text.push(next);
            self.bump();
        }
        text
    }

    /// The text of a string whose opening quote has been taken.
    ///
    /// One that is not closed ends before the brackets and commas at the end of its line: they were meant as such.
    fn quoted(&mut self, place: Place) -> String {
        let mut text = String::new();
        let mut content = (self.rest.clone(), self.at, 0);
        loop {
            let here = self.at;
            match self.rest.peek().copied() {
                None | Some('\n') => {
                    let help = "end it with `\"`; a line break inside is written `\\n`";
                    self.say(place, "this string is not closed on its line", help);
                    let length;
                    (self.rest, self.at, length) = content;
                    text.truncate(length);
                    return text;
                }
                Some('"') => {
                    self.bump();
                    return text;
                }
                Some('\\') => {
                    self.bump();
                    text.push_str(&self.escape(here));
                }
                Some(other) => {
                    text.push(other);
                    self.bump();
                    if !other.is_whitespace() && !"]}),".contains(other) {
                        content = (self.rest.clone(), self.at, text.len());
                    }
                }
            }
        }
    }

    /// What stands for the escape whose backslash has been taken.
    fn escape(&mut self, place: Place) -> String {
        let Some(letter) = self.rest.peek().copied().filter(|c| *c != '\n') else {
            return String::new();
        };
        self.bump();
        let plain = match letter {
            '"' | '\\' | '/' => Some(letter),
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            'a' => Some('\u{7}'),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'v' => Some('\u{b}'),
            'x' => self.code_point(2),
            'u' => self.code_point(4),
            'U' => self.code_point(8),
            _ => None,
        };
        if plain.is_none() {
            self.say(
                place,
                &format!("a string has no escape `\\{letter}`"),
                &format!("a backslash of a pattern is written twice: `\\\\{letter}`"),
            );
        }
        plain.map(String::from).unwrap_or_default()
    }

    fn code_point(&mut self, digits: usize) -> Option<char> {
        let text: String = self.rest.clone().take(digits).take_while(char::is_ascii_hexdigit).collect();
        if text.len() < digits {
            return None;
        }
        text.chars().for_each(|_| {
            self.bump();
        });
        u32::from_str_radix(&text, 16).ok().and_then(char::from_u32)
    }

    /// A character of another language: told, and read as what it was meant to be where that is plain.
    fn foreign(&mut self, found: char, place: Place) -> Option<(Kind, String)> {
        let mut written = found.to_string();
        while self.rest.next_if_eq(&found).is_some() {
            written.push(found);
            self.at.column += 1;
        }
        let (word, help) = match found {
            '&' => (Some("AND"), "write `AND`"),
            '|' => (Some("OR"), "write `OR`"),
            '!' => (Some("NOT"), "write `NOT`"),
            '\'' | '“' | '”' | '‘' | '’' | '`' => (None, "texts stand in double quotes: `\"…\"`"),
            '<' | '>' => (None, "bounds are fields: `predicate: { gte: 0.5 }`"),
            ';' => (None, "nothing stands at the end of a line"),
            _ => (None, "a name with other characters stands in double quotes"),
        };
        self.say(place, &format!("`{written}` means nothing here"), help);
        word.map(|word| (Kind::Word, word.to_owned()))
    }

    fn say(&self, place: Place, message: &str, help: &str) {
        self.report.error(code::SYNTAX, place, "", message.to_owned(), Some(help.to_owned()));
    }

    fn line_from(&mut self, first: char) -> String {
        let mut text = first.to_string();
        while let Some(next) = self.rest.peek().copied().filter(|c| *c != '\n') {
            text.push(next);
            self.bump();
        }
        text.trim_end().to_owned()
    }

    fn skip_space(&mut self) {
        while self.rest.peek().is_some_and(|c| c.is_whitespace()) {
            self.bump();
        }
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.rest.next()?;
        if next == '\n' {
            self.at = Place { line: self.at.line + 1, column: 1 };
        } else {
            self.at.column += 1;
        }
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> (Vec<(Kind, String)>, Vec<String>) {
        let report = Report::default();
        let kinds = tokens(text, &report).into_iter().map(|t| (t.kind, t.text)).collect();
        (kinds, report.into_sorted().into_iter().map(|d| d.message).collect())
    }

    #[test]
    fn names_of_models_are_words_and_an_arrow_ends_one() {
        let (found, said) = cut("anthropic/claude-opus-4.6->-0.5 法律");
        let words: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(words, ["anthropic/claude-opus-4.6", "->", "-0.5", "法律", ""]);
        assert_eq!(found[1].0, Kind::Arrow);
        assert!(said.is_empty());
    }

    #[test]
    fn escapes_are_undone_and_unknown_ones_told() {
        let (found, said) = cut(r#""a\"\\\n\u4e2d" "\d""#);
        assert_eq!(found[0], (Kind::Text, "a\"\\\n中".to_owned()));
        assert_eq!(said, ["a string has no escape `\\d`"]);
    }

    #[test]
    fn a_string_that_is_not_closed_ends_with_its_line() {
        let (found, said) = cut("[\"open ],\nnext");
        let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["[", "open", "]", ",", "next", ""]);
        assert_eq!(said.len(), 1);
    }

    #[test]
    fn places_lines_and_gaps() {
        let report = Report::default();
        let all = tokens("a # x\n\n# y\n\n  b", &report);
        let b = &all[1];
        assert_eq!((b.place, b.opens_line, b.gap), (Place { line: 5, column: 3 }, true, true));
        let comments: Vec<(&str, usize, bool)> =
            b.comments.iter().map(|c| (c.text.as_str(), c.line, c.gap)).collect();
        assert_eq!(comments, [("# x", 1, false), ("# y", 3, true)]);
    }
}
