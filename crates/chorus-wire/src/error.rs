//! The error shape of the API: `{"error": {"message", "type", "param", "code"}}`. It knows no status code.

use crate::body::RawObject;
use crate::content::text;
use crate::raw::{elements, is_null};
use serde_json::value::RawValue;

/// What a client sees of an error.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ErrorBody {
    /// A sentence for people; never a secret, an address or a backend's raw text.
    pub message: String,
    /// Class of error, such as `invalid_request_error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The request field at fault.
    pub param: Option<String>,
    /// Stable word for programs.
    pub code: Option<String>,
}

/// The class of an error that does not name its own.
const DEFAULT_KIND: &str = "api_error";

impl ErrorBody {
    /// `{"error": …}` as JSON text.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        #[derive(serde::Serialize)]
        struct Envelope<'a> {
            error: &'a ErrorBody,
        }
        // Only strings, written to memory: there is nothing that could fail.
        serde_json::to_vec(&Envelope { error: self }).unwrap_or_default()
    }

    /// Reads the many shapes that backends send: `{"error": {…}}`, `{"error": "text"}`, `{"message": …}`,
    /// `{"detail": …}` (a string, or FastAPI's list of `{"msg"}`), a bare JSON string, and a list that holds one of
    /// these; codes may be numbers. `None` for anything else.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let raw: &RawValue = serde_json::from_slice(bytes).ok()?;
        let raw = raw.get();
        Self::read(elements(raw).and_then(|list| list.first().copied()).unwrap_or(raw))
    }

    fn read(raw: &str) -> Option<Self> {
        if let Some(message) = text(raw) {
            return Some(Self::plain(message));
        }
        Self::of_object(&RawObject::parse(raw.as_bytes()).ok()?)
    }

    /// The error that an object is or holds, if any.
    #[must_use]
    pub fn of_object(object: &RawObject) -> Option<Self> {
        match object.get_set("error") {
            Some(inner) => match text(inner) {
                Some(message) => Some(Self { message, ..Self::fields(object) }),
                None => Some(match RawObject::parse(inner.get().as_bytes()) {
                    Ok(inner) => Self::fields(&inner),
                    // `true`, a number or a list: an error all the same.
                    Err(_) => Self::fields(object),
                }),
            },
            None => (object.get_set("message").is_some() || object.get_set("detail").is_some())
                .then(|| Self::fields(object)),
        }
    }

    fn fields(object: &RawObject) -> Self {
        let field = |key: &str| object.get(key).and_then(|raw| scalar(raw));
        let kind = field("type");
        let code = field("code");
        let message = field("message")
            .or_else(|| object.get_set("detail").and_then(|raw| detail(raw)))
            .or_else(|| kind.clone())
            .or_else(|| code.as_ref().map(|code| format!("error {code}")))
            .unwrap_or_else(|| "an error without a message".to_owned());
        Self { message, kind: kind.unwrap_or_else(|| DEFAULT_KIND.to_owned()), param: field("param"), code }
    }

    fn plain(message: String) -> Self {
        Self { message, kind: DEFAULT_KIND.to_owned(), param: None, code: None }
    }
}

/// A string's text, or the JSON text of anything else that is not `null`.
fn scalar(raw: &str) -> Option<String> {
    text(raw).or_else(|| (!is_null(raw)).then(|| raw.to_owned()))
}

/// FastAPI's `detail`: a string, or a list of `{"loc", "msg", "type"}` of which the first counts.
fn detail(raw: &str) -> Option<String> {
    let first = elements(raw).and_then(|list| list.first().copied()).unwrap_or(raw);
    match RawObject::parse(first.as_bytes()) {
        Ok(object) => object.get("msg").or_else(|| object.get("message")).and_then(|raw| scalar(raw)),
        Err(_) => scalar(first),
    }
}
