//! A response that is made while nobody waits for it.
//!
//! **Invariant:** it always comes to an end that can be retrieved: an answer, an error, or that it was cancelled.

use super::protocol::ended;
use crate::door::Door;
use crate::headers::Headers;
use crate::kept::Refused;
use crate::reply;
use axum::response::Response;
use chorus_engine::{Code, Fault, Part, Run};
use chorus_store::KeptResponse;
use chorus_wire::responses::{Outcome, ResponseObject};
use chorus_wire::{Losses, RawObject};
use http::StatusCode;

/// Keeps it as queued, and makes it in a task of its own.
///
/// # Errors
/// Too many are being made, or it cannot be kept.
pub(super) async fn start(
    door: Door,
    run: Run,
    object: ResponseObject,
    owner: Option<String>,
    input: String,
    losses: &Losses,
) -> Result<Response, Refused> {
    let id = object.id.clone();
    let (permit, cancelled) = door.responses.enter(&id)?;
    let kept = KeptResponse {
        id: id.clone(),
        owner,
        created_at: object.created_at,
        settled: false,
        input,
        object: text(&object.json(&Outcome::InProgress)),
    };
    if let Err(refused) = door.responses.put(kept).await {
        door.responses.leave(&id);
        return Err(refused);
    }
    let mut headers = Headers::of_run(&run.id);
    headers.losses(losses);
    let queued = object.json(&Outcome::Queued).to_bytes();
    tokio::spawn(async move {
        tokio::select! {
            biased;
            // Whoever cancelled it has said so in the store.
            () = cancelled.cancelled() => {}
            last = made(&door, run, object) => door.responses.settle(&id, text(&last)).await,
        }
        door.responses.leave(&id);
        drop(permit);
    });
    Ok(reply::json(StatusCode::OK, headers.into_map(), queued))
}

/// The object at the end of the run.
async fn made(door: &Door, mut run: Run, mut object: ResponseObject) -> RawObject {
    loop {
        let part = tokio::select! {
            biased;
            () = door.expired() => Some(Part::Fault(Box::new(reply::stopping(&run)))),
            part = run.next() => part,
        };
        match part {
            Some(Part::Reply(_, reply)) => return ended(&mut object, &reply),
            Some(Part::Fault(fault)) => return failed(&object, &fault),
            Some(_) => {}
            None => {
                return failed(
                    &object,
                    &Fault::new(Code::Internal, "the request came to no end; see the log"),
                );
            }
        }
    }
}

fn failed(object: &ResponseObject, fault: &Fault) -> RawObject {
    object.json(&Outcome::Failed { code: fault.code.as_str().to_owned(), message: fault.public.clone() })
}

fn text(object: &RawObject) -> String {
    String::from_utf8(object.to_bytes()).unwrap_or_default()
}
