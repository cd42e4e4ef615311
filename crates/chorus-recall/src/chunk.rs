//! A document cut into overlapping passages.
//!
//! Cuts fall between paragraphs where they can, else between sentences, lines or words, else between characters. It knows
//! text, not files. **Invariant:** every character of the document is in at least one passage, and no passage is longer
//! than the rule says.

use chorus_wire::tokens::of_text;

/// How long passages are, in estimated tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkRule {
    /// Most tokens of one passage, in 100..=4,096; default 256, the window of the default encoder.
    pub max_tokens: u64,
    /// Tokens that neighbours share, at most half of `max_tokens`; default 64.
    pub overlap_tokens: u64,
}

impl Default for ChunkRule {
    fn default() -> Self {
        Self { max_tokens: 256, overlap_tokens: 64 }
    }
}

impl ChunkRule {
    /// A rule within its bounds; the error is a sentence that says which one is not kept.
    ///
    /// # Errors
    /// A bound that is not kept. Source: OpenAI API description, `StaticChunkingStrategy`.
    pub fn new(max_tokens: u64, overlap_tokens: u64) -> Result<Self, String> {
        if !(100..=4096).contains(&max_tokens) {
            return Err("`max_chunk_size_tokens` must be in 100..=4096".to_owned());
        }
        if overlap_tokens > max_tokens / 2 {
            return Err("`chunk_overlap_tokens` must be at most half of `max_chunk_size_tokens`".to_owned());
        }
        Ok(Self { max_tokens, overlap_tokens })
    }
}

/// The passages of a document, in order; none is blank.
#[must_use]
pub fn chunks<'a>(text: &'a str, rule: &ChunkRule) -> Vec<&'a str> {
    let pieces = pieces(text, rule.max_tokens.max(1));
    let mut found = Vec::new();
    let mut first = 0;
    while first < pieces.len() {
        let mut end = first;
        let mut tokens = 0;
        while let Some(piece) = pieces.get(end) {
            let more = of_text(piece);
            if end > first && tokens + more > rule.max_tokens {
                break;
            }
            tokens += more;
            end += 1;
        }
        found.extend(spanned(text, pieces.get(first..end).unwrap_or_default()));
        if end >= pieces.len() {
            break;
        }
        first = back(&pieces, first, end, rule.overlap_tokens);
    }
    found.retain(|passage| !passage.trim().is_empty());
    found
}

/// Where the next passage begins: as many whole pieces back as the overlap takes, and always further than the last.
fn back(pieces: &[&str], first: usize, end: usize, overlap: u64) -> usize {
    let mut at = end;
    let mut tokens = 0;
    while at > first + 1 {
        tokens += pieces.get(at - 1).map_or(0, |piece| of_text(piece));
        if tokens > overlap {
            break;
        }
        at -= 1;
    }
    at
}

/// The stretch of the text from the first piece to the last, which are neighbours.
fn spanned<'a>(text: &'a str, pieces: &[&'a str]) -> Option<&'a str> {
    let (first, last) = (pieces.first()?, pieces.last()?);
    let start = first.as_ptr() as usize - text.as_ptr() as usize;
    let end = last.as_ptr() as usize - text.as_ptr() as usize + last.len();
    text.get(start..end)
}

/// What a passage is made of: stretches that are not cut unless one alone is too long.
fn pieces(text: &str, most: u64) -> Vec<&str> {
    let mut found = Vec::new();
    for paragraph in text.split_inclusive("\n\n") {
        if of_text(paragraph) <= most / 2 {
            found.push(paragraph);
            continue;
        }
        for line in paragraph.split_inclusive('\n') {
            for sentence in sentences(line) {
                split_long(sentence, most, &mut found);
            }
        }
    }
    found
}

/// Sentences of a line, each with the blanks after it.
pub(crate) fn sentences(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut start, mut ended) = (0, false);
    for (at, c) in line.char_indices() {
        if ended && !c.is_whitespace() {
            found.extend(line.get(start..at));
            (start, ended) = (at, false);
        }
        let is_end = matches!(c, '.' | '!' | '?' | '。' | '！' | '？');
        let next_is_blank = line
            .get(at + c.len_utf8()..)
            .and_then(|rest| rest.chars().next())
            .is_none_or(char::is_whitespace);
        if is_end && (next_is_blank || !c.is_ascii()) {
            ended = true;
        }
    }
    found.extend(line.get(start..).filter(|rest| !rest.is_empty()));
    found
}

/// A stretch that is too long, cut between words, or between characters where there are no words.
pub(crate) fn split_long<'a>(text: &'a str, most: u64, found: &mut Vec<&'a str>) {
    let mut rest = text;
    while of_text(rest) > most {
        let (head, tail) = rest.split_at(cut(rest, most));
        if head.is_empty() {
            break;
        }
        found.push(head);
        rest = tail;
    }
    if !rest.is_empty() {
        found.push(rest);
    }
}

/// The last blank of what fits, or its end where a blank would leave less than half of it.
fn cut(text: &str, most: u64) -> usize {
    // A token is at most four bytes long.
    let limit = usize::try_from(most.saturating_mul(4)).unwrap_or(usize::MAX);
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let ends: Vec<usize> = ends.take_while(|end| *end <= limit).collect();
    let fits = |end: &usize| text.get(..*end).is_some_and(|head| of_text(head) <= most);
    let most = ends.partition_point(fits).checked_sub(1).and_then(|last| ends.get(last)).copied();
    let Some(end) = most else { return text.chars().next().map_or(0, char::len_utf8) };
    let head = text.get(..end).unwrap_or_default();
    let blank = head.char_indices().rfind(|(_, c)| c.is_whitespace()).map(|(at, c)| at + c.len_utf8());
    blank.filter(|at| *at * 2 > end).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paragraphs_stay_whole_and_neighbours_overlap() {
        let paragraph =
            |n: usize| format!("Paragraph {n} says that thing number {n} is {}.\n\n", "so ".repeat(20));
        let text: String = (0..40).map(paragraph).collect();
        let rule = ChunkRule { max_tokens: 100, overlap_tokens: 30 };
        let all = chunks(&text, &rule);
        assert!(all.len() > 10);
        assert!(all.iter().all(|it| it.starts_with("Paragraph") && of_text(it) <= 110), "{all:?}");
        for pair in all.windows(2) {
            let last = pair[0].trim_end().rsplit("\n\n").next().unwrap();
            assert!(pair[1].starts_with(last), "{last:?} is shared");
        }
    }

    #[test]
    fn sentences_end_where_they_end() {
        let line = "It costs 3.50 EUR. Really? 是的。好 ok";
        assert_eq!(sentences(line), ["It costs 3.50 EUR. ", "Really? ", "是的。", "好 ok"]);
    }

    #[test]
    fn a_text_without_any_blank_is_cut_all_the_same() {
        let text = "漢".repeat(1000);
        let all = chunks(&text, &ChunkRule { max_tokens: 100, overlap_tokens: 0 });
        assert!(all.len() >= 10 && all.iter().all(|it| of_text(it) <= 100));
        assert_eq!(all.concat(), text);
    }

    #[test]
    fn bounds_of_the_rule() {
        assert!(ChunkRule::new(99, 0).is_err() && ChunkRule::new(5000, 0).is_err());
        assert!(ChunkRule::new(100, 51).is_err());
        assert_eq!(ChunkRule::new(800, 400), Ok(ChunkRule { max_tokens: 800, overlap_tokens: 400 }));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_is_too_long(text in "(?s).{0,3000}", overlap in 0u64..60) {
            let rule = ChunkRule { max_tokens: 120, overlap_tokens: overlap };
            let all = chunks(&text, &rule);
            let mut reached = 0;
            for passage in &all {
                // Rounding: each piece is rounded up alone.
                prop_assert!(of_text(passage) <= rule.max_tokens + 1);
                let start = passage.as_ptr() as usize - text.as_ptr() as usize;
                prop_assert!(text[reached.min(start)..start].trim().is_empty());
                reached = start + passage.len();
            }
            prop_assert!(text[reached..].trim().is_empty());
        }
    }
}
