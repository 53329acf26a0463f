//! `domesday baseline create`: what a scan found becomes what is known.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use domesday_model::{JobStatus, Level};
use domesday_store::OccurrenceFilter;

use super::report::{Output, Readers, allowed_by};
use super::which::find_job;
use super::{list_format, runtime};
use crate::args::{BaselineArgs, BaselineCommand, BaselineCreate};
use crate::baseline::{self, ENTRIES_MAX, Entry, Names, SourceRef};
use crate::book;
use crate::reach::Reach;
use crate::{Exit, output, rules, say};

pub fn run(args: &BaselineArgs) -> Result<Exit> {
    match &args.command {
        BaselineCommand::Create(args) => runtime()?.block_on(create(args)),
    }
}

async fn create(args: &BaselineCreate) -> Result<Exit> {
    let store = book::read(&args.state).await?;
    let job = find_job(store.as_ref(), args.job.job.as_deref()).await?;
    if job.status != JobStatus::Completed {
        say(format_args!("warning: the scan is not complete: what it did not read is not in the baseline"));
    }
    let key = store.job_fingerprint_key(job.id).await?.context("the scan has no fingerprint key")?;
    let datasources = store.datasources(job.id).await?;
    let rules = rules::of_job(store.as_ref(), job.id).await?;
    let names = Names::new(&args.output, datasources.iter().map(SourceRef::from))?;
    let mut entries: BTreeSet<Entry> = BTreeSet::new();
    for path in &args.merge {
        baseline::read(path, &Reach::Anywhere, &key, |entry| {
            entries.insert(entry);
        })?;
    }
    let merged = entries.len();
    let filter =
        OccurrenceFilter { min_score: Some(Level::from(args.level).floor()), ..OccurrenceFilter::default() };
    let mut occurrences = store.occurrences(job.id, filter).await?;
    while let Some(found) = occurrences.recv().await {
        let found = found?;
        if allowed_by(&rules, &found).is_some() {
            continue;
        }
        let Some(source) = datasources.iter().find(|source| source.id == found.datasource) else { continue };
        entries.extend(names.entry(&source.name, &found));
        if entries.len() > ENTRIES_MAX {
            bail!(
                "a baseline has at most {ENTRIES_MAX} entries: scan with fewer rules (--skip), or a higher --level"
            );
        }
    }
    let mut out = Output::open(Some(&args.output), Readers::Umask)?;
    baseline::write(&mut out.writer, &key, &entries)?;
    out.finish()?;
    let path = args.output.display().to_string();
    let json = serde_json::json!({
        "baseline": path, "entries": entries.len(), "merged": merged, "job": job.id.to_string(), "fingerprint_key": key,
    });
    let line = format!("{path}: {} known", output::counted(entries.len() as u64, "finding"));
    output::write_answer(&mut std::io::stdout().lock(), &json, &[line], list_format(args.json))?;
    Ok(Exit::Clean)
}
