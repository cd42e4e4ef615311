//! Processor time of asking a backend, beside that of a bare connection of hyper to the same backend in the same run.
//!
//! `cargo bench -p chorus-upstream --bench asking`. The backend has a thread of its own, whose time is not counted. A
//! stream is made of comments, one a write and paced, so that next to nothing of what is counted is reading JSON.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark speaks to the terminal, and ends where it cannot go on"
)]

use bytes::Bytes;
use chorus_upstream::{ClientOptions, Target, Timeouts, Upstream};
use futures_util::future::join_all;
use futures_util::{Stream, StreamExt, stream};
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::fs;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

/// As the `chorus` binary has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Requests under way at once.
const AT_ONCE: usize = 64;
/// Whole answers that each of them asks for in turn.
const WHOLE: usize = 400;
/// Streams that each of them asks for in turn.
const STREAMS: usize = 4;
/// Pieces of a stream.
const PIECES: usize = 100;
/// Between two pieces, so that each is read by itself.
const PACE: Duration = Duration::from_millis(5);
/// Of each side, taken in turns.
const ROUNDS: usize = 5;
/// What the threads are called whose time counts.
const COUNTED: &str = "asking";

fn main() {
    // The backend's runtime ends last: what it serves is still held by the other ones.
    let served = threads("backend", 1);
    let backend = served.block_on(serve());
    println!(
        "{AT_ONCE} requests at once, each of {} bytes; medians of {ROUNDS} rounds in turns",
        question().len()
    );
    for count in [1, 2] {
        let asking = threads(COUNTED, count);
        println!("{count} thread(s)");
        let rounds = asking.spawn(async move {
            let ours = Ours::to(backend);
            compare("a whole answer", WHOLE, || bare_whole(backend), || ours.clone().whole()).await;
            compare("a whole answer, read", WHOLE, || bare_whole(backend), || ours.clone().read()).await;
            compare(
                "a piece of a stream",
                STREAMS * PIECES,
                || bare_streams(backend),
                || ours.clone().streams(),
            )
            .await;
        });
        served.block_on(rounds).unwrap();
    }
}

fn threads(name: &str, count: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(count).thread_name(name).enable_all().build().unwrap()
}

/// One line of the report.
async fn compare<B, O>(what: &str, things: usize, bare: impl Fn() -> B, ours: impl Fn() -> O)
where
    B: Future<Output = ()> + Send + 'static,
    O: Future<Output = ()> + Send + 'static,
{
    let (mut of_bare, mut of_ours) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let (bare, ours) = (cost(&bare).await, cost(&ours).await);
        if round > 0 {
            of_bare.push(bare);
            of_ours.push(ours);
        }
    }
    let median = |mut costs: Vec<f64>| {
        costs.sort_unstable_by(f64::total_cmp);
        costs.get(ROUNDS / 2).copied().unwrap_or_default() / (AT_ONCE * things) as f64
    };
    let (bare, ours) = (median(of_bare), median(of_ours));
    println!("  {what:<24} ours {ours:>6.2} us   bare {bare:>6.2} us   ratio {:.2}", ours / bare);
}

/// Microseconds of processor time that so many at once take.
async fn cost<F: Future<Output = ()> + Send + 'static>(task: impl Fn() -> F) -> f64 {
    let before = spent();
    for done in join_all((0..AT_ONCE).map(|_| tokio::spawn(task()))).await {
        done.unwrap();
    }
    spent() - before
}

/// Microseconds of processor time that the counted threads have had.
fn spent() -> f64 {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let counted = tasks.filter(|task| fs::read_to_string(task.join("comm")).unwrap().trim() == COUNTED);
    let nanoseconds = counted.map(|task| {
        let times = fs::read_to_string(task.join("schedstat")).unwrap();
        times.split(' ').next().unwrap().parse::<f64>().unwrap()
    });
    nanoseconds.sum::<f64>() / 1000.0
}

/// A request of 3 KiB.
fn question() -> Bytes {
    let text = "The lighthouse keeper counts the ships that pass in the fog. ".repeat(49);
    Bytes::from(format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{text}"}}]}}"#))
}

/// What the client of this crate is asked.
#[derive(Clone)]
struct Ours {
    upstream: Upstream,
    target: Target,
    streaming: Target,
    limits: Timeouts,
}

impl Ours {
    fn to(backend: SocketAddr) -> Self {
        let target = |path| Target::builder(&format!("http://{backend}")).chat_path(path).build().unwrap();
        Self {
            upstream: Upstream::new(&ClientOptions::default()).unwrap(),
            target: target("/whole"),
            streaming: target("/stream"),
            limits: Timeouts::default(),
        }
    }

    async fn whole(self) {
        for _ in 0..WHOLE {
            let answer =
                self.upstream.exchange(&self.target, "POST", "/whole", Some(question()), &self.limits);
            assert!(!answer.await.unwrap().is_empty());
        }
    }

    async fn read(self) {
        for _ in 0..WHOLE {
            self.upstream.complete(&self.target, question(), &[], &self.limits).await.unwrap();
        }
    }

    async fn streams(self) {
        for _ in 0..STREAMS {
            let begun = self.upstream.stream(&self.streaming, question(), &[], &self.limits).await;
            begun.unwrap().for_each(|chunk| async { drop(chunk.unwrap()) }).await;
        }
    }
}

async fn bare_whole(backend: SocketAddr) {
    let mut line = bare(backend).await;
    for _ in 0..WHOLE {
        send(&mut line, "/whole").await.collect().await.unwrap();
    }
}

async fn bare_streams(backend: SocketAddr) {
    let mut line = bare(backend).await;
    for _ in 0..STREAMS {
        let mut body = send(&mut line, "/stream").await;
        while let Some(frame) = body.frame().await {
            drop(frame.unwrap());
        }
    }
}

async fn bare(backend: SocketAddr) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(backend).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn send(line: &mut SendRequest<Full<Bytes>>, path: &str) -> Incoming {
    line.ready().await.unwrap();
    let request = Request::post(path).header("host", "bench").header("content-type", "application/json");
    line.send_request(request.body(Full::new(question())).unwrap()).await.unwrap().into_body()
}

/// A backend that knows the two paths.
async fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).unwrap();
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)));
        }
    });
    address
}

async fn answer(asked: Request<Incoming>) -> Result<Response<BoxBody<Bytes, Infallible>>, Infallible> {
    let path = asked.uri().path().to_owned();
    asked.into_body().collect().await.unwrap();
    let body = if path == "/stream" {
        BodyExt::boxed(StreamBody::new(pieces().map(|it| Ok(Frame::data(it)))))
    } else {
        Full::new(reply()).boxed()
    };
    Ok(Response::new(body))
}

/// 500 bytes.
fn reply() -> Bytes {
    let text = "fine ".repeat(70);
    Bytes::from(format!(
        r#"{{"id":"x","object":"chat.completion","created":0,"model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}]}}"#
    ))
}

/// Comments, and at the end what makes the stream an answer.
fn pieces() -> Pin<Box<dyn Stream<Item = Bytes> + Send + Sync>> {
    let last =
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let comment = Bytes::from(format!(": {}\n\n", "ping ".repeat(38)));
    let all =
        stream::iter((1..PIECES).map(move |_| comment.clone())).chain(stream::iter([Bytes::from(last)]));
    Box::pin(all.then(|piece| async {
        tokio::time::sleep(PACE).await;
        piece
    }))
}
