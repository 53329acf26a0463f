//! One packet from its claim to its end: run, and completed, given back or dropped.

use std::sync::Arc;
use std::time::Duration;

use domesday_connector::ConnectorError;
use domesday_model::Backoff;
use domesday_store::{Claim, GiveBack, StoreError, WorkPacket, WorkerStore};

use super::session::Session;
use super::window::Slots;
use crate::ControlError;
use crate::kinds::TaskHandler;
use crate::metrics::CommitCall;
use crate::stop::Stop;

/// A task that failed this often fails for good.
const FAILURES_MAX: u32 = 5;
/// The waits before a failed task is tried again.
const RETRY: Backoff = Backoff::new(Duration::from_millis(750), Duration::from_secs(24));

/// Why a packet was not finished.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PacketError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The worker or the job stops; the task goes back as it was.
    #[error("stopped")]
    Stopped,
    /// The source asks to be left alone for a while.
    #[error("{detail}")]
    Wait { after: Duration, detail: String },
    /// The source does not answer, after so many attempts that had failed before this one.
    #[error("{detail}")]
    Unavailable { detail: String, failed: u32 },
    /// May work next time.
    #[error("{0}")]
    Retry(String),
    /// Will not.
    #[error("{0}")]
    Permanent(String),
}

impl From<ConnectorError> for PacketError {
    fn from(error: ConnectorError) -> PacketError {
        match error {
            ConnectorError::Wait { after, detail } => PacketError::Wait { after, detail },
            error if error.is_retryable() => PacketError::Retry(error.to_string()),
            error => PacketError::Permanent(error.to_string()),
        }
    }
}

impl Session {
    pub(crate) async fn run_packet(
        self: Arc<Self>,
        kind: Arc<dyn TaskHandler>,
        packet: WorkPacket,
    ) -> Result<(), ControlError> {
        let halt = self.held.take(&packet.claim, packet.job);
        if kind.slots() == Slots::Source {
            // It waits for nobody's turn: from here on only what it moves itself counts.
            self.held.moved(&packet.claim).add(1);
        }
        let ended = match kind.run(&self, &packet, halt.clone()).await {
            Ok(()) => {
                self.worker.metrics.tasks_completed[packet.task_type].add(1);
                Ok(())
            }
            Err(error) => self.give_back(kind.slots(), &packet, error, &halt).await,
        };
        self.held.let_go(&packet.claim);
        ended
    }

    /// Completes a task of which nothing is left to write.
    pub(crate) async fn complete(&self, claim: &Claim, halt: &Stop) -> Result<(), PacketError> {
        let store = self.store();
        let complete = || async { done_under(store, claim, store.complete_task(claim).await).await };
        let commits = self.worker.metrics.commits(CommitCall::Tasks);
        Ok(commits.timed(self.ask(halt, complete)).await?)
    }

    /// Ends a packet that was not finished, as far as it is still this worker's to end.
    async fn give_back(
        &self,
        slots: Slots,
        packet: &WorkPacket,
        error: PacketError,
        halt: &Stop,
    ) -> Result<(), ControlError> {
        let claim = &packet.claim;
        let how = match error {
            PacketError::Store(error) if error.is_lost() => {
                self.refused(packet);
                return Ok(());
            }
            _ if self.held.is_lost() => {
                tracing::warn!(worker_id = %self.id, job_id = %packet.job, task_id = %claim.task, "packet dropped with the lease");
                return Ok(());
            }
            PacketError::Stopped => GiveBack::Returned,
            PacketError::Store(error) if error.is_retryable() && halt.is_asked() => {
                tracing::debug!(task_id = %claim.task, %error, "returned");
                GiveBack::Returned
            }
            PacketError::Wait { after, detail } => GiveBack::Wait { after, why: detail },
            PacketError::Unavailable { detail, failed } => {
                let after = self.config().retries.wait.after(failed.saturating_add(1));
                GiveBack::Unavailable { error: detail, after }
            }
            PacketError::Permanent(error) => GiveBack::Failed { error },
            // What the book refuses of one task it may take of another; if not, it refuses this, too.
            PacketError::Store(error @ (StoreError::Refused(_) | StoreError::Damaged(_))) => {
                GiveBack::Failed { error: error.to_string() }
            }
            PacketError::Store(error)
                if !error.is_retryable() && !matches!(error, StoreError::Gap { .. }) =>
            {
                return Err(error.into());
            }
            PacketError::Store(_) | PacketError::Retry(_) if packet.failures + 1 >= FAILURES_MAX => {
                GiveBack::Failed { error: error.to_string() }
            }
            PacketError::Store(_) | PacketError::Retry(_) => {
                GiveBack::Retry { error: error.to_string(), after: RETRY.after(packet.failures + 1) }
            }
        };
        self.count(slots, packet, &how);
        self.send_back(packet, how).await
    }

    /// Until it is known to be back: a claim that nobody works on would be kept alive by this process's own
    /// lease.
    async fn send_back(&self, packet: &WorkPacket, how: GiveBack) -> Result<(), ControlError> {
        let mut tries = 0;
        loop {
            let call = self.store().give_back(&packet.claim, how.clone());
            match self.held.unless_lost(call).await {
                Err(error) if error.is_lost() => {
                    // Refused, or done the first time and its answer lost.
                    if tries == 0 {
                        self.refused(packet);
                    }
                    return Ok(());
                }
                Err(error) if self.held.is_lost() => {
                    tracing::warn!(worker_id = %self.id, task_id = %packet.claim.task, %error, "not given back; the lease is lost");
                    return Ok(());
                }
                Err(error) if error.is_retryable() && tries < FAILURES_MAX => {
                    self.worker.metrics.retries.add(1);
                    tokio::time::sleep(RETRY.after(tries + 1)).await;
                    tries += 1;
                }
                given => return Ok(given?),
            }
        }
    }

    fn refused(&self, packet: &WorkPacket) {
        self.worker.metrics.writes_refused.add(1);
        tracing::warn!(
            worker_id = %self.id, job_id = %packet.job, task_id = %packet.claim.task,
            "claim lost; results refused"
        );
    }

    fn count(&self, slots: Slots, packet: &WorkPacket, how: &GiveBack) {
        let metrics = &self.worker.metrics;
        let (worker_id, job_id, task_id) = (self.id, packet.job, packet.claim.task);
        match how {
            GiveBack::Returned => {
                metrics.tasks_returned[packet.task_type].add(1);
                tracing::info!(%worker_id, %job_id, %task_id, "task returned");
            }
            GiveBack::Wait { after, why } => {
                metrics.tasks_returned[packet.task_type].add(1);
                self.worker.progress.wait(*after, why);
                metrics.source_waits(self.worker.kind_slot(packet), *after);
                tracing::warn!(%worker_id, %job_id, %task_id, why, ?after, "waiting for the source");
                self.flow(slots).tries_again(*after);
            }
            GiveBack::Unavailable { error, after } => {
                metrics.tasks_retried[packet.task_type].add(1);
                self.worker.progress.wait(*after, error);
                tracing::warn!(%worker_id, %job_id, %task_id, error, ?after, "the source does not answer; to be tried again");
                self.flow(slots).tries_again(*after);
            }
            GiveBack::Retry { error, after } => {
                metrics.tasks_retried[packet.task_type].add(1);
                tracing::warn!(%worker_id, %job_id, %task_id, error, ?after, "task failed; to be tried again");
                self.flow(slots).tries_again(*after);
            }
            GiveBack::Failed { error } => {
                metrics.tasks_failed[packet.task_type].add(1);
                tracing::error!(%worker_id, %job_id, %task_id, error, "task failed");
            }
        }
    }
}

/// What became of a task that was to be completed. When the answer is lost, or the call is a repeated one whose
/// first answer was, the done row tells whether it was this claim's.
pub(crate) async fn done_under(
    store: &dyn WorkerStore,
    claim: &Claim,
    completed: Result<(), StoreError>,
) -> Result<(), StoreError> {
    match completed {
        Err(error @ (StoreError::CommitUnknown(_) | StoreError::LostClaim(_))) => {
            let is_done = store.are_done(std::slice::from_ref(claim)).await?;
            if is_done == [true] { Ok(()) } else { Err(error) }
        }
        completed => completed,
    }
}
