//! Where a call goes: a resolved URL, the headers that belong to it, and its time limits.
//!
//! A target knows nothing of a caller's headers. Its credential cannot be printed: [`Secret`] shows `***`, and the
//! header that carries it is marked sensitive.

use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use http::uri::{PathAndQuery, Scheme, Uri};
use std::time::Duration;

/// A credential. It prints as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes the credential; surrounding whitespace (a trailing newline of a file) is no part of it.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Time limits and size bounds of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a connection is there, TLS included (default 10 s).
    pub connect: Duration,
    /// From the connection to the first byte of the body (default 300 s). A whole reply has its first byte only when
    /// all of it was generated, so that a limit fit for streams alone would cut long answers.
    pub first_byte: Duration,
    /// Between two reads of the body after the first (default 60 s); comments count as life.
    pub idle: Duration,
    /// The whole attempt, from the call to the end of the answer (default 600 s).
    pub total: Duration,
    /// Most bytes of one answer's body, streamed or whole (default 32 MiB).
    pub max_response_bytes: usize,
    /// Most bytes of one event of a stream (default 16 MiB, case A23).
    pub max_event_bytes: usize,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(300),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(600),
            max_response_bytes: 32 << 20,
            max_event_bytes: chorus_wire::sse::MAX_EVENT_BYTES,
        }
    }
}

/// Why a target cannot be built. Texts name no value: an address may hold a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetFault {
    /// Not `http://host…` or `https://host…`.
    #[error("the base URL is not an http or https URL with a host")]
    Url,
    /// `user:password@` in the URL: it would end in logs.
    #[error("the base URL holds credentials; use the backend's key instead")]
    UserInfo,
    /// The chat path does not start with `/` or holds characters that a path cannot.
    #[error("the chat path is not a path that starts with `/`")]
    Path,
    /// A header's name or value cannot be sent.
    #[error("the header `{0}` cannot be sent")]
    Header(String),
}

/// A place to call: resolved, checked, cheap to clone.
#[derive(Debug, Clone)]
pub struct Target {
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
}

impl Target {
    /// Starts with the base URL: `http(s)://host[:port][/prefix][?query]`.
    pub fn builder(base_url: &str) -> TargetBuilder {
        TargetBuilder {
            base_url: base_url.to_owned(),
            chat_path: "/chat/completions".to_owned(),
            api_version: None,
            auth: None,
            headers: Vec::new(),
        }
    }

    /// Scheme, host and port, for logs and for keying health by place.
    #[must_use]
    pub fn origin(&self) -> String {
        let scheme = self.uri.scheme_str().unwrap_or_default();
        let authority = self.uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        format!("{scheme}://{authority}")
    }
}

/// Collects what a [`Target`] is made of.
#[derive(Debug, Clone)]
#[must_use]
pub struct TargetBuilder {
    base_url: String,
    chat_path: String,
    api_version: Option<String>,
    auth: Option<(String, String, Secret)>,
    headers: Vec<(String, String)>,
}

impl TargetBuilder {
    /// Path below the base URL (default `/chat/completions`).
    pub fn chat_path(mut self, path: &str) -> Self {
        path.clone_into(&mut self.chat_path);
        self
    }

    /// Appended to the query as `api-version`. Source: Azure OpenAI REST reference.
    pub fn api_version(mut self, version: &str) -> Self {
        self.api_version = Some(version.to_owned());
        self
    }

    /// `Authorization: Bearer …`.
    pub fn bearer(self, secret: Secret) -> Self {
        self.auth(AUTHORIZATION.as_str(), "Bearer", secret)
    }

    /// The header that carries the credential, and the word before it (empty for none).
    pub fn auth(mut self, header: &str, prefix: &str, secret: Secret) -> Self {
        self.auth = Some((header.to_owned(), prefix.to_owned(), secret));
        self
    }

    /// A further header of the backend's own.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Checks and resolves.
    ///
    /// # Errors
    /// [`TargetFault`].
    pub fn build(self) -> Result<Target, TargetFault> {
        let uri = self.uri()?;
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let (name, mut value) = header(name, value)?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        if let Some((name, prefix, secret)) = &self.auth {
            let space = if prefix.is_empty() { "" } else { " " };
            let (name, mut value) = header(name, &format!("{prefix}{space}{}", secret.0))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(Target { uri, headers })
    }

    fn uri(&self) -> Result<Uri, TargetFault> {
        let base: Uri = self.base_url.trim().parse().map_err(|_| TargetFault::Url)?;
        let (Some(scheme), Some(authority)) = (base.scheme(), base.authority()) else {
            return Err(TargetFault::Url);
        };
        if (*scheme != Scheme::HTTP && *scheme != Scheme::HTTPS) || authority.host().is_empty() {
            return Err(TargetFault::Url);
        }
        if authority.as_str().contains('@') {
            return Err(TargetFault::UserInfo);
        }
        if !self.chat_path.starts_with('/') {
            return Err(TargetFault::Path);
        }
        let mut path = format!("{}{}", base.path().trim_end_matches('/'), self.chat_path);
        let version = self.api_version.as_ref().map(|version| format!("api-version={version}"));
        for query in base.query().map(str::to_owned).into_iter().chain(version) {
            path.push(if path.contains('?') { '&' } else { '?' });
            path.push_str(&query);
        }
        let path: PathAndQuery = path.parse().map_err(|_| TargetFault::Path)?;
        Uri::builder()
            .scheme(scheme.clone())
            .authority(authority.clone())
            .path_and_query(path)
            .build()
            .map_err(|_| TargetFault::Url)
    }
}

/// One header, checked.
pub(crate) fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), TargetFault> {
    let fault = || TargetFault::Header(name.to_owned());
    Ok((name.parse().map_err(|_| fault())?, value.parse().map_err(|_| fault())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_joined() {
        let rows = [
            (
                "http://127.0.0.1:8000/v1",
                "/chat/completions",
                None,
                "http://127.0.0.1:8000/v1/chat/completions",
            ),
            ("http://h:1", "/v1/chat/completions", None, "http://h:1/v1/chat/completions"),
            ("https://h/v1/", "/chat/completions", None, "https://h/v1/chat/completions"),
            ("https://h/a?x=1", "/b", Some("2024-10-21"), "https://h/a/b?x=1&api-version=2024-10-21"),
            ("https://h/a", "/b?y=2", Some("v"), "https://h/a/b?y=2&api-version=v"),
            ("http://[::1]:8000", "/c", None, "http://[::1]:8000/c"),
        ];
        for (base, path, version, want) in rows {
            let mut builder = Target::builder(base).chat_path(path);
            if let Some(version) = version {
                builder = builder.api_version(version);
            }
            assert_eq!(builder.build().unwrap().uri.to_string(), want);
        }
    }

    #[test]
    fn bad_targets_are_refused() {
        let rows = [
            (Target::builder("localhost:8000"), TargetFault::Url),
            (Target::builder("ftp://h/"), TargetFault::Url),
            (Target::builder(""), TargetFault::Url),
            (Target::builder("http://user:pw@h/"), TargetFault::UserInfo),
            (Target::builder("http://h").chat_path("chat"), TargetFault::Path),
            (Target::builder("http://h").header("x y", "1"), TargetFault::Header("x y".to_owned())),
            (
                Target::builder("http://h").bearer(Secret::new("a\nb")),
                TargetFault::Header("authorization".to_owned()),
            ),
        ];
        for (builder, want) in rows {
            assert_eq!(builder.build().unwrap_err(), want);
        }
    }

    #[test]
    fn the_credential_is_never_printed() {
        let builder =
            Target::builder("http://h").bearer(Secret::new("sk-live-1\n")).header("x-key", "sk-live-1");
        assert!(!format!("{:?}", builder.auth).contains("sk-live"));
        let target = builder.build().unwrap();
        assert_eq!(target.headers.get("authorization").unwrap(), "Bearer sk-live-1");
        assert!(!format!("{target:?}").contains("sk-live"), "{target:?}");
    }
}
