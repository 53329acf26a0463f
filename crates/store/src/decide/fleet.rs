//! What is shown of the fleet: groups, processes that have ended, who owns a job.

use std::collections::BTreeMap;
use std::time::Duration;

use domesday_model::JobStatus;

use crate::types::*;

/// How long a process is shown that has ended.
pub(crate) const SHOWN_AFTER_END: Duration = Duration::from_secs(3_600);

/// The groups of a fleet: those with open jobs, and those that only have processes.
pub(crate) fn fleet_groups(busy: Vec<GroupState>, processes: [&[ProcessState]; 2]) -> Vec<GroupState> {
    let mut groups = BTreeMap::new();
    for process in processes.into_iter().flatten() {
        let node_group = process.node_group.clone();
        groups.insert(node_group.clone(), GroupState { node_group, ..GroupState::default() });
    }
    for mut group in busy {
        // What waits for its next attempt has not waited yet.
        group.oldest_pending_ms = group.oldest_pending_ms.map(|waited| waited.max(0));
        groups.insert(group.node_group.clone(), group);
    }
    groups.into_values().collect()
}

/// Who owns a child job, if anyone does.
pub(crate) fn owner<T>(status: JobStatus, owner: Option<T>, lease_ms: i64) -> Option<(T, i64)> {
    let owned = matches!(status, JobStatus::Running | JobStatus::Pausing | JobStatus::Cancelling);
    owner.filter(|_| owned).map(|owner| (owner, lease_ms))
}
