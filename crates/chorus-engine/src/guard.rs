//! The contract of an operating point for safety, held on every way out of the process.
//!
//! Before anything else, whoever asks is looked at: an attack, or a request of which it cannot be told, reaches no model.
//! What models wrote is looked at before another model reads it. Personal data leaves as placeholders, one for each value
//! of a run, and comes back in the answer. It knows no decision and no looper: whatever calls models, calls through it.
//!
//! **Invariant:** no request leaves while a text of it is uncleared, and none with a value that was taken out.

use crate::classify::Classifiers;
use crate::fault::{Code, Fault};
use crate::loopers::as_reply;
use crate::mom::Mom;
use chorus_collab::{Answer, CallFault, FaultKind, Reply};
use chorus_policy::Observation;
use chorus_signals::pii;
use chorus_wire::{ChatReply, ChatRequest, Message, Role};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The objective of a point whose contract this is.
const SAFETY: &str = "safety";
/// Score from which a finding is taken out, like the default of the `pii` signal.
const LEAST_SCORE: f64 = 0.5;
/// Fields of a request that hold texts.
const FIELDS: [&str; 6] = ["tools", "functions", "metadata", "user", "safety_identifier", "prediction"];
/// Keys whose values are words of the API.
const WORDS: [&str; 7] = ["role", "type", "id", "tool_call_id", "name", "url", "data"];

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

/// Placeholders and what they stand for.
#[derive(Default)]
struct Names {
    by_value: BTreeMap<(String, String), String>,
    values: BTreeMap<String, String>,
    counts: BTreeMap<String, usize>,
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
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let mut messages = Vec::with_capacity(request.messages().len());
        for (at, message) in request.messages().iter().enumerate() {
            let mut value: Value = serde_json::from_str(message.raw().get()).map_err(|_| unwritable())?;
            each_text(&mut value, &mut |text| names.redacted(text));
            let raw = serde_json::value::to_raw_value(&value).map_err(|_| unwritable())?;
            messages.push(Message::parse(raw.into(), at).map_err(|_| unwritable())?);
        }
        request.set_messages(messages);
        for field in FIELDS {
            if let Ok(Some(mut value)) = request.body().read::<Value>(field) {
                each_text(&mut value, &mut |text| names.redacted(text));
                request.set(field, &value);
            }
        }
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
            each_text(&mut choices, &mut |text| back.restore(text));
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

/// Every text below a value that is no word of the API.
fn each_text(value: &mut Value, change: &mut dyn FnMut(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(fields) => {
            for (_, value) in fields.iter_mut().filter(|(key, _)| !WORDS.contains(&key.as_str())) {
                each_text(value, change);
            }
        }
        _ => {}
    }
}

impl Names {
    fn redacted(&mut self, text: &str) -> String {
        let mut found = pii::find(text);
        found.retain(|it| it.score >= LEAST_SCORE);
        if found.is_empty() {
            return text.to_owned();
        }
        let (mut out, mut chars, mut at) = (String::with_capacity(text.len()), text.chars(), 0);
        for it in &found {
            out.extend(chars.by_ref().take(it.start.saturating_sub(at)));
            let value: String = chars.by_ref().take(it.end.saturating_sub(it.start.max(at))).collect();
            at = it.end.max(at);
            out.push_str(&self.name(it.entity.name(), value, text));
        }
        out.extend(chars);
        out
    }

    /// The placeholder of a value: the same one wherever it stands, and none that the text has of its own.
    fn name(&mut self, kind: &str, value: String, text: &str) -> String {
        if let Some(name) = self.by_value.get(&(kind.to_owned(), value.clone())) {
            return name.clone();
        }
        let count = self.counts.entry(kind.to_owned()).or_insert(0);
        let name = loop {
            *count += 1;
            let name = format!("<{kind}_{count}>");
            if !text.contains(&name) {
                break name;
            }
        };
        self.by_value.insert((kind.to_owned(), value.clone()), name.clone());
        self.values.insert(name.clone(), value);
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_value_has_one_placeholder_in_every_text_and_comes_back() {
        let mut names = Names::default();
        let mut first = json!({"role": "user", "content": "Write to anna.berg@example.com today."});
        let mut second = json!({"role": "tool", "content": [{"type": "text",
            "text": "anna.berg@example.com answered tom.hill@example.org"}]});
        each_text(&mut first, &mut |text| names.redacted(text));
        each_text(&mut second, &mut |text| names.redacted(text));
        assert_eq!(first, json!({"role": "user", "content": "Write to <EMAIL_ADDRESS_1> today."}));
        assert_eq!(second["content"][0]["text"], "<EMAIL_ADDRESS_1> answered <EMAIL_ADDRESS_2>");
        let back = pii::Redacted { text: String::new(), values: names.values };
        assert_eq!(back.restore("Dear <EMAIL_ADDRESS_2>"), "Dear tom.hill@example.org");
    }

    #[test]
    fn a_placeholder_that_the_text_has_is_not_taken() {
        let mut names = Names::default();
        let text = "The form says <EMAIL_ADDRESS_1>; mine is anna.berg@example.com";
        assert_eq!(names.redacted(text), "The form says <EMAIL_ADDRESS_1>; mine is <EMAIL_ADDRESS_2>");
    }

    #[test]
    fn words_of_the_api_stay() {
        let mut names = Names::default();
        let mut value = json!({"role": "user", "name": "anna.berg@example.com", "content": "plain"});
        let before = value.clone();
        each_text(&mut value, &mut |text| names.redacted(text));
        assert_eq!(value, before);
    }
}
