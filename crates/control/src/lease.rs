//! A process's own view of its lease. The book decides; this only makes sure that the process stops
//! before the book's lease can have expired, on a clock that counts suspension.

use std::sync::Arc;
use std::time::Duration;

use domesday_model::ProcessId;
use domesday_store::{Role, Store};
use rustix::time::{ClockId, clock_gettime};

use crate::ControlError;
use crate::stop::Stop;

/// Renewals per lease time: two may fail before the lease does.
const RENEWALS_PER_LEASE: u32 = 3;

pub(crate) fn renewal_interval(lease: Duration) -> Duration {
    lease / RENEWALS_PER_LEASE
}

/// Time since boot, suspension included.
fn boot_time() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.try_into().unwrap_or(0), now.tv_nsec.try_into().unwrap_or(0))
}

/// Renews a process's lease until it is asked to stop. `LeaseLost` when that came too late.
pub(crate) async fn keep(
    store: &Arc<dyn Store>,
    role: Role,
    id: ProcessId,
    lease: Duration,
    mut stop: Stop,
) -> Result<(), ControlError> {
    // Counted from before the call: the book's lease cannot have begun earlier than this.
    let mut held_since = boot_time();
    loop {
        tokio::select! {
            () = stop.asked() => return Ok(()),
            () = tokio::time::sleep(renewal_interval(lease)) => {}
        }
        let asked_at = boot_time();
        if asked_at.saturating_sub(held_since) >= lease {
            return Err(ControlError::LeaseLost);
        }
        match store.renew(role, id, lease).await {
            Ok(true) => held_since = asked_at,
            Ok(false) => return Err(ControlError::LeaseLost),
            Err(error) if error.is_retryable() => tracing::warn!(%error, "lease not renewed; trying again"),
            Err(error) => return Err(error.into()),
        }
    }
}
