//! One backend of one model as it runs: its address, its credential, its limits, and how it has been doing.
//!
//! It knows no other backend. **Invariant:** whoever calls holds an [`Underway`], and its end (an answer, a failure, or
//! that nobody waits any more) reaches the breaker exactly once.

use super::circuit::Circuit;
use super::missed::misconfigured;
use crate::env::Env;
use chorus_collab::CallFault;
use chorus_spec::{Access, ApiFormat, Backend, CredentialSource, Endpoint, Reliability};
use chorus_upstream::reliability::{BreakerSettings, BreakerState, Pace};
use chorus_upstream::{
    Blame, Credential, Dialect, Egress, Quirks, Secret, Target, TargetBuilder, Timeouts, UpstreamFault,
};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A backend that answers 429 without saying for how long is left alone for so long.
const USUAL_PAUSE: Duration = Duration::from_secs(5);
/// Longest such pause, however long it asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Bedrock's region where the file names none.
const USUAL_REGION: &str = "us-east-1";

/// One backend as it runs.
pub(crate) struct Deployment {
    /// As configured.
    pub(crate) backend: Backend,
    fixed: OnceLock<Arc<Target>>,
    /// Where its credential is fetched from, if it is.
    credential: Option<Credential>,
    fetched: tokio::sync::Mutex<Option<(Arc<Target>, Instant)>>,
    circuit: Circuit,
    pace: Option<Mutex<Pace>>,
    permits: Option<Arc<Semaphore>>,
    in_flight: AtomicUsize,
    /// What the active health check says; true where there is none.
    healthy: AtomicBool,
}

impl Deployment {
    pub(crate) fn new(backend: &Backend, rules: &Reliability, now: Instant) -> Self {
        let limits = &backend.limits;
        let settings =
            BreakerSettings { failures: rules.consecutive_5xx, open_for: rules.base_ejection_time };
        let (requests, tokens) = (limits.requests_per_minute, limits.tokens_per_minute);
        let permits = |n| Arc::new(Semaphore::new(usize::try_from(n).unwrap_or(Semaphore::MAX_PERMITS)));
        Self {
            backend: backend.clone(),
            fixed: OnceLock::new(),
            credential: credential(&backend.endpoint),
            fetched: tokio::sync::Mutex::default(),
            circuit: Circuit::new(settings),
            pace: requests.or(tokens).map(|_| Mutex::new(Pace::new(requests, tokens, now))),
            permits: limits.max_concurrency.map(permits),
            in_flight: AtomicUsize::new(0),
            healthy: AtomicBool::new(true),
        }
    }

    /// Calls under way.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// What its breaker lets pass; open where the health check says that it is down.
    pub(crate) fn state(&self, now: Instant) -> BreakerState {
        if self.healthy.load(Ordering::Relaxed) { self.circuit.state(now) } else { BreakerState::Open }
    }

    /// Whether neither its breaker nor its health check keeps calls away.
    pub(crate) fn admits(&self, now: Instant) -> bool {
        self.healthy.load(Ordering::Relaxed) && self.circuit.admits(now)
    }

    /// Whether its own limits let a call of so many tokens go.
    pub(crate) fn has_room(&self, tokens: u64, now: Instant) -> bool {
        self.pace.as_ref().is_none_or(|pace| lock(pace).check(tokens, now).is_ok())
    }

    /// Whether a call would go at once.
    pub(crate) fn is_free(&self) -> bool {
        self.permits.as_ref().is_none_or(|permits| permits.available_permits() > 0)
    }

    /// Whether tokens are counted here.
    pub(crate) fn counts_tokens(&self) -> bool {
        self.pace.is_some()
    }

    pub(crate) fn set_healthy(&self, healthy: bool) {
        if self.healthy.swap(healthy, Ordering::Relaxed) != healthy {
            tracing::warn!(backend = self.backend.name, healthy, "the health check of a backend changed");
        }
    }

    /// A call begins, where its concurrency allows that at once.
    pub(crate) fn enter_at_once(self: &Arc<Self>, tokens: u64) -> Option<Underway> {
        let permit = match &self.permits {
            Some(permits) => Some(Arc::clone(permits).try_acquire_owned().ok()?),
            None => None,
        };
        Some(self.entered(permit, tokens))
    }

    /// A call begins, once its concurrency allows.
    pub(crate) async fn enter(self: &Arc<Self>, tokens: u64) -> Underway {
        let permit = match &self.permits {
            Some(permits) => Arc::clone(permits).acquire_owned().await.ok(),
            None => None,
        };
        self.entered(permit, tokens)
    }

    fn entered(self: &Arc<Self>, permit: Option<OwnedSemaphorePermit>, tokens: u64) -> Underway {
        let now = Instant::now();
        self.circuit.called(now);
        if let Some(pace) = &self.pace {
            lock(pace).take(tokens, now);
        }
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        Underway { deployment: Arc::clone(self), tokens, settled: false, _permit: permit }
    }

    /// The time limits of one attempt that has `left`.
    pub(crate) fn timeouts(&self, left: Duration) -> Timeouts {
        let (usual, own) = (Timeouts::default(), &self.backend.limits);
        Timeouts {
            connect: own.connect.unwrap_or(usual.connect),
            first_byte: own.first_byte.unwrap_or(usual.first_byte),
            idle: own.idle.unwrap_or(usual.idle),
            total: own.total.unwrap_or(usual.total).min(left),
            ..usual
        }
    }

    /// The target, resolved on first use: a variable that is set too late is found by the next call. A credential that
    /// is fetched is fetched anew when it is old.
    pub(crate) async fn target(&self, env: &Env) -> Result<Arc<Target>, CallFault> {
        if let Some(target) = self.fixed.get() {
            return Ok(Arc::clone(target));
        }
        let Some(credential) = &self.credential else {
            let target = built(builder(&self.backend.endpoint, env, None)?)?;
            return Ok(Arc::clone(self.fixed.get_or_init(|| target)));
        };
        let mut fetched = self.fetched.lock().await;
        if let Some((target, since)) = &*fetched
            && since.elapsed() < credential.lifetime()
        {
            return Ok(Arc::clone(target));
        }
        let secret = credential.fetch().await.map_err(|fault| misconfigured(&fault.to_string()))?;
        let target = built(builder(&self.backend.endpoint, env, Some(secret))?)?;
        *fetched = Some((Arc::clone(&target), Instant::now()));
        Ok(target)
    }

    /// The backend refused the credential: the next call fetches it anew.
    fn forget_credential(&self) {
        if let Ok(mut fetched) = self.fetched.try_lock() {
            *fetched = None;
        }
    }
}

/// A call under way at one backend.
pub(crate) struct Underway {
    deployment: Arc<Deployment>,
    /// Taken from its limits by estimate.
    tokens: u64,
    settled: bool,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Underway {
    /// The answer is whole, and took so many tokens where that is known.
    pub(crate) fn succeeded(mut self, took: Option<u64>) {
        self.settled = true;
        self.deployment.circuit.succeeded();
        if let (Some(took), Some(pace)) = (took, &self.deployment.pace) {
            lock(pace).correct(self.tokens, took, Instant::now());
        }
    }

    /// It failed: through the backend, through its limits, or through the request.
    pub(crate) fn failed(mut self, fault: &UpstreamFault) {
        self.settled = true;
        let (now, circuit) = (Instant::now(), &self.deployment.circuit);
        match (fault.status(), fault.blame()) {
            (Some(429), _) => {
                circuit.pause(now, fault.retry_after().unwrap_or(USUAL_PAUSE).min(LONGEST_PAUSE));
            }
            (_, Blame::Client) => circuit.dropped(),
            _ => {
                if circuit.failed(now) {
                    let backend = self.deployment.backend.name.as_str();
                    tracing::warn!(
                        backend,
                        "a backend failed too often in a row: it is left alone for a while"
                    );
                }
            }
        }
        if matches!(fault.status(), Some(401 | 403)) {
            self.deployment.forget_credential();
        }
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.deployment.in_flight.fetch_sub(1, Ordering::Relaxed);
        if !self.settled {
            self.deployment.circuit.dropped();
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn credential(endpoint: &Endpoint) -> Option<Credential> {
    let Endpoint::Http { access, .. } = endpoint else { return None };
    Some(match access.credential.as_ref()? {
        CredentialSource::File(path) => Credential::File(PathBuf::from(path)),
        CredentialSource::Command(words) => Credential::Command(words.clone()),
    })
}

fn built(target: TargetBuilder) -> Result<Arc<Target>, CallFault> {
    target.build().map(Arc::new).map_err(|fault| misconfigured(&fault.to_string()))
}

/// Everything about a target but what it is checked for.
fn builder(endpoint: &Endpoint, env: &Env, fetched: Option<Secret>) -> Result<TargetBuilder, CallFault> {
    let Endpoint::Http { base_url, chat_path, auth_header, auth_prefix, api_key, extra_headers, api, access } =
        endpoint
    else {
        return Err(misconfigured("the backend has no address"));
    };
    let unset = |fault: &dyn std::error::Error| misconfigured(&fault.to_string());
    let base_url = env.resolve(base_url).map_err(|e| unset(&e))?;
    let mut target = Target::builder(&base_url)
        .chat_path(chat_path)
        .dialect(dialect(*api))
        .quirks(quirks(&access.quirks))
        .egress(egress(access, env)?);
    if let Some(version) = &access.api_version {
        target = target.api_version(version);
    }
    let secret = match (fetched, api_key) {
        (Some(secret), _) => Some(secret),
        (None, Some(key)) => Some(Secret::new(&env.reveal(key).map_err(|e| unset(&e))?)),
        (None, None) => None,
    };
    if let Some(secret) = secret {
        target = match secret.aws_keys().filter(|_| *api == ApiFormat::Bedrock) {
            Some(keys) => target.signed(keys, access.region.as_deref().unwrap_or(USUAL_REGION)),
            None => target.auth(auth_header, auth_prefix, secret),
        };
    }
    for (name, value) in extra_headers {
        target = target.header(name, &env.resolve(value).map_err(|e| unset(&e))?);
    }
    Ok(target)
}

fn dialect(api: ApiFormat) -> Dialect {
    match api {
        ApiFormat::OpenAi => Dialect::OpenAi,
        ApiFormat::Azure => Dialect::Azure,
        ApiFormat::Anthropic => Dialect::Anthropic,
        ApiFormat::Gemini => Dialect::Gemini,
        ApiFormat::Bedrock => Dialect::Bedrock,
    }
}

fn quirks(words: &[String]) -> Quirks {
    let has = |word: &str| words.iter().any(|it| it == word);
    Quirks {
        no_stream_options: has("no_stream_options"),
        max_tokens: has("max_tokens_only"),
        max_completion_tokens: has("max_completion_tokens_only"),
        no_developer_role: has("no_developer_role"),
        no_parallel_tool_calls: has("no_parallel_tool_calls"),
    }
}

fn egress(access: &Access, env: &Env) -> Result<Option<Arc<Egress>>, CallFault> {
    if access.proxy.is_none() && access.ca_file.is_none() {
        return Ok(None);
    }
    let proxy = access.proxy.as_ref().map(|proxy| env.resolve(proxy)).transpose();
    let proxy = proxy.map_err(|fault| misconfigured(&fault.to_string()))?;
    let roots = access.ca_file.as_ref().map(std::fs::read_to_string).transpose();
    let roots = roots.map_err(|fault| misconfigured(&format!("the file of certificates: {fault}")))?;
    let egress = Egress::new(proxy.as_deref(), roots).map_err(|fault| misconfigured(&fault.to_string()))?;
    Ok(Some(Arc::new(egress)))
}
