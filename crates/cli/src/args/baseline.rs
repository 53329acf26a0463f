//! Arguments of `domesday baseline`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{LevelArg, StateArgs, WhichJob};

#[derive(Args)]
pub struct BaselineArgs {
    #[command(subcommand)]
    pub command: BaselineCommand,
}

#[derive(Subcommand)]
pub enum BaselineCommand {
    /// Write what a scan found to a file, as known
    Create(BaselineCreate),
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    domesday scan .                                   look at what is there\n  \
    domesday baseline create                          accept it\n  \
    domesday scan . --baseline .domesday-baseline.jsonl\n                                                    \
    from now on only what is new\n  \
    domesday baseline create --merge .domesday-baseline.jsonl\n                                                    \
    add what the newest scan found\n\n\
    The file has rules, paths and fingerprints, no values. Whoever uses it needs the same key: give it\n\
    to every `domesday scan` with --fingerprint-key, or in DOMESDAY_FINGERPRINT_KEY.")]
pub struct BaselineCreate {
    #[command(flatten)]
    pub job: WhichJob,
    /// Only findings of at least this confidence
    #[arg(long, value_name = "LEVEL", default_value = "medium")]
    pub level: LevelArg,
    /// Write it to this file
    #[arg(long, short, value_name = "FILE", default_value = crate::baseline::DEFAULT_FILE)]
    pub output: PathBuf,
    /// Take over the entries of this baseline, too (may be repeated)
    #[arg(long, value_name = "FILE")]
    pub merge: Vec<PathBuf>,
    /// JSON instead of text [default when piped]
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: StateArgs,
}
