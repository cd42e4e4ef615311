//! Fetching a file from a model hub over HTTP(S), going on where a cut left off.
//!
//! It appends to a partial file and judges no content. A token is sent to the hub alone, never to where it redirects.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use ureq::config::RedirectAuthHeaders;
use ureq::http::{StatusCode, header};

use super::progress::Meter;

/// How long a connection to a source may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a source may take to begin its answer.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
const BUFFER_BYTES: usize = 256 << 10;

/// A hub and how it is spoken to.
#[derive(Clone)]
pub(super) struct Hub {
    agent: ureq::Agent,
    endpoint: String,
    token: Option<String>,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Whether the bytes before a cut were kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fetched {
    /// The file was written from its first byte.
    Whole,
    /// A partial file was completed.
    Resumed,
}

impl Hub {
    pub(super) fn new(endpoint: String, token: Option<String>) -> Self {
        let agent = ureq::Agent::config_builder()
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(RESPONSE_TIMEOUT))
            .http_status_as_error(false)
            .redirect_auth_headers(RedirectAuthHeaders::Never)
            .build()
            .new_agent();
        Self { agent, endpoint, token }
    }

    /// Completes `part` with the bytes of a repository's file.
    pub(super) fn fetch(
        &self,
        (repo, revision, path): (&str, &str, &str),
        part: &Path,
        meter: &mut Meter<'_>,
    ) -> Result<Fetched, String> {
        let url = format!("{}/{repo}/resolve/{revision}/{path}", self.endpoint.trim_end_matches('/'));
        let have = std::fs::metadata(part).map_or(0, |meta| meta.len());
        let response = self.get(&url, have)?;
        let (mut file, fetched) = match response.status() {
            StatusCode::PARTIAL_CONTENT if starts_at(&response, have) => {
                meter.note(&format!("going on after {have} bytes"));
                meter.advance(have);
                (OpenOptions::new().append(true).open(part).map_err(|e| e.to_string())?, Fetched::Resumed)
            }
            StatusCode::OK => (File::create(part).map_err(|e| e.to_string())?, Fetched::Whole),
            // The partial file already has every byte; its digest will tell.
            StatusCode::RANGE_NOT_SATISFIABLE if have > 0 => return Ok(Fetched::Resumed),
            status => return Err(format!("HTTP status {status} from {url}")),
        };
        copy(&mut response.into_body().into_reader(), &mut file, meter)
            .map_err(|e| format!("{e}, from {url}"))?;
        Ok(fetched)
    }

    fn get(&self, url: &str, have: u64) -> Result<ureq::http::Response<ureq::Body>, String> {
        let mut request = self.agent.get(url);
        if have > 0 {
            request = request.header(header::RANGE, format!("bytes={have}-"));
        }
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        request.call().map_err(|fault| format!("{fault}, at {url}"))
    }
}

/// Whether a partial response begins at the byte that is missing.
fn starts_at(response: &ureq::http::Response<ureq::Body>, have: u64) -> bool {
    let range = response.headers().get(header::CONTENT_RANGE).and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {have}-")))
}

fn copy(from: &mut impl Read, to: &mut File, meter: &mut Meter<'_>) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return to.sync_all();
        }
        to.write_all(buffer.get(..read).unwrap_or_default())?;
        meter.advance(read as u64);
    }
}
