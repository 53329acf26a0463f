//! What runs jobs: the orchestrator with its pipeliner and reapers, the worker with its enumeration and
//! classification, the event relay.
//!
//! Services never call each other: they meet in the book, and each loop is level-triggered. It looks at
//! the state and does what is needed; a wake-up only makes it look sooner. This crate must not know
//! concrete connectors, nor the command line.

mod lease;
mod local;
mod orchestrator;
mod progress;
mod relay;
mod reveal;
mod rules;
mod stop;
#[cfg(test)]
mod tests;
mod worker;

pub use local::{Local, LocalConfig, run_local};
pub use orchestrator::{Orchestrator, OrchestratorConfig};
pub use progress::{Progress, ProgressSnapshot};
pub use relay::relay_events;
pub use reveal::{RevealKey, reveal};
pub use rules::RuleCache;
pub use stop::{Stop, StopSignal};
pub use worker::{Worker, WorkerConfig, WorkerParts};

use domesday_store::StoreError;

/// Why a service ended before it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("this process lost its lease: it was suspended or cut off for too long; start it again")]
    LeaseLost,
    #[error("cannot start the scan core: {0}")]
    Core(std::io::Error),
    #[error("the rule set of the job is not in the book, or this version cannot read it: {0}")]
    Rules(String),
}
