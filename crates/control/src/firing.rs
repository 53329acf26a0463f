//! Schedules: starts the jobs of templates whose time has come.
//!
//! Every orchestrator looks; the book lets one of them fire. The id of a firing's job is made from the
//! template and the time, so that a repeated firing is the same job.
//!
//! Firings that nobody was there for: all but the latest are skipped. The latest is started, however late
//! ([`MissedFirings::RunOnce`]), or only within [`GRACE`] ([`MissedFirings::Skip`]). A template that no job can be
//! made of is skipped, too, and said so: it is due again at its next time, not in a loop.

use std::time::Duration;

use domesday_model::{MasterJobId, MissedFirings, Schedule};
use domesday_store::{Firing, OrchestratorStore, StoreError, StoredTemplate};

use crate::compose::{ComposeError, compose};
use crate::metrics::Metrics;
use crate::schedule::{ScheduleError, last_firing, next_firing};

/// A firing that is started later than this was missed.
const GRACE: Duration = Duration::from_secs(60);

/// Fires what is due; how long until the next is.
pub(crate) async fn fire_due(
    store: &dyn OrchestratorStore,
    metrics: &Metrics,
) -> Result<Option<Duration>, StoreError> {
    let due = store.due_templates().await?;
    for stored in &due.templates {
        if let (Some(schedule), Some(firing_ms)) = (&stored.template.schedule, stored.next_firing_ms) {
            fire(store, metrics, stored, schedule, firing_ms, due.now_ms).await?;
        }
    }
    let until = |next_ms: i64| Duration::from_millis(u64::try_from(next_ms - due.now_ms).unwrap_or(0));
    Ok(due.next_ms.map(until))
}

async fn fire(
    store: &dyn OrchestratorStore,
    metrics: &Metrics,
    stored: &StoredTemplate,
    schedule: &Schedule,
    mut firing_ms: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    let name = &stored.template.name;
    let latest = match last_firing(schedule, firing_ms, now_ms) {
        Ok(latest) => latest.unwrap_or(firing_ms),
        Err(error) => return give_up(store, metrics, name, firing_ms, &error).await,
    };
    if latest > firing_ms {
        let missed = Firing { template: name.clone(), firing_ms, next_ms: Some(latest), job: None };
        tracing::warn!(template = name, firing_ms, latest, "firings were missed");
        if !store.fire(missed).await? {
            return Ok(());
        }
        metrics.firings_skipped.add(1);
        firing_ms = latest;
    }
    let next_ms = match next_firing(schedule, now_ms.max(firing_ms)) {
        Ok(next) => next,
        Err(error) => return give_up(store, metrics, name, firing_ms, &error).await,
    };
    let is_late = now_ms.saturating_sub(firing_ms) > i64::try_from(GRACE.as_millis()).unwrap_or(i64::MAX);
    let job = if is_late && schedule.missed == MissedFirings::Skip {
        tracing::warn!(template = name, firing_ms, "firing missed; skipped as its schedule says");
        None
    } else {
        match compose(store, &stored.template, job_id(name, firing_ms)).await {
            Ok(job) => Some(job),
            // The book's trouble, not the template's: it is still due when the book is back.
            Err(ComposeError::Store(error)) => return Err(error),
            Err(error) => {
                tracing::error!(template = name, firing_ms, %error, "firing skipped: no job can be made");
                None
            }
        }
    };
    let started = job.as_ref().map(|job| job.id);
    if store.fire(Firing { template: name.clone(), firing_ms, next_ms, job }).await? {
        match started {
            Some(master) => {
                metrics.firings_started.add(1);
                tracing::info!(template = name, firing_ms, %master, "schedule fired");
            }
            None => metrics.firings_skipped.add(1),
        }
    }
    Ok(())
}

/// A schedule that cannot be read is never due again.
async fn give_up(
    store: &dyn OrchestratorStore,
    metrics: &Metrics,
    template: &str,
    firing_ms: i64,
    error: &ScheduleError,
) -> Result<(), StoreError> {
    tracing::error!(template, %error, "the schedule cannot be read; it is stopped until the template is changed");
    if store.fire(Firing { template: template.to_owned(), firing_ms, next_ms: None, job: None }).await? {
        metrics.firings_skipped.add(1);
    }
    Ok(())
}

/// The same firing is the same job, whoever starts it and however often.
fn job_id(template: &str, firing_ms: i64) -> MasterJobId {
    let mut hasher = blake3::Hasher::new_derive_key("domesday schedule firing 1");
    hasher.update(template.as_bytes()).update(&firing_ms.to_be_bytes());
    let mut id = [0; 16];
    id.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    MasterJobId(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_firing_has_one_id_and_no_other_has_it() {
        assert_eq!(job_id("a", 1), job_id("a", 1));
        assert_ne!(job_id("a", 1), job_id("a", 2));
        assert_ne!(job_id("a", 1), job_id("b", 1));
    }
}
