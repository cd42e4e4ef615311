//! Commands and their flags: one definition each, from which help is made.

use chorus_infer::encoder::DEFAULT_ENCODER;
use chorus_spec::BudgetSettings;
mod bundle;
mod keys;
mod replay;
mod rollout;
mod spending;

pub(crate) use keys::{Keys, KeysAt};
pub(crate) use replay::{Record, Replay};
pub(crate) use rollout::{Rollout, RolloutVerb, TrialStage};
pub(crate) use spending::Spending;

pub(crate) use bundle::{Artifact, Bound, LockFlags, PlaceFlags, Remote, Sign, Statement};

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::net::IpAddr;
use std::num::NonZero;
use std::path::PathBuf;

/// Chorus makes many models answer as one.
///
/// A client names one model; Chorus decides which models work on the request, lets them select, cascade or
/// deliberate, and returns one ordinary, attributable answer.
#[derive(Debug, Parser)]
#[command(name = "chorus", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// What the log shows, such as `info` or `chorus_engine=debug` (default `warn`, and the answers of a server; it goes to standard error).
    #[arg(long, global = true, env = "CHORUS_LOG")]
    pub(crate) log: Option<String>,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  chorus serve                               serve small local models behind one name, on 127.0.0.1:8899
  chorus serve policy.yaml                   serve a v0.3 configuration
  chorus ask \"Why is the sky blue?\" --trace  ask without a server, and see who said what
  chorus check policy.yaml                   every problem of a configuration at once, with its line
  chorus explain policy.yaml \"2+2?\"          which decision a question reaches, and why; no model is called";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a configuration (or the built-in one) over HTTP.
    Serve(Serve),
    /// Serve as `serve` does, and answer the external processing of a gateway that is Envoy.
    ExtProc(ExtProc),
    /// Ask one question without a server; the answer streams to the terminal.
    Ask(Ask),
    /// Say which decision a question reaches and why: signals, projections, every proof. No model is called.
    Explain(Explain),
    /// Check a configuration: every problem at once, with line, column and help.
    Check(Check),
    /// The policy language: compile, check, format, test and draw policies.
    #[command(subcommand)]
    Policy(Policy),
    /// The artifact: a Mixture-of-Models as one bundle.
    #[command(flatten)]
    Artifact(Artifact),
    /// The local model files.
    #[command(subcommand)]
    Models(Models),
    /// The records of past requests.
    #[command(subcommand)]
    Runs(Runs),
    /// Try a candidate beside what a running server serves: shadow, canary, promote, rollback.
    Rollout(Rollout),
    /// Execute a recorded run again from its recorded answers, and say what differs. No model is called.
    Replay(Replay),
    /// The API keys that mark requests.
    #[command(subcommand)]
    Keys(Keys),
    /// Offline work: training.
    #[command(subcommand)]
    Lab(Lab),
}

impl Command {
    /// What the log shows unless told: a server its answers, everything else only trouble.
    pub(crate) fn default_log(&self) -> &'static str {
        match self {
            Self::Serve(_) | Self::ExtProc(_) => "warn,chorus_server=info,chorus_engine::access=info",
            _ => "warn",
        }
    }
}

/// Where a configuration comes from; shared by `serve`, `ask` and `explain`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Source {
    /// For the built-in configuration: only the smallest model, answering as a panel of itself.
    #[arg(long)]
    pub(crate) small: bool,
    /// Fetch no model; what is missing is an error.
    #[arg(long)]
    pub(crate) offline: bool,
    /// For a policy (`.dsl`): the v0.3 configuration that holds what it does not say, such as providers.
    #[arg(long, value_name = "FILE")]
    pub(crate) base: Option<PathBuf>,
    /// Where model files are kept (default: the user's cache directory).
    #[arg(long, env = "CHORUS_MODELS", value_name = "DIR")]
    pub(crate) models_dir: Option<PathBuf>,
    /// Where run records are kept (default: the user's state directory).
    #[arg(long, env = "CHORUS_RUNS", value_name = "FILE")]
    pub(crate) runs_file: Option<PathBuf>,
    /// Where knowledge bases and heads are looked for that do not lie beside the configuration or in a folder above it.
    #[arg(long, env = "CHORUS_KNOWLEDGE", value_name = "DIR")]
    pub(crate) knowledge: Option<PathBuf>,
}

/// Flags of `serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// A bundle, a v0.3 configuration, or a policy (`.dsl`) with its `--base`; without one, small local models are served.
    pub(crate) file: Option<PathBuf>,
    /// Address of the data plane. Anything but loopback exposes models to others, unauthenticated.
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// Port of the data plane (default: the file's first listener, else 8899; 0 takes a free one).
    #[arg(long)]
    pub(crate) port: Option<u16>,
    /// Port of the management plane, always on loopback (default: the file's, else 8080; 0 takes a free one).
    #[arg(long)]
    pub(crate) management_port: Option<u16>,
    /// Once served, ask this question of the Fusion panel and show the answer; serving goes on.
    #[arg(long, value_name = "QUESTION")]
    pub(crate) ask: Option<String>,
    /// Seconds that running requests have to end when the process is stopped.
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    pub(crate) grace: u64,
    /// Seconds of silence after which a stream gets a comment line.
    #[arg(long, default_value_t = 5, value_name = "SECONDS")]
    pub(crate) keepalive: u64,
    /// Threads that answer requests, each with connections of its own; as many as there are cores.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZero<usize>>,
    /// Answer nobody at the data plane without an API key (see `chorus keys`).
    #[arg(long)]
    pub(crate) require_keys: bool,
    /// Where keys are kept (default: beside the run records).
    #[arg(long, env = "CHORUS_KEYS", value_name = "FILE")]
    pub(crate) keys_file: Option<PathBuf>,
    /// Do not watch the file; SIGHUP still loads it again.
    #[arg(long)]
    pub(crate) no_watch: bool,
    /// Keep what each run is asked and what models answer, for `chorus replay`; off unless said (see docs/replay.md).
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) record: Option<Record>,
    #[command(flatten)]
    pub(crate) spending: Spending,
    #[command(flatten)]
    pub(crate) bound: Bound,
    #[command(flatten)]
    pub(crate) source: Source,
}

/// Flags of `ext-proc`.
#[derive(Debug, Args)]
#[command(
    after_help = "See docs/envoy.md for the filter's settings, and examples/envoy.yaml for a whole gateway."
)]
pub(crate) struct ExtProc {
    #[command(flatten)]
    pub(crate) serve: Serve,
    /// Port of the gRPC service, on the address of the data plane (0 takes a free one).
    #[arg(long, default_value_t = 50051, value_name = "PORT")]
    pub(crate) grpc_port: u16,
}

/// Flags of `ask`.
#[derive(Debug, Args)]
pub(crate) struct Ask {
    /// The question; `-` reads it from standard input.
    pub(crate) question: String,
    /// The model name to ask: an auto name, a Fusion slug, an entrypoint or a concrete model.
    #[arg(long, short, default_value = "vllm-sr/auto")]
    pub(crate) model: String,
    /// A v0.3 configuration, or a policy (`.dsl`) with its `--base`; without one, small local models answer.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Afterwards, show who said what, at what cost.
    #[arg(long, short)]
    pub(crate) trace: bool,
    /// What it may spend at most, such as `calls=4;tokens=8000;usd=0.02;seconds=30`.
    #[arg(long, value_parser = chorus_engine::budget::parse, default_value = "", hide_default_value = true)]
    pub(crate) budget: BudgetSettings,
    /// Print the whole reply as JSON instead of streaming the text.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) source: Source,
}

/// Flags of `explain`.
#[derive(Debug, Args)]
#[command(override_usage = "chorus explain [OPTIONS] [FILE] <QUESTION>")]
pub(crate) struct Explain {
    /// `[FILE] QUESTION`: a v0.3 configuration or a policy (`.dsl`), else the built-in one, and the question; `-` reads it from standard input.
    #[arg(num_args = 1..=2, required = true, value_name = "[FILE] QUESTION")]
    pub(crate) words: Vec<String>,
    /// The model name to evaluate.
    #[arg(long, short, default_value = "vllm-sr/auto")]
    pub(crate) model: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) source: Source,
}

/// Flags of `check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// A v0.3 configuration, or a policy (`.dsl`).
    pub(crate) file: PathBuf,
    /// For a policy: the v0.3 configuration that holds what it does not say, such as providers.
    #[arg(long, value_name = "FILE")]
    pub(crate) base: Option<PathBuf>,
    /// Print one JSON document instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    /// Treat warnings as errors.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Where knowledge bases and heads are looked for that do not lie beside the configuration or in a folder above it.
    #[arg(long, env = "CHORUS_KNOWLEDGE", value_name = "DIR")]
    pub(crate) knowledge: Option<PathBuf>,
}

/// Commands on policies.
#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Compile a policy to YAML: its routing part, or with a base the whole configuration.
    Compile {
        /// The policy (`.dsl`).
        file: PathBuf,
        /// A v0.3 configuration that holds what a policy does not say: providers, listeners, `global`.
        #[arg(long, value_name = "FILE")]
        base: Option<PathBuf>,
        /// Where the YAML is written (default: standard output).
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Write a configuration's routing part as a policy.
    Decompile {
        /// A v0.3 configuration.
        file: PathBuf,
        /// Where the policy is written (default: standard output).
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Rewrite policies in the one way in which policies are written; comments stay.
    Fmt {
        /// The policies (`.dsl`).
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Change nothing; status 1 if a file is written otherwise.
        #[arg(long)]
        check: bool,
    },
    /// Check a policy or a configuration: every problem at once, also of the policy as a whole.
    Check(PolicyCheck),
    /// Ask the engine the questions of a policy's TEST blocks. No model is called.
    Test {
        /// The policy (`.dsl`).
        file: PathBuf,
        #[command(flatten)]
        source: Source,
    },
    /// Draw signals, scores, bands, decisions and models as SVG.
    Graph {
        /// A policy (`.dsl`) or a v0.3 configuration.
        file: PathBuf,
        /// A v0.3 configuration that holds what a policy does not say.
        #[arg(long, value_name = "FILE")]
        base: Option<PathBuf>,
        /// The recipe to draw (default: `default`).
        #[arg(long)]
        recipe: Option<String>,
        /// Where the drawing is written (default: standard output).
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Compare recipes that were written in both forms: `config.yaml` and `recipe.dsl`, a folder each.
    #[command(hide = true)]
    Verify {
        /// Folder with the recipes' folders.
        #[arg(default_value = "../shared/conformance/recipes")]
        folder: PathBuf,
    },
}

/// Flags of `policy check`.
#[derive(Debug, Args)]
pub(crate) struct PolicyCheck {
    /// A policy (`.dsl`) or a v0.3 configuration.
    pub(crate) file: PathBuf,
    /// A v0.3 configuration that holds what a policy does not say.
    #[arg(long, value_name = "FILE")]
    pub(crate) base: Option<PathBuf>,
    /// Print one JSON document instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    /// Treat warnings as errors.
    #[arg(long)]
    pub(crate) strict: bool,
}

/// Commands on model files.
#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    /// The known models, and which of them are here.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Where model files are kept.
        #[arg(long, env = "CHORUS_MODELS", value_name = "DIR")]
        models_dir: Option<PathBuf>,
    },
    /// Fetch models, verified by digest; an interrupted pull goes on where it stopped.
    Pull {
        /// Their names; see `chorus models list`.
        #[arg(required = true)]
        names: Vec<String>,
        /// Where model files are kept.
        #[arg(long, env = "CHORUS_MODELS", value_name = "DIR")]
        models_dir: Option<PathBuf>,
    },
    /// Remove models' files.
    Rm {
        /// Their names.
        #[arg(required = true)]
        names: Vec<String>,
        /// Where model files are kept.
        #[arg(long, env = "CHORUS_MODELS", value_name = "DIR")]
        models_dir: Option<PathBuf>,
    },
}

/// Commands on run records.
#[derive(Debug, Subcommand)]
pub(crate) enum Runs {
    /// The latest runs.
    List {
        /// How many.
        #[arg(long, short = 'n', default_value_t = 20)]
        limit: usize,
        /// Only runs of this decision.
        #[arg(long)]
        decision: Option<String>,
        /// Only runs that ended this way.
        #[arg(long, value_enum)]
        status: Option<Status>,
        /// Print JSON, one record a line.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        at: RunsAt,
    },
    /// One run, whole.
    Show {
        /// Its id (`run_…`), as in the header `x-vsr-replay-id`.
        id: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        at: RunsAt,
    },
}

/// Where run records are kept.
#[derive(Debug, Args)]
pub(crate) struct RunsAt {
    /// Where run records are kept.
    #[arg(long, env = "CHORUS_RUNS", value_name = "FILE")]
    pub(crate) runs_file: Option<PathBuf>,
    /// A v0.3 configuration whose `services.router_replay` may name a database instead.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Status {
    /// With an answer.
    Ok,
    /// With an error.
    Failed,
    /// The client left.
    Cancelled,
}

/// Offline work.
#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// Train a head over the encoder from labelled data, and write it with its card.
    TrainHead {
        /// Which head.
        #[arg(value_enum)]
        task: Head,
        /// Folder with the training data (see docs/heads.md).
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        /// Where the head and its card are written.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Which encoder it reads: a name of `model_type` (see docs/encoders.md).
        #[arg(long, default_value = DEFAULT_ENCODER)]
        encoder: String,
        /// Length of the longest text that is learnt; all are without it.
        #[arg(long, value_name = "BYTES")]
        longest: Option<usize>,
        /// Where model files are kept.
        #[arg(long, env = "CHORUS_MODELS", value_name = "DIR")]
        models_dir: Option<PathBuf>,
    },
    /// Fit the map from an encoder's cosines to the scale of thresholds in configuration files, and write it with its
    /// card.
    Calibrate {
        /// The encoder's name in the catalog.
        encoder: String,
        /// Folder with the datasets (see docs/encoders.md).
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        /// Where the table and its card are written.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Where model files are kept.
        #[arg(long, env = "CHORUS_MODELS", value_name = "DIR")]
        models_dir: Option<PathBuf>,
    },
    /// Train the tagger of people's, places' and bodies' names, and write it with its card.
    TrainNames {
        /// Folder with the datasets.
        #[arg(long, value_name = "DIR", default_value = "../shared/data")]
        data: PathBuf,
        /// Where the weights and their card are written.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Train selectors on graded answers, measure them, and write each with its card.
    TrainSelector {
        /// Which ones.
        #[arg(value_enum, required = true)]
        kinds: Vec<Selector>,
        /// Folder with the datasets.
        #[arg(long, value_name = "DIR", default_value = "../shared/data")]
        data: PathBuf,
        /// Where the artifacts and their cards are written.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Whose vectors they are learnt on.
        #[arg(long, value_name = "NAME", default_value = chorus_infer::encoder::DEFAULT_ENCODER)]
        encoder: String,
        /// Folder of the model store.
        #[arg(long, value_name = "DIR")]
        models_dir: Option<PathBuf>,
    },
    /// Train the head that tells attempts to take over the model, and write it with its card.
    TrainInjection {
        /// Folder with the datasets.
        #[arg(long, value_name = "DIR", default_value = "../shared/data")]
        data: PathBuf,
        /// Where the head and its card are written.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Which encoder it reads: a name of `model_type` (see docs/encoders.md).
        #[arg(long, default_value = DEFAULT_ENCODER)]
        encoder: String,
        /// Where model files are kept.
        #[arg(long, env = "CHORUS_MODELS", value_name = "DIR")]
        models_dir: Option<PathBuf>,
    },
    /// Run loopers over recorded answers of 29 models to MMLU-Pro, and compare them with the best of these alone.
    Replay {
        /// Folder with the datasets (see docs/replay.md).
        #[arg(long, value_name = "DIR", default_value = "../shared/data")]
        data: PathBuf,
        /// Where the learned policies are written, one JSON file each.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Calibrate the threshold of a cascade that keeps a floor of quality, and print what a bundle says of it.
    CalibrateFloor {
        /// The calibration set: `{"confidence", "right", "next_right"}` a line (see docs/operating-points.md).
        file: PathBuf,
        /// The most that may be wrong where the next model is right, as a share.
        #[arg(long, default_value_t = 0.05)]
        risk: f64,
        /// How sure that must be.
        #[arg(long, default_value_t = 0.9)]
        confidence: f64,
    },
    /// Measure how many unsupported answers escape the check of a grounded point, and how many supported ones are sent.
    Halu,
    /// Measure how often the rules of entailment judge as a reader does, by words alone and with an encoder.
    Nli {
        /// Which encoder it reads: a name of `model_type` (see docs/encoders.md).
        #[arg(long, default_value = DEFAULT_ENCODER)]
        encoder: String,
        /// Where model files are kept.
        #[arg(long, env = "CHORUS_MODELS", value_name = "DIR")]
        models_dir: Option<PathBuf>,
    },
    /// Measure how many questions in other words the response cache gives the answer to, and to how many others it does.
    CacheEval {
        /// Which encoder it reads: a name of `model_type` (see docs/encoders.md).
        #[arg(long, default_value = DEFAULT_ENCODER)]
        encoder: String,
        /// Least similarity, on the scale of configuration files; chosen on one half of the questions by default.
        #[arg(long, value_name = "SHARE")]
        threshold: Option<f64>,
        /// Folder with the datasets, whose `intents` are reported too, on lines of their own.
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// Also list the pairs of the first half that came out wrong, and near misses that no guard refuses.
        #[arg(long)]
        wrong: bool,
        /// Where model files are kept.
        #[arg(long, env = "CHORUS_MODELS", value_name = "DIR")]
        models_dir: Option<PathBuf>,
    },
    /// Measure how many attempts to take over the model are found, and how many harmless texts are left alone.
    EvalInjection {
        /// Folder with the datasets.
        #[arg(long, value_name = "DIR", default_value = "../shared/data")]
        data: PathBuf,
        /// Which encoder it reads: a name of `model_type` (see docs/encoders.md).
        #[arg(long, default_value = DEFAULT_ENCODER)]
        encoder: String,
        /// Where model files are kept.
        #[arg(long, env = "CHORUS_MODELS", value_name = "DIR")]
        models_dir: Option<PathBuf>,
    },
    /// Measure how much personal data is found, and how much of what is found is personal data.
    EvalPii {
        /// Folder with the datasets.
        #[arg(long, value_name = "DIR", default_value = "../shared/data")]
        data: PathBuf,
    },
}

/// The selectors that can be trained.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Selector {
    /// Nearest neighbours.
    Knn,
    /// Clusters.
    Kmeans,
    /// Support vector machines.
    Svm,
    /// A small network.
    Mlp,
    /// Ratings from comparisons.
    Elo,
}

/// The heads that can be trained.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Head {
    /// The 14 subject categories.
    Domain,
    /// How hard a question is.
    Complexity,
    /// Whether an answer would state facts that have to be checked.
    #[value(name = "fact_check")]
    FactCheck,
    /// What a message says of the answer before it.
    #[value(name = "user_feedback")]
    UserFeedback,
    /// Whether text, an image or both are wanted.
    Modality,
}
