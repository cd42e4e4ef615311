//! The backend of the endurance run: it fails as the request's number says, the first time, and counts what it charges.

use super::ask::{Ask, Trouble};
use crate::line::Usage;
use chorus_testkit::openai::chunk;
use chorus_testkit::{ChatAnswer, Received, Script, ScriptedUpstream, Step};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Between two pieces of a stream.
const GAP: Duration = Duration::from_millis(3);

/// The backend, and its books.
pub(super) struct Backend {
    pub(super) scripts: ScriptedUpstream,
    books: Arc<Mutex<Books>>,
}

#[derive(Default)]
struct Books {
    /// Numbers that have failed once.
    failed: BTreeSet<u64>,
    /// What answers that were sent to their end took.
    charged: Usage,
}

impl Backend {
    pub(super) async fn start() -> anyhow::Result<Self> {
        let scripts = ScriptedUpstream::start().await?;
        scripts.forget();
        let books = Arc::new(Mutex::new(Books::default()));
        let shared = Arc::clone(&books);
        scripts.otherwise(move |request| script(request, &shared));
        Ok(Self { scripts, books })
    }

    /// What it has charged: every answer that it sent to its end.
    pub(super) fn charged(&self) -> Usage {
        self.books.lock().unwrap_or_else(PoisonError::into_inner).charged
    }
}

fn script(request: &Received, books: &Mutex<Books>) -> Script {
    let Some(ask) = Ask::of(&request.last_user_text()) else {
        return Script::error(400, "no number");
    };
    let mut books = books.lock().unwrap_or_else(PoisonError::into_inner);
    let trouble = ask.trouble().filter(|trouble| *trouble != Trouble::ClientLeaves);
    if let Some(trouble) = trouble.filter(|_| books.failed.insert(ask.0)) {
        return failing(trouble, ask);
    }
    if ask.trouble() != Some(Trouble::ClientLeaves) {
        let usage = ask.usage();
        books.charged.prompt_tokens += usage.prompt_tokens;
        books.charged.completion_tokens += usage.completion_tokens;
    }
    Script::chat(answer(ask)).gap(GAP)
}

fn answer(ask: Ask) -> ChatAnswer {
    let Usage { prompt_tokens, completion_tokens } = ask.usage();
    ChatAnswer::pieces((0..completion_tokens).map(|_| "lantern ")).usage(prompt_tokens, completion_tokens)
}

fn failing(trouble: Trouble, ask: Ask) -> Script {
    let piece = || Step::event(&chunk("small", &json!({"content": "lantern "})).to_string());
    match (trouble, ask.streams()) {
        (Trouble::Reset | Trouble::ClientLeaves, _) => Script::raw([Step::Reset]),
        (Trouble::Limited, _) => Script::error(429, "slow down").header("retry-after", "0"),
        (Trouble::Stall, false) => Script::raw([Step::Stall]),
        (Trouble::Stall, true) => Script::sse([piece(), piece(), Step::Stall]),
        (Trouble::HalfWritten, false) => {
            let body = answer(ask).whole("small").to_string();
            let half = body.get(..body.len() / 2).unwrap_or_default();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{half}",
                body.len()
            );
            Script::raw([Step::write(head), Step::Close])
        }
        (Trouble::HalfWritten, true) => {
            Script::sse([piece(), Step::write("data: {\"id\":\"chatc"), Step::Close])
        }
    }
}
