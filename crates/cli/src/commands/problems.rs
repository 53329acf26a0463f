//! `domesday problems`: what a scan could not read, or not whole, by name.

use anyhow::Result;
use domesday_model::JobStatus;

use super::findings::sources;
use super::which::find_job;
use super::{list_format, runtime, stdout_style};
use crate::args::ProblemsArgs;
use crate::book;
use crate::{Exit, output};

pub fn run(args: &ProblemsArgs) -> Result<Exit> {
    runtime()?.block_on(show(args))
}

async fn show(args: &ProblemsArgs) -> Result<Exit> {
    let store = book::read(&args.state).await?;
    let job = find_job(store.as_ref(), args.job.job.as_deref()).await?;
    let sources = sources(&store.datasources(job.id).await?);
    let problems = store.problems(job.id, args.max).await?;
    let format = list_format(args.json);
    output::write_problems(&mut std::io::stdout().lock(), &problems, &sources, format, stdout_style())?;
    // Of a job that completed they are formats that are not read, and what is elsewhere.
    let is_complete = problems.is_empty() || job.status == JobStatus::Completed;
    Ok(if is_complete { Exit::Clean } else { Exit::Incomplete })
}
