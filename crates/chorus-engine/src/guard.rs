//! The contract of an operating point for safety, held on every way out of the process.
//!
//! Before anything else, whoever asks is looked at: an attack, or a request of which it cannot be told, reaches no model.
//! What models wrote is looked at before another model reads it. Personal data leaves as placeholders, one for each value
//! of a run, and comes back in the answer. It knows no decision and no looper: whatever calls models, calls through it.
//!
//! **Invariant:** no request leaves while a text of it is uncleared, and none with a value that was taken out.

mod names;
mod texts;

use crate::classify::Classifiers;
use crate::fault::{Code, Fault};
use crate::loopers::as_reply;
use crate::mom::Mom;
use chorus_collab::{Answer, CallFault, FaultKind, Reply};
use chorus_policy::Observation;
use chorus_signals::pii;
use chorus_wire::{ChatReply, ChatRequest, Message, Role};
use names::Names;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use texts::{At, WORDS, each_text, parts, texts_below};

/// The objective of a point whose contract this is.
const SAFETY: &str = "safety";

/// The guard of one run.
pub(crate) struct Guard {
    mom: Arc<Mom>,
    names: Mutex<Names>,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Guard")
    }
}

impl Guard {
    /// The guard that the point of that name demands.
    pub(crate) fn of(mom: &Arc<Mom>, name: &str) -> Option<Arc<Self>> {
        let point = mom.artifact.point(name).filter(|point| point.objective == SAFETY);
        point.map(|_| Arc::new(Self { mom: Arc::clone(mom), names: Mutex::default() }))
    }

    /// Looks at every text of a request that has come in.
    ///
    /// # Errors
    /// [`Code::Blocked`]: an attack, or it cannot be told.
    pub(crate) async fn admit(&self, request: &ChatRequest) -> Result<(), Fault> {
        match is_cleared(&self.mom.classifiers, request.clone()).await {
            Ok(()) => Ok(()),
            Err(why) => {
                Err(Fault::new(Code::Blocked, format!("the request is refused: {why}")).at("messages"))
            }
        }
    }

    /// Looks at what a model wrote, before another one reads it.
    ///
    /// # Errors
    /// It holds an attack, or it cannot be told: the answer counts as none.
    pub(crate) async fn clear(&self, reply: &Reply) -> Result<(), CallFault> {
        let text = &reply.reply.content;
        if text.trim().is_empty() {
            return Ok(());
        }
        // As text that somebody else wrote: a model's answer is no user's word.
        let request = ChatRequest::new(&reply.model, vec![Message::new(Role::Tool, text)]);
        let fault = |why| CallFault {
            kind: FaultKind::Ineligible,
            public: format!("the answer is not passed on: {why}"),
            status: None,
        };
        is_cleared(&self.mom.classifiers, request).await.map_err(fault)
    }

    /// Takes personal data out of a request that is about to leave.
    ///
    /// # Errors
    /// A message that cannot be written again; the request must not leave then.
    pub(crate) fn redact(&self, request: &mut ChatRequest) -> Result<(), CallFault> {
        let mut parts = parts(request).ok_or_else(unwritable)?;
        let mut texts = Vec::new();
        parts.iter().for_each(|part| part.texts(&mut texts));
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = names.learn(&texts).into_iter();
        for part in &mut parts {
            part.each_text(&mut |text| names.redacted(text, found.next().unwrap_or_default()));
        }
        let mut messages = request.messages().to_vec();
        for part in parts.iter().filter(|part| part.changed) {
            match &part.at {
                At::Field(field) => request.set(field, &part.value),
                At::Message(at) => {
                    let raw = serde_json::value::to_raw_value(&part.value).map_err(|_| unwritable())?;
                    let message = Message::parse(raw.into(), *at).map_err(|_| unwritable())?;
                    *messages.get_mut(*at).ok_or_else(unwritable)? = message;
                }
            }
        }
        request.set_messages(messages);
        Ok(())
    }

    /// Puts the values back into the answer; it is held for that where anything was taken out.
    ///
    /// # Errors
    /// The fault that ends a held stream.
    pub(crate) async fn restored(&self, answer: Answer) -> Result<Answer, Fault> {
        let values = self.names.lock().unwrap_or_else(PoisonError::into_inner).values.clone();
        if values.is_empty() {
            return Ok(answer);
        }
        let reply = match answer {
            Answer::Finished(reply) => *reply,
            Answer::Live(live) => as_reply(live).await?,
        };
        let back = pii::Redacted { text: String::new(), values };
        let mut body = reply.reply;
        if let Ok(Some(mut choices)) = body.body().read::<Value>("choices") {
            each_text(&mut choices, &WORDS, &mut |text| back.restore(text));
            body.set("choices", &choices);
        }
        let read = ChatReply::parse(&body.to_bytes()).unwrap_or(body);
        Ok(Answer::Finished(Box::new(Reply { reply: read, ..reply })))
    }
}

/// Whether no text of a request is an attack; a sentence that says why not holds nothing of it.
async fn is_cleared(classifiers: &Classifiers, request: ChatRequest) -> Result<(), String> {
    let seen = classifiers.outbound(request).await.map_err(|_| "it could not be looked at".to_owned())?;
    match seen {
        Observation::Unmatched { .. } => Ok(()),
        Observation::Matched { .. } => Err("it tries to change the rules that answers follow".to_owned()),
        Observation::Absent(_) => Err("it could not be told whether it is an attack".to_owned()),
    }
}

fn unwritable() -> CallFault {
    CallFault { kind: FaultKind::Ineligible, public: "a message cannot be redacted".to_owned(), status: None }
}

/// Replaces personal data in every text of a value by placeholders, which nobody can turn back.
pub(crate) fn without_personal_data(value: &mut Value) {
    let mut names = Names::default();
    let mut texts = Vec::new();
    texts_below(value, &WORDS, &mut texts);
    let mut found = names.learn(&texts).into_iter();
    each_text(value, &WORDS, &mut |text| names.redacted(text, found.next().unwrap_or_default()));
}
