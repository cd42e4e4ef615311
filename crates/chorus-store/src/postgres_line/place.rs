//! Where a database is, and why it does not answer.

use rustls::CertificateError;
use std::fmt;
use std::io;
use std::path::PathBuf;
use tokio_postgres::error::SqlState;

/// How a database is reached.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresPlace {
    /// A host name or an IP address; a path is the folder of a Unix socket.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The database's name.
    pub database: String,
    /// Who asks.
    pub user: String,
    /// The password; never shown.
    pub password: Option<String>,
    /// How the connection is protected.
    pub tls: PostgresTls,
}

impl fmt::Debug for PostgresPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresPlace").field("database", &self.database).finish_non_exhaustive()
    }
}

/// How a connection is protected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PostgresTls {
    /// Not at all: for a database on this machine.
    Off,
    /// Encrypted; any certificate will do.
    AnyCertificate,
    /// Encrypted; the certificate is the host's, by these authorities (a file in PEM) or by the public ones.
    Verified(Option<PathBuf>),
}

/// Why a database cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PostgresFault {
    /// Nobody answers there, or not at present.
    #[error("the PostgreSQL server could not be reached")]
    Unreachable,
    /// It took too long.
    #[error("the PostgreSQL server did not answer in time")]
    Slow,
    /// It does not let this user in, or has no such database.
    #[error("the PostgreSQL server refused: {0}")]
    Refused(String),
    /// Its certificate is not one to trust, or the authorities cannot be read.
    #[error("the connection to the PostgreSQL server cannot be protected: {0}")]
    Tls(String),
    /// The tables were made by a later program.
    #[error("the database has schema version {found}; this program knows versions up to {known}")]
    TooNew {
        /// Its version.
        found: i32,
        /// The latest known one.
        known: i32,
    },
    /// It did not do what it was asked; the code is PostgreSQL's own.
    #[error("the PostgreSQL server failed ({0})")]
    Failed(String),
    /// What it keeps is not what was written.
    #[error("the database holds something unreadable: {0}")]
    Unreadable(String),
}

impl PostgresFault {
    /// Whether the server is away, so that the same may succeed later.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Unreachable | Self::Slow)
    }
}

impl From<tokio_postgres::Error> for PostgresFault {
    fn from(error: tokio_postgres::Error) -> Self {
        if let Some(told) = error.as_db_error() {
            let code = told.code();
            return match code.code().get(..2) {
                // A server that starts, stops, or has no connection to spare. Source: PostgreSQL, appendix A.
                Some("57" | "53") if *code != SqlState::QUERY_CANCELED => Self::Unreachable,
                Some("28" | "3D") => Self::Refused(told.message().to_owned()),
                _ if *code == SqlState::INSUFFICIENT_PRIVILEGE => Self::Refused(told.message().to_owned()),
                // The text alone could hold what was written; the code says enough.
                _ => Self::Failed(code.code().to_owned()),
            };
        }
        let Some(source) = std::error::Error::source(&error) else { return Self::Unreachable };
        match source.downcast_ref::<io::Error>() {
            Some(io) => match io.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
                Some(why) => Self::Tls(unprotected(why)),
                // The host as it is written cannot be the name of a certificate.
                None if io.kind() == io::ErrorKind::InvalidInput => Self::Tls(OTHER_HOST.to_owned()),
                None => Self::Unreachable,
            },
            // What the client itself says: no password where one is asked for, a server without TLS.
            None => Self::Refused(source.to_string()),
        }
    }
}

const OTHER_HOST: &str =
    "its certificate is for other hosts: `host` is none of its subject alternative names";

/// Why nothing was agreed on, in words that name no host and say what to change.
fn unprotected(why: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(bad) = why else { return why.to_string() };
    let told = match bad {
        // The second where one of that name is trusted, and it is another: as after a change of authorities.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "its certificate is by no authority that is trusted here: `ca_file` names the authorities"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => OTHER_HOST,
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet"
        }
        // Self-signed, as `openssl req -x509` makes them. Source: the name of the variant in rustls-webpki.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "its certificate is an authority's own (CA:TRUE): an authority must sign one for the server"
        }
        other => return other.to_string(),
    };
    told.to_owned()
}

impl From<serde_json::Error> for PostgresFault {
    fn from(error: serde_json::Error) -> Self {
        Self::Unreadable(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_shows_neither_its_address_nor_its_password() {
        let place = PostgresPlace {
            host: "db.internal".to_owned(),
            port: 5432,
            database: "chorus".to_owned(),
            user: "router".to_owned(),
            password: Some("hunter2".to_owned()),
            tls: PostgresTls::Off,
        };
        let shown = format!("{place:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("internal") && shown.contains("chorus"));
    }
}
