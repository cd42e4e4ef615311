//! Watches a streamed answer go by, for what can only be told once it is whole.
//!
//! It knows chunks as the client gets them. **Invariant:** it never holds a chunk back, and a stream that nobody asked it
//! to watch costs nothing.

use crate::loopers::After;
use crate::record::Draft;
use chorus_wire::{Assembler, Chunk};

/// The answer so far, where somebody waits for its end.
pub(crate) struct Watch<'a>(Option<Watched<'a>>);

struct Watched<'a> {
    after: Box<After<'a>>,
    answer: Assembler,
    calls: Vec<String>,
}

impl<'a> Watch<'a> {
    /// Watches for that.
    pub(crate) fn of(after: Option<Box<After<'a>>>) -> Self {
        Self(after.map(|after| Watched { after, answer: Assembler::default(), calls: Vec::new() }))
    }

    /// The chunk, with what there is to tell on the one that ends the answer.
    pub(crate) async fn seen(&mut self, mut chunk: Chunk, draft: &mut Draft) -> Chunk {
        let Some(watched) = &mut self.0 else { return chunk };
        watched.answer.push(&chunk);
        let parts = chunk.choices.iter().flat_map(|choice| &choice.tool_calls);
        watched.calls.extend(parts.filter_map(|part| part.id.clone()));
        if chunk.choices.iter().any(|choice| choice.finish_reason.is_some())
            && let Some(Watched { mut after, answer, calls }) = self.0.take()
            && let Some((field, told)) = after.end(answer.content(), &calls, draft).await
        {
            chunk.set(field, &told);
        }
        chunk
    }
}
