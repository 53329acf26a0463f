//! `domesday job pause|resume|cancel`: a command appended to every open child job of a master job.

use std::sync::Arc;

use anyhow::Result;
use domesday_model::{Command, JobStatus};
use domesday_store::{ChildJobState, MasterJob, ReportStore};
use serde::Serialize;

use super::super::list_format;
use super::super::which::find_job;
use super::watch::{Poll, Polled};
use crate::args::Appended;
use crate::book;
use crate::{Exit, output, say};

#[derive(Serialize)]
struct AppendedJson {
    id: String,
    command: &'static str,
    /// Child jobs that were open and have it now.
    jobs: u64,
    /// Of the master job, when the command ended.
    status: &'static str,
}

pub async fn run(args: &Appended, command: Command) -> Result<Exit> {
    let store = book::compose(&args.state).await?;
    let job = find_job(store.as_ref(), Some(&args.id)).await?;
    let jobs = store.append_command(job.id, command).await?;
    let job = if args.wait && jobs > 0 { wait(store, &job, command).await? } else { Some(job) };
    let Some(job) = job else { return Ok(Exit::Incomplete) };
    let word = command.as_str().to_lowercase();
    let line = match jobs {
        0 => format!("job {} has ended ({}): there is nothing to {word}", job.id, job.status),
        _ if args.wait => format!("job {} is {} now", job.id, job.status),
        _ => format!("{} of job {} will {word}", output::counted(jobs, "child job"), job.id),
    };
    let json =
        AppendedJson { id: job.id.to_string(), command: command.as_str(), jobs, status: job.status.as_str() };
    output::write_answer(&mut std::io::stdout().lock(), &json, &[line], list_format(args.json))?;
    let is_so = if jobs > 0 && !args.wait { true } else { is_as_asked(&job, command, jobs) };
    Ok(if is_so { Exit::Clean } else { Exit::Incomplete })
}

/// Whether a job became what was asked of it. It may have ended first, or long ago.
fn is_as_asked(job: &MasterJob, command: Command, jobs: u64) -> bool {
    match command {
        Command::Cancel => job.status == JobStatus::Cancelled,
        Command::Pause => !job.status.is_final(),
        Command::Start | Command::Resume => jobs > 0,
    }
}

/// The job once the command was executed; `None` when the user does not wait any longer.
async fn wait(store: Arc<dyn ReportStore>, job: &MasterJob, command: Command) -> Result<Option<MasterJob>> {
    let mut poll = Poll::new(store, job.id)?;
    loop {
        match poll.next().await? {
            Polled::Stopped => {
                say(format_args!("stopped waiting; the command stays with the job"));
                return Ok(None);
            }
            Polled::Seen(job, children) => {
                if children.iter().all(|child| has_happened(child, command)) {
                    return Ok(Some(job));
                }
            }
        }
    }
}

fn has_happened(child: &ChildJobState, command: Command) -> bool {
    use JobStatus::{Paused, Pausing};
    if child.status.is_final() {
        return true;
    }
    match command {
        Command::Pause => child.status == Paused,
        Command::Resume => {
            !child.pending.contains(&Command::Resume) && !matches!(child.status, Paused | Pausing)
        }
        Command::Start | Command::Cancel => false,
    }
}

#[cfg(test)]
mod tests {
    use domesday_model::JobId;
    use domesday_store::JobProgress;

    use super::*;

    #[test]
    fn a_command_has_happened_when_the_job_is_as_asked() {
        use JobStatus::{Cancelled, Cancelling, Completed, Queued, Running};
        let child = |status, pending: &[Command]| ChildJobState {
            job: JobId(1),
            node_group: "eu".into(),
            status,
            pending: pending.to_vec(),
            failure_reason: None,
            owner: None,
            workers: 0,
            created_at_ms: 0,
            started_at_ms: None,
            finished_at_ms: None,
            waiting_why: None,
            progress: JobProgress::default(),
        };
        for (status, pending, command, happened) in [
            (Running, vec![Command::Pause], Command::Pause, false),
            (JobStatus::Pausing, vec![], Command::Pause, false),
            (JobStatus::Paused, vec![], Command::Pause, true),
            (Completed, vec![], Command::Pause, true),
            (JobStatus::Paused, vec![Command::Resume], Command::Resume, false),
            (Queued, vec![], Command::Resume, true),
            (Running, vec![], Command::Resume, true),
            (Cancelling, vec![], Command::Cancel, false),
            (Cancelled, vec![], Command::Cancel, true),
        ] {
            assert_eq!(has_happened(&child(status, &pending), command), happened, "{status} {command:?}");
        }
    }
}
