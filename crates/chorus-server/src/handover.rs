//! A request that is handed back to the gateway that brought it, through the layers of the data plane.
//!
//! The gateway says on the request that it can call models ([`Gateway`]); the response then carries what it is to do
//! instead of an answer ([`Handover`]). It knows nothing of the gateway's protocol.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use chorus_engine::Dispatched;
use std::sync::{Arc, Mutex, PoisonError};

/// On a request: whoever brings it can call its model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gateway;

/// On a response: whoever brought the request is to call its model.
#[derive(Clone)]
pub(crate) struct Handover(Arc<Mutex<Option<Box<Dispatched>>>>);

impl Handover {
    pub(crate) fn of(dispatched: Dispatched) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::new(dispatched)))))
    }

    /// What a response hands over; `None` where it is an answer.
    pub(crate) fn taken(response: &mut Response) -> Option<Box<Dispatched>> {
        let Self(held) = response.extensions_mut().remove()?;
        held.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl IntoResponse for Handover {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        response.extensions_mut().insert(self);
        response
    }
}
