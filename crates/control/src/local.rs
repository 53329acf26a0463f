//! Everything in one process: an orchestrator and a worker on the embedded book, until a master job has
//! come to rest. The same services as in a fleet; only their wiring is here.

use std::sync::Arc;
use std::time::Duration;

use domesday_model::{MasterJobId, Retries};
use domesday_store::{
    FanOutPolicy, MasterJob, OrchestratorStore, Profile, ReportStore, Store, StoreError, WorkerStore,
};

use crate::lease::Book;
use crate::orchestrator::{Orchestrator, OrchestratorConfig};
use crate::relay::log_events;
use crate::stop::{Stop, StopSignal};
use crate::worker::{WindowLimits, Worker, WorkerConfig, WorkerParts};
use crate::{ControlError, NewId};

const LEASE: Duration = Duration::from_secs(30);
const REAP_INTERVAL: Duration = Duration::from_secs(5);
/// Without another process to take it over, a slow object is better left alone.
const TASK_DEADLINE: Duration = Duration::from_secs(24 * 3_600);
const STALL_THRESHOLD: Duration = Duration::from_secs(600);
/// The book is this process's alone: a claim that takes long has waited for what the process itself writes, and is
/// worth repeating once that is done.
const QUIET_MAX: Duration = Duration::from_millis(4);

#[derive(Clone, Debug)]
pub struct LocalConfig {
    /// The node group whose jobs to run.
    pub node_group: String,
    /// Id of the key that the worker's scan core makes fingerprints with.
    pub fingerprint_key: String,
    pub enumerators: usize,
    pub packets: usize,
    /// How often what a source fails at is tried.
    pub retries: Retries,
}

/// The parts a local run is made of.
pub struct Local {
    pub store: Arc<dyn Store>,
    pub parts: WorkerParts,
    /// Names the orchestrator and the worker of this start.
    pub new_id: NewId,
    pub config: LocalConfig,
}

/// Runs until the master job has ended, or `stop` is asked for; how the job stands then.
pub async fn run_local(local: Local, master: MasterJobId, mut stop: Stop) -> Result<MasterJob, ControlError> {
    let store = Arc::clone(&local.store);
    let (halt, halted) = StopSignal::new();
    let orchestrator = Orchestrator::new(
        Book::shared(Arc::clone(&store) as Arc<dyn OrchestratorStore>),
        Arc::clone(&local.new_id),
        OrchestratorConfig {
            node_group: local.config.node_group.clone(),
            lease: LEASE,
            reap_interval: REAP_INTERVAL,
            task_deadline: TASK_DEADLINE,
            stall_threshold: STALL_THRESHOLD,
            fan_out: FanOutPolicy { ready_low: local.config.packets as u32 },
            retries: local.config.retries,
            profile: Profile::default(),
            fires_schedules: false,
            is_patient: false,
        },
        Arc::clone(&local.parts.metrics),
    );
    let mut settled = orchestrator.settled();
    let worker = Worker::new(
        Book::shared(Arc::clone(&store) as Arc<dyn WorkerStore>),
        local.new_id,
        WorkerConfig {
            node_group: local.config.node_group,
            lease: LEASE,
            enumerators: WindowLimits::fixed(local.config.enumerators),
            packets: WindowLimits::fixed(local.config.packets),
            quiet_max: QUIET_MAX,
            retries: local.config.retries,
            profile: Profile { fingerprint_key: Some(local.config.fingerprint_key), ..Profile::default() },
            is_patient: false,
        },
        local.parts,
    );
    let at_rest = async {
        loop {
            settled.mark_unchanged();
            if stop.is_asked() || find(store.as_ref(), master).await?.status.is_final() {
                return Ok::<(), ControlError>(());
            }
            tokio::select! {
                _ = settled.changed() => {}
                () = stop.asked() => {}
            }
        }
    };
    let orchestrate = async {
        let ran = orchestrator.run(halted.clone()).await;
        halt.stop();
        ran
    };
    let work = async {
        let ran = worker.run(halted.clone()).await;
        halt.stop();
        ran
    };
    let mut other_ended = halted.clone();
    let wait = async {
        tokio::select! {
            rested = at_rest => { halt.stop(); rested }
            () = other_ended.asked() => Ok(()),
        }
    };
    // Whichever ends first, for whatever reason, halts the others, and all come to their own end: what
    // they hold is given back as far as the book still takes it.
    let (orchestrated, worked, waited) = tokio::join!(orchestrate, work, wait);
    orchestrated.and(worked).and(waited)?;
    log_events(store.as_ref()).await?;
    find(store.as_ref(), master).await
}

async fn find(store: &dyn ReportStore, master: MasterJobId) -> Result<MasterJob, ControlError> {
    let found = store.master_job(master).await?;
    Ok(found.ok_or_else(|| StoreError::Damaged(format!("master job {master} is missing")))?)
}
