//! Arguments of `domesday target`.

use std::convert::Infallible;

use clap::{Args, Subcommand};
use domesday_model::{ScanTargetId, TargetType};

use super::StateArgs;
use super::values::parse_target_type;

#[derive(Args)]
pub struct TargetArgs {
    #[command(subcommand)]
    pub command: TargetCommand,
}

#[derive(Subcommand)]
pub enum TargetCommand {
    /// List targets, in the order of their ids
    List(TargetListArgs),
    /// Show one target
    #[command(after_help = "Examples:\n  \
        domesday target show https://github.com/acme/shop\n  \
        domesday target show 0f343b0931126a20f133d67c2b018a3b")]
    Show {
        /// Its id or its address
        #[arg(value_name = "ID|URL", value_parser = parse_which)]
        which: WhichTarget,
        /// JSON instead of text [default when piped]
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        state: StateArgs,
    },
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    domesday target list --type github_repository\n  \
    domesday target list --job 3f2a")]
pub struct TargetListArgs {
    /// Only targets of this type (datasource, github_repository, url)
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_target_type)]
    pub target_type: Option<TargetType>,
    /// Only targets that this job came upon, by its id or the beginning of it
    #[arg(long, value_name = "ID")]
    pub job: Option<String>,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub max: u32,
    /// JSON instead of a table [default when piped]
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: StateArgs,
}

/// How a target is named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WhichTarget {
    Id(ScanTargetId),
    Url(String),
}

/// What is no id is an address.
fn parse_which(text: &str) -> Result<WhichTarget, Infallible> {
    Ok(text.parse().map_or_else(|_| WhichTarget::Url(text.to_owned()), WhichTarget::Id))
}
