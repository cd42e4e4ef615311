//! What records the attempts of a run as they are made, or plays recorded ones in their place.
//!
//! Attempts are told apart by the digest of the request that the backend got. One that ended is played when all that ended
//! before it have been, and all that had begun by then have begun, so that a panel has the same winners; one that nobody
//! waited for is never answered. It knows no algorithm. **Invariant:** a recording changes nothing of an attempt but for the copy that it keeps.

use super::kept::{End, Ended, Kept, KeptFault, KeptWhy, Outcome};
use crate::backends::Missed;
use chorus_collab::{CallFault, Chunks, FaultKind};
use chorus_spec::Digest;
use chorus_wire::{ChatReply, ChatRequest, Chunk};
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::value::RawValue;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How long an attempt waits for those that ended before it: in a run that takes another way they may never come.
const PATIENCE: Duration = Duration::from_secs(1);

/// The attempts of one run. Cloning shares them.
#[derive(Debug, Clone)]
pub(crate) enum Deck {
    Recording(Arc<Recorder>),
    Playing(Arc<Player>),
}

#[derive(Debug, Default)]
pub(crate) struct Recorder {
    calls: Mutex<Vec<Kept>>,
}

#[derive(Debug)]
pub(crate) struct Player {
    calls: Mutex<Vec<(Kept, bool)>>,
    /// How many have ended, and begun, so far.
    now: watch::Sender<Ended>,
    notes: Mutex<Vec<String>>,
}

/// One attempt: whose, and what the backend gets.
pub(crate) struct Attempted<'a> {
    pub(crate) model: &'a str,
    pub(crate) backend: &'a str,
    pub(crate) request: &'a ChatRequest,
}

impl Deck {
    pub(crate) fn recording() -> Self {
        Self::Recording(Arc::default())
    }

    pub(crate) fn playing(calls: Vec<Kept>) -> Self {
        let calls = calls.into_iter().map(|call| (call, false)).collect();
        let now = watch::Sender::new(Ended::default());
        Self::Playing(Arc::new(Player { calls: Mutex::new(calls), now, notes: Mutex::default() }))
    }

    /// What was recorded so far.
    pub(crate) fn recorded(&self) -> Vec<Kept> {
        match self {
            Self::Recording(recorder) => lock(&recorder.calls).clone(),
            Self::Playing(_) => Vec::new(),
        }
    }

    /// Where a run that was played took another way than the recorded one; and attempts that were not made again.
    pub(crate) fn strayed(&self) -> Vec<String> {
        let Self::Playing(player) = self else { return Vec::new() };
        let mut notes = lock(&player.notes).clone();
        let left = lock(&player.calls)
            .iter()
            .filter(|(_, used)| !used)
            .map(|(call, _)| call.model.clone())
            .collect::<Vec<_>>();
        notes
            .extend(left.into_iter().map(|model| format!("a recorded call to `{model}` was not made again")));
        notes
    }

    /// The backend that the next attempt at a model went to, in a run that is played.
    pub(crate) fn backend_of(&self, model: &str) -> Option<String> {
        let Self::Playing(player) = self else { return None };
        let calls = lock(&player.calls);
        calls.iter().find(|(call, used)| !used && call.model == model).map(|(call, _)| call.backend.clone())
    }

    /// A whole answer: the one that `work` gives, or the recorded one.
    pub(crate) async fn complete(
        &self,
        attempted: Attempted<'_>,
        work: impl Future<Output = Result<ChatReply, Missed>>,
    ) -> Result<ChatReply, Missed> {
        match self {
            Self::Recording(recorder) => {
                let seat = recorder.open(&attempted);
                let answer = work.await;
                let outcome = match &answer {
                    Ok(reply) => raw(reply.to_bytes()).map_or(Outcome::Open, Outcome::Reply),
                    Err(missed) => Outcome::Fault(KeptFault::of(missed)),
                };
                recorder.close(seat, outcome);
                answer
            }
            Self::Playing(player) => {
                drop(work);
                match player.outcome(&attempted).await {
                    Outcome::Reply(raw) => ChatReply::parse(raw.get().as_bytes()).map_err(|_| unlike()),
                    Outcome::Fault(fault) => Err(fault.missed()),
                    Outcome::Open => std::future::pending().await,
                    Outcome::Stream { .. } => Err(unlike()),
                }
            }
        }
    }

    /// An answer as a stream: the one that `work` begins, or the recorded one.
    pub(crate) async fn stream(
        &self,
        attempted: Attempted<'_>,
        work: impl Future<Output = Result<Chunks, Missed>>,
    ) -> Result<Chunks, Missed> {
        match self {
            Self::Recording(recorder) => {
                let seat = recorder.open(&attempted);
                match work.await {
                    Ok(chunks) => {
                        recorder.close(seat, Outcome::Stream { chunks: Vec::new(), end: End::Left });
                        Ok(listened(chunks, Arc::clone(recorder), seat))
                    }
                    Err(missed) => {
                        recorder.close(seat, Outcome::Fault(KeptFault::of(&missed)));
                        Err(missed)
                    }
                }
            }
            Self::Playing(player) => {
                drop(work);
                match player.outcome(&attempted).await {
                    Outcome::Stream { chunks, end } => Ok(played(chunks, end)),
                    Outcome::Fault(fault) => Err(fault.missed()),
                    Outcome::Open => std::future::pending().await,
                    Outcome::Reply(_) => Err(unlike()),
                }
            }
        }
    }
}

impl Recorder {
    fn open(&self, attempted: &Attempted<'_>) -> usize {
        let mut calls = lock(&self.calls);
        calls.push(Kept {
            model: attempted.model.to_owned(),
            backend: attempted.backend.to_owned(),
            request: digest(attempted.request),
            ended: None,
            outcome: Outcome::Open,
        });
        calls.len() - 1
    }

    fn close(&self, seat: usize, outcome: Outcome) {
        let mut calls = lock(&self.calls);
        let after = calls.iter().filter(|call| call.ended.is_some()).count();
        let ended = Ended { after, begun: calls.len() };
        if let Some(call) = calls.get_mut(seat) {
            (call.ended, call.outcome) = (Some(ended), outcome);
        }
    }

    fn heard(&self, seat: usize, told: Option<&Result<Chunk, CallFault>>) {
        let mut calls = lock(&self.calls);
        let Some(Outcome::Stream { chunks, end }) = calls.get_mut(seat).map(|call| &mut call.outcome) else {
            return;
        };
        match told {
            Some(Ok(chunk)) => chunks.extend(raw(chunk.to_bytes())),
            Some(Err(fault)) => *end = End::Broken(KeptFault::ours(fault)),
            None => *end = End::Whole,
        }
    }
}

impl Player {
    /// What came of the attempt, once those that ended before it have been played.
    async fn outcome(&self, attempted: &Attempted<'_>) -> Outcome {
        let Some(kept) = self.take(attempted) else {
            self.note(format!("a call to `{}` was not recorded", attempted.model));
            return Outcome::Fault(KeptFault {
                kind: FaultKind::Ineligible,
                public: "the answer of this call was not recorded".to_owned(),
                status: None,
                why: KeptWhy::Ours,
            });
        };
        self.now.send_modify(|now| now.begun += 1);
        if let Some(ended) = kept.ended {
            let mut now = self.now.subscribe();
            let is_turn = |now: &Ended| now.after >= ended.after && now.begun >= ended.begun;
            // In a run that takes another way, whoever is waited for may never come.
            let _ = tokio::time::timeout(PATIENCE, now.wait_for(is_turn)).await;
            self.now.send_modify(|now| now.after = now.after.max(ended.after + 1));
        }
        kept.outcome
    }

    /// The recorded attempt with that very request, else the next one at that backend, else the next one at the model.
    fn take(&self, attempted: &Attempted<'_>) -> Option<Kept> {
        let request = digest(attempted.request);
        let mut calls = lock(&self.calls);
        let free =
            |wanted: &dyn Fn(&Kept) -> bool| calls.iter().position(|(call, used)| !used && wanted(call));
        let at_model = |call: &Kept| call.model == attempted.model;
        let same =
            free(&|call| at_model(call) && call.request == request && call.backend == attempted.backend);
        let near = || free(&|call| at_model(call) && call.backend == attempted.backend);
        let at = same.or_else(near).or_else(|| free(&at_model))?;
        let (kept, used) = calls.get_mut(at)?;
        *used = true;
        let kept = kept.clone();
        drop(calls);
        if kept.request != request {
            self.note(format!(
                "the request of a call to `{}` is another than the recorded one",
                attempted.model
            ));
        }
        Some(kept)
    }

    fn note(&self, note: String) {
        lock(&self.notes).push(note);
    }
}

/// A stream that is copied as it passes.
fn listened(chunks: Chunks, recorder: Arc<Recorder>, seat: usize) -> Chunks {
    stream::unfold(Some((chunks, recorder)), move |state| async move {
        let (mut chunks, recorder) = state?;
        let told = chunks.next().await;
        recorder.heard(seat, told.as_ref());
        let told = told?;
        let goes_on = told.is_ok();
        Some((told, goes_on.then_some((chunks, recorder))))
    })
    .boxed()
}

/// A recorded stream; one that nobody read to its end has none.
fn played(chunks: Vec<Box<RawValue>>, end: End) -> Chunks {
    let read = |raw: Box<RawValue>| Chunk::parse(raw.get().as_bytes()).map_err(|_| unlike().fault);
    let whole = stream::iter(chunks.into_iter().map(read).collect::<Vec<_>>());
    match end {
        End::Whole => whole.boxed(),
        End::Broken(fault) => whole.chain(stream::iter([Err(fault.missed().fault)])).boxed(),
        End::Left => whole.chain(stream::pending()).boxed(),
    }
}

fn unlike() -> Missed {
    let public = "the recorded answer is of another kind than the call".to_owned();
    CallFault { kind: FaultKind::Ineligible, public, status: None }.into()
}

fn digest(request: &ChatRequest) -> String {
    Digest::of(&request.to_bytes()).to_string()
}

fn raw(bytes: Vec<u8>) -> Option<Box<RawValue>> {
    RawValue::from_string(String::from_utf8(bytes).ok()?).ok()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_upstream::UpstreamFault;
    use chorus_wire::{Message, Role};

    fn ask(text: &str) -> ChatRequest {
        ChatRequest::new("m", vec![Message::new(Role::User, text)])
    }

    async fn said(deck: &Deck, text: &str, answer: Result<&str, Missed>) -> Result<String, FaultKind> {
        let request = ask(text);
        let attempted = Attempted { model: "m", backend: "b", request: &request };
        let answer = answer.map(|text| ChatReply::text("x", "m", 0, text));
        let reply = deck.complete(attempted, async { answer }).await;
        reply.map(|reply| reply.content).map_err(|missed| missed.fault.kind)
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_recorded_is_played_by_request_whatever_the_order() {
        let deck = Deck::recording();
        let status = UpstreamFault::Status { status: 503, body: None, retry_after: None };
        assert_eq!(said(&deck, "one", Ok("1")).await.as_deref(), Ok("1"));
        assert_eq!(said(&deck, "two", Err(status.into())).await, Err(FaultKind::Status));
        let text = serde_json::to_string(&deck.recorded()).unwrap();
        let deck = Deck::playing(serde_json::from_str(&text).unwrap());
        assert_eq!(deck.backend_of("m").as_deref(), Some("b"));
        let (two, one) = tokio::join!(said(&deck, "two", Ok("never")), said(&deck, "one", Ok("never")));
        assert_eq!((one.as_deref(), two), (Ok("1"), Err(FaultKind::Status)));
        assert_eq!(deck.strayed(), Vec::<String>::new());
        assert_eq!(said(&deck, "three", Ok("never")).await, Err(FaultKind::Ineligible));
        assert_eq!(deck.strayed(), ["a call to `m` was not recorded"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_is_copied_as_far_as_it_was_read() {
        let deck = Deck::recording();
        let request = ask("one");
        let attempted = || Attempted { model: "m", backend: "b", request: &request };
        let chunks = || stream::iter([Ok(Chunk::content("a")), Ok(Chunk::content("b"))]).boxed();
        let mut whole = deck.stream(attempted(), async { Ok(chunks()) }).await.unwrap();
        while whole.next().await.is_some() {}
        let mut left = deck.stream(attempted(), async { Ok(chunks()) }).await.unwrap();
        left.next().await.unwrap().unwrap();
        drop(left);
        let deck = Deck::playing(deck.recorded());
        let again = deck.stream(attempted(), async { Ok(chunks()) }).await.unwrap();
        assert_eq!(again.count().await, 2);
        let mut again = deck.stream(attempted(), async { Ok(chunks()) }).await.unwrap();
        again.next().await.unwrap().unwrap();
        let more = tokio::time::timeout(Duration::from_secs(5), again.next()).await;
        assert!(more.is_err(), "nobody knows what would have come");
    }
}
