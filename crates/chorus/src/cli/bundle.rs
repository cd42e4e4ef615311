//! Commands on the artifact: a Mixture-of-Models as a source directory, a bundle, or an archive of one.

use clap::Subcommand;
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
