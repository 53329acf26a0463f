//! The worker: stateless, one lease per process start; claims work packets and runs them.
//!
//! Crash argument: everything a packet produces reaches the book under the packet's claim, and is seen
//! only through the verb that completes the task or commits the unit. A worker that dies, or that is
//! taken for dead, leaves nothing half visible.

mod classify;
mod enumerate;

pub(crate) use classify::{PacketSource, packet_options};
#[cfg(test)]
pub(crate) use enumerate::EXCLUSION_MAX;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domesday_connector::{Connector, Registry, Surroundings};
use domesday_model::{DatasourceId, ProcessId, TaskType};
use domesday_scheduler::ScanCore;
use domesday_store::{Claim, GiveBack, PacketDatasource, Process, Role, Store, StoreError, WorkPacket};
use tokio::task::JoinSet;

use crate::progress::Progress;
use crate::rules::RuleCache;
use crate::stop::{Stop, StopSignal};
use crate::{ControlError, lease};

/// How long to wait before looking again for tasks that become ready by time alone.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// A task that failed this often fails for good.
const FAILURES_MAX: u32 = 5;
/// The first wait before a failed task is tried again; doubled each time.
const RETRY_BASE: Duration = Duration::from_millis(500);
/// Connectors kept ready, one per data source and configuration.
const CONNECTORS_MAX: usize = 1_024;

#[derive(Clone, Debug)]
pub struct WorkerConfig {
    pub node_group: String,
    pub lease: Duration,
    /// Containers listed at once.
    pub enumerators: usize,
    /// Classification packets in the scan core at once: the next one is ready when one ends.
    pub packets: usize,
}

/// What a worker works with.
pub struct WorkerParts {
    pub registry: Registry,
    pub surroundings: Surroundings,
    pub core: Arc<ScanCore>,
    pub rules: RuleCache,
    pub progress: Arc<Progress>,
}

/// What every packet needs.
pub struct Worker {
    store: Arc<dyn Store>,
    id: ProcessId,
    config: WorkerConfig,
    registry: Registry,
    surroundings: Surroundings,
    core: Arc<ScanCore>,
    rules: RuleCache,
    progress: Arc<Progress>,
    /// By data source and configuration: jobs may read one source with different settings.
    connectors: Mutex<HashMap<(DatasourceId, String), Arc<dyn Connector>>>,
}

/// Why a packet was not finished.
#[derive(Debug, thiserror::Error)]
enum PacketError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The worker was asked to stop; the task goes back as it was.
    #[error("stopped")]
    Stopped,
    /// May work next time.
    #[error("{0}")]
    Retry(String),
    /// Will not.
    #[error("{0}")]
    Permanent(String),
}

impl Worker {
    pub fn new(store: Arc<dyn Store>, id: ProcessId, config: WorkerConfig, parts: WorkerParts) -> Worker {
        let WorkerParts { registry, surroundings, core, rules, progress } = parts;
        let connectors = Mutex::default();
        Worker { store, id, config, registry, surroundings, core, rules, progress, connectors }
    }

    /// Runs until asked to stop; then returns what it could not finish.
    pub async fn run(self, mut stop: Stop) -> Result<(), ControlError> {
        let process = Process { id: self.id, role: Role::Worker, node_group: self.config.node_group.clone() };
        self.store.register(&process, self.config.lease).await?;
        let worker = Arc::new(self);
        let store = Arc::clone(&worker.store);
        // One signal for the loops, and one for the heartbeat: the lease goes on until the last packet
        // has been given back.
        let (halt, halted) = StopSignal::new();
        let (rest, rested) = StopSignal::new();
        let work = async {
            let enumerate = worker.serve(TaskType::DiscoveryEnumerate, &halt, halted.clone());
            let classify = worker.serve(TaskType::Classification, &halt, halted.clone());
            let (enumerated, classified) = tokio::join!(enumerate, classify);
            rest.stop();
            enumerated.and(classified)
        };
        let heartbeat = async {
            let kept = lease::keep(&store, Role::Worker, worker.id, worker.config.lease, rested).await;
            halt.stop();
            kept
        };
        let ended = tokio::select! {
            (served, kept) = async { tokio::join!(work, heartbeat) } => kept.and(served),
            never = async {
                stop.asked().await;
                halt.stop();
                std::future::pending().await
            } => never,
        };
        // Also when something failed: what is gone is gone, and the reaper need not wait.
        let released = store.release(Role::Worker, worker.id).await;
        ended?;
        Ok(released?)
    }

    /// Claims and runs tasks of one type until halted. A failure halts the other type, too; either way
    /// every packet that runs has been given back or is done when this returns.
    async fn serve(
        self: &Arc<Self>,
        task_type: TaskType,
        halt: &StopSignal,
        halted: Stop,
    ) -> Result<(), ControlError> {
        let mut running = JoinSet::new();
        let mut served = self.claim_and_run(task_type, &mut running, halted).await;
        halt.stop();
        while let Some(ended) = running.join_next().await {
            served = served.and(joined(ended));
        }
        served
    }

    /// As many tasks at once as there are slots.
    async fn claim_and_run(
        self: &Arc<Self>,
        task_type: TaskType,
        running: &mut JoinSet<Result<(), ControlError>>,
        mut halt: Stop,
    ) -> Result<(), ControlError> {
        let slots = match task_type {
            TaskType::DiscoveryEnumerate => self.config.enumerators,
            TaskType::Classification => self.config.packets,
        };
        let mut changes = self.store.changes();
        while !halt.is_asked() {
            changes.mark_unchanged();
            let room = slots.saturating_sub(running.len());
            if room > 0 {
                let group = &self.config.node_group;
                for packet in self.store.claim_tasks(self.id, group, task_type, room as u32).await? {
                    running.spawn(Arc::clone(self).run_packet(packet, halt.clone()));
                }
            }
            tokio::select! {
                () = halt.asked() => {}
                Some(ended) = running.join_next() => joined(ended)?,
                _ = changes.changed(), if room > 0 => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        }
        Ok(())
    }

    async fn run_packet(self: Arc<Self>, packet: WorkPacket, halt: Stop) -> Result<(), ControlError> {
        let claim = packet.claim;
        let ran = match packet.task_type {
            TaskType::DiscoveryEnumerate => self.run_enumeration(&packet, halt).await,
            TaskType::Classification => self.run_classification(&packet, halt).await,
        };
        match ran {
            Ok(()) => Ok(()),
            Err(error) => self.give_back(&claim, &packet, error).await,
        }
    }

    /// Listing blocks; it runs on a thread of its own, whatever the connector does there.
    async fn run_enumeration(self: &Arc<Self>, packet: &WorkPacket, halt: Stop) -> Result<(), PacketError> {
        let (worker, packet) = (Arc::clone(self), packet.clone());
        let runtime = tokio::runtime::Handle::current();
        let listing = move || runtime.block_on(enumerate::enumerate(&worker, &packet, halt));
        match tokio::task::spawn_blocking(listing).await {
            Ok(listed) => listed,
            // Without the panic's own words, which may quote what was read.
            Err(_) => Err(PacketError::Retry("listing panicked".into())),
        }
    }

    /// In a set of its own, so that it ends with whoever waits for it, and a panic becomes an error.
    async fn run_classification(
        self: &Arc<Self>,
        packet: &WorkPacket,
        halt: Stop,
    ) -> Result<(), PacketError> {
        let (worker, packet) = (Arc::clone(self), packet.clone());
        let mut alone = JoinSet::new();
        alone.spawn(async move { classify::classify(&worker, &packet, halt).await });
        match alone.join_next().await {
            Some(Ok(classified)) => classified,
            _ => Err(PacketError::Retry("classification panicked".into())),
        }
    }

    /// Ends a packet that was not finished, as far as it is still this worker's to end.
    async fn give_back(
        &self,
        claim: &Claim,
        packet: &WorkPacket,
        error: PacketError,
    ) -> Result<(), ControlError> {
        let how = match error {
            PacketError::Store(error) if error.is_lost() => {
                tracing::warn!(task_id = %claim.task, worker_id = %self.id, "claim lost; results refused");
                return Ok(());
            }
            PacketError::Store(error) if !error.is_retryable() => return Err(error.into()),
            PacketError::Stopped => GiveBack::Returned,
            PacketError::Permanent(error) => GiveBack::Failed { error },
            PacketError::Store(_) | PacketError::Retry(_) if packet.failures + 1 >= FAILURES_MAX => {
                GiveBack::Failed { error: error.to_string() }
            }
            PacketError::Store(_) | PacketError::Retry(_) => {
                GiveBack::Retry { error: error.to_string(), after: back_off(claim, packet.failures) }
            }
        };
        // Until it is known to be back: a claim that nobody works on would be kept alive by this process's
        // own lease.
        let mut tries = 0;
        loop {
            match self.store.give_back(claim, how.clone()).await {
                Err(error) if error.is_lost() => return Ok(()),
                Err(error) if error.is_retryable() && tries < FAILURES_MAX => {
                    tokio::time::sleep(back_off(claim, tries)).await;
                    tries += 1;
                }
                given => return Ok(given?),
            }
        }
    }

    fn connector(&self, source: &PacketDatasource) -> Result<Arc<dyn Connector>, PacketError> {
        let mut connectors = self.connectors.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (source.id, source.configuration.to_string());
        if let Some(connector) = connectors.get(&key) {
            return Ok(Arc::clone(connector));
        }
        let made = self.registry.create(&source.kind, &source.configuration, &self.surroundings);
        let connector = made.map_err(|error| PacketError::Permanent(error.to_string()))?;
        if connectors.len() >= CONNECTORS_MAX {
            connectors.clear();
        }
        connectors.insert(key, Arc::clone(&connector));
        Ok(connector)
    }
}

/// Exponential, with a jitter that needs no randomness of its own: claims are random already.
fn back_off(claim: &Claim, failures: u32) -> Duration {
    let wait = RETRY_BASE * 2u32.saturating_pow(failures.min(FAILURES_MAX));
    wait + wait.mul_f64((claim.claim.0.rem_euclid(100)) as f64 / 200.0)
}

fn joined(ended: Result<Result<(), ControlError>, tokio::task::JoinError>) -> Result<(), ControlError> {
    match ended {
        Ok(outcome) => outcome,
        // The packet's claim is still held; the task deadline returns it.
        Err(error) => {
            tracing::error!(%error, "a packet ended abnormally");
            Ok(())
        }
    }
}
