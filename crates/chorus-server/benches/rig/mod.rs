//! What both benchmarks stand on: a scripted backend, a served Chorus and a client; and medians.

use bytes::Bytes;
use chorus_engine::{Engine, Env, Options};
use chorus_infer::TextEncoder;
use chorus_server::{Door, DoorLimits, Planes};
use chorus_store::SqliteRunStore;
use chorus_testkit::ScriptedUpstream;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::sync::CancellationToken;

/// As the `chorus` binary has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Threads that a part of the rig runs on. With its own, as a process would have, every step of a request wakes a
/// thread that sleeps; on the client's only one, what is left is work.
pub(crate) struct Threads {
    pub(crate) handle: Handle,
    pub(crate) _owned: Option<Runtime>,
}

impl Threads {
    /// Its own: that many, or as many as there are cores.
    pub(crate) fn own(count: Option<usize>) -> Self {
        let mut builder = Builder::new_multi_thread();
        count.map(|count| builder.worker_threads(count));
        let runtime = builder.enable_all().build().unwrap();
        Self { handle: runtime.handle().clone(), _owned: Some(runtime) }
    }
}

/// The scripted backend.
pub(crate) struct Backend {
    pub(crate) scripts: ScriptedUpstream,
    _threads: Threads,
}

impl Backend {
    pub(crate) async fn start(threads: Threads) -> Self {
        let scripts = threads.handle.spawn(ScriptedUpstream::start()).await.unwrap().unwrap();
        Self { scripts, _threads: threads }
    }
}

/// A served Chorus.
pub(crate) struct Chorus {
    pub(crate) data: SocketAddr,
    _threads: Threads,
}

impl Chorus {
    /// Serves that file; `${UP}` in it is the backend.
    pub(crate) async fn serve(
        file: &str,
        backend: &Backend,
        encoder: Option<Arc<dyn TextEncoder>>,
        threads: Threads,
    ) -> Self {
        let checked = chorus_spec::read(file);
        let spec = checked.spec.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
        let options = Options {
            encoder,
            records: Some(Arc::new(SqliteRunStore::in_memory().unwrap())),
            ..Options::bare(Env::having(&[("UP", &backend.scripts.base_url())]))
        };
        let door = Door::new(Engine::new(spec, options).unwrap(), DoorLimits::default());
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        let planes = threads.handle.spawn(Planes::bind(free, free)).await.unwrap().unwrap();
        let data = planes.bound().unwrap().data;
        threads.handle.spawn(chorus_server::serve(planes, door, CancellationToken::new(), Duration::ZERO));
        Self { data, _threads: threads }
    }
}

/// One kept-alive connection.
pub(crate) struct Line(SendRequest<Full<Bytes>>);

impl Line {
    pub(crate) async fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    /// Sends a chat completion; its body is not read yet.
    pub(crate) async fn send(&mut self, body: &Bytes) -> hyper::body::Incoming {
        self.0.ready().await.unwrap();
        let request = Request::post("/v1/chat/completions").header("host", "bench");
        let request = request.header("content-type", "application/json").body(Full::new(body.clone()));
        let response = self.0.send_request(request.unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
        response.into_body()
    }

    /// From the first byte sent to the last byte read.
    pub(crate) async fn timed(&mut self, body: &Bytes) -> Duration {
        let started = Instant::now();
        self.send(body).await.collect().await.unwrap();
        started.elapsed()
    }
}

/// Times of many runs.
#[derive(Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// The time below which this share of the runs is.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let last = sorted.len().saturating_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a small index"
        )]
        let at = (last as f64 * share).round() as usize;
        sorted.get(at).copied().unwrap_or_default()
    }

    pub(crate) fn median(&self) -> Duration {
        self.quantile(0.5)
    }
}

/// One line of the report: a figure against its bound.
pub(crate) fn report(what: &str, times: &Times, bound: Duration) {
    let (median, p95) = (times.median(), times.quantile(0.95));
    let verdict = if median <= bound { "within" } else { "OVER" };
    println!("{what:<52} median {median:>10.1?}   p95 {p95:>10.1?}   {verdict} {bound:?}");
}

/// What else the machine was doing.
pub(crate) fn say_load() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("load average {} on {cores} cores", load.trim());
}

/// The client's own runtime.
pub(crate) fn client() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}
