//! Bases of incremental sessions: what makes one, and how what it says of objects is put together again. Pure,
//! and the same for every backend.
//!
//! Crash argument: a base is never written to; whoever reads it asks in the same snapshot whether it still
//! stands. One that is being pruned, or whose job is tried again, is gone as a whole: objects that were to be
//! carried are then scanned like any other. So a job never has half of what its base knew.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domesday_model::{
    DatasourceSpec, FindingDraft, FindingId, JobConfiguration, Location, ObjectKey, ObjectReport,
    ObjectStatus, ScanOptions, Span, TableObservation, VersionMarks,
};

use crate::error::StoreError;
use crate::types::{PriorOutcome, ResultBatch};
use crate::values::staged::{StagedObject, marks_of};
use crate::values::{location, object_status, reason, to_json};

type Result<T> = std::result::Result<T, StoreError>;

/// Kinds of [`scan_key`]s that were ever made, told apart.
const SCAN_KEY_CONTEXT: &str = "domesday scan key 1";

/// Everything that decides what is found in an object, beside its bytes: objects of two sessions are comparable
/// only if they have the same.
pub(crate) fn scan_key(job: &JobConfiguration, source: &DatasourceSpec) -> Result<[u8; 16]> {
    let options = to_json(&ScanOptions { strict: false, ..job.options.clone() })?;
    let configuration = to_json(&source.configuration)?;
    let mut hasher = blake3::Hasher::new();
    for part in [
        SCAN_KEY_CONTEXT.as_bytes(),
        job.rule_set.as_bytes(),
        &job.engine_version.to_be_bytes(),
        options.as_bytes(),
        job.fingerprint_key.as_bytes(),
        source.kind.as_bytes(),
        configuration.as_bytes(),
    ] {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    let mut key = [0; 16];
    key.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    Ok(key)
}

/// What a base's rows about an object come to: whether there are any, and whether one of them says that something
/// was not read to its end.
pub(crate) fn outcome(has_rows: bool, is_incomplete: bool) -> PriorOutcome {
    match (has_rows, is_incomplete) {
        (false, _) => PriorOutcome::Clean,
        (true, false) => PriorOutcome::HasResults,
        (true, true) => PriorOutcome::Unusable,
    }
}

/// What a base found, as one of its rows says it.
pub(crate) struct PriorFinding {
    pub task: i64,
    pub id: FindingId,
    pub draft: FindingDraft,
    pub version: Option<String>,
}

/// What tells one occurrence of a finding from another: its span, how it was decoded, and its row.
type Place = (FindingId, Span, String, Option<Box<str>>);

/// The results of objects, put together from the base's rows.
pub(crate) struct PriorResults {
    /// Of each object the task that scanned it. A source may list an object twice, and then two did: what one of
    /// them says is all there is to say.
    task_of: HashMap<ObjectKey, i64>,
    batches: HashMap<ObjectKey, ResultBatch>,
    seen: HashSet<Place>,
    tables: HashSet<(ObjectKey, Location)>,
}

impl PriorResults {
    /// From the rows about objects, in the order of tasks and of their sequence.
    pub fn new(objects: impl IntoIterator<Item = (i64, StagedObject)>) -> Result<PriorResults> {
        let (mut task_of, mut batches): (HashMap<ObjectKey, i64>, HashMap<ObjectKey, ResultBatch>) =
            Default::default();
        let mut seen = HashSet::new();
        for (task, object) in objects {
            if *task_of.entry(object.key.clone()).or_insert(task) != task
                || !seen.insert((object.key.clone(), object.nested.clone()))
            {
                continue;
            }
            let batch = batches.entry(object.key.clone()).or_default();
            let report = report(object)?;
            // One that only says that there are findings or observations comes with them.
            if report.status != ObjectStatus::Scanned || report.overflow > 0 {
                batch.objects.push(report);
            }
        }
        Ok(PriorResults { task_of, batches, seen: HashSet::new(), tables: HashSet::new() })
    }

    /// The tasks whose findings and observations are to be added.
    pub fn tasks(&self) -> Vec<i64> {
        let mut tasks: Vec<i64> = self.task_of.values().copied().collect();
        tasks.sort_unstable();
        tasks.dedup();
        tasks
    }

    /// Adds a finding, if it is one of these objects', and not there already.
    pub fn add(&mut self, finding: PriorFinding) {
        let PriorFinding { task, id, draft, version } = finding;
        let key = &draft.location.key;
        if self.task_of.get(key) != Some(&task) {
            return;
        }
        let place: Place = (id, draft.span, draft.decoding.join(","), draft.row.clone());
        if !self.seen.insert(place) {
            return;
        }
        let batch = self.batches.entry(key.clone()).or_default();
        let marks: Option<VersionMarks> = version.as_deref().and_then(marks_of);
        if let Some(marks) = marks {
            batch.versions.insert(key.clone(), marks);
        }
        batch.findings.push(draft);
    }

    /// Adds what was observed of a table, if it is one of these objects or in it, and not there already.
    pub fn add_table(&mut self, task: i64, observation: TableObservation) {
        if self.task_of.get(&observation.part) != Some(&task) {
            return;
        }
        if self.tables.insert((observation.part.clone(), observation.table.clone())) {
            self.batches.entry(observation.part.clone()).or_default().tables.push(observation);
        }
    }

    /// One batch for each of the keys.
    pub fn batches(&self, keys: &[ObjectKey]) -> Vec<Option<ResultBatch>> {
        keys.iter().map(|key| Some(self.batches.get(key).cloned().unwrap_or_default())).collect()
    }
}

fn report(object: StagedObject) -> Result<ObjectReport> {
    Ok(ObjectReport {
        location: location(object.key.0, &object.nested.0)?,
        status: object_status(&object.status)?,
        reason: object.reason.as_deref().map(reason).transpose()?,
        detail: object.detail,
        overflow: object.overflow,
    })
}

/// The steps of a decoding chain, as a draft has them.
pub(crate) fn decoding(steps: Vec<String>) -> Arc<[std::borrow::Cow<'static, str>]> {
    steps.into_iter().map(Into::into).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_changes_what_is_found_changes_the_key() {
        let source = DatasourceSpec::new("a", "filesystem", "main", serde_json::json!({ "path": "/a" }));
        let job = JobConfiguration {
            datasources: vec![source.clone()],
            rule_set: "07".into(),
            options: ScanOptions::default(),
            fingerprint_key: "k".into(),
            engine_version: 1,
            incremental: true,
            configuration: None,
        };
        let key = scan_key(&job, &source).unwrap();
        let mut others = vec![
            JobConfiguration { rule_set: "08".into(), ..job.clone() },
            JobConfiguration { fingerprint_key: "l".into(), ..job.clone() },
            JobConfiguration { engine_version: 2, ..job.clone() },
        ];
        others.push(JobConfiguration {
            options: ScanOptions { max_depth: 1, ..ScanOptions::default() },
            ..job.clone()
        });
        for other in others {
            assert_ne!(scan_key(&other, &source).unwrap(), key, "{other:?}");
        }
        let elsewhere =
            DatasourceSpec { configuration: serde_json::json!({ "path": "/b" }), ..source.clone() };
        let another = DatasourceSpec { kind: "git".into(), ..source.clone() };
        for other in [elsewhere, another] {
            assert_ne!(scan_key(&job, &other).unwrap(), key, "{other:?}");
        }
        let mut same = source.clone();
        (same.name, same.node_group, same.concurrency_limit) = ("b".into(), "east".into(), Some(3));
        let options = ScanOptions { strict: true, ..ScanOptions::default() };
        let strict = JobConfiguration { options, ..job.clone() };
        assert_eq!(scan_key(&strict, &source).unwrap(), key, "whether it is complete makes no difference");
        let rescan = JobConfiguration { incremental: false, ..job };
        assert_eq!(scan_key(&rescan, &same).unwrap(), key, "who reads it, and how fast, makes no difference");
    }
}
