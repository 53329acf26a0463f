//! `domesday findings`: what a scan in the book found.

use std::time::Duration;

use anyhow::Result;
use domesday_connectors::filesystem::{self, FilesystemConfig};
use domesday_model::Level;
use domesday_store::{Datasource, MasterJob, OccurrenceFilter};

use super::report::{self, Reporting};
use super::runtime;
use super::which::find_job;
use crate::args::FindingsArgs;
use crate::book::{self, Access};
use crate::output::{Source, Sources};
use crate::{Exit, rules};

pub fn run(args: &FindingsArgs) -> Result<Exit> {
    runtime()?.block_on(show(args))
}

async fn show(args: &FindingsArgs) -> Result<Exit> {
    let store = book::open(&args.state, Access::Read).await?;
    let job = find_job(store.as_ref(), args.job.job.as_deref()).await?;
    let datasources = store.datasources(job.id).await?;
    let reporting = Reporting {
        store: store.as_ref(),
        rules: &rules::of_job(store.as_ref(), job.id).await?,
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
