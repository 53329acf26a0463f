//! Arguments of `domesday db`, `domesday status` and `domesday prune`.

use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};

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
    /// Make a login of the fleet's database for workers or orchestrators of node groups
    #[command(after_help = "Examples:\n  \
        domesday db grant worker_eu --as worker --node-group eu\n  \
        domesday db grant site_b --as orchestrator --node-group eu,us\n\n\
        The login sees and changes what is of its node groups, and nothing else. Node groups are added to those that \
        it has. How it proves who it is (a password, a certificate) is set in PostgreSQL. Run it as an administrator \
        of the database, after `docs/fleet/roles.sql`.")]
    Grant {
        /// The login; one that is there already is bound as well
        #[arg(value_name = "LOGIN")]
        login: String,
        /// What it is for
        #[arg(long = "as", value_name = "ROLE")]
        role: LoginRole,
        /// The node groups it works for, separated by commas
        #[arg(long, value_name = "GROUPS", required = true, value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
        node_group: Vec<String>,
        /// JSON instead of text [default when piped]
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Show the logins that are bound to node groups; exit code 3 when one is not held to them
    #[command(after_help = "Example:\n  domesday db grants --json | jq '.[] | select(.is_held | not)'")]
    Grants {
        /// JSON instead of a table [default when piped]
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Take node groups from a login, and end its connections
    #[command(after_help = "Example:\n  domesday db revoke worker_eu --node-group eu\n\n\
        The login itself stays, and sees nothing: `DROP ROLE` removes it. Tasks that it held are taken back after \
        one lease time.")]
    Revoke {
        #[arg(value_name = "LOGIN")]
        login: String,
        /// Only these, separated by commas [default: all]
        #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
        node_group: Option<Vec<String>>,
        /// JSON instead of text [default when piped]
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        state: StateArgs,
    },
}

/// What a login is for.
#[derive(Clone, Copy, ValueEnum)]
pub enum LoginRole {
    Worker,
    Orchestrator,
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
