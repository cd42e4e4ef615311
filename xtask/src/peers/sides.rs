//! What is measured: the backend itself, nginx, Chorus, and gateways that were named; each a process of its own.

use crate::process::{self, Load, Ports, Server};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Rules of six families of heuristic signals over one backend; also what the benchmark `overhead` serves.
const CHORUS: &str = include_str!("../../../crates/chorus-server/benches/heuristics.yaml");

/// The name of what `cargo xtask bolt` built.
const BOLT: &str = "chorus-bolt";

/// One way to the backend.
pub(super) struct Side {
    pub(super) name: String,
    pub(super) port: u16,
    /// What it is told with each request, where it does not know it from a file.
    pub(super) headers: Vec<(&'static str, String)>,
    /// Whether it streams at all.
    pub(super) streams: bool,
    server: Server,
}

impl Side {
    /// Its processor time from now on.
    pub(super) fn load(&self) -> anyhow::Result<Load> {
        Load::of(self.server.id())
    }
}

/// Programs besides, where they were named: another build of Chorus, and other gateways.
#[derive(Default)]
pub(super) struct Peers {
    pub(super) bolt: Option<PathBuf>,
    pub(super) litellm: Option<PathBuf>,
    pub(super) portkey: Option<PathBuf>,
}

/// Starts all.
pub(super) fn start(root: &Path, folder: &Path, peers: &Peers) -> anyhow::Result<Vec<Side>> {
    let port = process::free_port()?;
    let direct = side("direct", port, &mut super::backend_at(port)?, folder)?;
    let mut sides = vec![direct, nginx(folder, port)?, chorus(root, folder, port)?];
    if let Some(program) = &peers.bolt {
        sides.push(other_chorus(program, root, folder, port)?);
    }
    if let Some(program) = &peers.litellm {
        sides.push(lite(program, folder, port)?);
    }
    if let Some(program) = &peers.portkey {
        sides.push(portkey(program, folder, port)?);
    }
    Ok(sides)
}

fn side(name: &str, port: u16, command: &mut Command, folder: &Path) -> anyhow::Result<Side> {
    let mut server = Server::start(name, command, folder)?;
    server.until_open(port)?;
    Ok(Side { name: name.to_owned(), port, headers: Vec::new(), streams: true, server })
}

/// A plain reverse proxy that keeps its connections, passes on what it reads at once, and logs each answer.
fn nginx(folder: &Path, backend: u16) -> anyhow::Result<Side> {
    let port = process::free_port()?;
    let place = folder.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("  {name}_temp_path {place}/nginx-{name};\n"))
        .concat();
    let text = format!(
        "daemon off;
worker_processes auto;
pid {place}/nginx.pid;
error_log {place}/nginx-error.log;
events {{ worker_connections 1024; }}
http {{
{temporary}  access_log {place}/nginx-access.log;
  keepalive_requests 100000000;
  client_body_buffer_size 64k;
  upstream backend {{ server 127.0.0.1:{backend}; keepalive 64; keepalive_requests 100000000; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://backend;
      proxy_http_version 1.1;
      proxy_set_header Connection \"\";
      proxy_buffering off;
    }}
  }}
}}
"
    );
    let config = folder.join("nginx.conf");
    fs::write(&config, text)?;
    let mut command = Command::new("nginx");
    command.arg("-c").arg(&config).arg("-p").arg(folder);
    side("nginx", port, &mut command, folder)
}

/// With everything that it does by default: records in a file, a line in the log for each answer and each run.
fn chorus(root: &Path, folder: &Path, backend: u16) -> anyhow::Result<Side> {
    let ports = Ports::free()?;
    side("chorus", ports.data, &mut chorus_at(root, folder, backend, ports)?, folder)
}

/// Another build of it, with files of its own.
fn other_chorus(program: &Path, root: &Path, folder: &Path, backend: u16) -> anyhow::Result<Side> {
    let folder = folder.join(BOLT);
    fs::create_dir_all(&folder)?;
    let ports = Ports::free()?;
    let plain = chorus_at(root, &folder, backend, ports)?;
    side(BOLT, ports.data, &mut like(Command::new(program), &plain), &folder)
}

/// A command with the arguments and the environment of another.
pub(super) fn like(mut command: Command, other: &Command) -> Command {
    command.args(other.get_args());
    command.envs(other.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// The same as [`chorus`], not started yet.
pub(super) fn chorus_at(root: &Path, folder: &Path, backend: u16, ports: Ports) -> anyhow::Result<Command> {
    let config = folder.join("chorus.yaml");
    fs::write(&config, CHORUS)?;
    let mut command = process::chorus(root, &config, folder, ports);
    command.env("UP", format!("http://127.0.0.1:{backend}/v1"));
    Ok(command)
}

fn lite(program: &Path, folder: &Path, backend: u16) -> anyhow::Result<Side> {
    let port = process::free_port()?;
    let text = format!(
        "model_list:
  - model_name: vllm-sr/auto
    litellm_params: {{ model: openai/small, api_base: \"http://127.0.0.1:{backend}/v1\", api_key: none }}
litellm_settings: {{ telemetry: false, callbacks: [] }}
"
    );
    let config = folder.join("litellm.yaml");
    fs::write(&config, text)?;
    let mut command = Command::new(program);
    // Nobody else reaches it, and nothing is fetched.
    command.env("LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY", "true");
    command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
    command.arg("--config").arg(&config).args(["--host", "127.0.0.1", "--port", &port.to_string()]);
    side("litellm", port, &mut command, folder)
}

/// It reads no file: every request says where it is to go. Streams of a backend of one's own fail in it (version 1.15.2, with
/// Node 20 and 22: it appends to headers that cannot be changed), so its whole answers are measured alone.
fn portkey(program: &Path, folder: &Path, backend: u16) -> anyhow::Result<Side> {
    let port = process::free_port()?;
    let mut command = Command::new(program);
    command.arg(format!("--port={port}")).arg("--headless");
    let headers = vec![
        ("authorization", "Bearer none".to_owned()),
        ("x-portkey-provider", "openai".to_owned()),
        ("x-portkey-custom-host", format!("http://127.0.0.1:{backend}/v1")),
    ];
    Ok(Side { headers, streams: false, ..side("portkey", port, &mut command, folder)? })
}
