//! The review: answers are rated, without their authors' names.
//!
//! **Invariant:** a rater never sees an answer of its own model, and each sees the others in an order of its own, so that
//! a preference for the first place spreads over all (cases G11, G12).

use super::ballot;
use super::measure;
use super::plan::{Rating, RatingsPlan};
use super::strengths;
use super::trace::{Ballot, RatingsTrace};
use crate::answers::Survivor;
use crate::calls::{Call, CallFault, CallRole, FaultKind, ModelCalls};
use crate::compact;
use crate::confidence::NoEvidence;
use crate::events::{LoopEvent, LoopEvents};
use crate::fault::LoopFault;
use crate::fence::Fence;
use crate::question;
use crate::template::fill;
use crate::window::Window;
use chorus_spec::OnError;
use chorus_wire::{ChatRequest, Message, Role, tokens};

/// What the stage works with.
pub(super) struct Review<'a> {
    pub(super) plan: &'a RatingsPlan,
    pub(super) ask: &'a ChatRequest,
    pub(super) calls: &'a dyn ModelCalls,
    pub(super) events: &'a dyn LoopEvents,
    /// Usable answers in seat order.
    pub(super) answers: &'a [Survivor],
}

/// What one rater is given: who it is, and the places of the answers in the order in which it sees them.
struct Sheet<'a> {
    rater: &'a str,
    shown: Vec<usize>,
}

impl<'a> Review<'a> {
    /// One rating an answer, in 0..=1; `None` for an answer that nobody rated.
    ///
    /// # Errors
    /// Under `on_error: fail`: [`LoopFault::Judge`] when nobody rated anything, [`LoopFault::Overflow`]. A refusal of the
    /// budget is neither: the answers are there.
    pub(super) async fn rate(&self, trace: &mut RatingsTrace) -> Result<Vec<Option<f64>>, LoopFault> {
        match &self.plan.rating {
            Rating::None => Ok(vec![None; self.answers.len()]),
            Rating::Components => Ok(strengths::shares(self.plan, self.answers)),
            Rating::Verifier => {
                self.measured(measure::verified(self.plan, self.ask, self.answers).await, trace)
            }
            Rating::Scorer => self.measured(measure::scored(self.plan, self.answers), trace),
            Rating::Judge(judge) => {
                self.events.tell(LoopEvent::JudgeStarted(judge));
                let sheet = Sheet { rater: judge, shown: (0..self.answers.len()).collect() };
                let ratings = self.reviewed(vec![sheet], &self.plan.judge_prompt, trace).await;
                let analysed = ratings.as_ref().is_ok_and(|r| r.iter().any(Option::is_some));
                self.events.tell(LoopEvent::JudgeFinished { analysed, disagreements: 0 });
                ratings
            }
            Rating::Peers => self.reviewed(self.rotated(), &self.plan.review_prompt, trace).await,
        }
    }

    /// What was measured without a rater's words.
    fn measured(
        &self,
        measured: Vec<Result<f64, NoEvidence>>,
        trace: &mut RatingsTrace,
    ) -> Result<Vec<Option<f64>>, LoopFault> {
        for (answer, measured) in self.answers.iter().zip(&measured) {
            trace.ballot(Ballot {
                rater: measure::rater(self.plan).to_owned(),
                shown: vec![answer.seat],
                points: measured.as_ref().ok().copied().into_iter().collect(),
                error: measured.as_ref().err().map(ToString::to_string),
            });
        }
        let rated = measured.iter().any(Result::is_ok);
        match measured.iter().find_map(|it| it.as_ref().err()) {
            Some(why) if self.plan.on_error == OnError::Fail && !rated => {
                let public = why.to_string();
                Err(LoopFault::Judge(CallFault { kind: FaultKind::Ineligible, public, status: None }))
            }
            _ => Ok(measured.into_iter().map(Result::ok).collect()),
        }
    }

    /// Each author's sheet: the answers after its own, round the table, without those of the same model.
    fn rotated(&self) -> Vec<Sheet<'a>> {
        let count = self.answers.len();
        let sheet = |(at, author): (usize, &'a Survivor)| {
            let rater = &*author.reply.model;
            let of_another = |at: &usize| self.answers.get(*at).is_some_and(|a| a.reply.model != rater);
            Sheet { rater, shown: (at + 1..count).chain(0..at).filter(of_another).collect() }
        };
        self.answers.iter().enumerate().map(sheet).collect()
    }

    /// All raters are asked at once, by one prompt.
    async fn reviewed(
        &self,
        sheets: Vec<Sheet<'a>>,
        template: &str,
        trace: &mut RatingsTrace,
    ) -> Result<Vec<Option<f64>>, LoopFault> {
        let (mut told, mut asking, mut asked) = (Vec::new(), Vec::new(), Vec::new());
        // One answer alone cannot be compared.
        for sheet in sheets.into_iter().filter(|sheet| sheet.shown.len() > 1) {
            match self.call(&sheet, template) {
                Ok(call) => {
                    asking.push(sheet);
                    asked.push(call);
                }
                Err(overflow) => told.push((sheet, Err(overflow))),
            }
        }
        let rule = self.plan.gather_rule(asked.len());
        let gathered = self.calls.gather(asked, rule).await;
        told.extend(asking.into_iter().zip(gathered.members).map(|(sheet, member)| {
            let read = member.outcome.and_then(|reply| {
                ballot::read(&reply.reply.content, sheet.shown.len()).ok_or_else(unreadable)
            });
            (sheet, read.map_err(LoopFault::Judge))
        }));
        self.counted(told, trace)
    }

    /// The means over all readable ballots.
    fn counted(
        &self,
        told: Vec<(Sheet<'a>, Result<Vec<f64>, LoopFault>)>,
        trace: &mut RatingsTrace,
    ) -> Result<Vec<Option<f64>>, LoopFault> {
        let mut points: Vec<Vec<f64>> = vec![Vec::new(); self.answers.len()];
        let mut first_fault = None;
        for (sheet, read) in told {
            trace.ballot(self.ballot(&sheet, &read));
            match read {
                Ok(given) => {
                    for (at, given) in sheet.shown.iter().zip(given) {
                        points.get_mut(*at).into_iter().for_each(|all| all.push(given));
                    }
                }
                Err(fault) if fault.call().is_some_and(|call| call.kind == FaultKind::Budget) => {}
                Err(fault) => {
                    first_fault.get_or_insert(fault);
                }
            }
        }
        let ratings: Vec<Option<f64>> = points.iter().map(|all| mean(all)).collect();
        let rated = ratings.iter().any(Option::is_some);
        match first_fault.filter(|_| self.plan.on_error == OnError::Fail && !rated) {
            Some(fault) => Err(fault),
            None => Ok(ratings),
        }
    }

    fn ballot(&self, sheet: &Sheet<'_>, read: &Result<Vec<f64>, LoopFault>) -> Ballot {
        let shown = sheet.shown.iter().filter_map(|at| self.answers.get(*at)).map(|a| a.seat).collect();
        let public = |fault: &LoopFault| fault.call().map_or_else(|| fault.to_string(), ToString::to_string);
        let error = read.as_ref().err().map(public);
        Ballot {
            rater: sheet.rater.to_owned(),
            shown,
            points: read.iter().flatten().copied().collect(),
            error,
        }
    }

    /// One user message of text: some chat templates know no system message, some raters no images (case G05).
    fn call(&self, sheet: &Sheet<'_>, template: &str) -> Result<Call, LoopFault> {
        let prompt = self.prompt(sheet, template)?;
        let mut ask = ChatRequest::new(sheet.rater, vec![Message::new(Role::User, &prompt)]);
        ask.set("temperature", &0.0);
        let timeout = self.plan.round_timeout;
        Ok(Call { model: sheet.rater.to_owned(), role: CallRole::Rater, ask, timeout })
    }

    fn prompt(&self, sheet: &Sheet<'_>, template: &str) -> Result<String, LoopFault> {
        let (question, context) = (question::original(self.ask), question::context(self.ask));
        let shown = sheet.shown.iter().filter_map(|at| self.answers.get(*at));
        let texts: Vec<&str> = [&*context].into_iter().chain(shown.map(|a| &*a.text)).collect();
        let window = Window::of(self.calls, sheet.rater);
        let fixed = [template, &question, &self.plan.rubric].iter().map(|t| tokens::of_text(t)).sum();
        let cuts = compact::fit(&texts, window.room_bytes(fixed, None)).ok_or_else(|| window.overflow())?;
        let fence = Fence::around(texts.iter().copied().chain([&*question]));
        let mut cuts = cuts.iter().map(|cut| &*cut.text);
        let context = cuts.next().filter(|text| !text.is_empty());
        let context = context.map(|text| fence.wrap("conversation", "", text)).unwrap_or_default();
        let wrap = |(at, text): (usize, &str)| {
            fence.wrap("answer", &format!("label=\"{}\"", ballot::label(at)), text)
        };
        let answers = cuts.enumerate().map(wrap).collect::<Vec<_>>().join("\n\n");
        let labels: Vec<String> = (0..sheet.shown.len()).map(ballot::label).collect();
        // Not the order in which the answers stand, so that an echo of the example is seen to be one.
        let example = labels.iter().rev().cloned().collect::<Vec<_>>().join(" > ");
        let scores = labels.iter().map(|label| format!("\"{label}\": n")).collect::<Vec<_>>().join(", ");
        let slots = [
            ("question", &*fence.wrap("question", "", &question)),
            ("context", &*context),
            ("answers", &*answers),
            ("rubric", &*self.plan.rubric),
            ("count", &*labels.len().to_string()),
            ("example", &*example),
            ("scores", &*format!("{{{scores}}}")),
            ("key", &*fence.key),
        ];
        Ok(fill(template, &slots))
    }
}

fn unreadable() -> CallFault {
    let public = "the rater gave no ranking that can be read".to_owned();
    CallFault { kind: FaultKind::Empty, public, status: None }
}

fn mean(points: &[f64]) -> Option<f64> {
    (!points.is_empty()).then(|| points.iter().sum::<f64>() / points.len() as f64)
}
