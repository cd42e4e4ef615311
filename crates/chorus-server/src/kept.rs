//! Responses that are kept, and those that are being made in the background.

use crate::reply;
use axum::response::Response;
use chorus_engine::Fault;
use chorus_store::{KeptResponse, MemoryResponses, ResponseFault, ResponseStore};
use chorus_wire::{Raw, RawObject, RequestFault};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Most responses that one process makes in the background at a time (`max_background`).
const MAX_BACKGROUND: usize = 64;

/// A response that has been in the making for longer than any request may take: its process is gone.
const ABANDONED_AFTER: Duration = Duration::from_secs(1800);

/// The responses of one process. Cloning shares them.
#[derive(Clone)]
pub(crate) struct Keeper {
    store: Arc<dyn ResponseStore>,
    running: Arc<Mutex<BTreeMap<String, CancellationToken>>>,
    room: Arc<Semaphore>,
}

impl Default for Keeper {
    fn default() -> Self {
        Self::over(Arc::new(MemoryResponses::default()))
    }
}

impl Keeper {
    /// Responses in that store.
    pub(crate) fn over(store: Arc<dyn ResponseStore>) -> Self {
        Self { store, running: Arc::default(), room: Arc::new(Semaphore::new(MAX_BACKGROUND)) }
    }

    /// Keeps a response that is whole, or is about to be made.
    pub(crate) async fn put(&self, response: KeptResponse) -> Result<(), Refused> {
        Ok(self.store.put(response).await?)
    }

    /// Gives one in the making its last object.
    pub(crate) async fn settle(&self, id: &str, object: String) {
        if let Err(fault) = self.store.settle(id, object).await {
            tracing::error!(%fault, id, "a response could not be kept");
        }
    }

    /// The response of that name, if it is the caller's.
    pub(crate) async fn find(&self, id: &str, owner: Option<&str>) -> Result<KeptResponse, Refused> {
        let found = self.store.get(id).await?.filter(|kept| kept.owner.as_deref() == owner);
        let mut kept = found.ok_or_else(|| Refused::not_found(id))?;
        if !kept.settled && age(&kept) > ABANDONED_AFTER {
            let error =
                json!({"code": "abandoned", "message": "the server stopped before the response was made"});
            kept.object = with(&kept.object, &[("status", json!("failed")), ("error", error)]);
            kept.settled = true;
        }
        Ok(kept)
    }

    /// All items of the conversation up to and with that response.
    pub(crate) async fn history(&self, id: &str, owner: Option<&str>) -> Result<Vec<Raw>, Refused> {
        let missing = || Refused::Door {
            status: StatusCode::BAD_REQUEST,
            code: "previous_response_not_found",
            message: format!("the response `{}` is not kept here", shown(id)),
        };
        let kept = self.find(id, owner).await.map_err(|_| missing())?;
        let object = RawObject::parse(kept.object.as_bytes()).map_err(|_| missing())?;
        if !kept.settled {
            return Err(Refused::bad("previous_response_id", "that response is still being made"));
        }
        let mut items: Vec<Raw> = serde_json::from_str(&kept.input).map_err(|_| missing())?;
        items.extend(object.read::<Vec<Raw>>("output").ok().flatten().unwrap_or_default());
        Ok(items)
    }

    pub(crate) async fn delete(&self, id: &str) -> Result<(), Refused> {
        self.stop(id);
        self.store.delete(id).await?;
        Ok(())
    }

    /// Cancels one in the background; returns what it is then.
    pub(crate) async fn cancel(&self, id: &str, owner: Option<&str>) -> Result<String, Refused> {
        let kept = self.find(id, owner).await?;
        let object = RawObject::parse(kept.object.as_bytes()).unwrap_or_default();
        if object.get("background").is_none_or(|raw| raw.get() != "true") {
            return Err(Refused::bad("response_id", "only a response in the background can be cancelled"));
        }
        if kept.settled {
            return Ok(kept.object);
        }
        self.settle(id, with(&kept.object, &[("status", json!("cancelled"))])).await;
        self.stop(id);
        // Its answer may have come first.
        Ok(self.find(id, owner).await?.object)
    }

    /// Room for one more in the background, and how it is told to stop.
    pub(crate) fn enter(&self, id: &str) -> Result<(OwnedSemaphorePermit, CancellationToken), Refused> {
        let permit = Arc::clone(&self.room).try_acquire_owned().map_err(|_| Refused::Door {
            status: StatusCode::TOO_MANY_REQUESTS,
            code: "background_full",
            message: format!("{MAX_BACKGROUND} responses are being made in the background (max_background)"),
        })?;
        let token = CancellationToken::new();
        self.running().insert(id.to_owned(), token.clone());
        Ok((permit, token))
    }

    pub(crate) fn leave(&self, id: &str) {
        self.running().remove(id);
    }

    fn stop(&self, id: &str) {
        if let Some(token) = self.running().remove(id) {
            token.cancel();
        }
    }

    fn running(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, CancellationToken>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn age(kept: &KeptResponse) -> Duration {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since_1970.saturating_sub(Duration::from_secs(kept.created_at))
}

/// The object with other values in some fields.
fn with(object: &str, fields: &[(&str, Value)]) -> String {
    let mut object = RawObject::parse(object.as_bytes()).unwrap_or_default();
    for (field, value) in fields {
        // A value of our own always has a JSON form.
        let _ = object.write(field, value);
    }
    String::from_utf8(object.to_bytes()).unwrap_or_default()
}

/// Items as one JSON list.
pub(crate) fn json_list(before: &[Raw], own: &[Raw]) -> String {
    let all: Vec<&Raw> = before.iter().chain(own).collect();
    serde_json::to_string(&all).unwrap_or_default()
}

/// A name of any length comes from outside.
fn shown(id: &str) -> String {
    id.chars().take(80).collect()
}

/// Why a request at this door is not served.
#[derive(Debug)]
pub(crate) enum Refused {
    /// By the engine's table.
    Fault(Fault),
    /// By the door.
    Door { status: StatusCode, code: &'static str, message: String },
    /// A response that is ready.
    Ready(Box<Response>),
}

impl Refused {
    pub(crate) fn bad(param: &str, message: &str) -> Self {
        let bad = Fault::new(chorus_engine::Code::InvalidRequest, message).at(param);
        Self::Fault(bad)
    }

    fn not_found(id: &str) -> Self {
        let message = format!("the response `{}` is not kept here", shown(id));
        Self::Door { status: StatusCode::NOT_FOUND, code: "response_not_found", message }
    }

    pub(crate) fn response(self) -> Response {
        match self {
            Self::Fault(fault) => reply::fault(&fault, HeaderMap::new()),
            Self::Door { status, code, message } => reply::refusal(status, code, &message),
            Self::Ready(response) => *response,
        }
    }
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<RequestFault> for Refused {
    fn from(bad: RequestFault) -> Self {
        Self::Fault(reply::bad_request(bad))
    }
}

impl From<Response> for Refused {
    fn from(response: Response) -> Self {
        Self::Ready(Box::new(response))
    }
}

impl From<ResponseFault> for Refused {
    fn from(fault: ResponseFault) -> Self {
        match fault {
            ResponseFault::TooLarge { .. } => Self::Door {
                status: StatusCode::PAYLOAD_TOO_LARGE,
                code: "response_too_large",
                message: format!("{fault}; send `store: false`"),
            },
            ResponseFault::Io(_) => {
                tracing::error!(%fault, "responses cannot be kept");
                Self::Door {
                    status: StatusCode::SERVICE_UNAVAILABLE,
                    code: "response_store_failed",
                    message: "the store of responses cannot be used; the log of the server says why"
                        .to_owned(),
                }
            }
        }
    }
}
