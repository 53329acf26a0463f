//! Arguments of `domesday job` and `domesday jobs`.

use clap::{Args, Subcommand};
use domesday_model::MasterJobId;

use super::StateArgs;
use super::values::parse_job_id;

#[derive(Args)]
pub struct JobArgs {
    #[command(subcommand)]
    pub command: JobCommand,
}

#[derive(Subcommand)]
pub enum JobCommand {
    /// Start a job from a template, and print its id
    Start(StartArgs),
    /// List the jobs in the book
    #[command(
        after_help = "Example:\n  domesday job list --json | jq -r '.[] | select(.status == \"FAILED\").id'"
    )]
    List(JobsArgs),
    /// Show a job: its share in each node group, how far each is, what is wrong
    #[command(after_help = "Example:\n  domesday job show 3f2a")]
    Show {
        /// The job, by its id or the beginning of it [default: the newest]
        #[arg(value_name = "ID")]
        id: Option<String>,
        /// JSON instead of text [default when piped]
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Follow a job until it ends; Ctrl-C stops watching, not the job
    #[command(after_help = "Examples:\n  domesday job watch\n  domesday job watch 3f2a | jq .status\n\n\
        Piped, it writes one JSON object per line for each change.\n\
        Exit codes: 0 complete and clean, 1 complete with findings, 3 ended incomplete, failed or cancelled,\n\
        or no longer watched.")]
    Watch {
        /// The job, by its id or the beginning of it [default: the newest]
        #[arg(value_name = "ID")]
        id: Option<String>,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Stop a job for now; what is done stays done
    #[command(after_help = "Example:\n  domesday job pause 3f2a --wait")]
    Pause(Appended),
    /// Go on with a paused job
    #[command(after_help = "Example:\n  domesday job resume 3f2a")]
    Resume(Appended),
    /// Try again what an ended job could not list or read; nothing else is read again
    Retry(JobRetryArgs),
    /// End a job for good; what was found so far stays
    #[command(after_help = "Example:\n  domesday job cancel 3f2a --wait")]
    Cancel(Appended),
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    domesday job start nightly --watch\n  \
    domesday job start nightly --id \"$(uuidgen)\"      the same id again is the same job, not another\n\n\
    With --watch the exit codes are those of `job watch`.")]
pub struct StartArgs {
    /// The template to start
    pub template: String,
    /// The job's id, so that repeating the command starts nothing twice [default: a new one]
    #[arg(long, value_name = "ID", value_parser = parse_job_id)]
    pub id: Option<MasterJobId>,
    /// Jobs of a higher priority are taken up first [default: the template's]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub priority: Option<i64>,
    /// Read everything again, also what has not changed since the last scan
    #[arg(long)]
    pub rescan: bool,
    /// Follow the job until it ends
    #[arg(long)]
    pub watch: bool,
    /// JSON instead of text [default when piped]
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    domesday job retry 3f2a                 the server is back\n  \
    domesday job retry 3f2a --any-reason    the permission is there now\n\n\
    Failed tasks, containers that could not be listed and objects that could not be read whole\n\
    are tried again, and what comes of it takes the place of the failure. The job is queued again:\n\
    a fleet goes on with it; one of `domesday scan` goes on when the same command is run again.\n\
    Exit codes: 0 something is tried again, 3 there is nothing to try again.")]
pub struct JobRetryArgs {
    /// The job, by its id or the beginning of it
    #[arg(value_name = "ID")]
    pub id: String,
    /// Also what failed for a reason that waiting does not mend, such as a missing permission
    #[arg(long)]
    pub any_reason: bool,
    /// JSON instead of text [default when piped]
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Args)]
pub struct JobsArgs {
    /// How many, newest first
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub max: u32,
    /// JSON instead of a table [default when piped]
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: StateArgs,
}

/// A command to a job that exists.
#[derive(Args)]
pub struct Appended {
    /// The job, by its id or the beginning of it
    #[arg(value_name = "ID")]
    pub id: String,
    /// Wait until it has happened
    #[arg(long)]
    pub wait: bool,
    /// JSON instead of text [default when piped]
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: StateArgs,
}
