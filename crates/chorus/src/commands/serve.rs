//! `chorus serve [FILE]`: both planes, until the process is told to stop; SIGHUP and a changed file load anew.

use crate::cli::Serve;
use crate::printer::Printer;
use crate::setup;
use crate::stock::{self, Stock};
use crate::terminal::note;
use anyhow::Context;
use chorus_engine::reload::{self, Cause, Origin, QUIET, Versions, Watching};
use chorus_engine::{Configuration, Engine, Inbound, Options};
use chorus_server::{Door, DoorLimits, Planes};
use chorus_spec::Spec;
use chorus_wire::{ChatRequest, Message, Role};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Serves until SIGINT or SIGTERM; a second one ends at once.
pub(crate) async fn run(flags: Serve) -> anyhow::Result<ExitCode> {
    let (spec, text) = setup::spec_and_text(flags.file.as_deref(), &flags.source).await?;
    let (data, management) = addresses(&flags, &spec);
    let planes =
        Planes::bind(data, management).await.context("choose another with --port or --management-port")?;
    let bound = planes.bound()?;
    let records = Arc::new(setup::records(flags.source.runs_file.clone())?);
    let stock = Arc::new(Stock::new(flags.file.as_deref(), &flags.source));
    let options = Options { records: Some(records), ..stock.options(&spec).await? };
    let engine = stock::engine(spec, options).await?;
    let configuration = configuration(&flags, &engine, &text, stock)?;
    let _watching = watching(&flags, &configuration);
    let limits =
        DoorLimits { keepalive: Duration::from_secs(flags.keepalive.max(1)), ..DoorLimits::default() };
    let door = Door::new(engine.clone(), limits).managing(Arc::clone(&configuration));
    door.set_ready(true);
    note(&greeting(&engine, bound.data, bound.management));

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

/// What the management plane, SIGHUP and the watch change.
fn configuration(
    flags: &Serve,
    engine: &Engine,
    text: &str,
    stock: Arc<Stock>,
) -> anyhow::Result<Arc<Configuration>> {
    let origin = flags.file.clone().map_or(Origin::BuiltIn, Origin::File);
    let folder = setup::versions_folder(flags.source.runs_file.clone())?;
    let versions = origin.path().map(|file| Versions::open(&folder, file)).transpose();
    let versions = versions.unwrap_or_else(|why| {
        note(&format!("note: versions of the configuration cannot be kept, so it cannot be written: {why}"));
        None
    });
    Ok(Arc::new(Configuration::new(engine.clone(), text, origin, stock, versions)))
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

fn greeting(engine: &Engine, data: SocketAddr, management: SocketAddr) -> String {
    let names: Vec<String> = engine.models().data.into_iter().map(|card| card.id).collect();
    format!(
        "Chorus serves {}\n  models      {}\n  data plane  http://{data}/v1\n  management  http://{management}\n  try         curl http://{data}/v1/chat/completions -H 'content-type: application/json' \\\n                -d '{{\"model\":\"vllm-sr/auto\",\"messages\":[{{\"role\":\"user\",\"content\":\"Hello!\"}}]}}'",
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
