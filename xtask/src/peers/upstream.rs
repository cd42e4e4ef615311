//! The scripted backend of the measurements: one whole answer and one stream, made once and sent as they are.

use chorus_testkit::{ChatAnswer, Received, Script, ScriptedUpstream, Step};
use std::time::Duration;

/// Chunks with text in one stream.
pub(super) const CHUNKS: u64 = 100;

/// Between two chunks: 200 a second, as a fast model has it. Chunks that follow one another without a pause would be read
/// together, and cost whoever does not look inside next to nothing.
const GAP: Duration = Duration::from_millis(5);

/// What a stream says, piece by piece.
const WORD: &str = "lantern ";

/// Serves until it is stopped.
pub(super) fn serve(port: u16) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let upstream = ScriptedUpstream::start_on(([127, 0, 0, 1], port).into()).await?;
        upstream.forget();
        let (whole, streamed) = (whole(), streamed());
        upstream.otherwise(move |request| if is_stream(request) { streamed.clone() } else { whole.clone() });
        std::future::pending().await
    })
}

fn is_stream(request: &Received) -> bool {
    let mark = b"\"stream\":true";
    request.body.windows(mark.len()).any(|window| window == mark)
}

/// An answer of about 1 KiB.
fn whole() -> Script {
    let text = "The lighthouse keeper counts the ships that pass in the fog. ".repeat(12);
    Script::json(200, &ChatAnswer::text(&text).usage(700, 180).whole("small"))
}

fn streamed() -> Script {
    let answer = ChatAnswer::pieces((0..CHUNKS).map(|_| WORD)).usage(700, CHUNKS);
    let mut steps = Vec::new();
    for chunk in answer.chunks("small", true) {
        steps.push(Step::event(&chunk.to_string()));
        steps.push(Step::Wait(GAP));
    }
    steps.push(Step::event("[DONE]"));
    Script::sse(steps)
}
