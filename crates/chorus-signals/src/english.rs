//! Words by which a text is known to be English before any detector is asked.
//!
//! It knows no other language. **Invariant:** a word counts only where no other language of the Latin script writes it.

/// Fewest words of a text of which English words are proof enough.
const PROSE_WORDS: usize = 20;

/// One in so many of an English text's words is one of the frequent ones; where another language quotes English, fewer are.
const FREQUENT_SHARE: usize = 8;

/// What of a text's words are frequent English ones.
#[derive(Debug, Default)]
pub(crate) struct English {
    words: usize,
    known: usize,
    /// Whether two of the known ones differ.
    various: bool,
    ascii: bool,
}

impl English {
    /// Counts the words of a text.
    pub(crate) fn of(text: &str) -> Self {
        if text.is_ascii() {
            let words = text.as_bytes().split(|letter| !letter.is_ascii_alphabetic());
            Self { ascii: true, ..Self::counted(words) }
        } else {
            Self::counted(text.split(|c: char| !c.is_alphabetic()).map(str::as_bytes))
        }
    }

    fn counted<'a>(words: impl Iterator<Item = &'a [u8]>) -> Self {
        let (mut it, mut first) = (Self::default(), None);
        for word in words.filter(|word| !word.is_empty()) {
            it.words += 1;
            if let Some(known) = frequent(word) {
                it.known += 1;
                it.various |= *first.get_or_insert(known) != known;
            }
        }
        it
    }

    /// Whether a text holds two different words that are English only, and frequent.
    ///
    /// Nearly every English text does, and `whatlang`, which costs most of this signal's time, has nothing to add then.
    pub(crate) fn is_plain(&self) -> bool {
        self.various
    }

    /// Whether the text is so full of such words that no detector has anything to add: their tables are large, and to read
    /// them takes longer than all else that a heuristic recipe does.
    pub(crate) fn is_all_of_it(&self) -> bool {
        self.ascii && self.various && self.words >= PROSE_WORDS && self.known * FREQUENT_SHARE >= self.words
    }
}

/// The letters of a frequent word that no other language of the Latin script writes like this, if it is one.
fn frequent(word: &[u8]) -> Option<[u8; FREQUENT_LETTERS]> {
    let mut letters = [0; FREQUENT_LETTERS];
    letters.get_mut(..word.len())?.copy_from_slice(word);
    letters.make_ascii_lowercase();
    let is_known = matches!(
        letters.get(..word.len())?,
        b"about"
            | b"and"
            | b"are"
            | b"because"
            | b"between"
            | b"could"
            | b"does"
            | b"each"
            | b"explain"
            | b"from"
            | b"how"
            | b"into"
            | b"other"
            | b"our"
            | b"please"
            | b"should"
            | b"since"
            | b"that"
            | b"the"
            | b"their"
            | b"them"
            | b"there"
            | b"these"
            | b"they"
            | b"this"
            | b"through"
            | b"were"
            | b"what"
            | b"when"
            | b"where"
            | b"which"
            | b"while"
            | b"who"
            | b"with"
            | b"without"
            | b"would"
            | b"you"
            | b"your"
    );
    is_known.then_some(letters)
}

/// Letters of the longest frequent word.
const FREQUENT_LETTERS: usize = 7;
