//! Regular expressions of a file: they parse, and together they stay within a bound.
//!
//! It builds the automaton that every engine starts from, to know its size, and throws it away: extraction builds its
//! own, with a wider bound. **Invariant:** what passes here compiles there.

use super::cursor::Cursor;
use crate::Severity;
use crate::diagnostic::code;
use regex_automata::nfa::thompson::{self, NFA};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;

/// Most bytes that the patterns of one rule may take, compiled.
const COMPILED_MOST: usize = 2 * 1024 * 1024;
/// Characters of a pattern that a message shows around the place of its fault.
const SHOWN: usize = 24;

/// Reports every pattern that does not parse, and a rule whose patterns are too large together.
pub(super) fn check(patterns: &[Cursor<'_>], owner: &str, case_sensitive: bool) {
    let written: Vec<(&Cursor<'_>, &str)> =
        patterns.iter().filter_map(|at| Some((at, at.node().text()?))).collect();
    let parsed: Vec<Hir> =
        written.iter().filter_map(|(at, pattern)| parse(at, owner, pattern, case_sensitive)).collect();
    let Some((first, _)) = written.first().filter(|_| parsed.len() == written.len()) else {
        return;
    };
    let bounded = thompson::Config::new().nfa_size_limit(Some(COMPILED_MOST));
    if NFA::compiler().configure(bounded).build_many_from_hir(&parsed).is_err() {
        let message = format!("{owner}: its patterns take more than {COMPILED_MOST} bytes, compiled");
        let help = "split the rule, shorten alternations, or bound repetitions more tightly".to_owned();
        first.error_help(code::BAD_PATTERN, message, help);
    }
}

fn parse(at: &Cursor<'_>, owner: &str, pattern: &str, case_sensitive: bool) -> Option<Hir> {
    let parsed = ParserBuilder::new().case_insensitive(!case_sensitive).build().parse(pattern);
    let error = match parsed {
        Ok(parsed) => return Some(parsed),
        Err(error) => error,
    };
    let (reason, offset) = match &error {
        regex_syntax::Error::Parse(fault) => (fault.kind().to_string(), fault.span().start.offset),
        regex_syntax::Error::Translate(fault) => (fault.kind().to_string(), fault.span().start.offset),
        other => (other.to_string(), 0),
    };
    let before = pattern.get(..offset).unwrap_or_default().chars().count();
    let part: String = pattern.chars().skip(before).take(SHOWN).collect();
    let message = format!("{owner}: the pattern is broken at character {}, `{part}`: {reason}", before + 1);
    at.say(Severity::Error, code::BAD_PATTERN, at.place_in(before), message, None);
    None
}
