//! What is wrong with a request, in words for the client. It knows no status code.

use crate::body::BodyFault;

/// Why a body is not a chat completion request; `param` is the offending field for the error shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RequestFault {
    /// What is wrong, for the client.
    pub message: String,
    /// The field, such as `messages` or `temperature`.
    pub param: Option<String>,
}

impl RequestFault {
    /// A fault of that field.
    pub(crate) fn of(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { message: message.into(), param: Some(param.into()) }
    }
}

impl From<BodyFault> for RequestFault {
    fn from(fault: BodyFault) -> Self {
        let message = fault.to_string();
        let param = match fault {
            BodyFault::Json(_) => None,
            BodyFault::DuplicateKey(key) => Some(key),
        };
        Self { message, param }
    }
}
