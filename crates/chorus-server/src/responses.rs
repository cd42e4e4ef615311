//! `/v1/responses`: OpenAI's Responses protocol: create, stream, in the background, retrieve, delete, cancel.
//!
//! A request is translated to a chat request, with the items of the conversation before it; the answer is translated back
//! and kept, unless the request says `store: false`. The page is `docs/doors/responses.md`.
//!
//! **Invariant:** a kept response is found by the caller that made it, and by nobody else (case F01).

mod background;
mod listing;
mod protocol;

use crate::door::Door;
use crate::kept::{self, Refused};
use crate::{answer, body, caller, reply};
use axum::Router;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use chorus_wire::responses::{ResponseObject, ResponsesRequest};
use http::{HeaderMap, StatusCode};
use protocol::Responses;
use serde_json::json;

type Id = Result<Path<String>, PathRejection>;

/// The paths of the door; nothing is there where the configuration closes it.
pub(crate) fn routes(door: &Door) -> Router<Door> {
    Router::new()
        .route("/v1/responses", post(create))
        .route("/v1/responses/{id}", get(retrieve).delete(delete))
        .route("/v1/responses/{id}/cancel", post(cancel))
        .route("/v1/responses/{id}/input_items", get(input_items))
        .layer(from_fn_with_state(door.clone(), open))
}

async fn open(State(door): State<Door>, request: Request, next: Next) -> Response {
    if door.engine.serving().spec.global.response_api.enabled {
        return next.run(request).await;
    }
    let text = "the configuration closes this door (response_api.enabled)";
    reply::refusal(StatusCode::NOT_FOUND, "not_found", text)
}

/// `POST /v1/responses`.
async fn create(State(door): State<Door>, headers: HeaderMap, body: Body) -> Result<Response, Refused> {
    let bytes = body::read(body, &door.limits).await?;
    let asked = ResponsesRequest::parse(&bytes)?;
    let owner = owner(&door, &headers);
    let before = match &asked.settings.previous {
        None => Vec::new(),
        Some(id) => door.responses.history(id, owner.as_deref()).await?,
    };
    let (chat, losses) = asked.chat(&before, &door.limits.request)?;
    let input = kept::json_list(&before, asked.input());
    let settings = asked.settings;
    let model = chat.model().to_owned();
    let object = |run: &chorus_engine::Run| {
        ResponseObject::new(run.id.replace("run_", "resp_"), run.created, model, settings.clone())
    };
    if settings.background {
        let run = door.engine.run(answer::inbound(&door, &headers, chat, &losses)?);
        let object = object(&run);
        return background::start(door, run, object, owner, input, &losses).await;
    }
    let keeper = settings.store.then(|| door.responses.clone());
    let protocol = |run: &chorus_engine::Run| Responses::new(object(run), owner, input, keeper);
    Ok(answer::respond(door, &headers, chat, losses, protocol).await)
}

/// What may be said behind the path of a response.
#[derive(Debug, serde::Deserialize)]
struct Retrieval {
    #[serde(default)]
    stream: bool,
}

/// `GET /v1/responses/{id}`.
async fn retrieve(
    State(door): State<Door>,
    headers: HeaderMap,
    id: Id,
    query: Result<Query<Retrieval>, QueryRejection>,
) -> Result<Response, Refused> {
    let Ok(Query(Retrieval { stream: false })) = query else {
        return Err(Refused::bad("stream", "a kept response is not streamed again: leave `stream` out"));
    };
    let kept = door.responses.find(&named(id), owner(&door, &headers).as_deref()).await?;
    Ok(reply::json(StatusCode::OK, HeaderMap::new(), kept.object.into_bytes()))
}

/// `DELETE /v1/responses/{id}`.
async fn delete(State(door): State<Door>, headers: HeaderMap, id: Id) -> Result<Response, Refused> {
    let id = named(id);
    door.responses.find(&id, owner(&door, &headers).as_deref()).await?;
    door.responses.delete(&id).await?;
    let body = json!({"id": id, "object": "response", "deleted": true});
    Ok(reply::json(StatusCode::OK, HeaderMap::new(), body.to_string().into_bytes()))
}

/// `POST /v1/responses/{id}/cancel`: of a response in the background; one that has ended stays as it is.
async fn cancel(State(door): State<Door>, headers: HeaderMap, id: Id) -> Result<Response, Refused> {
    let id = named(id);
    let object = door.responses.cancel(&id, owner(&door, &headers).as_deref()).await?;
    Ok(reply::json(StatusCode::OK, HeaderMap::new(), object.into_bytes()))
}

/// `GET /v1/responses/{id}/input_items`.
async fn input_items(
    State(door): State<Door>,
    headers: HeaderMap,
    id: Id,
    query: Result<Query<listing::Wanted>, QueryRejection>,
) -> Result<Response, Refused> {
    let Ok(Query(wanted)) = query else {
        return Err(Refused::bad("limit", "`limit` must be a number, `order` asc or desc"));
    };
    let kept = door.responses.find(&named(id), owner(&door, &headers).as_deref()).await?;
    let page = listing::page(&kept, &wanted)?;
    Ok(reply::json(StatusCode::OK, HeaderMap::new(), page))
}

/// What is no text is no name.
fn named(id: Id) -> String {
    id.map(|Path(id)| id).unwrap_or_default()
}

/// Whose a response is.
fn owner(door: &Door, headers: &HeaderMap) -> Option<String> {
    caller::of(door, headers).map(|caller| caller.user().to_owned())
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        self.response()
    }
}
