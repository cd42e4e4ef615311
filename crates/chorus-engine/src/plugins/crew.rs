//! The plugins at work on one request, each in its turn.
//!
//! It knows turns, not plugins. **Invariant:** one plugin's half ends before the next one's begins, in the order that was told
//! when the configuration was prepared.

use super::at_work::{Answered, Asking, AtWork, Scene};
use super::notes::Notes;
use crate::fault::Fault;
use chorus_collab::Answer;
use chorus_wire::{ChatReply, ChatRequest};
use std::sync::Arc;

/// The plugins at work on one request.
#[derive(Default)]
pub(crate) struct Crew {
    /// In the order in which they look at the request.
    all: Vec<Box<dyn AtWork>>,
    /// Places among them, in the order in which they look at the answer.
    answer: Arc<[usize]>,
    /// Who answered in a model's place.
    given_by: Option<&'static str>,
}

impl Crew {
    /// These, in the order in which they look at the request; and their places, in that in which they look at the answer.
    pub(crate) fn of(all: Vec<Box<dyn AtWork>>, answer: Arc<[usize]>) -> Self {
        Self { all, answer, given_by: None }
    }

    /// Who answered in a model's place.
    pub(crate) fn given_by(&self) -> Option<&'static str> {
        self.given_by
    }

    /// Whether anybody wants to see the whole answer once it has left.
    pub(crate) fn keeps(&self) -> bool {
        self.all.iter().any(|it| it.keeps())
    }

    /// The request halves; the answer, where one of them gives it.
    ///
    /// # Errors
    /// Why the request is refused.
    pub(crate) async fn before(
        &mut self,
        scene: &Scene,
        request: &mut ChatRequest,
        notes: &mut Notes,
    ) -> Result<Option<Answer>, Fault> {
        let mut ask = Asking { scene, request, notes, put: Vec::new() };
        for plugin in &mut self.all {
            if let Some(answer) = plugin.before(&mut ask).await? {
                self.given_by = Some(plugin.kind());
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    /// The answer halves.
    ///
    /// # Errors
    /// Why the answer does not leave.
    pub(crate) async fn after(
        &mut self,
        mut answer: Answer,
        scene: &Scene,
        request: &ChatRequest,
        notes: &mut Notes,
    ) -> Result<Answer, Fault> {
        let given_by = self.given_by;
        let mut seen = Answered { scene, request, given_by, degraded: false, notes };
        for at in self.answer.iter() {
            if let Some(plugin) = self.all.get_mut(*at) {
                answer = plugin.after(answer, &mut seen).await?;
            }
        }
        Ok(answer)
    }
}

/// An answer that has left, and those who want to see it.
pub(crate) struct Left {
    pub(crate) crew: Crew,
    pub(crate) scene: Scene,
    /// The request as models got it.
    pub(crate) request: ChatRequest,
    /// The answer as the client got it.
    pub(crate) reply: ChatReply,
}

impl Left {
    /// Shows it to everybody who wants to see it; and whether something was given up on the way to it.
    pub(crate) async fn kept(mut self, degraded: bool, notes: &mut Notes) {
        let (scene, request, given_by) = (&self.scene, &self.request, self.crew.given_by);
        let mut seen = Answered { scene, request, given_by, degraded, notes };
        for at in self.crew.answer.iter() {
            if let Some(plugin) = self.crew.all.get_mut(*at).filter(|it| it.keeps()) {
                plugin.kept(&self.reply, &mut seen).await;
            }
        }
    }
}
