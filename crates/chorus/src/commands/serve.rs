//! `chorus serve [FILE|BUNDLE]`: both planes, until the process is told to stop; SIGHUP and a changed file load anew.

use super::bundle::{BundleShelf, is_bundle};
use super::candidates::{self, Opener};
use super::replay;
use crate::cli::Serve;
use crate::huge_pages;
use crate::policy_file::is_policy;
use crate::printer::Printer;
use crate::setup;
use crate::stock::{self, Stock};
use crate::stores;
use crate::terminal::note;
use anyhow::Context;
use chorus_engine::reload::{self, Bundles, Cause, Offer, Offered, Origin, QUIET, Versions, Watching};
use chorus_engine::{Configuration, Engine, Inbound, Options};
use chorus_server::{Bound, Door, DoorLimits, Planes, Traces};
use chorus_spec::{KeptWhere, Spec};
use chorus_store::RunStore;
use chorus_wire::{ChatRequest, Message, Role};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZero;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Serves until SIGINT or SIGTERM; a second one ends at once. `envoy` is the port of the gRPC service, where there is one.
pub(crate) async fn run(flags: Serve, envoy: Option<u16>) -> anyhow::Result<ExitCode> {
    huge_pages::forgo();
    let origin = origin(&flags)?;
    let Start { spec, offer } = start(&flags, &origin).await?;
    let (data, management) = addresses(&flags, &spec);
    let (planes, bound) = bind(data, management, envoy).await?;
    let planes = planes.on_threads(threads(&flags));
    let traces = spec.global.tracing.clone().map(Traces::start).transpose()?;
    let kept = spec.global.kept_where.clone();
    let records = stores::records(&kept, flags.source.runs_file.clone()).await?;
    let records = traced(records, traces.as_ref());
    let stock = Stock::new(flags.file.as_deref(), &flags.source).bounded_by(flags.spending.budget());
    let stock = Arc::new(stock);
    let recall = Some(setup::recall(flags.source.runs_file.clone())?);
    let mut options = Options { records: Some(records), recall, ..stock.options(&spec).await? };
    if offer.first.folder.is_some() {
        options.folders.config.clone_from(&offer.first.folder);
    }
    let outcomes = stores::outcomes(&kept, flags.source.runs_file.clone())?;
    let engine = stock::engine_of(spec, options, offer.first.artifact.clone()).await?.taking(outcomes).await;
    let engine = match flags.record {
        Some(record) => engine.recording(replay::tapes(flags.source.runs_file.clone(), record)?),
        None => engine,
    };
    beside(&engine, &stock, offer.others).await?;
    let configuration = configuration(&flags, origin, &engine, &offer.first.text, stock)?;
    rolled_on(&configuration).await;
    let _watching = watching(&flags, &configuration);
    let limits =
        DoorLimits { keepalive: Duration::from_secs(flags.keepalive.max(1)), ..DoorLimits::default() };
    let keep = engine.serving().spec.global.response_api.clone();
    let responses = stores::responses(&keep, flags.source.runs_file.clone())?;
    let door = Door::new(engine.clone(), limits).managing(Arc::clone(&configuration)).keeping(responses);
    let door = keyed(door, &kept, &flags).await?.traced(traces);
    door.set_ready(true);
    note(&greeting(&engine, &bound));

    let stop = CancellationToken::new();
    let serving =
        tokio::spawn(chorus_server::serve(planes, door, stop.clone(), Duration::from_secs(flags.grace)));
    let mut signals = Signals::listen()?;
    tokio::spawn(reload_on_hangup(signal(SignalKind::hangup())?, configuration));
    if let Some(question) = &flags.ask {
        tokio::select! {
            () = first_answer(&engine, question) => signals.next().await,
            () = signals.next() => {}
        }
    } else {
        signals.next().await;
    }
    note("stopping: running requests may end; once more to end at once");
    stop.cancel();
    tokio::select! {
        served = serving => served.context("the server broke down")??,
        () = signals.next() => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Threads that answer requests.
fn threads(flags: &Serve) -> usize {
    flags.threads.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZero::get)
}

/// The records, whose runs are traced where the configuration says so.
fn traced(records: Arc<dyn RunStore>, traces: Option<&Traces>) -> Arc<dyn RunStore> {
    match traces {
        Some(traces) => traces.over(records),
        None => records,
    }
}

/// The sockets, and where they are.
async fn bind(
    data: SocketAddr,
    management: SocketAddr,
    envoy: Option<u16>,
) -> anyhow::Result<(Planes, Bound)> {
    let advice = "choose another with --port, --management-port or --grpc-port";
    let planes = Planes::bind(data, management).await.context(advice)?;
    let planes = match envoy {
        Some(port) => planes.with_envoy(SocketAddr::new(data.ip(), port)).await.context(advice)?,
        None => planes,
    };
    let bound = planes.bound()?;
    Ok((planes, bound))
}

/// What is served first.
struct Start {
    /// The document that any name leads to.
    spec: Spec,
    /// It and what is beside it.
    offer: Offer,
}

async fn start(flags: &Serve, origin: &Origin) -> anyhow::Result<Start> {
    if let Origin::Bundles(bundles) = origin {
        let offer = bundles.0.offer()?;
        let checked = chorus_spec::read(&offer.first.text);
        let first = checked.diagnostics.first().map(|it| it.message.clone()).unwrap_or_default();
        let spec = checked.spec.with_context(|| format!("the bound bundle does not load: {first}"))?;
        return Ok(Start { spec, offer });
    }
    let (spec, text) = setup::spec_and_text(flags.file.as_deref(), &flags.source).await?;
    Ok(Start { spec, offer: Offer::of(text) })
}

/// Serves the others too.
async fn beside(engine: &Engine, stock: &Stock, others: Vec<Offered>) -> anyhow::Result<()> {
    let mut ready = Vec::with_capacity(others.len());
    for other in others {
        ready.push(reload::prepare(engine, stock, other).await?);
    }
    engine.add(ready);
    Ok(())
}

/// What is read again when a change is asked for.
fn origin(flags: &Serve) -> anyhow::Result<Origin> {
    let Some(file) = flags.file.clone() else { return Ok(Origin::BuiltIn) };
    if is_bundle(&file) {
        let assets = setup::versions_folder(flags.source.runs_file.clone())?.with_file_name("bundle-assets");
        return Ok(Origin::Bundles(Bundles(Arc::new(BundleShelf::new(&file, &flags.bound, assets)))));
    }
    if !is_policy(&file) {
        return Ok(Origin::File(file));
    }
    let base = flags.source.base.clone();
    let base = base.with_context(|| {
        format!(
            "{} does not say where its models can be called: name a --base with providers",
            file.display()
        )
    })?;
    Ok(Origin::Policy { file, base })
}

/// The door with its API keys.
async fn keyed(door: Door, kept: &KeptWhere, flags: &Serve) -> anyhow::Result<Door> {
    let keys = stores::keys(kept, flags.keys_file.clone()).await?;
    if flags.require_keys && keys.list().await?.iter().all(|key| key.revoked_at_ms.is_some()) {
        note("note: keys are required and there is none: `chorus keys create --user NAME` makes one");
    }
    Ok(door.keyed(keys, flags.require_keys))
}

/// What the management plane, SIGHUP and the watch change.
fn configuration(
    flags: &Serve,
    origin: Origin,
    engine: &Engine,
    text: &str,
    stock: Arc<Stock>,
) -> anyhow::Result<Arc<Configuration>> {
    let folder = setup::versions_folder(flags.source.runs_file.clone())?;
    let versions = origin.path().map(|file| Versions::open(&folder, file)).transpose();
    let versions = versions.unwrap_or_else(|why| {
        note(&format!("note: versions of the configuration cannot be kept, so it cannot be written: {why}"));
        None
    });
    let opener = Arc::new(Opener::new(&flags.bound, &flags.source)?);
    let state = candidates::state_file(flags.file.as_deref(), &flags.source)?;
    let configuration = Configuration::new(engine.clone(), text, origin, stock, versions);
    Ok(Arc::new(configuration.trying(opener, state)))
}

/// Goes on with a rollout that an earlier process began.
async fn rolled_on(configuration: &Configuration) {
    match configuration.resume().await {
        Ok(Some(rollout)) => {
            let (percent, path) = (rollout.percent.as_percent(), rollout.source.path.display());
            note(&format!("rollout goes on: {path} ({:?}, {percent}%)", rollout.standing));
        }
        Ok(None) => {}
        Err(why) => note(&format!("note: a rollout does not go on, what was named is served: {why}")),
    }
}

fn watching(flags: &Serve, configuration: &Arc<Configuration>) -> Option<Watching> {
    if flags.no_watch {
        return None;
    }
    reload::watch(Arc::clone(configuration), QUIET).unwrap_or_else(|why| {
        note(&format!("note: the file is not watched, SIGHUP loads it again: {why}"));
        None
    })
}

async fn reload_on_hangup(mut hangup: Signal, configuration: Arc<Configuration>) {
    while hangup.recv().await.is_some() {
        // What comes of it stands in the log and at /config/status.
        let _ = configuration.reload(Cause::Signal).await;
    }
}

/// The file's first listener gives the port; the address stays on loopback unless the command line says otherwise.
fn addresses(flags: &Serve, spec: &Spec) -> (SocketAddr, SocketAddr) {
    let listener = spec.listeners.first();
    let port = flags.port.or(listener.map(|l| l.port)).unwrap_or(8899);
    let management = flags.management_port.unwrap_or(spec.global.management_port);
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    if let Some(listener) = listener.filter(|l| l.address != "127.0.0.1" && l.address != "localhost") {
        let asked = &listener.address;
        note(&format!(
            "note: the file listens on {asked}; Chorus stays on {} unless --host says otherwise",
            flags.host
        ));
    }
    (SocketAddr::new(flags.host, port), SocketAddr::new(loopback, management))
}

fn greeting(engine: &Engine, bound: &Bound) -> String {
    let Bound { data, management, envoy } = bound;
    let names: Vec<String> = engine.models().data.into_iter().map(|card| card.id).collect();
    let envoy = envoy.map(|envoy| format!("\n  ext-proc    grpc://{envoy}")).unwrap_or_default();
    format!(
        "Chorus serves {}\n  models      {}\n  data plane  http://{data}/v1\n  management  http://{management}{envoy}\n  try         curl http://{data}/v1/chat/completions -H 'content-type: application/json' \\\n                -d '{{\"model\":\"vllm-sr/auto\",\"messages\":[{{\"role\":\"user\",\"content\":\"Hello!\"}}]}}'",
        engine.serving().spec.digest,
        names.join(", "),
    )
}

/// The first question, by the Fusion slug; serving goes on whatever comes of it.
async fn first_answer(engine: &Engine, question: &str) {
    note(&format!("\nquestion {question}"));
    let model = engine.serving().spec.global.fusion_names.first().cloned().unwrap_or_default();
    let mut request = ChatRequest::new(&model, vec![Message::new(Role::User, question)]);
    request.set_stream(true, true);
    let run = engine.run(Inbound { progress: true, ..Inbound::of(request) });
    let id = run.id.clone();
    match Printer::streaming(true).print(run).await {
        Ok(_) => note(&format!("`chorus runs show {id}` shows every call; still serving, Ctrl-C stops")),
        Err(why) => note(&format!("no answer: {why:#}; still serving, Ctrl-C stops")),
    }
}

/// The signals that stop a server.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
