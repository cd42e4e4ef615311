//! Blocks `qdrant` of `global.stores`.
//!
//! **Invariant:** a name of a collection can stand in a path as it is.

use super::credential::secret;
use super::cursor::Cursor;
use super::host::host;
use crate::QdrantPlace;
use crate::diagnostic::code;
use std::time::Duration;

/// Port of the REST API. Source: Qdrant's configuration, `service.http_port`.
const PORT: u16 = 6333;
/// Port of the other API, which is not spoken here. Source: `service.grpc_port`.
const GRPC_PORT: u16 = 6334;
/// How long a question may take, in seconds, unless the file says otherwise, and at most.
const TIMEOUT_SECONDS: (u64, i64) = (5, 300);

/// The server under `qdrant`, one of this machine where there is no such block; `name` is the key of the collection's name.
pub(super) fn place(at: &Cursor<'_>, name: &str, default: &str) -> QdrantPlace {
    let block = at.get("qdrant");
    let at = block.as_ref();
    let port = at.and_then(|it| it.integer_in("port", 1, 65_535)).and_then(|n| u16::try_from(n).ok());
    if let Some(named) = at.and_then(|it| it.get("port")).filter(|_| port == Some(GRPC_PORT)) {
        named.warn_help(
            code::BAD_VALUE,
            "this is the port of Qdrant's gRPC API",
            format!("its REST API is asked, which is at port {PORT} by default"),
        );
    }
    let seconds = at.and_then(|it| it.integer_in("connect_timeout", 1, TIMEOUT_SECONDS.1));
    QdrantPlace {
        host: host(at, "`port`, `use_tls` and `api_key`"),
        port: port.unwrap_or(PORT),
        api_key: at.and_then(|it| secret(it, "api_key")),
        tls: at.and_then(|it| it.boolean("use_tls")).unwrap_or(false),
        timeout: Duration::from_secs(
            seconds.and_then(|n| u64::try_from(n).ok()).unwrap_or(TIMEOUT_SECONDS.0),
        ),
        collection: at.and_then(|it| collection(it, name)).unwrap_or_else(|| default.to_owned()),
    }
}

/// The name of a collection.
pub(super) fn collection(at: &Cursor<'_>, name: &str) -> Option<String> {
    let text = at.string(name).filter(|text| !text.is_empty())?;
    if !text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
        let help = "letters, digits, `_` and `-`".to_owned();
        at.get(name)?.error_help(code::BAD_VALUE, "this cannot name a collection here", help);
        return None;
    }
    Some(text)
}
