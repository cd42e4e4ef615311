//! A running process's configuration: where it came from, what took its place, and what was refused.
//!
//! Whoever asks for a change (a signal, the file's watch, the management plane), it goes the same way: the text is
//! checked whole, made ready beside the one that serves, and swapped at once. It knows no HTTP and no environment; what
//! a configuration needs besides itself comes from a [`Supply`].
//!
//! **Invariant:** a text that is refused changes nothing but the account of what was refused, and the next one is
//! looked at as if it had not been there (case C11).

mod fault;
mod origin;
mod rollout;
mod state;
mod versions;
mod watch;

pub use fault::Refusal;
pub use origin::{Bundles, Offer, Offered, Origin, Shelf};
pub use rollout::{Candidates, Rollout, Source, Standing};
pub use state::{Attempt, Basis, Cause, Report, State};
pub use versions::{KEPT_VERSIONS, Version, Versions};
pub use watch::{QUIET, Watching, watch};

use crate::engine::Engine;
use crate::mom::Mom;
use crate::options::Options;
use chorus_spec::{Digest, Document, Spec};
use futures_util::future::BoxFuture;
use serde_json::Value;
use state::now_ms;
use std::io;
use std::sync::Arc;
use tokio::sync::{Mutex, watch as tell};

/// Gives a configuration what it needs besides itself: environment, encoder, local models, limits.
pub trait Supply: Send + Sync {
    /// What that configuration needs, or a sentence that says what cannot be had.
    fn supply<'a>(&'a self, spec: &'a Spec) -> BoxFuture<'a, Result<Options, String>>;
}

/// The configuration of a running process.
pub struct Configuration {
    engine: Engine,
    origin: Origin,
    supply: Arc<dyn Supply>,
    versions: Option<Versions>,
    /// Where the sockets were opened: they stay there.
    sockets: Sockets,
    turn: Mutex<()>,
    /// What candidates need, where this process tries any.
    rollouts: Option<rollout::Rollouts>,
    state: tell::Sender<Arc<State>>,
}

impl Configuration {
    /// Takes over an engine that serves `text`. Without `versions` nothing is kept, and nothing can be written.
    #[must_use]
    pub fn new(
        engine: Engine,
        text: &str,
        origin: Origin,
        supply: Arc<dyn Supply>,
        versions: Option<Versions>,
    ) -> Self {
        let mom = engine.serving();
        let last = Attempt::served(Cause::Start, mom.spec.digest.clone());
        let state = State {
            text: text.into(),
            digest: mom.spec.digest.clone(),
            generation: mom.generation,
            since_ms: last.at_ms,
            last,
            waiting: Vec::new(),
        };
        if let Some(Err(fault)) = versions.as_ref().map(|v| v.keep(text, Cause::Start.as_str(), now_ms())) {
            tracing::warn!(%fault, "the configuration cannot be kept as a version");
        }
        let sockets = Sockets::of(&mom.spec);
        let (state, _) = tell::channel(Arc::new(state));
        Self { engine, origin, supply, versions, sockets, turn: Mutex::new(()), rollouts: None, state }
    }

    /// What is served, and what was refused last.
    #[must_use]
    pub fn state(&self) -> Arc<State> {
        Arc::clone(&self.state.borrow())
    }

    /// Tells of every change and every refusal.
    #[must_use]
    pub fn subscribe(&self) -> tell::Receiver<Arc<State>> {
        self.state.subscribe()
    }

    /// Where it came from.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Reads the file again and serves it. The watch ignores a text that it has already seen; everybody else's wish
    /// is fulfilled also when the text is the same, because what it names may have changed.
    ///
    /// # Errors
    /// [`Refusal`]; the configuration that serves goes on.
    pub async fn reload(&self, cause: Cause) -> Result<Arc<State>, Refusal> {
        let _turn = self.turn.lock().await;
        let origin = self.origin.clone();
        let offered = tokio::task::spawn_blocking(move || origin.offer()).await;
        let offer = match offered.unwrap_or_else(|_| Err(failed_badly())) {
            Ok(offer) => offer,
            Err(refusal) => return Err(self.refuse(cause, None, refusal)),
        };
        let text = offer.first.text.clone();
        let digest = Digest::of(text.as_bytes());
        if cause == Cause::Watch
            && let Some(state) = self.seen(&digest)
        {
            return Ok(state);
        }
        match self.ready(offer).await {
            Ok(moms) => Ok(self.serve(moms, text, cause).await),
            Err(refusal) => Err(self.refuse(cause, Some(digest), refusal)),
        }
    }

    /// The state, where the watch found nothing new: what is served, or what was refused already.
    fn seen(&self, digest: &Digest) -> Option<Arc<State>> {
        let state = self.state();
        if self.is_promoted_beside(digest) {
            return Some(state);
        }
        let of_file = matches!(state.last.cause, Cause::Watch | Cause::Signal);
        let refused = of_file && state.last.refused.is_some();
        if state.digest == *digest {
            // The file is mended by being what it was: the refusal is history.
            let last = Attempt::served(Cause::Watch, digest.clone());
            return Some(if refused { self.tell(State { last, ..State::clone(&state) }) } else { state });
        }
        (refused && state.last.digest.as_ref() == Some(digest)).then_some(state)
    }

    /// Serves this text in place of the one that is served, and writes it to the file.
    ///
    /// # Errors
    /// [`Refusal`]; neither what is served nor the file has changed then.
    pub async fn replace(&self, text: String, basis: &Basis) -> Result<Arc<State>, Refusal> {
        self.edit(Cause::Api, basis, |_| Ok(text)).await
    }

    /// Merges a patch into what is served; what it does not change stays byte for byte, comments too. Source: RFC 7386.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    pub async fn patch(&self, patch: &Value, basis: &Basis) -> Result<Arc<State>, Refusal> {
        self.edit_document(basis, |document| {
            document.merge(patch);
            Ok(())
        })
        .await
    }

    /// Changes what is served as a document; what stays the same stays byte for byte, comments too.
    ///
    /// # Errors
    /// As [`replace`](Self::replace), and what the change refuses.
    pub async fn edit_document(
        &self,
        basis: &Basis,
        change: impl FnOnce(&mut Document) -> Result<(), Refusal>,
    ) -> Result<Arc<State>, Refusal> {
        let changed = |text: &str| {
            let mut document = Document::parse(text).map_err(Refusal::Rejected)?;
            change(&mut document)?;
            Ok(document.rewrite(text))
        };
        self.edit(Cause::Api, basis, changed).await
    }

    /// Serves an earlier version again: the one of that number, or the latest that differs from what is served.
    ///
    /// # Errors
    /// As [`replace`](Self::replace), and [`Refusal::NoVersion`].
    pub async fn rollback(&self, to: Option<u64>, basis: &Basis) -> Result<Arc<State>, Refusal> {
        let versions = self.versions.as_ref().ok_or(Refusal::NotWritable)?;
        let served = self.state().digest.clone();
        let earlier = |_: &str| versions.text(to, &served)?.ok_or(Refusal::NoVersion(to));
        self.edit(Cause::Rollback, basis, earlier).await
    }

    /// The versions that are kept, latest first.
    ///
    /// # Errors
    /// [`Refusal::Unreadable`].
    pub fn versions(&self) -> Result<Vec<Version>, Refusal> {
        self.versions.as_ref().map_or_else(|| Ok(Vec::new()), |v| v.list().map_err(Refusal::from))
    }

    /// What a text would do: the way of a change, but for the swap.
    pub async fn check(&self, text: &str) -> Report {
        let digest = Digest::of(text.as_bytes());
        let diagnostics = chorus_spec::read(text).diagnostics;
        let unready = match self.ready(Offer::of(text.to_owned())).await {
            Ok(_) | Err(Refusal::Rejected(_)) => None,
            Err(refusal) => Some(refusal.to_string()),
        };
        Report { digest, diagnostics, unready }
    }

    async fn edit(
        &self,
        cause: Cause,
        basis: &Basis,
        text: impl FnOnce(&str) -> Result<String, Refusal>,
    ) -> Result<Arc<State>, Refusal> {
        let _turn = self.turn.lock().await;
        let state = self.state();
        self.may_edit(&state, basis)?;
        let text = text(&state.text)?;
        let digest = Digest::of(text.as_bytes());
        let outcome = async {
            refuse_masks(&text)?;
            let moms = self.ready(Offer::of(text.clone())).await?;
            // What is overwritten must be there still.
            self.keep(&state.text, cause).await?;
            let (origin, written) = (self.origin.clone(), text.clone());
            blocking(move || origin.write(&written)).await?;
            Ok(moms)
        };
        match outcome.await {
            Ok(moms) => Ok(self.serve(moms, text, cause).await),
            Err(refusal) => Err(self.refuse(cause, Some(digest), refusal)),
        }
    }

    fn may_edit(&self, state: &State, basis: &Basis) -> Result<(), Refusal> {
        if self.versions.is_none() || !self.origin.is_writable() {
            return Err(Refusal::NotWritable);
        }
        if let Basis::OneOf(digests) = basis
            && !digests.iter().any(|digest| digest == state.digest.as_str())
        {
            return Err(Refusal::Stale(state.digest.clone()));
        }
        if Digest::of(self.origin.read()?.as_bytes()) != state.digest {
            return Err(Refusal::FileDiffers);
        }
        Ok(())
    }

    /// Everything that is offered, checked whole and made ready.
    async fn ready(&self, offer: Offer) -> Result<Ready, Refusal> {
        self.ready_for(offer, false).await
    }

    /// As [`ready`](Self::ready); `apart` where it must not touch what is served.
    async fn ready_for(&self, offer: Offer, apart: bool) -> Result<Ready, Refusal> {
        let one = |offered| prepare_for(&self.engine, &*self.supply, offered, apart);
        let first = one(offer.first).await?;
        let mut others = Vec::with_capacity(offer.others.len());
        for other in offer.others {
            others.push(one(other).await?);
        }
        Ok(Ready { first, others })
    }

    async fn serve(&self, ready: Ready, text: String, cause: Cause) -> Arc<State> {
        let Ready { first: mom, others } = ready;
        let digest = mom.spec.digest.clone();
        let waiting = self.sockets.waiting(&mom.spec);
        self.rollout_is_over();
        let generation = self.engine.swap_all(mom, others);
        tracing::info!(generation, %digest, cause = cause.as_str(), "a configuration is served");
        for path in &waiting {
            tracing::warn!(path, "this setting waits for a restart: sockets stay where they are");
        }
        let last = Attempt::served(cause, digest.clone());
        let since_ms = last.at_ms;
        if let Err(refusal) = self.keep(&text, cause).await {
            tracing::warn!(%refusal, "the configuration cannot be kept as a version");
        }
        self.tell(State { text: text.into(), digest, generation, since_ms, last, waiting })
    }

    /// Takes the refusal down, and gives it back.
    fn refuse(&self, cause: Cause, digest: Option<Digest>, refusal: Refusal) -> Refusal {
        tracing::error!(%refusal, cause = cause.as_str(), "a configuration is refused; the one that serves goes on");
        let diagnostics = refusal.diagnostics().to_vec();
        let last =
            Attempt { cause, at_ms: now_ms(), digest, refused: Some(refusal.to_string()), diagnostics };
        self.tell(State { last, ..State::clone(&self.state()) });
        refusal
    }

    fn tell(&self, state: State) -> Arc<State> {
        let state = Arc::new(state);
        self.state.send_replace(Arc::clone(&state));
        state
    }

    async fn keep(&self, text: &str, cause: Cause) -> Result<(), Refusal> {
        let Some(versions) = self.versions.clone() else { return Ok(()) };
        let text = text.to_owned();
        blocking(move || versions.keep(&text, cause.as_str(), now_ms()).map(|_| ())).await
    }
}

/// Configurations that are ready to be served together.
struct Ready {
    first: Mom,
    others: Vec<Mom>,
}

/// One document, checked whole and made ready by that engine, which does not serve it yet.
///
/// # Errors
/// [`Refusal::Rejected`], [`Refusal::Unready`].
pub async fn prepare(engine: &Engine, supply: &dyn Supply, offered: Offered) -> Result<Mom, Refusal> {
    prepare_for(engine, supply, offered, false).await
}

async fn prepare_for(
    engine: &Engine,
    supply: &dyn Supply,
    offered: Offered,
    apart: bool,
) -> Result<Mom, Refusal> {
    let checked = chorus_spec::read(&offered.text);
    let spec = checked.spec.ok_or(Refusal::Rejected(checked.diagnostics))?;
    let mut options = supply.supply(&spec).await.map_err(Refusal::Unready)?;
    if offered.folder.is_some() {
        options.folders.config = offered.folder;
    }
    let engine = engine.clone();
    let prepare = if apart { Engine::prepare_apart } else { Engine::prepare };
    let prepared = tokio::task::spawn_blocking(move || prepare(&engine, spec, options)).await;
    let prepared = prepared.map_err(|_| failed_badly())?;
    prepared.map(|mom| mom.named(offered.artifact)).map_err(|fault| Refusal::Unready(fault.to_string()))
}

fn failed_badly() -> Refusal {
    Refusal::Unready("preparing it failed badly; see the log".to_owned())
}

/// What was shown is not what is there: a mask that comes back would replace a credential.
fn refuse_masks(text: &str) -> Result<(), Refusal> {
    // A text that is no document is refused where it is read.
    let masks = Document::parse(text).map(|document| document.masks()).unwrap_or_default();
    if masks.is_empty() { Ok(()) } else { Err(Refusal::Masked(masks)) }
}

/// What of a configuration is bound when the process starts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sockets {
    data: Option<(String, u16)>,
    management: (String, u16),
}

impl Sockets {
    fn of(spec: &Spec) -> Self {
        Self {
            data: spec.listeners.first().map(|l| (l.address.clone(), l.port)),
            management: (spec.global.management_address.clone(), spec.global.management_port),
        }
    }

    /// Paths of settings that would need other sockets.
    fn waiting(&self, spec: &Spec) -> Vec<&'static str> {
        let wanted = Self::of(spec);
        let data = (self.data != wanted.data).then_some("listeners[0]");
        let management = (self.management != wanted.management).then_some("global.services.management_api");
        data.into_iter().chain(management).collect()
    }
}

async fn blocking(work: impl FnOnce() -> io::Result<()> + Send + 'static) -> Result<(), Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(io::Error::other("writing failed badly"))).map_err(Refusal::Unwritable)
}
