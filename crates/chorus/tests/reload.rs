//! A served file that changes: SIGHUP, and the watch. No model and no backend is used.

#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot talk to its child has failed"
)]

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A `chorus serve` of one file.
struct Served {
    child: Child,
    management: String,
    file: PathBuf,
    _folder: TempDir,
}

fn policy(model: &str) -> String {
    format!(
        "version: v0.3
providers:
  defaults: {{ default_model: {model} }}
  models:
    - name: {model}
      backend_refs: [{{ endpoint: \"127.0.0.1:1\" }}]
routing:
  decisions: [{{ name: all, priority: 1, modelRefs: [{{ model: {model} }}] }}]
"
    )
}

impl Served {
    fn start(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.yaml");
        std::fs::write(&file, policy("first")).unwrap();
        let runs = folder.path().join("runs.sqlite");
        let mut child = Command::new(env!("CARGO_BIN_EXE_chorus"))
            .arg("serve")
            .arg(&file)
            .args(["--port", "0", "--management-port", "0", "--offline", "--runs-file"])
            .arg(&runs)
            .args(flags)
            .env_remove("MIMALLOC_ALLOW_THP")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let management = lines
            .find_map(|line| {
                let line = line.unwrap();
                line.trim().strip_prefix("management  http://").map(str::to_owned)
            })
            .expect("the greeting names the management plane");
        // Whoever stops reading would stop the child.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, management, file, _folder: folder }
    }

    fn status(&self) -> Value {
        let mut stream = TcpStream::connect(&self.management).unwrap();
        write!(stream, "GET /config/status HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {answer}"))
    }

    /// The status, once it fits.
    fn until(&self, fits: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..1500 {
            let status = self.status();
            if fits(&status) {
                return status;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("it never came: {}", self.status());
    }

    fn hang_up(&self) {
        let sent = Command::new("kill").args(["-HUP", &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn c11_sighup_loads_a_good_file_and_refuses_a_bad_one() {
    let served = Served::start(&["--no-watch"]);
    assert_eq!(served.status()["generation"], 1);
    std::fs::write(&served.file, policy("first").replace("name: all", "nam: all")).unwrap();
    served.hang_up();
    let refused = served.until(|status| !status["last_change"]["refused"].is_null());
    assert_eq!(
        (refused["generation"].as_u64(), refused["last_change"]["cause"].as_str()),
        (Some(1), Some("signal"))
    );
    std::fs::write(&served.file, policy("second")).unwrap();
    served.hang_up();
    let good = served.until(|status| status["generation"] == 2);
    assert!(good["last_change"]["refused"].is_null(), "{good}");
}

#[test]
fn a_served_file_is_watched() {
    let served = Served::start(&[]);
    std::fs::write(&served.file, policy("second")).unwrap();
    let status = served.until(|status| status["generation"] == 2);
    assert_eq!(status["last_change"]["cause"], "watch");
}

/// What the allocator gives back, the kernel would fill again; `THP_enabled` says whether it may. Source: proc(5).
#[cfg(target_os = "linux")]
#[test]
fn a_server_without_models_of_its_own_forgoes_huge_pages() {
    let served = Served::start(&["--no-watch"]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.child.id())).unwrap();
    assert!(status.lines().any(|line| line.split_whitespace().eq(["THP_enabled:", "0"])), "{status}");
}
