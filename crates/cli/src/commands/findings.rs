//! `domesday findings`: what a scan in the book found.

use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use domesday_connectors::filesystem::{self, FilesystemConfig};
use domesday_connectors::git::{self, GitConfig};
use domesday_model::Level;
use domesday_store::{Datasource, MasterJob, OccurrenceFilter};

use super::report::{self, Reporting};
use super::runtime;
use super::which::find_job;
use crate::args::FindingsArgs;
use crate::baseline::{Baseline, SourceRef};
use crate::book::{self, Access};
use crate::output::{Source, Sources};
use crate::{Exit, rules, target};

pub fn run(args: &FindingsArgs) -> Result<Exit> {
    runtime()?.block_on(show(args))
}

async fn show(args: &FindingsArgs) -> Result<Exit> {
    let store = book::open(&args.state, Access::Read).await?;
    let job = find_job(store.as_ref(), args.job.job.as_deref()).await?;
    let datasources = store.datasources(job.id).await?;
    let set = Arc::new(rules::of_job(store.as_ref(), job.id).await?);
    let rules = rules::infos(&set);
    let key = store.job_fingerprint_key(job.id).await?.unwrap_or_default();
    let known = |path: &PathBuf| Baseline::load(path, &key, datasources.iter().map(SourceRef::from), &rules);
    let baseline = args.baseline.as_ref().map(known).transpose()?;
    let only = args.report.only(&rules)?;
    let reporting = Reporting {
        store: store.as_ref(),
        rules: &rules,
        allows: &set,
        sources: sources(&datasources),
        filter: OccurrenceFilter {
            min_score: Some(Level::from(args.level).floor()),
            rule: args.rule.clone(),
            category: args.category,
        },
        only: &only,
        explain: args.report.explain,
        baseline: baseline.as_ref(),
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
    let text = |field: &str| source.configuration.get(field)?.as_str().map(|text| text.as_bytes().to_vec());
    let root = match source.kind.as_str() {
        filesystem::KIND => FilesystemConfig::parse(&source.configuration)
            .ok()
            .map(|config| config.root.into_os_string().into_vec()),
        git::KIND => match GitConfig::parse(&source.configuration) {
            Ok(GitConfig { path: Some(path), .. }) => Some(path.into_os_string().into_vec()),
            _ => text("url"),
        },
        "s3" | "gcs" | "azure" => text("bucket"),
        _ => None,
    };
    Source { name: source.name.clone(), root: root.unwrap_or_default(), hidden: target::hidden(&source.kind) }
}

fn elapsed(job: &MasterJob) -> Duration {
    let finished = job.finished_at_ms.unwrap_or(job.created_at_ms);
    Duration::from_millis((finished - job.created_at_ms).max(0).cast_unsigned())
}
