//! `domesday findings`: what a scan in the book found.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use domesday_connectors::filesystem::{self, FilesystemConfig};
use domesday_model::Level;
use domesday_store::sqlite::SqliteStore;
use domesday_store::{Datasource, MasterJob, OccurrenceFilter, Store};

use super::report::{self, Reporting};
use super::runtime;
use crate::args::FindingsArgs;
use crate::output::{Source, Sources};
use crate::{Exit, rules, state};

/// Jobs searched for the beginning of an id.
const JOBS_SEARCHED_MAX: u32 = 100_000;

pub fn run(args: &FindingsArgs) -> Result<Exit> {
    let folder = state::folder(args.state.state.as_deref())?;
    let store = SqliteStore::open_for_reading(&folder)?;
    runtime()?.block_on(show(args, &store))
}

async fn show(args: &FindingsArgs, store: &SqliteStore) -> Result<Exit> {
    let job = find_job(store, args.job.job.as_deref()).await?;
    let datasources = store.datasources(job.id).await?;
    let reporting = Reporting {
        store,
        rules: &rules::infos(&rules::load(&[])?),
        sources: sources(&datasources),
        filter: OccurrenceFilter {
            min_score: Some(Level::from(args.level).floor()),
            rule: args.rule.clone(),
            category: args.category,
        },
        format: args.report.format,
        output: args.report.output.as_deref(),
        quiet: true,
        elapsed: elapsed(&job),
        values: None,
    };
    let findings = reporting.write(&job).await?;
    Ok(report::exit(&job, findings))
}

/// The newest scan, or the one whose id begins so.
pub async fn find_job(store: &SqliteStore, id: Option<&str>) -> Result<MasterJob> {
    let Some(prefix) = id else {
        return store
            .master_jobs(1)
            .await?
            .pop()
            .context("the book has no scans yet: run `domesday scan` first");
    };
    let mut matching = store.master_jobs(JOBS_SEARCHED_MAX).await?;
    matching.retain(|job| job.id.to_string().starts_with(prefix));
    match matching.len() {
        0 => bail!("there is no scan {prefix}: `domesday jobs` lists them"),
        1 => Ok(matching.remove(0)),
        n => bail!("{n} scans begin with {prefix}: give more of the id"),
    }
}

/// Objects of an earlier scan are shown by their full path: this may be another folder.
pub fn sources(datasources: &[Datasource]) -> Sources {
    datasources.iter().map(|source| (source.id, shown(source))).collect()
}

fn shown(source: &Datasource) -> Source {
    let root = match source.kind.as_str() {
        filesystem::KIND => FilesystemConfig::parse(&source.configuration).ok().map(|config| config.root),
        _ => None,
    };
    let root =
        root.map(|root| std::os::unix::ffi::OsStringExt::into_vec(root.into_os_string())).unwrap_or_default();
    Source { name: source.name.clone(), root }
}

fn elapsed(job: &MasterJob) -> Duration {
    let finished = job.finished_at_ms.unwrap_or(job.created_at_ms);
    Duration::from_millis((finished - job.created_at_ms).max(0).cast_unsigned())
}
