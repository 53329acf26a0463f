//! Arguments of `domesday session`.

use clap::{Args, Subcommand};
use domesday_model::{EnumerationSessionId, SessionStatus};

use super::StateArgs;
use super::values::{parse_session_id, parse_session_status};

#[derive(Args)]
pub struct SessionArgs {
    #[command(subcommand)]
    pub command: SessionCommand,
}

#[derive(Subcommand)]
pub enum SessionCommand {
    /// List sessions, in the order of their ids
    List(SessionListArgs),
    /// Show one session, with how far it is, its last batches, and what went wrong
    #[command(after_help = "Examples:\n  domesday session show 17\n  domesday session show 17 --follow")]
    Show {
        #[arg(value_name = "ID", value_parser = parse_session_id)]
        id: EnumerationSessionId,
        /// Tell what it comes upon, one line each, until it has ended
        #[arg(long)]
        follow: bool,
        /// JSON instead of text [default when piped]
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        state: StateArgs,
    },
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    domesday session list --active\n  \
    domesday session list --job 3f2a --status partially_completed")]
pub struct SessionListArgs {
    /// Only sessions of this job, by its id or the beginning of it
    #[arg(long, value_name = "ID")]
    pub job: Option<String>,
    /// Only sessions of this status (initialized, in_progress, completed, partially_completed, failed, stalled)
    #[arg(long, value_name = "STATUS", value_parser = parse_session_status)]
    pub status: Option<SessionStatus>,
    /// Only sessions that have not ended
    #[arg(long)]
    pub active: bool,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub max: u32,
    /// JSON instead of a table [default when piped]
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: StateArgs,
}
