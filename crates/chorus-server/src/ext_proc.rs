//! Envoy's external processing (`ext_proc` v3 over gRPC): the decision and headers of the data plane, for users whose
//! gateway is Envoy.
//!
//! A request that one model behind the gateway answers goes on to it, with the model's name, the edited body, and
//! `x-selected-model` to route by; its answer is measured as it passes. Everything else (loopers, given answers, refusals,
//! other protocols) is answered here by the data plane itself: chunk by chunk where the filter's request body mode is
//! `FULL_DUPLEX_STREAMED`, in one piece where it is `BUFFERED`.
//!
//! **Invariant:** a request to `/v1/…` that could not be decided on never goes on.

mod exchange;
mod meter;
mod words;

use crate::app::Plane;
use crate::door::Door;
use envoy_types::pb::envoy::service::ext_proc::v3::external_processor_server::{
    ExternalProcessor, ExternalProcessorServer,
};
use envoy_types::pb::envoy::service::ext_proc::v3::{ProcessingRequest, ProcessingResponse};
use exchange::Exchange;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use std::io;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

/// Most messages to Envoy that may wait for it.
const MESSAGES_IN_FLIGHT: usize = 16;

/// Serves Envoy until `stop`; exchanges in flight end.
pub(crate) async fn serve(
    listener: TcpListener,
    door: Door,
    app: Plane,
    stop: CancellationToken,
) -> io::Result<()> {
    let most = door.limits.max_body_bytes;
    // A message is a body and a few headers.
    let service = ExternalProcessorServer::new(Processor { door, app })
        .max_decoding_message_size(most.saturating_add(1 << 20));
    Server::builder()
        .add_service(service)
        .serve_with_incoming_shutdown(
            TcpIncoming::from(listener).with_nodelay(Some(true)),
            stop.cancelled_owned(),
        )
        .await
        .map_err(io::Error::other)
}

struct Processor {
    door: Door,
    app: Plane,
}

#[tonic::async_trait]
impl ExternalProcessor for Processor {
    type ProcessStream = BoxStream<'static, Result<ProcessingResponse, Status>>;

    async fn process(
        &self,
        request: Request<Streaming<ProcessingRequest>>,
    ) -> Result<Response<Self::ProcessStream>, Status> {
        let (to_envoy, told) = mpsc::channel(MESSAGES_IN_FLIGHT);
        let exchange = Exchange::new(self.door.clone(), self.app.clone(), request.into_inner(), to_envoy);
        // Dropped with the stream: a client that leaves drops its run and every call of it.
        let work = exchange.run();
        let messages = futures_util::stream::unfold(told, |mut told| async move {
            told.recv().await.map(|message| (message, told))
        });
        Ok(Response::new(beside(work, messages).boxed()))
    }
}

/// The messages, with the work that makes them done by whoever waits for them.
fn beside(
    work: impl Future<Output = Result<(), Status>> + Send + 'static,
    messages: impl futures_util::Stream<Item = ProcessingResponse> + Send + 'static,
) -> impl futures_util::Stream<Item = Result<ProcessingResponse, Status>> + Send {
    let work = futures_util::stream::once(work).filter_map(async |ended| ended.err().map(Err));
    futures_util::stream::select(messages.map(Ok), work)
}
