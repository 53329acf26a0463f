//! `domesday job start`: from a template to a master job, under an id that makes repeating it harmless.

use anyhow::{Context, Result};
use domesday_control::compose::compose;
use domesday_model::{JobConfiguration, MasterJobId};
use domesday_store::{ComposerStore, Fleet, MasterJob, ProcessState, ReportStore};
use serde::Serialize;

use super::super::list_format;
use super::watch;
use crate::args::StartArgs;
use crate::book;
use crate::state::random_bytes;
use crate::{Exit, output, say};

#[derive(Serialize)]
struct StartedJson<'a> {
    id: String,
    /// False when a job of this id was there already.
    new: bool,
    template: &'a str,
    status: &'static str,
    node_groups: Vec<String>,
    warnings: &'a [String],
}

pub async fn run(args: &StartArgs) -> Result<Exit> {
    let store = book::compose(&args.state).await?;
    let id = args.id.unwrap_or_else(|| MasterJobId(random_bytes()));
    let before = store.master_job(id).await?;
    let mut warnings = Vec::new();
    if before.is_none() {
        let configuration = submit(store.as_ref(), args, id).await?;
        warnings = absences(&configuration, &store.fleet().await?);
    }
    let job = store.master_job(id).await?.context("the job is in the book once it was submitted")?;
    tell(args, store.as_ref(), &job, before.is_none(), &warnings).await?;
    if args.watch { watch::follow(store, id).await } else { Ok(Exit::Clean) }
}

async fn submit(store: &dyn ComposerStore, args: &StartArgs, id: MasterJobId) -> Result<JobConfiguration> {
    let stored = store.template(&args.template).await?.with_context(|| {
        format!("there is no template `{}`: `domesday template list` shows them", args.template)
    })?;
    let mut job = compose(store, &stored.template, id).await?;
    job.priority = args.priority.unwrap_or(job.priority);
    job.configuration.incremental &= !args.rescan;
    let configuration = job.configuration.clone();
    store.submit(job).await?;
    Ok(configuration)
}

async fn tell(
    args: &StartArgs,
    store: &dyn ReportStore,
    job: &MasterJob,
    new: bool,
    warnings: &[String],
) -> Result<()> {
    for warning in warnings {
        say(format_args!("warning: {warning}"));
    }
    let children = store.child_jobs(job.id).await?;
    let node_groups: Vec<String> = children.into_iter().map(|child| child.node_group).collect();
    let lines = [if new {
        format!("{} queued for {}", job.id, node_groups.join(", "))
    } else {
        format!("{} is there already ({})", job.id, job.status)
    }];
    let json = StartedJson {
        id: job.id.to_string(),
        new,
        template: &args.template,
        status: job.status.as_str(),
        node_groups,
        warnings,
    };
    output::write_answer(&mut std::io::stdout().lock(), &json, &lines, list_format(args.json))?;
    Ok(())
}

/// Who is missing for the job to run, group by group.
fn absences(configuration: &JobConfiguration, fleet: &Fleet) -> Vec<String> {
    let live = |processes: &[ProcessState], group: &str| -> Vec<ProcessState> {
        processes.iter().filter(|p| p.lease_ms > 0 && p.node_group == group).cloned().collect()
    };
    let mut groups: Vec<&str> = configuration.datasources.iter().map(|s| s.node_group.as_str()).collect();
    groups.sort_unstable();
    groups.dedup();
    let mut missing = Vec::new();
    for group in groups {
        if live(&fleet.orchestrators, group).is_empty() {
            missing.push(format!(
                "no orchestrator runs for node group {group}: start `domesday orchestrator --node-group {group}`"
            ));
        }
        let workers = live(&fleet.workers, group);
        let key = Some(configuration.fingerprint_key.as_str());
        if workers.is_empty() {
            missing.push(format!(
                "no worker runs for node group {group}: start `domesday worker --node-group {group}`"
            ));
        } else if !workers.iter().any(|worker| worker.profile.fingerprint_key.as_deref() == key) {
            missing.push(format!("no worker of node group {group} has the book's fingerprint key"));
        }
        let sources = configuration.datasources.iter().filter(|source| source.node_group == group);
        for source in sources.filter(|_| !workers.is_empty()) {
            let Some(label) = &source.worker_label else { continue };
            if !workers.iter().any(|worker| worker.profile.labels.contains(label)) {
                missing.push(format!(
                    "no worker of node group {group} has the label {label}, which data source {} asks for",
                    source.name
                ));
            }
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use domesday_model::{DatasourceSpec, ProcessId, ScanOptions};
    use domesday_store::{Load, Profile};

    use super::*;

    #[test]
    fn who_is_missing_is_named() {
        let mut labelled = DatasourceSpec::new("nas", "filesystem", "eu", serde_json::json!({}));
        labelled.worker_label = Some("host=nas1".into());
        let configuration = JobConfiguration {
            datasources: vec![labelled, DatasourceSpec::new("us", "filesystem", "us", serde_json::json!({}))],
            rule_set: String::new(),
            options: ScanOptions::default(),
            fingerprint_key: "k1".into(),
            engine_version: 0,
            incremental: false,
            configuration: None,
        };
        let process = |group: &str, key: &str, labels: &[&str], lease_ms| ProcessState {
            id: ProcessId([0; 16]),
            node_group: group.into(),
            profile: Profile {
                labels: labels.iter().map(|&label| label.to_owned()).collect(),
                fingerprint_key: Some(key.into()),
                ..Profile::default()
            },
            load: Load::default(),
            started_at_ms: 0,
            lease_ms,
            jobs: 0,
        };
        let told = absences(&configuration, &Fleet::default());
        assert_eq!(told.len(), 4, "{told:?}");
        let fleet = Fleet {
            orchestrators: vec![process("eu", "", &[], 5), process("us", "", &[], 0)],
            workers: vec![process("eu", "other", &[], 5), process("us", "k1", &[], 5)],
            ..Fleet::default()
        };
        let told = absences(&configuration, &fleet);
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].contains("eu has the book's fingerprint key"), "{told:?}");
        assert!(told[1].contains("label host=nas1"), "{told:?}");
        assert!(told[2].contains("no orchestrator runs for node group us"), "{told:?}");
    }
}
