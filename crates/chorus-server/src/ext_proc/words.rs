//! Envoy's messages and ours.

use bytes::Bytes;
use envoy_types::pb::envoy::config::core::v3::header_value_option::HeaderAppendAction;
use envoy_types::pb::envoy::config::core::v3::{HeaderMap as EnvoyHeaders, HeaderValue, HeaderValueOption};
use envoy_types::pb::envoy::service::ext_proc::v3::body_mutation::Mutation;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_response::Response as Word;
use envoy_types::pb::envoy::service::ext_proc::v3::streamed_immediate_response::Response as Local;
use envoy_types::pb::envoy::service::ext_proc::v3::{
    BodyMutation, BodyResponse, CommonResponse, HeaderMutation, HeadersResponse, HttpHeaders,
    ImmediateResponse, ProcessingResponse, StreamedBodyResponse, StreamedImmediateResponse, TrailersResponse,
};
use envoy_types::pb::envoy::r#type::v3::HttpStatus;
use http::{HeaderMap, HeaderName, Method, StatusCode};

/// The head of an HTTP request.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) method: Method,
    /// Path and query.
    pub(super) path: String,
    pub(super) headers: HeaderMap,
}

/// The request's head; `None` where Envoy names no method or path.
pub(super) fn head(of: HttpHeaders) -> Option<Head> {
    let (pseudo, headers) = split(of);
    let find = |name: &str| pseudo.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_slice());
    let path = String::from_utf8(find(":path")?.to_vec()).ok()?;
    Some(Head { method: Method::from_bytes(find(":method")?).ok()?, path, headers })
}

/// The status and the headers of a response.
pub(super) fn status(of: HttpHeaders) -> (Option<StatusCode>, HeaderMap) {
    let (pseudo, headers) = split(of);
    let status = pseudo.iter().find(|(key, _)| key == ":status");
    (status.and_then(|(_, value)| StatusCode::from_bytes(value).ok()), headers)
}

fn split(of: HttpHeaders) -> (Vec<(String, Vec<u8>)>, HeaderMap) {
    let mut pseudo = Vec::new();
    let mut headers = HeaderMap::new();
    for HeaderValue { key, value, raw_value } in of.headers.unwrap_or_default().headers {
        // Envoy fills one of them, by its version.
        let value = if raw_value.is_empty() { value.into_bytes() } else { raw_value };
        if key.starts_with(':') {
            pseudo.push((key, value));
        } else if let (Ok(name), Ok(value)) =
            (HeaderName::try_from(key), http::HeaderValue::from_bytes(&value))
        {
            headers.append(name, value);
        }
    }
    (pseudo, headers)
}

/// Which of Envoy's messages is answered.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    RequestHeaders,
    RequestBody,
    RequestTrailers,
    ResponseHeaders,
    ResponseBody,
    ResponseTrailers,
}

/// Goes on as it is.
pub(super) fn go_on(step: Step) -> ProcessingResponse {
    go_on_with(step, &HeaderMap::new(), None)
}

/// Goes on with these headers set, and this body in place of its own.
pub(super) fn go_on_with(step: Step, headers: &HeaderMap, body: Option<Vec<u8>>) -> ProcessingResponse {
    edited(step, headers, body.map(Mutation::Body))
}

/// The head of a request goes on in full duplex, before a body of another length than it says.
pub(super) fn duplex_head(headers: &HeaderMap) -> ProcessingResponse {
    let edits = Some(set_resized(headers));
    let common =
        CommonResponse { clear_route_cache: true, header_mutation: edits, ..CommonResponse::default() };
    message(Word::RequestHeaders(HeadersResponse { response: Some(common) }))
}

/// A piece of a body in full duplex, where what is not sent back is lost.
pub(super) fn duplex_body(step: Step, body: Vec<u8>, end_of_stream: bool) -> ProcessingResponse {
    let piece = StreamedBodyResponse { body, end_of_stream, ..StreamedBodyResponse::default() };
    edited(step, &HeaderMap::new(), Some(Mutation::StreamedResponse(piece)))
}

fn edited(step: Step, headers: &HeaderMap, body: Option<Mutation>) -> ProcessingResponse {
    let resized = matches!(body, Some(Mutation::Body(_)));
    let edits = (!headers.is_empty()).then(|| if resized { set_resized(headers) } else { set(headers) });
    let common = Some(CommonResponse {
        // The gateway's routes read what was set.
        clear_route_cache: edits.is_some() && matches!(step, Step::RequestHeaders | Step::RequestBody),
        header_mutation: edits.clone(),
        body_mutation: body.map(|mutation| BodyMutation { mutation: Some(mutation) }),
        ..CommonResponse::default()
    });
    message(match step {
        Step::RequestHeaders => Word::RequestHeaders(HeadersResponse { response: common }),
        Step::RequestBody => Word::RequestBody(BodyResponse { response: common }),
        Step::ResponseHeaders => Word::ResponseHeaders(HeadersResponse { response: common }),
        Step::ResponseBody => Word::ResponseBody(BodyResponse { response: common }),
        Step::RequestTrailers => Word::RequestTrailers(TrailersResponse { header_mutation: edits }),
        Step::ResponseTrailers => Word::ResponseTrailers(TrailersResponse { header_mutation: edits }),
    })
}

/// A whole answer, in place of going on.
pub(super) fn immediate(status: StatusCode, headers: &HeaderMap, body: Vec<u8>) -> ProcessingResponse {
    message(Word::ImmediateResponse(ImmediateResponse {
        status: Some(HttpStatus { code: i32::from(status.as_u16()) }),
        headers: Some(set(headers)),
        body,
        details: "chorus".to_owned(),
        ..ImmediateResponse::default()
    }))
}

/// The head of an answer whose body follows.
pub(super) fn local_head(status: StatusCode, headers: &HeaderMap) -> ProcessingResponse {
    let status = HeaderValue {
        key: ":status".to_owned(),
        raw_value: status.as_str().as_bytes().to_vec(),
        ..HeaderValue::default()
    };
    let headers = std::iter::once(status).chain(pairs(headers)).collect();
    let head = HttpHeaders { headers: Some(EnvoyHeaders { headers }), ..HttpHeaders::default() };
    local(Local::HeadersResponse(head))
}

/// A piece of its body.
pub(super) fn local_body(body: &Bytes, end_of_stream: bool) -> ProcessingResponse {
    local(Local::BodyResponse(StreamedBodyResponse {
        body: body.to_vec(),
        end_of_stream,
        ..StreamedBodyResponse::default()
    }))
}

fn local(response: Local) -> ProcessingResponse {
    message(Word::StreamedImmediateResponse(StreamedImmediateResponse { response: Some(response) }))
}

fn message(word: Word) -> ProcessingResponse {
    ProcessingResponse { response: Some(word), ..ProcessingResponse::default() }
}

fn set(headers: &HeaderMap) -> HeaderMutation {
    let set_headers = pairs(headers).map(|header| HeaderValueOption {
        header: Some(header),
        append_action: HeaderAppendAction::OverwriteIfExistsOrAdd.into(),
        ..HeaderValueOption::default()
    });
    HeaderMutation { set_headers: set_headers.collect(), remove_headers: Vec::new() }
}

/// The same before a body of another length: Envoy fails a request whose length is not what its head says.
fn set_resized(headers: &HeaderMap) -> HeaderMutation {
    HeaderMutation { remove_headers: vec!["content-length".to_owned()], ..set(headers) }
}

/// Envoy frames the body itself.
fn pairs(headers: &HeaderMap) -> impl Iterator<Item = HeaderValue> {
    let framing = |name: &HeaderName| {
        [http::header::CONTENT_LENGTH, http::header::TRANSFER_ENCODING, http::header::CONNECTION]
            .contains(name)
    };
    headers.iter().filter(move |(name, _)| !framing(name)).map(|(name, value)| HeaderValue {
        key: name.as_str().to_owned(),
        raw_value: value.as_bytes().to_vec(),
        ..HeaderValue::default()
    })
}
