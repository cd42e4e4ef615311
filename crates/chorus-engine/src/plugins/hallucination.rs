//! `hallucination`: statements of an answer that the material at hand does not support are remarked on.
//!
//! Material is what tools returned and what `rag` put into the request; an answer without material to a question for facts is
//! `unverified_factual`. The remark is a word in a header, a line in front of the text, or stands in the record alone. A
//! stream is held only for a line in front of it: its headers leave with its first chunk, so with `header` what a stream
//! turns out to say is in the record; that a question for facts has no material is known before, and is in the header.
//!
//! **Invariant:** no answer is refused here, and one that could not be checked is neither remarked on nor called checked.
//! Source: contract §1.10; `use_nli` compares by meaning besides words, since this process has no model of entailment.

mod check;

use super::answer_text::{is_for_a_program, prefixed, whole};
use super::at_work::{Answered, Asking, AtWork};
use super::notes::Notes;
use crate::fault::Fault;
use check::{Finding, Material};
use chorus_collab::{Answer, Reply};
use chorus_policy::Observation;
use chorus_spec::{Family, HallucinationSettings, Remark, SignalKey};
use chorus_wire::ChatReply;
use futures_util::future::{BoxFuture, FutureExt, ready};

const KIND: &str = "hallucination";
/// The words of the header. Source: contract §1.10.
const UNSUPPORTED: &str = "hallucination";
const UNVERIFIED: &str = "unverified_factual";

/// The plugin at work on one request.
pub(super) struct Hallucination {
    settings: HallucinationSettings,
    /// What `rag` put into the request.
    retrieved: Vec<String>,
    /// The answer leaves as it is produced, and is checked then.
    later: bool,
}

impl Hallucination {
    pub(super) fn new(settings: HallucinationSettings) -> Self {
        Self { settings, retrieved: Vec::new(), later: false }
    }

    /// Where the remark on such a finding stands: never in the text of an answer that a program reads.
    fn remark(&self, has_material: bool, seen: &Answered<'_>) -> Remark {
        let wanted = if has_material { self.settings.unsupported } else { self.settings.unverified };
        let is_formed = seen.scene.decision().is_some_and(|it| it.output_contract_spec.is_some());
        match wanted {
            Remark::Body if is_formed || is_for_a_program(seen.request) => Remark::Header,
            wanted => wanted,
        }
    }

    /// A stream that is not held: what can be said before it is.
    async fn ahead(&mut self, material: &Material, remark: Remark, seen: &mut Answered<'_>) {
        // With tools at hand it may turn out to call one, and state nothing.
        let may_state = seen.request.tool_count() == 0;
        if material.is_there() || !may_state || remark != Remark::Header {
            self.later = true;
            return;
        }
        let finding = unverified(seen).await;
        self.note(&finding, remark, seen.notes);
    }

    async fn judge(&self, reply: &ChatReply, material: &Material, seen: &Answered<'_>) -> Finding {
        let statements = check::statements_of(reply);
        match (statements.is_empty(), material.is_there()) {
            (true, _) => Finding::NothingStated,
            (_, false) => unverified(seen).await,
            _ => check::against(material, statements, &seen.scene.mom, self.settings.by_meaning).await,
        }
    }

    fn note(&self, finding: &Finding, remark: Remark, notes: &mut Notes) {
        notes.did(KIND, &finding.trace(!self.later));
        match finding {
            Finding::Unsupported { .. } if remark == Remark::Header => notes.warn(UNSUPPORTED),
            Finding::Unverified if remark == Remark::Header => notes.warn(UNVERIFIED),
            _ => {}
        }
    }

    fn marked(&self, reply: Reply, finding: &Finding, remark: Remark) -> Reply {
        match finding.remark(self.settings.details).filter(|_| remark == Remark::Body) {
            Some(text) => prefixed(reply, &text),
            None => reply,
        }
    }
}

/// Whether the client's words ask for facts, which nothing is there to check.
async fn unverified(seen: &Answered<'_>) -> Finding {
    let request = seen.scene.asked.request.as_ref().clone();
    let evidence = seen.scene.mom.classifiers.observe(&[Family::FactCheck], request).await;
    let key = SignalKey::new(Family::FactCheck, "needs_fact_check");
    match evidence.ok().and_then(|evidence| evidence.get(&key).cloned()) {
        Some(Observation::Matched { .. }) => Finding::Unverified,
        Some(Observation::Unmatched { .. }) => Finding::NotFactual,
        Some(Observation::Absent(_)) | None => {
            Finding::Unchecked("it cannot be told whether facts are asked for")
        }
    }
}

impl AtWork for Hallucination {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn before<'a>(&'a mut self, ask: &'a mut Asking<'_>) -> BoxFuture<'a, Result<Option<Answer>, Fault>> {
        let retrieved = ask.put.iter().filter(|put| put.by == "rag");
        self.retrieved = retrieved.map(|put| put.text.clone()).collect();
        ready(Ok(None)).boxed()
    }

    fn after<'a>(
        &'a mut self,
        answer: Answer,
        seen: &'a mut Answered<'_>,
    ) -> BoxFuture<'a, Result<Answer, Fault>> {
        async move {
            let material = Material::of(seen.request, &self.retrieved);
            let remark = self.remark(material.is_there(), seen);
            let has_its_remark = seen.given_by.is_some() && remark == Remark::Body;
            if has_its_remark || seen.given_by == Some("image_gen") {
                return Ok(answer);
            }
            if matches!(answer, Answer::Live(_)) && remark != Remark::Body {
                self.ahead(&material, remark, seen).await;
                return Ok(answer);
            }
            let reply = whole(answer).await?;
            let finding = self.judge(&reply.reply, &material, seen).await;
            self.note(&finding, remark, seen.notes);
            Ok(Answer::Finished(Box::new(self.marked(reply, &finding, remark))))
        }
        .boxed()
    }

    fn keeps(&self) -> bool {
        self.later
    }

    fn kept<'a>(&'a mut self, reply: &'a ChatReply, seen: &'a mut Answered<'_>) -> BoxFuture<'a, ()> {
        async move {
            let material = Material::of(seen.request, &self.retrieved);
            let remark = self.remark(material.is_there(), seen);
            let finding = self.judge(reply, &material, seen).await;
            self.note(&finding, remark, seen.notes);
        }
        .boxed()
    }
}
