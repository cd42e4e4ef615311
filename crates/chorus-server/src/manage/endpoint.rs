//! A row of the table of endpoints.

use crate::door::Door;
use axum::routing::MethodRouter;

/// What one endpoint is called and takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Endpoint {
    /// HTTP method, in capitals.
    pub(crate) method: &'static str,
    /// Path, with `{name}` for what varies.
    pub(crate) path: &'static str,
    /// The contract's word for who may ask it.
    pub(crate) permission: &'static str,
    /// What it gives, in one line.
    pub(crate) does: &'static str,
    /// Fields of its body.
    pub(crate) fields: &'static [Field],
    /// Whether `If-Match` must say what the change is based on.
    pub(crate) conditional: bool,
}

impl Endpoint {
    pub(crate) const fn new(
        method: &'static str,
        path: &'static str,
        permission: &'static str,
        does: &'static str,
    ) -> Self {
        Self { method, path, permission, does, fields: &[], conditional: false }
    }

    pub(crate) const fn taking(self, fields: &'static [Field]) -> Self {
        Self { fields, ..self }
    }

    pub(crate) const fn conditional(self) -> Self {
        Self { conditional: true, ..self }
    }
}

/// One field of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its JSON type: `string`, `array`, `object`, `integer`, …
    pub(crate) kind: &'static str,
    /// What it says.
    pub(crate) does: &'static str,
    /// Whether it must be there.
    pub(crate) required: bool,
}

impl Field {
    pub(crate) const fn new(name: &'static str, kind: &'static str, does: &'static str) -> Self {
        Self { name, kind, does, required: false }
    }

    pub(crate) const fn needed(name: &'static str, kind: &'static str, does: &'static str) -> Self {
        Self { name, kind, does, required: true }
    }
}

/// An endpoint and who answers it.
pub(crate) struct Route {
    pub(crate) endpoint: Endpoint,
    pub(crate) handler: MethodRouter<Door>,
}

impl Route {
    pub(crate) fn new(endpoint: Endpoint, handler: MethodRouter<Door>) -> Self {
        Self { endpoint, handler }
    }
}
