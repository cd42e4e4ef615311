//! `chorus rollout …`: a candidate beside what a running server serves, by its management plane.

use crate::cli::{Rollout, RolloutVerb, TrialStage};
use crate::terminal::say;
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// Making a candidate ready may take as long as encoding its examples.
const PATIENCE: Duration = Duration::from_secs(300);

/// Asks the server, and says what it said.
pub(crate) async fn run(flags: Rollout) -> anyhow::Result<ExitCode> {
    let (method, path, body) = asked(&flags.verb);
    let url = format!("{}/config/rollout{path}", flags.management.trim_end_matches('/'));
    let token = std::env::var(&flags.token_env).ok().filter(|it| !it.is_empty());
    let answer = tokio::task::spawn_blocking(move || send(method, &url, body, token)).await??;
    say(&if flags.json { serde_json::to_string_pretty(&answer)? } else { as_text(&answer) });
    Ok(ExitCode::SUCCESS)
}

fn asked(verb: &RolloutVerb) -> (&'static str, &'static str, Option<Value>) {
    let again = |stage: TrialStage, percent: f64| Some(json!({"stage": word(stage), "percent": percent}));
    match verb {
        RolloutVerb::Status => ("GET", "", None),
        RolloutVerb::Start { path, binding, lock, stage, percent } => {
            let mut body = json!({"path": path, "stage": word(*stage)});
            let more = [("binding", json!(binding)), ("lock", json!(lock)), ("percent", json!(percent))];
            if let Some(fields) = body.as_object_mut() {
                let given = more.into_iter().filter(|(_, value)| !value.is_null());
                fields.extend(given.map(|(key, value)| (key.to_owned(), value)));
            }
            ("POST", "", Some(body))
        }
        RolloutVerb::Canary { percent } => ("PATCH", "", again(TrialStage::Canary, *percent)),
        RolloutVerb::Shadow { percent } => ("PATCH", "", again(TrialStage::Shadow, *percent)),
        RolloutVerb::Promote => ("POST", "/promote", None),
        RolloutVerb::Rollback => ("POST", "/rollback", None),
    }
}

fn word(stage: TrialStage) -> &'static str {
    match stage {
        TrialStage::Shadow => "shadow",
        TrialStage::Canary => "canary",
    }
}

fn send(method: &str, url: &str, body: Option<Value>, token: Option<String>) -> anyhow::Result<Value> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(PATIENCE))
        .build()
        .into();
    let mut request = ureq::http::Request::builder().method(method).uri(url).header("if-match", "*");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let answer = match body {
        Some(body) => agent.run(request.header("content-type", "application/json").body(body.to_string())?),
        None => agent.run(request.body(())?),
    };
    let mut response = answer.with_context(|| format!("{url} does not answer; is the server running?"))?;
    let (status, text) = (response.status(), response.body_mut().read_to_string()?);
    let answer: Value =
        serde_json::from_str(&text).with_context(|| format!("{url} answered {status}, and no JSON"))?;
    if !status.is_success() {
        let said = |at: &str| answer.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        bail!("refused [{}]: {}", said("/error/code"), said("/error/message"));
    }
    Ok(answer)
}

fn as_text(answer: &Value) -> String {
    let Some(rollout) = answer.get("rollout").filter(|it| it.is_object()) else {
        let serves = answer.get("digest").and_then(Value::as_str);
        let serves = serves.map(|digest| format!("; {digest} is served")).unwrap_or_default();
        return format!("nothing is being rolled out{serves}");
    };
    let text = |at: &str| rollout.pointer(at).and_then(Value::as_str).unwrap_or("-").to_owned();
    let percent = rollout.get("percent").and_then(Value::as_f64).unwrap_or_default();
    let lines = [
        format!("standing  {}, {percent}% of conversations", text("/standing")),
        format!("source    {}", text("/source/path")),
        format!("bundle    {}", text("/bundle")),
        format!("candidate {}", text("/candidate")),
        format!("beside    {}", text("/base")),
    ];
    lines.join("\n")
}
