//! The command line's arguments: what every command shares, and those of scans and reports. The commands of
//! a fleet have a file each.

mod allow;
mod baseline;
mod catalog;
mod datasource;
mod git;
mod job;
mod operate;
mod select;
mod session;
mod store;
mod target;
mod task;
mod template;
pub mod values;
mod web;

pub mod fleet;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use domesday_connector::TRUST_CONTENT;
use domesday_control::LOCAL_RETRIES;
use domesday_model::{Category, Level, Regulation, Sensitivity, TrustContent};
use tracing::level_filters::LevelFilter;

use crate::logs::LogFormat;
use crate::output::{ClassFilter, Format, RuleInfo};

pub use allow::AllowArgs;
pub use baseline::{BaselineArgs, BaselineCommand, BaselineCreate};
pub use catalog::CatalogArgs;
pub use datasource::{DatasourceAdd, DatasourceArgs, DatasourceCommand, DatasourceEdit, DatasourceFields};
pub use git::GitArgs;
pub use job::{Appended, JobArgs, JobCommand, JobRetryArgs, JobsArgs, StartArgs};
pub use operate::{DbArgs, DbCommand, LoginRole, PruneArgs, StatusArgs};
pub use select::SelectArgs;
pub use session::{SessionArgs, SessionCommand, SessionListArgs};
pub use store::StateArgs;
pub use target::{TargetArgs, TargetCommand, TargetListArgs, WhichTarget};
pub use task::{RetryArgs, TaskArgs, TaskCommand, TaskListArgs};
pub use template::{TemplateAdd, TemplateArgs, TemplateCommand, TemplateEdit, TemplateFields};
pub use web::WebArgs;

use values::{Setting, parse_attempts, parse_setting, parse_size, reference_help};

/// The place of what every command has in its help: behind what is its own.
const GLOBAL_ORDER: usize = 900;

/// Finds secrets and personal, payment and health data, and proves that nothing was missed.
#[derive(Parser)]
#[command(name = "domesday", version, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 complete and clean, 1 complete with findings, 2 wrong usage or fatal error,\n\
    3 ended incomplete (something could not be read, or it was interrupted)."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// Write a log of this level to standard error (error, warn, info, debug, trace)
    #[arg(long, global = true, value_name = "LEVEL", display_order = GLOBAL_ORDER)]
    pub log: Option<LevelFilter>,
    /// How the log is written
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text", display_order = GLOBAL_ORDER)]
    pub log_format: LogFormat,
    /// Send traces to this OTLP collector, such as http://127.0.0.1:4318
    #[cfg(feature = "otlp")]
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "OTEL_EXPORTER_OTLP_ENDPOINT",
        display_order = GLOBAL_ORDER
    )]
    pub otlp_endpoint: Option<String>,
}

#[derive(Subcommand)]
pub enum Command {
    /// Scan folders, files, standard input, or what is at an address
    Scan(Box<ScanArgs>),
    /// Show what a scan found
    Findings(FindingsArgs),
    /// Show which columns of which tables hold what
    Catalog(CatalogArgs),
    /// List the scans in the book; the same as `job list`
    Jobs(JobsArgs),
    /// List what a scan could not read, or not whole, and why
    Problems(ProblemsArgs),
    /// List, show, check or try rules
    Rules(RulesArgs),
    /// Write down what is known, so that scans report what is new
    Baseline(BaselineArgs),
    /// Run the jobs of a node group, as one process of a fleet
    Orchestrator(fleet::OrchestratorArgs),
    /// Scan for a node group, as one process of a fleet
    Worker(fleet::WorkerArgs),
    /// Add, list, change, test or remove data sources
    Datasource(DatasourceArgs),
    /// Add, list, change or remove scan templates
    Template(TemplateArgs),
    /// Start, list, watch, retry, pause, resume or cancel jobs
    Job(JobArgs),
    /// List, show or retry tasks
    Task(TaskArgs),
    /// List or show enumeration sessions: how far the listing of a data source is
    Session(SessionArgs),
    /// List or show scan targets: the real things that were scanned
    Target(TargetArgs),
    /// Show the fleet: orchestrators, workers, queues, and what is wrong
    Status(StatusArgs),
    /// Make, upgrade or check the book's database
    Db(DbArgs),
    /// Remove what ended long ago; findings stay
    Prune(PruneArgs),
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    domesday scan .                                   scan this folder\n  \
    domesday scan src config --exclude '*.lock'       two folders, lock files left out\n  \
    git diff | domesday scan -                        scan what is piped in\n  \
    domesday scan . --format sarif -o out.sarif       for a code scanning service\n  \
    domesday scan . --only category:secret --skip 'generic-*'\n                                                    \
    only these rules\n  \
    domesday scan . --baseline .domesday-baseline.jsonl\n                                                    \
    only what is new; see `domesday baseline`\n  \
    domesday scan https://github.com/acme/shop        the history of a repository\n  \
    domesday scan github:acme --credential env:TOKEN  every repository of an organisation\n\n\
    A .domesday.toml in the scanned folder, or above it in its repository, says what to leave out, which\n\
    rules to use and what is allowed; flags win over it.\n\
    A password in an address stays in this process and is not stored; the same command gives it again.\n\
    A scan that was interrupted, even by kill -9, goes on when the same command is run again.")]
pub struct ScanArgs {
    /// Folders, files and addresses to scan; `-` is standard input
    #[arg(required = true, value_name = "TARGET")]
    pub targets: Vec<PathBuf>,
    /// Leave out what matches this pattern (syntax of .gitignore lines; may be repeated)
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<String>,
    /// Leave out files larger than this, such as 50M or 2G
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub max_file_size: Option<u64>,
    /// Follow symbolic links
    #[arg(long)]
    pub follow_symlinks: bool,
    #[command(flatten)]
    pub git: GitArgs,
    #[command(flatten)]
    pub web: WebArgs,
    /// Which connector reads the targets, whatever they look like
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// A field of the connector's configuration; the value is JSON, or else text (may be repeated)
    #[arg(long, value_name = "FIELD=VALUE", value_parser = parse_setting)]
    pub set: Vec<Setting>,
    #[arg(long, value_name = "REFERENCE", help = reference_help("Where the secret is that opens the addresses"))]
    pub credential: Option<String>,
    /// Add rules from this file, or from the .toml files of this folder (may be repeated)
    #[arg(long, value_name = "PATH")]
    pub rules: Vec<PathBuf>,
    #[command(flatten)]
    pub select: SelectArgs,
    /// Keep and report findings of at least this confidence [default: medium]
    #[arg(long, value_name = "LEVEL")]
    pub level: Option<LevelArg>,
    /// Hide the findings that this file knows; `domesday baseline create` makes one
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Read the configuration from this file, and not from a .domesday.toml in the tree
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Use no configuration file
    #[arg(long, conflicts_with = "config")]
    pub no_config: bool,
    /// Whether ignore marks, ignore files and the .domesday.toml in what is scanned count (yes, no, auto); auto trusts
    /// a local folder or work tree, and nothing else
    #[arg(long, value_name = "WORD", default_value = "auto")]
    pub trust_content: TrustContent,
    /// The same as --trust-content no
    #[arg(long, conflicts_with = "trust_content")]
    pub untrusted: bool,
    #[arg(long, value_name = "REFERENCE", help = fingerprint_key_help())]
    pub fingerprint_key: Option<String>,
    #[command(flatten)]
    pub report: ReportArgs,
    /// No progress and no summary, only the report
    #[arg(long, short)]
    pub quiet: bool,
    /// Show the sensitive values themselves, not only previews
    #[arg(long)]
    pub show_values: bool,
    /// Threads that scan [default: one per processor]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// How often a source is tried that does not answer or breaks off, before what it did not give counts as failed
    #[arg(long, value_name = "N", default_value_t = LOCAL_RETRIES.attempts, value_parser = parse_attempts)]
    pub attempts: u32,
    /// End with 3 also where a format was recognised that is not read, such as pdf, or where something belongs to a
    /// source and is not in it, such as the history before a shallow clone
    #[arg(long)]
    pub strict: bool,
    /// Read everything again, also what has not changed since the last scan
    #[arg(long)]
    pub rescan: bool,
    /// Start over, even if an earlier run of the same scan is unfinished
    #[arg(long)]
    pub fresh: bool,
    /// Print where the time went
    #[arg(long)]
    pub timings: bool,
    /// Where the embedded book is kept [default: the user's state folder]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Here only to say what to do instead.
    #[arg(long, value_name = "URL", hide = true)]
    pub store: Option<String>,
}

impl ScanArgs {
    /// Whether content is trusted, in one word.
    pub fn trust(&self) -> TrustContent {
        if self.untrusted { TrustContent::No } else { self.trust_content }
    }

    /// Whether the flags or the settings of the sources say that content is not trusted.
    pub fn distrusts_content(&self) -> bool {
        let is_no = |setting: &Setting| {
            setting.path == [TRUST_CONTENT] && setting.value.as_str() == Some(TrustContent::No.as_str())
        };
        self.trust() == TrustContent::No || self.set.iter().any(is_no)
    }
}

#[derive(Args)]
pub struct ReportArgs {
    /// Report format [default: table on a terminal, json otherwise]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Write the report to this file
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Report only what is at least this sensitive (low, moderate, high, critical)
    #[arg(long, value_name = "LEVEL")]
    pub sensitivity: Option<Sensitivity>,
    /// Report only what this regulation concerns, such as GDPR or PCI-DSS
    #[arg(long, value_name = "NAME")]
    pub regulation: Option<Regulation>,
    /// In a table, say of each finding why it is one; the other formats always do
    #[arg(long)]
    pub explain: bool,
    /// Also show what is not reported because of an ignore mark, an allow list or a baseline, and which it is
    #[arg(long)]
    pub show_suppressed: bool,
}

impl ReportArgs {
    /// What was asked for, among what these rules can say.
    pub fn only(&self, rules: &[RuleInfo]) -> anyhow::Result<ClassFilter> {
        ClassFilter::new(self.sensitivity, self.regulation.clone(), rules)
    }
}

#[derive(Args)]
pub struct WhichJob {
    /// The scan to show, by its id or the beginning of it [default: the newest]
    #[arg(long, value_name = "ID")]
    pub job: Option<String>,
}

#[derive(Args)]
pub struct FindingsArgs {
    #[command(flatten)]
    pub job: WhichJob,
    /// Only findings of at least this confidence
    #[arg(long, value_name = "LEVEL", default_value = "medium")]
    pub level: LevelArg,
    /// Only findings of this rule
    #[arg(long, value_name = "ID")]
    pub rule: Option<String>,
    /// Only findings of this category (secret, personal, payment, health, network, marking)
    #[arg(long, value_name = "CATEGORY")]
    pub category: Option<Category>,
    /// Hide the findings that this file knows; `domesday baseline create` makes one
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    #[command(flatten)]
    pub report: ReportArgs,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Args)]
pub struct ProblemsArgs {
    #[command(flatten)]
    pub job: WhichJob,
    /// How many, in the order of their names
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub max: u32,
    /// JSON instead of a table [default when piped]
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Args)]
pub struct RulesArgs {
    #[command(subcommand)]
    pub command: RulesCommand,
}

#[derive(Subcommand)]
pub enum RulesCommand {
    /// List all rules, or those that a selection leaves
    #[command(
        after_help = "Example:\n  domesday rules list --only category:payment --only 'aws-*' --skip region:us"
    )]
    List {
        /// Also the rules of this file or folder
        #[arg(long, value_name = "PATH")]
        rules: Vec<PathBuf>,
        #[command(flatten)]
        select: SelectArgs,
        /// JSON instead of a table [default when piped]
        #[arg(long)]
        json: bool,
    },
    /// Show one rule
    Show {
        id: String,
        /// Also look in this file or folder
        #[arg(long, value_name = "PATH")]
        rules: Vec<PathBuf>,
    },
    /// Show what each rule says of a sample: what is reported, and what is not and why
    Test {
        /// A file; `-` is standard input
        #[arg(value_name = "FILE")]
        sample: PathBuf,
        /// Only what this rule says (may be repeated)
        #[arg(long, value_name = "ID")]
        rule: Vec<String>,
        /// Also the rules of this file or folder
        #[arg(long, value_name = "PATH")]
        rules: Vec<PathBuf>,
        /// Show the values themselves, not only previews
        #[arg(long)]
        show_values: bool,
        /// JSON instead of a table [default when piped]
        #[arg(long)]
        json: bool,
    },
    /// Check rule files, with the examples in them
    Check {
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
}

fn fingerprint_key_help() -> String {
    let what = "Where the key is that fingerprints are made with, the same for all who share a baseline";
    let default = "env:DOMESDAY_FINGERPRINT_KEY if that is set, else the state folder's own key";
    format!("{} [default: {default}]", reference_help(what))
}

/// A confidence level on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum LevelArg {
    Low,
    Medium,
    High,
}

impl From<LevelArg> for Level {
    fn from(level: LevelArg) -> Level {
        match level {
            LevelArg::Low => Level::Low,
            LevelArg::Medium => Level::Medium,
            LevelArg::High => Level::High,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
