//! The life of a bundle: built, read and made ready, and swapped under load. `cargo bench -p chorus-engine --bench bundle`.
//!
//! Weights are left aside: no encoder and no model is loaded. What answers is a scripted backend over HTTP.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark speaks to the terminal"
)]

use chorus_bundle::{Bundle, Files, archive, binding, mount, source, verify};
use chorus_engine::rollout::{Share, Stage, Trial};
use chorus_engine::{Artifact, Engine, Env, Inbound, Mom, Options, Part, Point};
use chorus_spec::Digest;
use chorus_testkit::{Script, ScriptedUpstream};
use chorus_wire::{ChatRequest, Message, Role};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const RUNS: usize = 30;
/// Requests at once while the bundle is swapped.
const CLIENTS: usize = 16;
/// Swaps under load.
const SWAPS: usize = 40;

/// Bounds of issue 6.
const MOST_BUILD: Duration = Duration::from_secs(1);
const MOST_READY: Duration = Duration::from_millis(300);
const MOST_SWAP: Duration = Duration::from_millis(50);
const MOST_BYTES: usize = 5 * 1024 * 1024;

fn main() {
    let bundle = build();
    let packed = archive::save(&bundle.layout().unwrap()).unwrap();
    say("the family as one file", &format!("{} bytes", packed.len()), packed.len() <= MOST_BYTES);
    let mut times: Vec<Duration> = (0..RUNS).map(|_| timed(|| drop(build().layout().unwrap()))).collect();
    told("source to bundle", &mut times, MOST_BUILD);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let up = ScriptedUpstream::start().await.unwrap();
        up.otherwise(|_| Script::reply("fine"));
        let house = House { file: tempfile(&packed), base_url: up.base_url() };
        let engine = house.engine();
        let ready = |_| timed(|| drop(house.moms(&engine)));
        let mut times: Vec<Duration> = (0..RUNS).map(ready).collect();
        told("file to ready: read, verified, bound, prepared", &mut times, MOST_READY);
        swaps(&house, &engine).await;
    });
}

fn build() -> Bundle {
    let all = [
        ("mom.yaml", include_str!("../../../families/mom-v1/mom.yaml")),
        ("policy.yaml", include_str!("../../../families/mom-v1/policy.yaml")),
        ("prompts/plain.md", include_str!("../../../families/mom-v1/prompts/plain.md")),
        ("prompts/grounded.md", include_str!("../../../families/mom-v1/prompts/grounded.md")),
        ("suites/smoke.jsonl", include_str!("../../../families/mom-v1/suites/smoke.jsonl")),
        ("README.md", include_str!("../../../families/mom-v1/README.md")),
    ];
    let files: Files = all.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())).into();
    let reading = source::read(&files);
    Bundle::build(reading.source.unwrap_or_else(|| panic!("{:?}", reading.findings))).unwrap()
}

struct House {
    file: tempfile::NamedTempFile,
    base_url: String,
}

impl House {
    fn options(&self) -> Options {
        Options::bare(Env::having(&[]))
    }

    /// The texts that the file is served as, and what they are of.
    fn documents(&self) -> Vec<(String, Artifact)> {
        let layout = archive::load(&std::fs::read(self.file.path()).unwrap()).unwrap();
        let bundle = verify::read(&layout).unwrap_or_else(|faults| panic!("{faults:?}"));
        let component = |name: &str| {
            format!(
                "  {name}:\n    deployments: [{{ name: one, trust: private, backend: {{ base_url: \"{}\" }} }}]\n",
                self.base_url
            )
        };
        let text: String = ["draft", "generalist", "judge"].map(component).concat();
        let bound = binding::read(&format!("format: 1\ncomponents:\n{text}"), &bundle.mom).unwrap();
        let mounted = mount::mount(&bundle, &bound, None).unwrap();
        let document = |it: &mount::Mounted| {
            let served = bundle.mom.operating_points.iter().filter(|point| it.points.contains(&point.name));
            let points = served.map(|point| Point::of(&bundle.mom, point)).collect();
            let artifact = Artifact { bundle: Digest::parse(&bundle.digest), points, ..Artifact::default() };
            (it.document.to_yaml(), artifact)
        };
        mounted.documents.iter().map(document).collect()
    }

    fn engine(&self) -> Engine {
        let (text, artifact) = self.documents().remove(0);
        Engine::of(chorus_spec::read(&text).spec.unwrap(), self.options(), artifact).unwrap()
    }

    fn moms(&self, engine: &Engine) -> Vec<Mom> {
        let one = |(text, artifact): (String, Artifact)| {
            engine.prepare(chorus_spec::read(&text).spec.unwrap(), self.options()).unwrap().named(artifact)
        };
        self.documents().into_iter().map(one).collect()
    }
}

/// Swaps while clients ask without a pause: by a promotion and its taking back, which is a rollout's way.
async fn swaps(house: &House, engine: &Engine) {
    let (stop, failed, answered) =
        (Arc::new(AtomicBool::new(false)), Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (engine, stop) = (engine.clone(), Arc::clone(&stop));
            let (failed, answered) = (Arc::clone(&failed), Arc::clone(&answered));
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let all = if asked(&engine).await { &answered } else { &failed };
                    all.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let mut times = Vec::new();
    for _ in 0..SWAPS {
        let mut moms = house.moms(engine);
        let first = moms.remove(0);
        engine.try_beside(first, moms, Trial { stage: Stage::Canary, share: Share::ALL });
        times.push(timed(|| assert!(engine.promote().is_some())));
        tokio::time::sleep(Duration::from_millis(10)).await;
        times.push(timed(|| assert!(engine.demote().is_some())));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    told(&format!("swap under {CLIENTS} clients"), &mut times, MOST_SWAP);
    let (failed, answered) = (failed.load(Ordering::Relaxed), answered.load(Ordering::Relaxed));
    say(
        "requests meanwhile",
        &format!("{answered} answered, {failed} failed"),
        failed == 0 && answered > SWAPS,
    );
}

/// Whether a question is answered.
async fn asked(engine: &Engine) -> bool {
    let request = ChatRequest::new("vllm-sr/mom-v1-flash", vec![Message::new(Role::User, "hello")]);
    let mut run = engine.run(Inbound::of(request));
    let mut is_answered = false;
    while let Some(part) = run.next().await {
        is_answered |= matches!(part, Part::Reply(..));
    }
    is_answered
}

fn tempfile(bytes: &[u8]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    file
}

fn timed(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

fn told(what: &str, times: &mut [Duration], bound: Duration) {
    times.sort_unstable();
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or_default();
    let (median, high) = (at(0.5), at(0.95));
    let most = times.last().copied().unwrap_or_default();
    say(
        what,
        &format!("median {median:.2?}, p95 {high:.2?}, most {most:.2?}, bound {bound:?}"),
        most <= bound,
    );
}

fn say(what: &str, figure: &str, is_within: bool) {
    println!("{what}: {figure}: {}", if is_within { "within" } else { "OVER" });
}
