//! The load: `wrk` with a script of its own for each body, and what it says of a run.

use anyhow::{Context, ensure};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Bytes of a request.
const REQUEST_BYTES: usize = 3 * 1024;

/// What `wrk` counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Figures {
    pub(super) requests: u64,
    pub(super) seconds: f64,
    pub(super) median_us: f64,
    pub(super) p95_us: f64,
}

impl Figures {
    pub(super) fn requests_per_second(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a few million requests")]
        let requests = self.requests as f64;
        requests / self.seconds
    }
}

/// Both bodies, ready to be sent.
pub(super) struct Wrk {
    whole: PathBuf,
    streamed: PathBuf,
}

impl Wrk {
    /// For one side, with the headers that it needs to know where the backend is.
    pub(super) fn new(folder: &Path, side: &str, headers: &[(&str, String)]) -> anyhow::Result<Self> {
        let script = |name: &str, stream: bool| -> anyhow::Result<PathBuf> {
            let path = folder.join(format!("{side}-{name}"));
            fs::write(&path, script(&body(stream), headers))?;
            Ok(path)
        };
        Ok(Self { whole: script("whole.lua", false)?, streamed: script("streamed.lua", true)? })
    }

    /// Whole answers.
    pub(super) fn whole(&self, port: u16, connections: u32, lasts: Duration) -> anyhow::Result<Figures> {
        ask(&self.whole, port, connections, lasts)
    }

    /// Streams.
    pub(super) fn streamed(&self, port: u16, connections: u32, lasts: Duration) -> anyhow::Result<Figures> {
        ask(&self.streamed, port, connections, lasts)
    }
}

fn ask(script: &Path, port: u16, connections: u32, lasts: Duration) -> anyhow::Result<Figures> {
    let output = Command::new("wrk")
        .args(["--threads", "1", "--connections", &connections.to_string(), "--timeout", "20s"])
        .args(["--duration", &format!("{}s", lasts.as_secs())])
        .arg("--script")
        .arg(script)
        .arg(format!("http://127.0.0.1:{port}/v1/chat/completions"))
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said.lines().find_map(|line| line.strip_prefix("figures "));
    let line =
        line.with_context(|| format!("wrk says: {said}{}", String::from_utf8_lossy(&output.stderr)))?;
    let words: Vec<f64> = line.split(' ').map(str::parse).collect::<Result<_, _>>()?;
    let [requests, microseconds, failed, median_us, p95_us] = words[..] else {
        anyhow::bail!("wrk's script says: {line}")
    };
    ensure!(failed == 0.0, "{failed} of {requests} requests to port {port} failed");
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    let requests = requests as u64;
    Ok(Figures { requests, seconds: microseconds / 1e6, median_us, p95_us })
}

/// Sends that body, and tells at the end what was counted.
fn script(body: &str, headers: &[(&str, String)]) -> String {
    let headers: String =
        headers.iter().map(|(name, value)| format!("wrk.headers[\"{name}\"] = \"{value}\"\n")).collect();
    format!(
        r#"wrk.method = "POST"
wrk.body = [==[{body}]==]
wrk.headers["content-type"] = "application/json"
{headers}function done(summary, latency)
  local e = summary.errors
  local failed = e.connect + e.read + e.write + e.status + e.timeout
  print(string.format("figures %d %d %d %.1f %.1f", summary.requests, summary.duration, failed,
    latency:percentile(50), latency:percentile(95)))
end
"#
    )
}

/// A request of exactly [`REQUEST_BYTES`].
pub(super) fn body(stream: bool) -> String {
    let of = |text: &str| {
        let messages = json!([{"role": "user", "content": text}]);
        if stream {
            json!({"model": "vllm-sr/auto", "stream": true, "messages": messages}).to_string()
        } else {
            json!({"model": "vllm-sr/auto", "messages": messages}).to_string()
        }
    };
    let filler = "The lighthouse keeper counts the ships that pass in the fog. ".repeat(60);
    let room = REQUEST_BYTES - of("").len();
    of(filler.get(..room).unwrap_or(&filler))
}
