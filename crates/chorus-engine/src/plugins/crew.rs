//! The plugins at work on one request, each in its turn.
//!
//! It knows turns, not plugins. **Invariant:** one plugin's half ends before the next one's begins.

use super::at_work::{Answered, Asking, AtWork, Scene};
use super::notes::Notes;
use crate::fault::Fault;
use chorus_collab::Answer;
use chorus_wire::{ChatReply, ChatRequest};

/// The plugins at work on one request.
#[derive(Default)]
pub(crate) struct Crew {
    all: Vec<Box<dyn AtWork>>,
    /// Who answered in a model's place.
    given_by: Option<&'static str>,
}

impl Crew {
    /// These, in whatever order.
    pub(crate) fn of(all: Vec<Box<dyn AtWork>>) -> Self {
        Self { all, given_by: None }
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
        self.all.sort_by_key(|it| it.request_turn());
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
        self.all.sort_by_key(|it| it.answer_turn());
        let given_by = self.given_by;
        let mut seen = Answered { scene, request, given_by, degraded: false, notes };
        for plugin in &mut self.all {
            answer = plugin.after(answer, &mut seen).await?;
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
        self.crew.all.sort_by_key(|it| it.answer_turn());
        let (scene, request, given_by) = (&self.scene, &self.request, self.crew.given_by);
        let mut seen = Answered { scene, request, given_by, degraded, notes };
        for plugin in self.crew.all.iter_mut().filter(|it| it.keeps()) {
            plugin.kept(&self.reply, &mut seen).await;
        }
    }
}
