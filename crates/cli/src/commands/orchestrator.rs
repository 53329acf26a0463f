//! `domesday orchestrator`: runs the jobs of a node group until it is asked to stop.

use std::time::Duration;

use anyhow::Result;
use domesday_control::{Orchestrator, OrchestratorConfig};
use domesday_store::{FanOutPolicy, OrchestratorStore};

use super::fleet::{self, Beginning};
use super::runtime;
use crate::Exit;
use crate::args::fleet::OrchestratorArgs;

/// Connections to the book: one verb at a time, and a report now and then.
const CONNECTIONS_MAX: usize = 4;
/// How often abandoned tasks are looked for, at the longest; a third of the lease if that is shorter.
const REAP_INTERVAL_MAX: Duration = Duration::from_secs(5);
/// A running task without progress for this long is taken from its worker, although that lives.
const TASK_DEADLINE: Duration = Duration::from_secs(30 * 60);
/// A session without progress for this long is stalled.
const STALL_THRESHOLD: Duration = Duration::from_secs(10 * 60);
/// Tasks of a type that are kept ready, even if their packs are not full.
const READY_LOW: u32 = 64;

pub fn run(args: &OrchestratorArgs) -> Result<Exit> {
    runtime()?.block_on(serve(args))
}

async fn serve(args: &OrchestratorArgs) -> Result<Exit> {
    let Some(beginning) = fleet::begin(&args.process, CONNECTIONS_MAX).await? else {
        return Ok(Exit::Clean);
    };
    let Beginning { book, metrics, stop, new_id } = beginning;
    let lease = args.process.lease;
    let config = OrchestratorConfig {
        node_group: args.process.node_group.clone(),
        lease,
        reap_interval: (lease / 3).min(REAP_INTERVAL_MAX),
        task_deadline: TASK_DEADLINE,
        stall_threshold: STALL_THRESHOLD,
        fan_out: FanOutPolicy { ready_low: READY_LOW },
        retries: args.process.retries(),
        profile: fleet::profile(0),
        fires_schedules: true,
        is_patient: true,
    };
    Orchestrator::new(book.narrow::<dyn OrchestratorStore>(|store| store), new_id, config, metrics)
        .run(stop)
        .await?;
    Ok(Exit::Clean)
}
