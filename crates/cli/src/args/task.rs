//! Arguments of `domesday task`.

use clap::{Args, Subcommand};
use domesday_model::{TaskId, TaskStatus, TaskType};

use super::StateArgs;
use super::values::{parse_task_id, parse_task_status, parse_task_type, task_types};

#[derive(Args)]
pub struct TaskArgs {
    #[command(subcommand)]
    pub command: TaskCommand,
}

#[derive(Subcommand)]
pub enum TaskCommand {
    /// List tasks, in the order of their ids
    List(TaskListArgs),
    /// Show one task, with what it covers and what went wrong
    #[command(after_help = "Example:\n  domesday task show 4711")]
    Show {
        #[arg(value_name = "ID", value_parser = parse_task_id)]
        id: TaskId,
        /// JSON instead of text [default when piped]
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Try again what tasks failed at; a job that had ended is queued again
    Retry(RetryArgs),
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    domesday task list --job 3f2a --status failed\n  \
    domesday task list --type classification --status running")]
pub struct TaskListArgs {
    /// Only tasks of this job, by its id or the beginning of it
    #[arg(long, value_name = "ID")]
    pub job: Option<String>,
    /// Only tasks of this status (pending, running, completed, failed, cancelled)
    #[arg(long, value_name = "STATUS", value_parser = parse_task_status)]
    pub status: Option<TaskStatus>,
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_task_type)]
    #[arg(help = format!("Only tasks of this type ({})", task_types()))]
    pub task_type: Option<TaskType>,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub max: u32,
    /// JSON instead of a table [default when piped]
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    domesday task retry 4711 4712\n  \
    domesday task retry --all --job 3f2a     the same as `domesday job retry 3f2a`\n  \
    domesday task retry 4711 --any-reason    also what was denied: the permission is there now\n\n\
    A failed task is tried again whole. Of a completed one, once its job has ended, the containers\n\
    and objects that the source did not give are tried again, and nothing else.")]
pub struct RetryArgs {
    /// The tasks
    #[arg(value_name = "ID", value_parser = parse_task_id, required_unless_present = "all", conflicts_with = "all")]
    pub ids: Vec<TaskId>,
    /// All tasks of a job
    #[arg(long, requires = "job")]
    pub all: bool,
    /// The job, by its id or the beginning of it
    #[arg(long, value_name = "ID", requires = "all")]
    pub job: Option<String>,
    /// Also containers and objects that failed for a reason that waiting does not mend, such as a missing permission
    #[arg(long)]
    pub any_reason: bool,
    /// JSON instead of text [default when piped]
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: StateArgs,
}
