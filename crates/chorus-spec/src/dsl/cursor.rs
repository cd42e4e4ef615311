//! Where the parser stands among the tokens: looking ahead, taking, and finding the way back after an error.
//!
//! It knows which words open blocks and clauses, not what stands in them. **Invariant:** every loop over a body moves
//! forward, and a comment that was passed is given to some item.

use super::ast::{Around, Body, Item, Word};
use super::code;
use super::token::{Comment, Kind, Token};
use super::words::{CLAUSES, STATEMENTS};
use crate::Place;
use crate::read::report::Report;

/// Deepest nesting of values, rules and blocks (as deep as a configuration may be).
const MAX_DEPTH: usize = 64;

/// The parser's state.
pub(super) struct Cursor<'t> {
    tokens: Vec<Token>,
    end: Token,
    at: usize,
    /// Comments that were passed inside the current item.
    passed: Vec<Comment>,
    /// The line of the token taken last.
    last_line: usize,
    depth: usize,
    report: &'t Report,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(tokens: Vec<Token>, report: &'t Report) -> Self {
        let place = tokens.last().map(|token| token.place).unwrap_or_default();
        let end = Token {
            kind: Kind::End,
            text: String::new(),
            place,
            opens_line: true,
            gap: false,
            comments: Vec::new(),
        };
        Self { tokens, end, at: 0, passed: Vec::new(), last_line: 0, depth: 0, report }
    }

    // Looking

    pub(super) fn peek(&self) -> &Token {
        self.ahead(0)
    }

    fn ahead(&self, steps: usize) -> &Token {
        self.tokens.get(self.at + steps).unwrap_or(&self.end)
    }

    pub(super) fn place(&self) -> Place {
        self.peek().place
    }

    pub(super) fn is(&self, kind: Kind) -> bool {
        self.peek().kind == kind
    }

    /// Whether a bare word of that text stands here.
    pub(super) fn is_word(&self, text: &str) -> bool {
        self.is(Kind::Word) && self.peek().text == text
    }

    /// Whether the token after this one is of that kind.
    pub(super) fn next_is(&self, kind: Kind) -> bool {
        self.ahead(1).kind == kind
    }

    /// Whether a top-level block begins here, so that one that is still open was never closed.
    pub(super) fn opens_block(&self) -> bool {
        let token = self.peek();
        if token.kind != Kind::Word || !token.opens_line || self.next_is(Kind::Mark(':')) {
            return false;
        }
        let names = |steps: usize| matches!(self.ahead(steps).kind, Kind::Word | Kind::Text);
        let braces = |steps: usize| self.ahead(steps).kind == Kind::Mark('{');
        match token.text.as_str() {
            "MODEL" => names(1) && braces(2),
            "PLUGIN" => names(1) && names(2) && braces(3),
            word => STATEMENTS.contains(&word),
        }
    }

    // Taking

    /// Takes the token; its comments belong to the current item.
    pub(super) fn take(&mut self) -> Token {
        let Some(token) = self.tokens.get_mut(self.at) else {
            return self.end.clone();
        };
        self.last_line = token.place.line;
        self.passed.append(&mut token.comments);
        let text = std::mem::take(&mut token.text);
        let taken = Token { text, comments: Vec::new(), ..*token };
        if taken.kind != Kind::End {
            self.at += 1;
        }
        taken
    }

    pub(super) fn take_if(&mut self, kind: Kind) -> bool {
        let found = self.is(kind);
        if found {
            self.take();
        }
        found
    }

    pub(super) fn take_word(&mut self, text: &str) -> bool {
        let found = self.is_word(text);
        if found {
            self.take();
        }
        found
    }

    /// Takes a mark or says that it is missing.
    pub(super) fn expect(&mut self, mark: char) -> Option<()> {
        if self.take_if(Kind::Mark(mark)) {
            return Some(());
        }
        self.unexpected(&format!("`{mark}`"), None)
    }

    /// Takes a name: a bare word, or a text in quotes.
    pub(super) fn name(&mut self, what: &str) -> Option<Word> {
        match self.peek().kind {
            Kind::Word | Kind::Text => Some(self.word()),
            _ => self.unexpected(what, None),
        }
    }

    /// Takes whatever stands here as a word.
    pub(super) fn word(&mut self) -> Word {
        let token = self.take();
        Word { text: token.text, place: token.place, quoted: token.kind == Kind::Text }
    }

    // Saying

    /// Reports what stands here instead of what should.
    pub(super) fn unexpected<T>(&self, wanted: &str, help: Option<String>) -> Option<T> {
        let found = match self.peek() {
            Token { kind: Kind::End, .. } => "the end of the text".to_owned(),
            Token { kind: Kind::Text, .. } => "a text".to_owned(),
            token => format!("`{}`", token.text),
        };
        self.error(code::SYNTAX, self.place(), format!("expected {wanted}, found {found}"), help);
        None
    }

    pub(super) fn error(&self, code: &'static str, place: Place, message: String, help: Option<String>) {
        self.report.error(code, place, "", message, help);
    }

    // Items

    /// Runs a reader one level deeper; too deep is an error.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= MAX_DEPTH {
            let message = format!("nesting is deeper than {MAX_DEPTH}");
            self.error(code::SYNTAX, self.place(), message, None);
            return None;
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// Reads one item with the comments around it, and the comma behind it.
    pub(super) fn item<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Item<T>> {
        let mut around = Around { gap: self.peek().gap, ..Around::default() };
        around.above = self.comments();
        let it = read(self);
        around.above.append(&mut self.passed);
        let it = it?;
        self.take_if(Kind::Mark(','));
        around.behind = self.comment_behind();
        Some(Item { it, around })
    }

    /// The comments in front of the next token, taken away from it.
    pub(super) fn comments(&mut self) -> Vec<Comment> {
        self.tokens.get_mut(self.at).map(|token| std::mem::take(&mut token.comments)).unwrap_or_default()
    }

    /// Gives comments to the item that is being read.
    pub(super) fn pass(&mut self, mut comments: Vec<Comment>) {
        self.passed.append(&mut comments);
    }

    /// Takes the comments of items that are printed on one line, for the item around them.
    pub(super) fn hoist<T>(&mut self, items: &mut [Item<T>]) {
        for Item { around, .. } in items {
            let above = std::mem::take(&mut around.above);
            self.pass(above);
            self.passed.extend(around.behind.take());
        }
    }

    fn comment_behind(&mut self) -> Option<Comment> {
        let last_line = self.last_line;
        let token = self.tokens.get_mut(self.at)?;
        let is_behind = token.comments.first().is_some_and(|comment| comment.line == last_line);
        is_behind.then(|| token.comments.remove(0))
    }

    /// Reads what stands between two brackets.
    pub(super) fn body<T>(
        &mut self,
        brackets: (char, char),
        ends_at_block: bool,
        read: impl Fn(&mut Self) -> Option<T>,
    ) -> Option<Body<T>> {
        let (open, close) = brackets;
        let opened = self.place();
        self.expect(open)?;
        let mut body = Body::default();
        loop {
            if self.is(Kind::Mark(close)) {
                body.tail = self.comments();
                self.take();
                return Some(body);
            }
            let is_lost =
                self.is(Kind::End) || (self.is(Kind::Mark('}'))) || (ends_at_block && self.opens_block());
            if is_lost {
                let message = format!("this `{open}` is never closed");
                let help = format!("a `{close}` is missing before line {}", self.place().line);
                self.error(code::OPEN_BLOCK, opened, message, Some(help));
                body.tail = std::mem::take(&mut self.passed);
                return Some(body);
            }
            let before = self.at;
            match self.item(&read) {
                Some(item) => body.items.push(item),
                None => self.skip_item(before, close),
            }
        }
    }

    /// After an error in an item: on to the next one, or to the end of the body.
    fn skip_item(&mut self, before: usize, close: char) {
        let mut nested = 0_usize;
        loop {
            let moved = self.at > before;
            match self.peek().kind {
                Kind::End => break,
                Kind::Mark(mark) if nested == 0 && (mark == close || mark == '}') => break,
                _ if moved && self.opens_block() => break,
                _ if moved && nested == 0 && self.opens_item() => break,
                Kind::Mark('{' | '[' | '(') => nested += 1,
                Kind::Mark('}' | ']' | ')') => nested = nested.saturating_sub(1),
                _ => {}
            }
            self.take();
        }
        self.passed.clear();
    }

    /// Whether an item of some body begins here: a field, a clause, a branch, a test case.
    fn opens_item(&self) -> bool {
        let token = self.peek();
        token.opens_line
            && match token.kind {
                Kind::Word => self.next_is(Kind::Mark(':')) || CLAUSES.contains(&token.text.as_str()),
                Kind::Text => self.next_is(Kind::Arrow),
                _ => false,
            }
    }

    /// After an error in a block's head: on to the next block.
    pub(super) fn skip_block(&mut self) {
        loop {
            self.take();
            if self.is(Kind::End) || self.opens_block() {
                break;
            }
        }
        self.passed.clear();
    }
}
