//! The execution of one planned request: its answer comes about, takes its form, passes the plugins, and leaves.
//!
//! It knows the kinds of work, not how they came to be chosen. What the usual request does not need has a box of its own, so that
//! every request does not carry room for it. **Invariant:** every answer goes the same way out: form,
//! contract of the operating point, plugins, door.

use crate::account::Ended;
use crate::calls::LiveCalls;
use crate::choosing;
use crate::deliver::Origin;
use crate::fault::Fault;
use crate::form::{self, Holding};
use crate::ground;
use crate::life::{At, Life};
use crate::loopers::{self, LooperPlan, Shown, Site, Worked};
use crate::plan::{Work, WorkKind};
use crate::plugins::crew::Crew;
use crate::record::Draft;
use chorus_collab::{Answer, Call, CallRole, ModelCalls};
use chorus_spec::{BudgetSettings, ModelId};
use chorus_wire::ChatReply;
use std::sync::Arc;

impl Life {
    /// Sends the answer off: the given one, or that of the work; all of it, where a plugin wants to see it.
    pub(crate) async fn executed(
        &self,
        given: Option<Answer>,
        at: At<'_>,
        crew: &mut Crew,
        draft: &mut Draft,
    ) -> Result<Option<ChatReply>, Fault> {
        match (given, &at.work.kind) {
            (Some(answer), _) => self.send_off(answer, Origin::Plugin, &at, crew, draft).await,
            (None, WorkKind::Fast(message)) => {
                self.delivery(crew.keeps()).fast(&at.work.request, message, draft).await
            }
            (None, WorkKind::One(model)) => self.one(model.clone(), &at, crew, draft).await,
            (None, WorkKind::Looper(plan)) => Box::pin(self.looped(plan, &at, crew, draft)).await,
        }
    }

    /// One model.
    async fn one(
        &self,
        model: ModelId,
        at: &At<'_>,
        crew: &mut Crew,
        draft: &mut Draft,
    ) -> Result<Option<ChatReply>, Fault> {
        let calls = &at.scene.calls;
        let ended = self.by_one(&model, at, crew, draft).await;
        if ended.is_ok() {
            choosing::answered(&self.mom, &at.scene.routed, model.as_str());
        }
        if *at.own != BudgetSettings::default() {
            draft.budget(Arc::clone(&calls.budget), Ended::of(&calls.budget));
        }
        ended
    }

    async fn by_one(
        &self,
        model: &ModelId,
        at: &At<'_>,
        crew: &mut Crew,
        draft: &mut Draft,
    ) -> Result<Option<ChatReply>, Fault> {
        let (calls, work) = (&at.scene.calls, at.work);
        let ask = form::held(work.form.as_ref(), &work.request);
        let streams = ask.stream();
        let call = Call { model: model.as_str().to_owned(), role: CallRole::Direct, ask, timeout: None };
        let answer = if streams {
            Answer::Live(calls.stream(call).await?)
        } else {
            Answer::Finished(Box::new(calls.complete(call).await?))
        };
        let (answer, formed) = self.formed(answer, &[], work, calls, draft).await?;
        // What a repair took is the client's to see: then the usage is the sum of both.
        let origin = formed.map_or(Origin::Model, |formed| Origin::Looper(vec![formed], None));
        self.send_off(answer, origin, at, crew, draft).await
    }

    /// Several models together.
    async fn looped(
        &self,
        plan: &LooperPlan,
        at: &At<'_>,
        crew: &mut Crew,
        draft: &mut Draft,
    ) -> Result<Option<ChatReply>, Fault> {
        let (calls, work) = (&at.scene.calls, at.work);
        let decision = at.scene.routed.won(&self.mom).unwrap_or_default();
        let site = Site { run: &self.id, decision: &decision };
        let ask = form::held(work.form.as_ref(), &work.request);
        let worked = loopers::run(plan, &ask, calls, site, at.watched.clone(), draft).await?;
        let Worked { answer, shown, candidates, after } = worked;
        let (answer, formed) = self.formed(answer, &candidates, work, calls, draft).await?;
        let shown = shown.into_iter().chain(formed).collect();
        self.send_off(answer, Origin::Looper(shown, after), at, crew, draft).await
    }

    /// The way out of every answer.
    async fn send_off(
        &self,
        answer: Answer,
        origin: Origin<'_>,
        at: &At<'_>,
        crew: &mut Crew,
        draft: &mut Draft,
    ) -> Result<Option<ChatReply>, Fault> {
        let answer = match origin {
            // It was held to the contract before it was stored.
            Origin::Plugin => answer,
            _ => self.contracted(answer, at.work, &at.scene.calls, draft).await?,
        };
        let answer = crew.after(answer, at.scene, &at.work.request, &mut draft.notes).await?;
        self.delivery(crew.keeps()).deliver(answer, &at.work.request, origin, draft).await
    }

    /// The answer as the contract of the operating point lets it leave.
    async fn contracted(
        &self,
        answer: Answer,
        work: &Work,
        calls: &LiveCalls,
        draft: &mut Draft,
    ) -> Result<Answer, Fault> {
        let point = self.mom.artifact.point(work.request.model());
        let answer = match point.filter(|point| point.demands(ground::GROUNDED)) {
            Some(_) => Box::pin(ground::hold(answer, &work.request, calls, draft)).await?,
            None => answer,
        };
        match &self.guard {
            Some(guard) => Box::pin(guard.restored(answer)).await,
            None => Ok(answer),
        }
    }

    /// The answer in its form, and what the client may see of what was done for it.
    async fn formed(
        &self,
        answer: Answer,
        candidates: &[String],
        work: &Work,
        calls: &LiveCalls,
        draft: &mut Draft,
    ) -> Result<(Answer, Option<Shown>), Fault> {
        let Some(form) = &work.form else { return Ok((answer, None)) };
        let holding = Holding { form, ask: &work.request, calls, candidates };
        let (answer, trace) = Box::pin(holding.hold(answer, draft)).await?;
        let shown = serde_json::to_value(trace).ok().map(|trace| (loopers::FORM_FIELD, trace));
        Ok((answer, shown))
    }
}
