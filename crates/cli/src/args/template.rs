//! Arguments of `domesday template`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use domesday_model::{MissedFirings, TrustContent};

use super::values::{Setting, parse_setting};
use super::{LevelArg, StateArgs};

#[derive(Args)]
pub struct TemplateArgs {
    #[command(subcommand)]
    pub command: TemplateCommand,
}

#[derive(Subcommand)]
pub enum TemplateCommand {
    /// Add scan templates, from flags or a file
    Add(TemplateAdd),
    /// List the templates
    #[command(after_help = "Example:\n  domesday template list --json | jq -r '.[].name'")]
    List {
        /// JSON instead of a table [default when piped]
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Show one template in full; its JSON can be given to `add` and `edit`
    #[command(after_help = "Example:\n  domesday template show nightly --json > nightly.json")]
    Show {
        name: String,
        /// JSON instead of text [default when piped]
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Change a template, and show what changed; jobs that were started keep what they had
    Edit(TemplateEdit),
    /// Remove a template; its jobs stay
    #[command(after_help = "Example:\n  domesday template remove nightly")]
    Remove {
        name: String,
        #[command(flatten)]
        state: StateArgs,
    },
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    domesday template add shares --datasource 'share-*' --rules rules/\n  \
    domesday template add cards --datasource '*' --only category:payment\n  \
    domesday template add nightly --datasource '*' --cron '0 2 * * *' --time-zone Europe/Berlin\n  \
    domesday template add --file templates.toml\n\n\
    A file holds one template, or several as [[template]]; rules are paths, read from beside the file:\n  \
    [[template]]\n  \
    name = \"nightly\"\n  \
    datasources = [\"share-*\"]\n  \
    rules = [\"rules/acme.toml\"]\n  \
    select = { skip = [\"category:network\"] }\n  \
    level = \"medium\"\n  \
    options = { max_depth = 4 }\n  \
    schedule = { cron = \"0 2 * * *\", time_zone = \"Europe/Berlin\", missed = \"run-once\" }")]
pub struct TemplateAdd {
    /// Its name, unique in the book
    #[arg(required_unless_present = "file")]
    pub name: Option<String>,
    /// Take it from this TOML or JSON file; `-` is standard input
    #[arg(long, short, value_name = "PATH", conflicts_with = "TemplateFields")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub fields: TemplateFields,
    /// JSON instead of text [default when piped]
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    domesday template edit nightly --cron '0 4 * * sun'\n  \
    domesday template edit nightly --no-schedule --priority 10\n  \
    domesday template edit nightly --file nightly.toml      takes the place of all of it")]
#[command(group(clap::ArgGroup::new("removals").multiple(true)))]
pub struct TemplateEdit {
    pub name: String,
    /// Take all of it from this TOML or JSON file; `-` is standard input
    #[arg(long, short, value_name = "PATH", conflicts_with_all = ["TemplateFields", "removals"])]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub fields: TemplateFields,
    /// The built-in rules only
    #[arg(long, group = "removals", conflicts_with = "rules")]
    pub no_rules: bool,
    /// All rules, without a selection
    #[arg(long, group = "removals", conflicts_with_all = ["only", "skip"])]
    pub no_select: bool,
    /// Start it by hand only
    #[arg(long, group = "removals", conflicts_with_all = ["cron", "time_zone", "missed"])]
    pub no_schedule: bool,
    /// JSON instead of text [default when piped]
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: StateArgs,
}

/// A template as flags. What is absent stays as it is, or has its default.
#[derive(Args, Default)]
pub struct TemplateFields {
    /// Scan the data sources of this name, `*` being any run of characters (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub datasource: Vec<String>,
    /// Add the rules of this file, or of the .toml files of this folder; their text becomes part of the
    /// template (may be repeated)
    #[arg(long, value_name = "PATH")]
    pub rules: Vec<PathBuf>,
    /// Use only these rules: an id, `aws-*`, category:secret, region:fr or tag:generic (may be repeated)
    #[arg(long, value_name = "SELECTOR")]
    pub only: Vec<String>,
    /// Leave these rules out, selected the same way (may be repeated)
    #[arg(long, value_name = "SELECTOR")]
    pub skip: Vec<String>,
    /// Keep findings of at least this confidence [default: medium]
    #[arg(long, value_name = "LEVEL")]
    pub level: Option<LevelArg>,
    /// Whether ignore marks and ignore files in what is scanned count (yes, no, auto) [default: what the data
    /// sources say]
    #[arg(long, value_name = "WORD")]
    pub trust_content: Option<TrustContent>,
    /// A limit of the scan: occurrence_cap, max_depth, max_entries, max_unpacked_bytes, max_inflation; or strict, so that
    /// a format that is recognised and not read makes a job incomplete
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub option: Vec<Setting>,
    /// Jobs of a higher priority are taken up first [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub priority: Option<i64>,
    /// Start a job by itself: minute, hour, day of month, month, day of week
    #[arg(long, value_name = "EXPRESSION")]
    pub cron: Option<String>,
    /// The time zone of the schedule, such as Europe/Berlin [default: UTC]
    #[arg(long, value_name = "ZONE")]
    pub time_zone: Option<String>,
    /// What becomes of times at which no orchestrator ran [default: run-once]
    #[arg(long, value_name = "POLICY")]
    pub missed: Option<MissedArg>,
}

/// A policy for missed firings on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum MissedArg {
    /// One job for all of them, as soon as an orchestrator is back
    RunOnce,
    /// None: the next time is the next job
    Skip,
}

impl From<MissedArg> for MissedFirings {
    fn from(missed: MissedArg) -> MissedFirings {
        match missed {
            MissedArg::RunOnce => MissedFirings::RunOnce,
            MissedArg::Skip => MissedFirings::Skip,
        }
    }
}
