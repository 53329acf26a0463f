//! The event relay: delivers domain events in order, at least once, with a stored position.

use domesday_store::{Event, OrchestratorStore, StoreError};

/// The log's position is kept under this name.
const LOG_CONSUMER: &str = "log";
/// Events read at once.
const PAGE: u32 = 1_000;

/// Delivers everything that `consumer` has not acknowledged. An event is acknowledged after it was
/// delivered: a crash in between delivers it again.
pub async fn relay_events(
    store: &dyn OrchestratorStore,
    consumer: &str,
    mut deliver: impl FnMut(&Event),
) -> Result<u64, StoreError> {
    let mut delivered = 0;
    loop {
        let page = store.events(consumer, PAGE).await?;
        let Some(last) = page.last() else { return Ok(delivered) };
        page.iter().for_each(&mut deliver);
        delivered += page.len() as u64;
        store.acknowledge(consumer, last.id).await?;
    }
}

/// Writes what happened to the log, at the level of a debugging aid.
pub(crate) async fn log_events(store: &dyn OrchestratorStore) -> Result<u64, StoreError> {
    relay_events(store, LOG_CONSUMER, |event| {
        tracing::debug!(job_id = %event.job, kind = event.kind, payload = %event.payload, "event");
    })
    .await
}
