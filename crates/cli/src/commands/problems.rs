//! `domesday problems`: what a scan could not read, or not whole, by name.

use anyhow::Result;
use domesday_store::Store;
use domesday_store::sqlite::SqliteStore;

use super::findings::{find_job, sources};
use super::{list_format, runtime, stdout_style};
use crate::args::ProblemsArgs;
use crate::{Exit, output, state};

pub fn run(args: &ProblemsArgs) -> Result<Exit> {
    let folder = state::folder(args.state.state.as_deref())?;
    let store = SqliteStore::open_for_reading(&folder)?;
    runtime()?.block_on(show(args, &store))
}

async fn show(args: &ProblemsArgs, store: &SqliteStore) -> Result<Exit> {
    let job = find_job(store, args.job.job.as_deref()).await?;
    let sources = sources(&store.datasources(job.id).await?);
    let problems = store.problems(job.id, args.max).await?;
    let format = list_format(args.json);
    output::write_problems(&mut std::io::stdout().lock(), &problems, &sources, format, stdout_style())?;
    Ok(if problems.is_empty() { Exit::Clean } else { Exit::Incomplete })
}
