//! `ModelCalls` whose models answer from the record. Nothing waits; every call is kept.

use super::record::Row;
use chorus_collab::calls::{
    Call, CallFault, Chunks, Enough, FaultKind, GatherRule, Gathered, Live, Member, ModelCalls, Reply,
};
use chorus_wire::{ChatReply, Chunk, Usage};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use std::sync::{Mutex, PoisonError};

/// The models of one question.
pub(super) struct Recorded<'a> {
    row: &'a Row,
    asked: Mutex<Vec<String>>,
}

impl<'a> Recorded<'a> {
    pub(super) fn new(row: &'a Row) -> Self {
        Self { row, asked: Mutex::default() }
    }

    /// The models that were asked, once a call.
    pub(super) fn asked(self) -> Vec<String> {
        self.asked.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, call: &Call) -> Result<Reply, CallFault> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(call.model.clone());
        let text = told(self.row.chosen(&call.model), self.row.chars(&call.model));
        let reply = ChatReply::text("recorded", &call.model, 0, &text);
        if !reply.is_usable() {
            let public = "the record has no answer".to_owned();
            return Err(CallFault { kind: FaultKind::Empty, public, status: None });
        }
        Ok(Reply { model: call.model.clone(), reply, usage: Usage::default() })
    }
}

/// An answer of that many characters that ends in the letter; one without a letter says nothing.
fn told(letter: Option<&str>, chars: usize) -> String {
    let end = letter.map(|letter| format!("ANSWER: {letter}")).unwrap_or_default();
    let working = chars.saturating_sub(end.chars().count());
    format!("{}{end}", ".".repeat(working))
}

impl ModelCalls for Recorded<'_> {
    fn complete(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallFault>> {
        async move { self.answer(&call) }.boxed()
    }

    fn stream(&self, call: Call) -> BoxFuture<'_, Result<Live, CallFault>> {
        async move {
            let reply = self.answer(&call)?;
            let chunks: Chunks =
                stream::iter([Ok(Chunk::content(&reply.reply.content)), Ok(Chunk::finish("stop"))]).boxed();
            Ok(Live { model: reply.model, chunks })
        }
        .boxed()
    }

    fn gather_until<'b>(
        &'b self,
        calls: Vec<Call>,
        rule: GatherRule,
        enough: &'b Enough,
    ) -> BoxFuture<'b, Gathered> {
        async move {
            let mut members: Vec<Member> = Vec::new();
            for (seat, call) in calls.into_iter().enumerate() {
                let usable = members.iter().filter(|member| member.outcome.is_ok()).count();
                let outcome = if usable >= rule.quorum || enough(&members) {
                    let public = "nobody waits for it".to_owned();
                    Err(CallFault { kind: FaultKind::Cancelled, public, status: None })
                } else {
                    self.answer(&call)
                };
                members.push(Member { seat, model: call.model, outcome });
            }
            Gathered { members }
        }
        .boxed()
    }

    fn context_window(&self, _model: &str) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_collab::extract::final_answer;

    #[test]
    fn what_is_told_is_as_long_as_recorded_and_says_the_letter() {
        for (letter, chars, said) in
            [(Some("E"), 18, Some("e")), (Some("J"), 700, Some("j")), (None, 40, None), (None, 300, None)]
        {
            let text = told(letter, chars);
            assert_eq!(text.chars().count(), chars);
            assert_eq!(final_answer(&text).as_deref(), said);
        }
        assert_eq!(told(None, 0), "");
    }
}
