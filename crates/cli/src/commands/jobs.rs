//! `domesday jobs`: the scans in the book.

use anyhow::Result;
use domesday_store::Store;
use domesday_store::sqlite::SqliteStore;

use super::{list_format, runtime, stdout_style};
use crate::args::JobsArgs;
use crate::{Exit, output, state};

pub fn run(args: &JobsArgs) -> Result<Exit> {
    let folder = state::folder(args.state.state.as_deref())?;
    let store = SqliteStore::open_for_reading(&folder)?;
    let jobs = runtime()?.block_on(store.master_jobs(args.max))?;
    output::write_jobs(&mut std::io::stdout().lock(), &jobs, list_format(args.json), stdout_style())?;
    Ok(Exit::Clean)
}
