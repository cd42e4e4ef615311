//! Commands on the artifact: a Mixture-of-Models as a source directory, a bundle, or an archive of one.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Commands on bundles. Where a bundle is read, a layout directory, an archive (`.tar`) and a source directory will do.
#[derive(Debug, Subcommand)]
pub(crate) enum Artifact {
    /// Write the source directory of a new Mixture-of-Models, ready to build.
    New {
        /// The directory; it must not be there yet.
        dir: PathBuf,
        /// Its name (default: the directory's).
        #[arg(long)]
        family: Option<String>,
    },
    /// Compile a source directory to a bundle: the same source gives the same bytes, anywhere.
    Build {
        /// The source directory, with `mom.yaml` and a policy.
        dir: PathBuf,
        /// Where it is written: a directory, or a file that ends with `.tar` (default: the source's name and `.bundle`).
        #[arg(long, short, value_name = "PATH")]
        out: Option<PathBuf>,
        /// Check only; write nothing.
        #[arg(long)]
        check: bool,
    },
    /// What is in a bundle: identity, blobs by digest, components and their licences.
    Inspect {
        /// The bundle.
        bundle: PathBuf,
        /// Print one JSON document instead of text.
        #[arg(long)]
        json: bool,
        /// Print the compiled graph instead.
        #[arg(long, conflicts_with = "json")]
        graph: bool,
    },
    /// Check every byte of a bundle against its digests, and that its policy holds together.
    Verify {
        /// The bundle.
        bundle: PathBuf,
        /// The digest that it must have.
        #[arg(long, value_name = "SHA256")]
        digest: Option<String>,
        /// Whom to believe: keys, and the statements that must be attached (see docs/mom-spec.md).
        #[arg(long, value_name = "FILE")]
        policy: Option<PathBuf>,
        /// Print one JSON document instead of text.
        #[arg(long)]
        json: bool,
    },
    /// What changed between two bundles: which decision, threshold, prompt, guard or bound. Status 1 if anything did.
    Diff {
        /// The one before.
        before: PathBuf,
        /// The one after.
        after: PathBuf,
        /// Print one JSON document instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Pack a bundle into one file.
    Save {
        /// The bundle.
        bundle: PathBuf,
        /// The file, usually ending with `.tar`.
        file: PathBuf,
    },
    /// Unpack a bundle from one file; it is verified before anything is written.
    Load {
        /// The file.
        file: PathBuf,
        /// The layout directory.
        dir: PathBuf,
    },
    /// Make a key pair: the private key in the file, the public one beside it with `.pub`.
    Keygen {
        /// The file; it must not be there yet.
        file: PathBuf,
    },
    /// Attach a signed statement to a bundle.
    Sign(Sign),
    /// Resolve a binding: what every component runs on, by digest, written down for review.
    Lock(LockFlags),
    /// Where every component runs under a binding, and why.
    Place(PlaceFlags),
    /// Push a bundle, with what is attached to it, to an OCI registry.
    Push {
        /// The bundle.
        bundle: PathBuf,
        /// `HOST/REPOSITORY`, with a tag or without (then the bundle's version is the tag).
        name: String,
        /// Further tags that are to point at it, such as `stable`.
        #[arg(long = "tag", value_name = "TAG")]
        tags: Vec<String>,
        #[command(flatten)]
        remote: Remote,
    },
    /// Pull a bundle from an OCI registry; it is verified before anything is written.
    Pull {
        /// `HOST/REPOSITORY:TAG`, `…@stable` or `…@sha256:…`.
        name: String,
        /// The layout directory.
        dir: PathBuf,
        /// Whom to believe; without one, nobody's word is asked for.
        #[arg(long, value_name = "FILE")]
        policy: Option<PathBuf>,
        #[command(flatten)]
        remote: Remote,
    },
    /// Point a tag of a registry at a bundle that is there: a release, or a rollback.
    Tag {
        /// What it is to point at: `HOST/REPOSITORY:TAG` or `…@sha256:…`.
        name: String,
        /// The tag, such as `stable`.
        tag: String,
        #[command(flatten)]
        remote: Remote,
    },
    /// The tags of a repository, each with what it points at.
    Tags {
        /// `HOST/REPOSITORY`.
        name: String,
        #[command(flatten)]
        remote: Remote,
    },
    /// Split a v0.3 configuration into a source, a binding and settings of the runtime, with the same routes.
    Import {
        /// The configuration.
        #[arg(long, value_name = "FILE")]
        from: PathBuf,
        /// The source directory; it must not be there yet.
        dir: PathBuf,
        /// Its name (default: the directory's).
        #[arg(long)]
        family: Option<String>,
    },
    /// Split configurations, build, bind and read them again: `*/config.yaml` below a folder.
    #[command(hide = true)]
    ImportVerify {
        /// Folder with the recipes' folders.
        #[arg(default_value = "../shared/conformance/recipes")]
        folder: PathBuf,
    },
    /// Check canonical JSON against vectors of others: `input/*.json` and `output/*.json`.
    #[command(hide = true)]
    CanonicalVectors {
        /// Folder with `input` and `output`.
        #[arg(default_value = "../shared/data/jcs")]
        folder: PathBuf,
    },
}

/// How a registry is reached. Its credential is `CHORUS_REGISTRY_USER` and `CHORUS_REGISTRY_PASSWORD`.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Remote {
    /// Speak to a registry that is not on this machine without TLS.
    #[arg(long)]
    pub(crate) plain_http: bool,
    /// Seconds that a registry may be silent.
    #[arg(long, default_value_t = 30, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) silence: u64,
}

/// Flags of `sign`.
#[derive(Debug, Args)]
pub(crate) struct Sign {
    /// The bundle: a layout directory or an archive; the statement is attached to it there.
    pub(crate) bundle: PathBuf,
    /// The private key (Ed25519 in PEM).
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// What is stated.
    #[arg(long, value_enum, default_value_t = Statement::Signature)]
    pub(crate) statement: Statement,
    /// JSON that is stated, such as a scorecard.
    #[arg(long, value_name = "FILE")]
    pub(crate) content: Option<PathBuf>,
    /// How many days it holds (default: always).
    #[arg(long, value_name = "DAYS")]
    pub(crate) days: Option<u64>,
}

/// What a statement is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Statement {
    /// The signer made the bundle, or vouches for it.
    Signature,
    /// It is approved for use.
    Approval,
    /// The figures of an evaluation.
    Scorecard,
    /// Where it comes from.
    Provenance,
}

/// Flags of `lock`.
#[derive(Debug, Args)]
pub(crate) struct LockFlags {
    /// The bundle.
    pub(crate) bundle: PathBuf,
    /// Where components run (default: in this process, as far as their weights are known).
    #[arg(long, value_name = "FILE")]
    pub(crate) binding: Option<PathBuf>,
    /// The lock.
    #[arg(long, short, default_value = "chorus.lock", value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Change nothing; status 1, with every difference, if what is there is not what is locked.
    #[arg(long, conflicts_with = "update")]
    pub(crate) check: bool,
    /// Move only this component of a lock that is there.
    #[arg(long, value_name = "COMPONENT")]
    pub(crate) update: Option<String>,
    /// Ask no provider what it serves.
    #[arg(long)]
    pub(crate) offline: bool,
    /// Where model files are kept.
    #[arg(long, env = "CHORUS_MODELS", value_name = "DIR")]
    pub(crate) models_dir: Option<PathBuf>,
}

/// Flags of `place`.
#[derive(Debug, Args)]
pub(crate) struct PlaceFlags {
    /// The bundle.
    pub(crate) bundle: PathBuf,
    /// Where components may run (default: in this process, as far as their weights are known).
    #[arg(long, value_name = "FILE")]
    pub(crate) binding: Option<PathBuf>,
    /// Only this operating point.
    #[arg(long, value_name = "NAME")]
    pub(crate) point: Option<String>,
    /// Every deployment that was looked at, what bars it and what it was compared by.
    #[arg(long)]
    pub(crate) why: bool,
}

/// How bundles are served; flags of `serve`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Bound {
    /// For a bundle: where components run (default: in this process, as far as their weights are known).
    #[arg(long, value_name = "FILE")]
    pub(crate) binding: Option<PathBuf>,
    /// For a bundle: the lock that must hold.
    #[arg(long, value_name = "FILE")]
    pub(crate) lock: Option<PathBuf>,
    /// For a bundle: listeners and other settings of the runtime.
    #[arg(long, value_name = "FILE")]
    pub(crate) runtime: Option<PathBuf>,
    /// For a bundle: whom to believe; what is unsigned or unapproved is refused.
    #[arg(long, value_name = "FILE")]
    pub(crate) trust: Option<PathBuf>,
    /// A further bundle beside the first, with its binding.
    #[arg(long, num_args = 2, value_names = ["BUNDLE", "BINDING"], action = clap::ArgAction::Append)]
    pub(crate) also: Vec<PathBuf>,
}
