//! OpenAI's Responses protocol at the front: its requests as chat requests, chat answers as its objects and events.
//!
//! It knows no store, no clock and no status code: what came before is given to it as items. What has no counterpart is
//! named in [`Losses`](crate::Losses). Source: OpenAI's API reference, Responses.
//!
//! **Invariant:** what a client is told of its settings (`instructions`, `tools`, …) is what it sent.

mod fields;
mod items;
mod object;
mod output;
mod request;
mod stream;
mod tools;

pub use object::{Outcome, ResponseObject};
pub use output::{OutputIds, items_of};
pub use request::{ResponsesRequest, Settings};
pub use stream::ResponseStream;
