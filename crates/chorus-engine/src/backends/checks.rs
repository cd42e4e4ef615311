//! Active health checks: a `GET` at every backend of a model, again and again, while its configuration is served.
//!
//! **Invariant:** a check never outlives the backends that it checks, and none is made before a first call: what only
//! explains a policy touches no backend.

use super::deployment::Deployment;
use super::line::Line;
use crate::env::Env;
use chorus_spec::HealthCheck;
use chorus_upstream::Upstream;
use std::sync::{Arc, Weak};

/// Checks that model's backends in a task of its own.
pub(crate) fn begin(line: &Arc<Line>, check: HealthCheck, upstream: Upstream, env: Env) {
    let line = Arc::downgrade(line);
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(go_on(line, check, upstream, env));
    }
}

async fn go_on(line: Weak<Line>, check: HealthCheck, upstream: Upstream, env: Env) {
    loop {
        let Some(deployments) = line.upgrade().map(|line| line.deployments.clone()) else { return };
        let all = deployments.iter().map(|deployment| once(deployment, &check, &upstream, &env));
        futures_util::future::join_all(all).await;
        drop(deployments);
        tokio::time::sleep(check.interval).await;
    }
}

async fn once(deployment: &Deployment, check: &HealthCheck, upstream: &Upstream, env: &Env) {
    // A backend that cannot be called at all says so when it is.
    let Ok(target) = deployment.target(env).await else { return };
    let Ok(target) = target.at_host(&check.path) else { return };
    let status = upstream.probe(&target, check.timeout).await;
    deployment.set_healthy(status.is_ok_and(|status| (200..300).contains(&status)));
}
