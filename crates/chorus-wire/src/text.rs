//! Text that is shared: a whole one, or a piece of a larger one.
//!
//! It knows no JSON. **Invariant:** a piece keeps the whole alive, and copies nothing of it.

use std::ops::{Deref, Range};
use std::sync::Arc;

/// A shared text. Cloning it, or taking a piece of it, copies no text.
#[derive(Clone)]
pub(crate) struct Text {
    whole: Arc<str>,
    start: usize,
    end: usize,
}

impl Text {
    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        self.whole.get(self.start..self.end).unwrap_or_default()
    }

    /// A piece of this text; a text of its own, if it should be none.
    pub(crate) fn piece(&self, piece: &str) -> Self {
        self.place_of(piece).and_then(|place| self.part(place)).unwrap_or_else(|| piece.into())
    }

    /// The piece at that place; `None` where there is none, or it would begin or end amid a character.
    pub(crate) fn part(&self, place: Range<usize>) -> Option<Self> {
        let (start, end) = (self.start + place.start, self.start + place.end);
        self.as_str().get(place).map(|_| Self { whole: Arc::clone(&self.whole), start, end })
    }

    /// Where a piece stands in this text; `None` for any other.
    pub(crate) fn place_of(&self, piece: &str) -> Option<Range<usize>> {
        let text = self.as_str();
        let start = (piece.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
        let place = start..start.wrapping_add(piece.len());
        text.get(place.clone()).filter(|found| std::ptr::eq(*found, piece)).map(|_| place)
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<Arc<str>> for Text {
    fn from(whole: Arc<str>) -> Self {
        let end = whole.len();
        Self { whole, start: 0, end }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Arc::<str>::from(text).into()
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Arc::<str>::from(text).into()
    }
}

impl Default for Text {
    fn default() -> Self {
        Arc::<str>::default().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_of_the_whole_and_nothing_else_is() {
        let whole = Text::from("one two three");
        let two = whole.piece(&whole.as_str()[4..7]);
        assert_eq!((two.as_str(), two.whole.len()), ("two", 13));
        let again = two.piece(&two.as_str()[1..]);
        assert_eq!((again.as_str(), again.whole.len()), ("wo", 13));
        let stranger = String::from("two");
        assert_eq!((whole.piece(&stranger).as_str(), whole.piece(&stranger).whole.len()), ("two", 3));
        assert_eq!(Text::default().as_str(), "");
    }
}
