//! `domesday job start|list|show|watch|pause|resume|retry|cancel`, and `domesday jobs`.
//!
//! The command line only writes requests and reads the book: whoever owns a job does what was asked. So
//! everything here may be interrupted at any time, and nothing of it holds a job up.

mod append;
mod start;
mod watch;

pub use watch::Pace;

use std::io::Write;

use anyhow::Result;
use domesday_model::{Command, ConfigurationUsed, Level, ObjectStatus, Reason};
use domesday_store::{ChildJobState, JobSummary, MasterJob, Retry};
use serde::Serialize;

use super::which::find_job;
use super::{list_format, retry, runtime, stdout_style};
use crate::Exit;
use crate::args::{JobArgs, JobCommand, JobRetryArgs, JobsArgs, StateArgs};
use crate::book;
use crate::output::{self, ChildJson, ControlJson, ListFormat, Suppressions};

pub fn run(args: &JobArgs) -> Result<Exit> {
    match &args.command {
        JobCommand::List(args) => list(args),
        JobCommand::Start(args) => runtime()?.block_on(start::run(args)),
        JobCommand::Show { id, json, state } => runtime()?.block_on(show(id.as_deref(), *json, state)),
        JobCommand::Watch { id, state } => runtime()?.block_on(watch::run(id.as_deref(), state)),
        JobCommand::Pause(args) => runtime()?.block_on(append::run(args, Command::Pause)),
        JobCommand::Resume(args) => runtime()?.block_on(append::run(args, Command::Resume)),
        JobCommand::Retry(args) => runtime()?.block_on(try_again(args)),
        JobCommand::Cancel(args) => runtime()?.block_on(append::run(args, Command::Cancel)),
    }
}

async fn try_again(args: &JobRetryArgs) -> Result<Exit> {
    let store = book::compose(&args.state).await?;
    let job = find_job(store.as_ref(), Some(&args.id)).await?;
    let retried = store.retry(Retry::AllOf(job.id), retry::scope(args.any_reason)).await?;
    retry::answer(retried, &[], list_format(args.json))
}

/// `domesday jobs` is the same.
pub fn list(args: &JobsArgs) -> Result<Exit> {
    runtime()?.block_on(async {
        let store = book::read(&args.state).await?;
        let jobs = store.master_jobs(args.max).await?;
        output::write_jobs(&mut std::io::stdout().lock(), &jobs, list_format(args.json), stdout_style())?;
        Ok(Exit::Clean)
    })
}

#[derive(Serialize)]
struct ShownJson<'a> {
    id: String,
    status: &'static str,
    description: &'a str,
    failure_reason: Option<&'a str>,
    created_at: String,
    finished_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<&'a ConfigurationUsed>,
    /// What controls keep out of the job's reports.
    suppressed: Vec<ControlJson<'a>>,
    jobs: Vec<ChildJson<'a>>,
    problems: &'a [ProblemsJson<'a>],
}

/// How many objects were left out, read in part or not read, for one reason; of unsupported ones, in one format.
#[derive(Serialize)]
struct ProblemsJson<'a> {
    status: &'static str,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'a str>,
    count: u64,
}

async fn show(id: Option<&str>, json: bool, state: &StateArgs) -> Result<Exit> {
    let store = book::read(state).await?;
    let job = find_job(store.as_ref(), id).await?;
    let children = store.child_jobs(job.id).await?;
    let summary = store.summary(job.id).await?;
    let shown = Shown {
        job: &job,
        children: &children,
        problems: problems(&summary),
        configuration: store.job_configuration_used(job.id).await?,
        suppressed: Suppressions::of(&summary, 0, Level::Low),
    };
    shown.write(list_format(json))?;
    Ok(Exit::Clean)
}

/// What is shown of a job.
struct Shown<'a> {
    job: &'a MasterJob,
    children: &'a [ChildJobState],
    problems: Vec<ProblemsJson<'a>>,
    configuration: Option<ConfigurationUsed>,
    suppressed: Suppressions,
}

fn problems(summary: &JobSummary) -> Vec<ProblemsJson<'_>> {
    let lists = [("failed", &summary.failed), ("partial", &summary.partial), ("skipped", &summary.skipped)];
    let counted = |status, &(reason, count): &(Reason, u64)| ProblemsJson {
        status,
        reason: reason.as_str(),
        format: None,
        count,
    };
    let unsupported = summary.unsupported.iter().map(|(format, count)| ProblemsJson {
        status: ObjectStatus::Unsupported.as_str(),
        reason: Reason::UnsupportedFormat.as_str(),
        format: Some(format),
        count: *count,
    });
    let reasons =
        lists.into_iter().flat_map(|(status, list)| list.iter().map(move |entry| counted(status, entry)));
    reasons.chain(unsupported).collect()
}

impl Shown<'_> {
    fn write(&self, format: ListFormat) -> Result<()> {
        let Shown { job, children, problems, configuration, suppressed } = self;
        let mut out = std::io::stdout().lock();
        let (created_at, finished_at) =
            (output::timestamp(job.created_at_ms), job.finished_at_ms.map(output::timestamp));
        let counts = problems.iter().map(|problem| {
            let why = problem.format.unwrap_or(problem.reason);
            format!("{} {} ({why})", output::count(problem.count), problem.status)
        });
        let fields = vec![
            ("job", job.id.to_string()),
            ("what", job.description.clone()),
            ("status", job.status.to_string()),
            ("why", job.failure_reason.clone().unwrap_or_default()),
            ("created", created_at.clone()),
            ("finished", finished_at.clone().unwrap_or_default()),
            ("config", configuration.as_ref().map(output::shown_configuration).unwrap_or_default()),
            ("suppressed", suppressed.lines().join("\n")),
            ("problems", counts.collect::<Vec<_>>().join("\n")),
        ];
        let json = ShownJson {
            id: job.id.to_string(),
            status: job.status.as_str(),
            description: &job.description,
            failure_reason: job.failure_reason.as_deref(),
            created_at,
            finished_at,
            configuration: configuration.as_ref(),
            suppressed: suppressed.json(),
            jobs: children.iter().map(ChildJson::new).collect(),
            problems,
        };
        output::write_detail(&mut out, &json, fields, format, stdout_style())?;
        if format == ListFormat::Table {
            writeln!(out)?;
            output::write_children(&mut out, children, stdout_style())?;
        }
        Ok(())
    }
}
