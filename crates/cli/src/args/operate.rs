//! Arguments of `domesday db`, `domesday status` and `domesday prune`.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::StateArgs;
use super::values::{parse_duration, reference_help};

#[derive(Args)]
pub struct DbArgs {
    #[command(subcommand)]
    pub command: DbCommand,
}

#[derive(Subcommand)]
pub enum DbCommand {
    /// Make the book, or bring it up to this version; safe to run from several places at once
    #[command(after_help = "Examples:\n  \
        domesday db migrate\n  \
        domesday db migrate --fingerprint-key file:/etc/domesday/fingerprint.key\n\n\
        Run it as the database's owner; the other commands need no more than to read and write rows.")]
    Migrate {
        #[arg(
            long,
            value_name = "REFERENCE",
            help = reference_help("The key of the book's fingerprints, kept by its id only")
        )]
        fingerprint_key: Option<String>,
        /// JSON instead of text [default when piped]
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Show the server, the book's version and size; exit code 3 when a migration is pending
    #[command(after_help = "Example:\n  domesday db status || domesday db migrate")]
    Status {
        /// JSON instead of text [default when piped]
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Name the key that fingerprints are made with from now on
    #[command(after_help = "Example:\n  domesday db key file:/etc/domesday/new.key --replace\n\n\
        Values that were found with the old key are new findings with the new one: fingerprints of different\n\
        keys cannot be compared. Start the workers with the new key, too.")]
    Key {
        #[arg(value_name = "REFERENCE", help = reference_help("Where the key is"))]
        reference: String,
        /// In the place of the key the book has; refused while a job is open
        #[arg(long)]
        replace: bool,
        /// JSON instead of text [default when piped]
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        state: StateArgs,
    },
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    domesday status --watch\n  \
    domesday status --json | jq '.warnings'")]
pub struct StatusArgs {
    /// Show it anew as it changes
    #[arg(long)]
    pub watch: bool,
    /// JSON instead of tables [default when piped]
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Args)]
#[command(after_help = "Example:\n  domesday prune --older-than 90d\n\n\
    Removes the tasks, records and occurrences of jobs that ended so long ago. Findings stay, and so does\n\
    each data source's latest complete job. It can be stopped at any time and goes on when run again.")]
pub struct PruneArgs {
    /// How long ago a job must have ended, such as 12h or 90d
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub older_than: Duration,
    /// Rows removed in one transaction, about
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub batch_rows: u32,
    /// JSON instead of text [default when piped]
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: StateArgs,
}
