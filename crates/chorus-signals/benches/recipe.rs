//! A whole decision of a large recipe with the real encoder: 14 decisions, 16 banks of examples, 14 domains, 6
//! complexity rules. Targets, on one thread: 25 ms for 30 tokens, 150 ms for 4,000, and a third of the first where a
//! keyword already decides (medians).
//!
//! Run: `CHORUS_MODELS=… cargo bench -p chorus-signals --bench recipe`. `CHORUS_RECIPE=FILE` measures a configuration of
//! one's own instead of the built-in recipe; the keyword line then says something only with `CHORUS_PROMPT=TEXT`, a prompt
//! whose words decide that policy. It knows the public functions of
//! policy and signals. **Invariant:** without the encoder's files it says so and measures nothing.

#![expect(clippy::print_stdout, reason = "figures are for people to read")]

use chorus_infer::encoder::{DEFAULT_ENCODER, encoder_for, open};
use chorus_infer::store::{Catalog, ModelStore};
use chorus_policy::{Evidence, Policy, Progress, Scope};
use chorus_signals::{Extractor, SharedPass, Subject, cost};
use chorus_spec::{MMLU_CATEGORIES, Spec};
use chorus_wire::{ChatRequest, Message, Role};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs of which the median is told.
const RUNS: usize = 21;
/// About 30 tokens, near to none of the examples.
const SHORT: &str = "Our neighbours are away until Sunday and asked me to look after their two hens; what do hens eat, \
                     and do they need a lamp at night?";
/// The same length, with the word that decides the built-in recipe.
const KEYWORD: &str = "Our neighbours are away until Sunday, please switch to the overnight lane: what do hens eat, \
                       and do they need a lamp at night?";
/// About 20 tokens; two hundred of them are 4,000.
const LINE: &str =
    "On day {n} the hens ate grain, walked by the pond and went to bed at dusk without a sound. ";

const SUBJECTS: [&str; 16] = [
    "gardening",
    "cooking",
    "sailing",
    "music",
    "knitting",
    "astronomy",
    "chess",
    "football",
    "pottery",
    "cycling",
    "painting",
    "hiking",
    "bees",
    "bread",
    "clocks",
    "bridges",
];
fn main() {
    let Some(store) = std::env::var_os("CHORUS_MODELS").map(PathBuf::from) else {
        println!("skipped: CHORUS_MODELS does not name a model store");
        return;
    };
    let file = std::env::var_os("CHORUS_RECIPE").and_then(|file| std::fs::read_to_string(file).ok());
    let Some(spec) = chorus_spec::read(&file.unwrap_or_else(built_in)).spec else {
        println!("skipped: the configuration does not load; `chorus check` says why");
        return;
    };
    let name = spec.global.encoder.as_deref().map_or(DEFAULT_ENCODER, encoder_for);
    match open(&ModelStore::open(store, Catalog::builtin()), name) {
        Ok(encoder) => measure(&spec, &(Arc::new(encoder) as Arc<dyn chorus_infer::TextEncoder>)),
        Err(fault) => println!("skipped: {fault}"),
    }
}

fn measure(spec: &Spec, encoder: &Arc<dyn chorus_infer::TextEncoder>) {
    let Some(recipe) = spec.recipes.first() else {
        println!("skipped: the configuration has no recipe");
        return;
    };
    let extractor = match Extractor::prepare(recipe, &spec.global, Some(Arc::clone(encoder))) {
        Ok(extractor) => extractor,
        Err(fault) => {
            println!("skipped: {fault}");
            return;
        }
    };
    extractor.warm();
    let policy = Policy::compile(recipe, &cost);
    let long: String = (0..200).map(|n| LINE.replace("{n}", &n.to_string())).collect();
    let mut short_ms = 0.0;
    let own = std::env::var("CHORUS_PROMPT").unwrap_or_else(|_| KEYWORD.to_owned());
    for (what, text) in
        [("30 tokens", SHORT), ("4,000 tokens", long.as_str()), ("a keyword decides", own.as_str())]
    {
        let request = ChatRequest::new("vllm-sr/auto", vec![Message::new(Role::User, text)]);
        let mut runs: Vec<(Duration, Duration)> =
            (0..RUNS).map(|_| run(&policy, &extractor, &request)).collect();
        let mut median = |axis: fn(&(Duration, Duration)) -> Duration| {
            runs.sort_by_key(axis);
            runs.get(RUNS / 2).map(axis).unwrap_or_default().as_secs_f64() * 1e3
        };
        let (wall, busy) = (median(|run| run.0), median(|run| run.1));
        let tokens = encoder.count_tokens(text);
        println!("{what}: {tokens} tokens, median {wall:.2} ms, of which {busy:.2} ms on a processor");
        if short_ms == 0.0 {
            short_ms = wall;
        }
        println!("    the first prompt takes {:.1} times as long", short_ms / wall);
    }
}

/// One decision, as the engine makes it: wall time and processor time.
fn run(policy: &Policy, extractor: &Extractor, request: &ChatRequest) -> (Duration, Duration) {
    let (start, busy) = (Instant::now(), processor_time());
    let subject = Subject::of(request);
    let (mut pass, mut evidence) = (SharedPass::new(), Evidence::default());
    while let Progress::Need(asks) = policy.decide(&evidence, &Scope::All) {
        extractor.extract(&asks, &subject, &mut pass, &mut evidence);
    }
    (start.elapsed(), processor_time().saturating_sub(busy))
}

/// Time on a processor of all threads, which other programs of a busy machine do not lengthen.
/// Source: proc(5), `/proc/pid/task/tid/schedstat`. Zero where there is no such file.
fn processor_time() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanos = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

/// A recipe of the size of a large one in use. Only the first decision can be told by a word, together with a band of a
/// score that the word alone lifts high enough, whatever the encoder says of the score's other term.
fn built_in() -> String {
    let mut text = String::from("version: v0.3\nrouting:\n  signals:\n    keywords:\n");
    text.push_str("      - {name: overnight, operator: OR, keywords: [overnight lane]}\n    embeddings:\n");
    for subject in SUBJECTS {
        let examples: Vec<String> = [
            "How do I begin with",
            "What tools are needed for",
            "Teach me about",
            "Who is best at",
            "A plan for",
        ]
        .iter()
        .map(|start| format!("{start} {subject}"))
        .collect();
        let _ = writeln!(
            text,
            "      - {{name: {subject}, threshold: 0.75, candidates: [{}]}}",
            examples.join(", ")
        );
    }
    text.push_str("    domains:\n");
    for domain in MMLU_CATEGORIES {
        let _ = writeln!(text, "      - {{name: {domain}}}");
    }
    text.push_str("    complexity:\n");
    for subject in SUBJECTS.iter().take(6) {
        let _ = writeln!(
            text,
            "      - {{name: {subject}_task, threshold: 0.12, hard: {{candidates: [Derive the theory of {subject}, Compare \
             two schools of {subject}]}}, easy: {{candidates: [What is {subject}, A word for {subject}]}}}}"
        );
    }
    text.push_str("  projections:\n    scores:\n      - {name: hurry, method: weighted_sum, inputs: [{type: keyword, name: overnight, weight: 0.5}, {type: domain, name: health, weight: 0.3, value_source: confidence}]}\n");
    text.push_str("    mappings:\n      - {name: hurry_band, source: hurry, method: threshold_bands, calibration: {method: sigmoid_distance, slope: 12}, outputs: [{name: calm, lt: 0.35}, {name: hurried, gte: 0.35}]}\n");
    text.push_str("  decisions:\n");
    text.push_str("    - {name: word, priority: 200, rules: {operator: AND, conditions: [{type: keyword, name: overnight}, {type: projection, name: hurried}]}, modelRefs: [{model: m}]}\n");
    for (number, (domain, subject)) in MMLU_CATEGORIES.iter().zip(SUBJECTS).take(13).enumerate() {
        let complexity = SUBJECTS.get(number % 6).copied().unwrap_or_default();
        let _ = writeln!(
            text,
            "    - {{name: d{number}, priority: {}, rules: {{operator: OR, conditions: [{{operator: AND, conditions: [{{type: \
             domain, name: {domain}}}, {{type: embedding, name: {subject}}}]}}, {{type: complexity, name: \
             '{complexity}_task:hard'}}]}}, modelRefs: [{{model: m}}]}}",
            100 - number
        );
    }
    text.push_str("providers:\n  defaults: {default_model: m}\n  models:\n    - {name: m, provider_model_id: m, backend_refs: [{name: b, endpoint: 'localhost:9'}]}\n");
    text
}
