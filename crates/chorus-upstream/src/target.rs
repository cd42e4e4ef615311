//! Where a call goes: a resolved URL, the headers that belong to it, and its time limits.
//!
//! A target knows nothing of a caller's headers. Its credential cannot be printed: [`Secret`] shows `***`, and the
//! header that carries it is marked sensitive.

use crate::anthropic;
use crate::dialect::Dialect;
use crate::egress::Egress;
use crate::place::{Place, host_of};
use crate::quirks::Quirks;
use crate::sigv4::{AwsKeys, Signer};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http::uri::{Authority, PathAndQuery, Scheme, Uri};
use std::sync::Arc;
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

impl Secret {
    /// The same credential as a pair of AWS keys, where it is one.
    #[must_use]
    pub fn aws_keys(&self) -> Option<AwsKeys> {
        AwsKeys::parse(&self.0)
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

/// How we call ourselves.
pub(crate) const OURSELVES: &str = concat!("chorus/", env!("CARGO_PKG_VERSION"));

/// A place to call: resolved, checked, and all that its requests have in common made ready; cheap to clone.
#[derive(Debug, Clone)]
pub struct Target {
    base: Base,
    uri: Uri,
    /// Path and query of `uri`.
    pub(crate) path: PathAndQuery,
    pub(crate) place: Arc<Place>,
    /// Headers of every request; its own among them.
    pub(crate) headers: Arc<HeaderMap>,
    /// Names of those headers that no caller's may replace.
    own: Arc<[HeaderName]>,
    pub(crate) dialect: Dialect,
    pub(crate) quirks: Quirks,
    pub(crate) signer: Option<Arc<Signer>>,
}

/// What every path of one backend stands below.
#[derive(Debug, Clone)]
struct Base {
    scheme: Scheme,
    authority: Authority,
    prefix: String,
    queries: Vec<String>,
}

impl Base {
    fn read(url: &str) -> Result<Self, TargetFault> {
        let base: Uri = url.trim().parse().map_err(|_| TargetFault::Url)?;
        let (Some(scheme), Some(authority)) = (base.scheme(), base.authority()) else {
            return Err(TargetFault::Url);
        };
        if (*scheme != Scheme::HTTP && *scheme != Scheme::HTTPS) || authority.host().is_empty() {
            return Err(TargetFault::Url);
        }
        if authority.as_str().contains('@') {
            return Err(TargetFault::UserInfo);
        }
        Ok(Self {
            scheme: scheme.clone(),
            authority: authority.clone(),
            prefix: base.path().trim_end_matches('/').to_owned(),
            queries: base.query().map(str::to_owned).into_iter().collect(),
        })
    }

    /// Path and query of what stands at a path, which may have a query of its own.
    fn at(&self, path: &str) -> Result<PathAndQuery, TargetFault> {
        if !path.starts_with('/') {
            return Err(TargetFault::Path);
        }
        let mut path = [&self.prefix, path].concat();
        for query in &self.queries {
            path.push(if path.contains('?') { '&' } else { '?' });
            path.push_str(query);
        }
        PathAndQuery::from_maybe_shared(Bytes::from(path)).map_err(|_| TargetFault::Path)
    }

    /// The whole address.
    fn whole(&self, path: PathAndQuery) -> Result<Uri, TargetFault> {
        let whole = Uri::builder().scheme(self.scheme.clone()).authority(self.authority.clone());
        whole.path_and_query(path).build().map_err(|_| TargetFault::Url)
    }
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
            dialect: Dialect::OpenAi,
            quirks: Quirks::default(),
            egress: None,
            signer: None,
        }
    }

    /// The same host at another path, whatever path its base URL has.
    ///
    /// # Errors
    /// [`TargetFault::Path`].
    pub fn at_host(&self, path: &str) -> Result<Self, TargetFault> {
        let root = Base { prefix: String::new(), queries: Vec::new(), ..self.base.clone() };
        let path = root.at(path)?;
        Ok(Self { uri: root.whole(path.clone())?, path, ..self.clone() })
    }

    /// The path below the base that stands where the place of calls has `own` at its end.
    pub(crate) fn beside(&self, own: &str, other: &str) -> Option<String> {
        let path = self.uri.path().strip_prefix(&self.base.prefix)?.strip_suffix(own)?;
        Some(format!("{path}{other}"))
    }

    /// Path and query of what stands at a path below the base.
    pub(crate) fn path_at(&self, path: &str) -> Result<PathAndQuery, TargetFault> {
        self.base.at(path)
    }

    /// The whole address of a path and query.
    pub(crate) fn whole(&self, path: PathAndQuery) -> Result<Uri, TargetFault> {
        self.base.whole(path)
    }

    /// Whether a header is the target's own, such as that of its credential.
    pub(crate) fn owns(&self, name: &HeaderName) -> bool {
        self.own.contains(name)
    }

    /// Scheme, host and port, for logs and for keying health by place.
    #[must_use]
    pub fn origin(&self) -> String {
        let scheme = self.uri.scheme_str().unwrap_or_default();
        let authority = self.uri.authority().map(Authority::as_str).unwrap_or_default();
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
    dialect: Dialect,
    quirks: Quirks,
    egress: Option<Arc<Egress>>,
    signer: Option<Arc<Signer>>,
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

    /// The API that it speaks (default: OpenAI's).
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// What it cannot read of its API.
    pub fn quirks(mut self, quirks: Quirks) -> Self {
        self.quirks = quirks;
        self
    }

    /// Signs every request with these keys, for Bedrock in that region.
    pub fn signed(mut self, keys: AwsKeys, region: &str) -> Self {
        self.signer = Some(Arc::new(Signer { keys, region: region.to_owned(), service: "bedrock" }));
        self
    }

    /// The way to it, where that is not the usual one.
    pub fn egress(mut self, egress: Option<Arc<Egress>>) -> Self {
        self.egress = egress;
        self
    }

    /// Anthropic's clients write the base without the API's version, others with it: it is not said twice.
    fn path(&self) -> &str {
        let has_version = self.base_url.trim_end_matches('/').ends_with("/v1");
        let rest = self.chat_path.strip_prefix("/v1").filter(|_| has_version);
        rest.filter(|_| self.dialect == Dialect::Anthropic).unwrap_or(&self.chat_path)
    }

    /// Checks and resolves.
    ///
    /// # Errors
    /// [`TargetFault`].
    pub fn build(self) -> Result<Target, TargetFault> {
        let mut base = Base::read(&self.base_url)?;
        base.queries.extend(self.api_version.as_ref().map(|version| format!("api-version={version}")));
        let path = base.at(self.path())?;
        let uri = base.whole(path.clone())?;
        let mut own = HeaderMap::new();
        if self.dialect == Dialect::Anthropic {
            own.insert("anthropic-version", HeaderValue::from_static(anthropic::VERSION));
        }
        for (name, value) in &self.headers {
            let (name, mut value) = header(name, value)?;
            value.set_sensitive(true);
            own.insert(name, value);
        }
        if let Some((name, prefix, secret)) = &self.auth {
            let space = if prefix.is_empty() { "" } else { " " };
            let (name, mut value) = header(name, &format!("{prefix}{space}{}", secret.0))?;
            value.set_sensitive(true);
            own.insert(name, value);
        }
        let names = own.keys().cloned().collect();
        let mut headers = HeaderMap::with_capacity(own.len() + 3);
        headers.insert(HOST, host_of(&uri).ok_or(TargetFault::Url)?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(OURSELVES));
        headers.extend(own);
        let Self { dialect, quirks, egress, signer, .. } = self;
        let place = Arc::new(Place::of(&uri, egress).ok_or(TargetFault::Url)?);
        Ok(Target { base, uri, path, place, headers: Arc::new(headers), own: names, dialect, quirks, signer })
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
