//! Chunks of one stream, read by what they share: most differ from the one before in a piece of text alone.
//!
//! It knows where that text stands, and nothing of streams. **Invariant:** a chunk is what [`Chunk::parse`] makes of its
//! bytes.

use crate::body::BodyFault;
use crate::chunk::{CHOICE, Chunk, ChunkChoice, DELTA};
use crate::scan::{pick, rows};
use std::ops::Range;

/// Chunks in a row that are like no other before no more is remembered: a backend that pads each of them with other
/// random text is read as it comes.
const STRANGERS: u8 = 16;

/// Reads the chunks of one stream.
#[derive(Debug, Default)]
pub struct ChunkReader {
    last: Option<Pattern>,
    strangers: u8,
}

impl ChunkReader {
    /// Reads one `data:` payload.
    ///
    /// # Errors
    /// When it is not an object, or its `choices` cannot be read.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Chunk, BodyFault> {
        if let Some(chunk) = self.last.as_ref().and_then(|last| last.read(bytes)) {
            self.strangers = 0;
            return Ok(chunk);
        }
        let chunk = Chunk::parse(bytes)?;
        if self.strangers < STRANGERS {
            self.strangers += 1;
            self.last = Pattern::of(&chunk).or(self.last.take());
        }
        Ok(chunk)
    }
}

/// Where a choice keeps the text.
type Slot = fn(&mut ChunkChoice) -> &mut Option<String>;

/// A chunk that holds one piece of text, and where it stands.
#[derive(Debug)]
struct Pattern {
    /// Its body as it was read, its choice without the text.
    chunk: Chunk,
    /// Of the text's bytes, between its quotation marks.
    place: Range<usize>,
    of: Slot,
}

impl Pattern {
    /// Of a chunk as it was read; `None` where it has more than text to tell.
    fn of(chunk: &Chunk) -> Option<Self> {
        let [choice] = chunk.choices.as_slice() else { return None };
        let tells_more = choice.finish_reason.is_some()
            || choice.logprobs.is_some()
            || !choice.tool_calls.is_empty()
            || chunk.usage.is_some()
            || chunk.error.is_some();
        if tells_more {
            return None;
        }
        let mut delta = None;
        rows(chunk.body.get("choices")?, CHOICE, |_, picked| delta = picked.ok().and_then(|[_, it, ..]| it))?;
        let [_, content, reasoning_content, reasoning, _] = pick(delta?, DELTA).ok()?;
        let is_text = |raw: &&str| raw.len() > 2 && raw.starts_with('"');
        let (text, of): (_, Slot) = match content.filter(is_text) {
            Some(content) => (content, |choice| &mut choice.content),
            None => (reasoning_content.or(reasoning).filter(is_text)?, |choice| &mut choice.reasoning),
        };
        let text = chunk.body.place_of(text)?;
        let mut chunk = chunk.clone();
        chunk.choices.first_mut().map(of)?.take();
        Some(Self { chunk, place: text.start + 1..text.end - 1, of })
    }

    /// A chunk that differs in that text alone; `None` for any other, for no text, and for one that is not written as it reads.
    fn read(&self, bytes: &[u8]) -> Option<Chunk> {
        let like = self.chunk.body.read_from();
        let (before, after) = (like.get(..self.place.start)?, like.get(self.place.end..)?);
        let whole = std::str::from_utf8(bytes).ok()?;
        let text = whole.strip_prefix(before)?.strip_suffix(after)?;
        let is_more_than_itself = |byte| byte < b' ' || byte == b'"' || byte == b'\\';
        if text.is_empty() || text.bytes().any(is_more_than_itself) {
            return None;
        }
        let mut chunk = Chunk {
            body: self.chunk.body.again(whole, self.place.end, self.place.start + text.len())?,
            choices: self.chunk.choices.clone(),
            usage: None,
            error: None,
            shapes: self.chunk.shapes.clone(),
        };
        *(self.of)(chunk.choices.first_mut()?) = Some(text.to_owned());
        Some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn both(reader: &mut ChunkReader, text: &str) -> [Option<String>; 2] {
        let told = |chunk: Result<Chunk, BodyFault>| {
            chunk.ok().map(|chunk| format!("{chunk:?} {:?}", chunk.to_bytes()))
        };
        [told(reader.read(text.as_bytes())), told(Chunk::parse(text.as_bytes()))]
    }

    fn is_known(reader: &ChunkReader, text: &str) -> bool {
        reader.last.as_ref().is_some_and(|last| last.read(text.as_bytes()).is_some())
    }

    #[test]
    fn what_differs_in_its_text_alone_is_known() {
        let content = |text: &str| {
            format!(
                r#"{{"id":"a","choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":null}}],"usage":null,"x":[1]}}"#
            )
        };
        let mut reader = ChunkReader::default();
        reader.read(content("one").as_bytes()).unwrap();
        for (text, known) in
            [("two", true), ("", false), ("é 日本", true), ("a\\nb", false), ("a\"", false), ("\t", false)]
        {
            assert_eq!(is_known(&reader, &content(text)), known, "{text}");
            let [ours, parsed] = both(&mut reader, &content(text));
            assert_eq!(ours, parsed, "{text}");
        }
        let reasoning =
            |text: &str| format!(r#"{{"choices":[{{"delta":{{"content":"","reasoning":"{text}"}}}}]}}"#);
        reader.read(reasoning("hm").as_bytes()).unwrap();
        assert!(is_known(&reader, &reasoning("well")) && !is_known(&reader, &content("two")));
        for text in ["well", "", "so"] {
            let [ours, parsed] = both(&mut reader, &reasoning(text));
            assert_eq!(ours, parsed, "{text}");
        }
    }

    #[test]
    fn what_tells_more_than_text_is_nothing_to_go_by() {
        let choice = |rest: &str| format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"a"{rest}}}]}}"#);
        for rest in [
            r#"},"finish_reason":"stop""#,
            r#"},"logprobs":{"content":[]}"#,
            r#","tool_calls":[{"index":0}]}"#,
        ] {
            let mut reader = ChunkReader::default();
            reader.read(choice(rest).as_bytes()).unwrap();
            assert!(reader.last.is_none(), "{rest}");
        }
    }

    #[test]
    fn a_stream_of_strangers_is_not_remembered_for_ever() {
        let mut reader = ChunkReader::default();
        let padded =
            |pad: usize| format!(r#"{{"choices":[{{"delta":{{"content":"a"}}}}],"obfuscation":"{pad}"}}"#);
        for pad in 0..100 {
            let [ours, parsed] = both(&mut reader, &padded(pad));
            assert_eq!(ours, parsed);
        }
        assert!(is_known(&reader, &padded(usize::from(STRANGERS) - 1)), "the last that was remembered");
    }

    proptest! {
        #[test]
        fn it_is_what_parsing_makes_of_it(texts in prop::collection::vec(r#"["a-c\\é\t{}:]{0,4}"#, 1..8), tail in "[ a]{0,1}") {
            let mut reader = ChunkReader::default();
            for text in texts {
                let chunk = format!(r#"{{"i":1,"choices":[{{"index":0,"delta":{{"role":"assistant","content":"{text}"}}}}],"\u0061":2,"z":{{}}}}{tail}"#);
                let [ours, parsed] = both(&mut reader, &chunk);
                prop_assert_eq!(ours, parsed);
            }
        }
    }
}
