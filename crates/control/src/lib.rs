//! What runs jobs: the orchestrator with its pipeliner and reapers, the worker, the kinds of task that it runs, the
//! event relay.
//!
//! Services never call each other: they meet in the book, and each loop is level-triggered. It looks at
//! the state and does what is needed; a wake-up only makes it look sooner. This crate must not know
//! concrete connectors, nor the command line.

pub mod compose;
mod coordinator;
mod firing;
mod kinds;
mod lease;
mod local;
mod metrics;
mod orchestrator;
mod outage;
mod progress;
mod relay;
mod reveal;
mod rules;
pub mod schedule;
mod stop;
#[cfg(test)]
mod tests;
mod worker;

pub use coordinator::{Coordinator, Enumeration, EnumerationError, View};
pub use lease::Book;
pub use local::{Local, LocalConfig, run_local};
pub use metrics::{CommitCall, Metrics, Number, Stage};
pub use orchestrator::{Orchestrator, OrchestratorConfig};
pub use progress::{Progress, ProgressSnapshot};
pub use relay::relay_events;
pub use reveal::{RevealKey, Revealed, reveal};
pub use rules::{RuleCache, seal_source};
pub use stop::{Stop, StopSignal};
pub use worker::{WindowLimits, Worker, WorkerConfig, WorkerParts};

use std::sync::Arc;

use std::time::Duration;

use domesday_model::{Backoff, ProcessId, Retries};
use domesday_store::StoreError;

/// How often a source is tried that does not answer, while somebody waits for the end of a scan: a second or two.
pub const LOCAL_RETRIES: Retries =
    Retries { attempts: 3, wait: Backoff::new(Duration::from_millis(500), Duration::from_secs(10)) };
/// The same in a fleet: about five minutes, a restart of a server included.
pub const FLEET_RETRIES: Retries =
    Retries { attempts: 6, wait: Backoff::new(Duration::from_secs(10), Duration::from_secs(600)) };

/// Names each start of a process, and each lease after the first: random, so that none ever comes again.
pub type NewId = Arc<dyn Fn() -> ProcessId + Send + Sync>;

/// Why a service ended before it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "this process lost its lease: it was suspended or cut off for too long; what it held is begun anew"
    )]
    LeaseLost,
    #[error("the lease cannot be renewed: {0}")]
    LeaseRefused(Arc<StoreError>),
    #[error("cannot start the heartbeat: {0}")]
    Heartbeat(std::io::Error),
    #[error("cannot start the scan core: {0}")]
    Core(std::io::Error),
    #[error("the rule set of the job is not in the book, or this version cannot read it: {0}")]
    Rules(String),
}

impl ControlError {
    /// Whether the same service may do better if it begins anew.
    fn is_passing(&self) -> bool {
        match self {
            ControlError::LeaseLost => true,
            ControlError::Store(error) => error.is_retryable(),
            _ => false,
        }
    }
}
