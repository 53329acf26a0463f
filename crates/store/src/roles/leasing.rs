//! How a process takes, renews and ends its lease. Given to the heartbeat of a worker or an orchestrator,
//! through [`super::WorkerStore`] and [`super::OrchestratorStore`].

use std::time::Duration;

use async_trait::async_trait;
use domesday_model::ProcessId;

use super::Result;
use crate::types::*;

#[async_trait]
pub trait LeaseStore: Send + Sync {
    /// Repeating it, after a lost answer, is harmless.
    async fn register(&self, process: &Process, lease: Duration) -> Result<()>;
    /// Renews a process's lease; false when it had already expired: the process must stop.
    async fn renew(&self, role: Role, id: ProcessId, lease: Duration, load: Load) -> Result<bool>;
    /// Ends a lease at once.
    async fn release(&self, role: Role, id: ProcessId) -> Result<()>;
}
