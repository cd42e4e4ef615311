//! On whose behalf a request at these doors is.

use super::refused::{Refused, refusal};
use crate::caller;
use crate::door::Door;
use axum::extract::FromRequestParts;
use chorus_store::Whose;
use http::StatusCode;
use http::request::Parts;

/// Marks requests of the management plane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Managed;

/// Who asks: an operator, a caller, or nobody where nobody can be told from anybody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asker {
    /// At the management plane.
    Operator,
    /// At the data plane.
    Caller(Option<String>),
}

impl Asker {
    /// What is within reach.
    pub(super) fn whose(&self) -> Whose {
        match self {
            Self::Operator => Whose::All,
            Self::Caller(user) => Whose::Of(user.clone()),
        }
    }

    /// Whose new things are.
    pub(super) fn owner(&self) -> Option<String> {
        match self {
            Self::Operator => None,
            Self::Caller(user) => user.clone(),
        }
    }
}

impl FromRequestParts<Door> for Asker {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, door: &Door) -> Result<Self, Refused> {
        if parts.extensions.get::<Managed>().is_some() {
            return Ok(Self::Operator);
        }
        let user = caller::of(door, &parts.headers).map(|caller| caller.user().to_owned());
        let tells_callers_apart = door.requires_keys() || door.engine.serving().spec.global.identity.trusted;
        if user.is_none() && tells_callers_apart {
            let text = "files and vector stores belong to somebody here, and nobody vouches for this caller";
            return Err(refusal(StatusCode::UNAUTHORIZED, "identity_required", text));
        }
        Ok(Self::Caller(user))
    }
}
