//! `domesday findings`: what a scan in the book found.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use domesday_connector::NamedBy;
use domesday_model::Level;
use domesday_store::{Datasource, MasterJob, OccurrenceFilter};

use super::report::{self, Reporting};
use super::runtime;
use super::which::find_job;
use crate::args::FindingsArgs;
use crate::baseline::{Baseline, SourceRef};
use crate::book;
use crate::output::Sources;
use crate::reach::Reach;
use crate::{Exit, connectors, rules};

pub fn run(args: &FindingsArgs) -> Result<Exit> {
    runtime()?.block_on(show(args))
}

async fn show(args: &FindingsArgs) -> Result<Exit> {
    let store = book::read(&args.state).await?;
    let job = find_job(store.as_ref(), args.job.job.as_deref()).await?;
    let datasources = store.datasources(job.id).await?;
    let set = Arc::new(rules::of_job(store.as_ref(), job.id).await?);
    let rules = rules::infos(&set);
    let key = store.job_fingerprint_key(job.id).await?.unwrap_or_default();
    let refs = || datasources.iter().map(SourceRef::from);
    let known = |path: &PathBuf| Baseline::load(path, &Reach::Anywhere, &key, refs(), &rules);
    let baseline = args.baseline.as_ref().map(known).transpose()?;
    let only = args.report.only(&rules)?;
    let configuration = store.job_configuration_used(job.id).await?;
    let reporting = Reporting {
        store: store.as_ref(),
        rules: &rules,
        allows: &set,
        sources: sources(&datasources),
        filter: OccurrenceFilter {
            min_score: Some(Level::from(args.level).floor()),
            rule: args.rule.clone(),
            category: args.category,
            ..OccurrenceFilter::default()
        },
        only: &only,
        explain: args.report.explain,
        baseline: baseline.as_ref(),
        show_suppressed: args.report.show_suppressed,
        configuration: configuration.as_ref(),
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
    let shown = |source: &Datasource| {
        connectors::display(&source.name, &source.kind, &source.configuration, NamedBy::Configuration)
    };
    datasources.iter().map(|source| (source.id, shown(source))).collect()
}

fn elapsed(job: &MasterJob) -> Duration {
    let finished = job.finished_at_ms.unwrap_or(job.created_at_ms);
    Duration::from_millis((finished - job.created_at_ms).max(0).cast_unsigned())
}
