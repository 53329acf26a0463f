//! The worker: stateless; claims work packets under a lease and runs them. One lease is one session; a
//! worker that lost its lease drops what it had and begins a new session under a new id.
//!
//! Crash argument: everything a packet produces reaches the book under the packet's claim, and is seen
//! only through the verb that completes the task or commits the unit. A worker that dies, or that is
//! taken for dead, leaves nothing half visible.

pub(crate) mod held;
pub(crate) mod packet;
pub(crate) mod session;
pub(crate) mod window;

pub use window::WindowLimits;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domesday_connector::{Connector, ConnectorError, Registry, Surroundings};
use domesday_model::backoff::jitter;
use domesday_model::{DatasourceId, Retries, TrustContent};
use domesday_scheduler::{KindSlot, ScanCore};
use domesday_store::{Profile, WorkPacket, WorkerStore};
use parking_lot::Mutex;

use crate::lease::Book;
use crate::metrics::Metrics;
use crate::progress::Progress;
use crate::rules::RuleCache;
use crate::stop::Stop;
use crate::{ControlError, NewId};
use session::{Ended, Session};

/// Connectors kept ready, one per data source and configuration.
const CONNECTORS_MAX: usize = 1_024;
/// Between two sessions of one worker, so that trouble that comes at once does not come in a tight loop.
const SESSION_PAUSE: Duration = Duration::from_millis(200);

#[derive(Clone, Debug)]
pub struct WorkerConfig {
    pub node_group: String,
    pub lease: Duration,
    /// Enumeration packets at once.
    pub enumerators: WindowLimits,
    /// Classification packets at once, in the scan core and on their way to it or back.
    pub packets: WindowLimits,
    /// A claim that brought nothing is not repeated for a multiple of the time it took, up to this.
    pub quiet_max: Duration,
    /// How often a listing is tried that the source does not answer.
    pub retries: Retries,
    /// What the worker says of itself.
    pub profile: Profile,
    /// Whether to wait for a book that does not answer, and to begin anew when the lease is lost. A process
    /// whose user waits rather ends.
    pub is_patient: bool,
}

/// What a worker works with.
pub struct WorkerParts {
    pub registry: Registry,
    pub surroundings: Surroundings,
    pub core: Arc<ScanCore>,
    pub rules: RuleCache,
    pub progress: Arc<Progress>,
    pub metrics: Arc<Metrics>,
}

/// By data source, configuration and credential: jobs may read one source with different settings.
type ConnectorKey = (DatasourceId, String, Option<String>, TrustContent);

/// What every session and every packet needs.
pub struct Worker {
    book: Book<dyn WorkerStore>,
    new_id: NewId,
    config: WorkerConfig,
    registry: Registry,
    pub(crate) surroundings: Surroundings,
    pub(crate) core: Arc<ScanCore>,
    pub(crate) rules: RuleCache,
    pub(crate) progress: Arc<Progress>,
    pub(crate) metrics: Arc<Metrics>,
    connectors: Mutex<HashMap<ConnectorKey, Arc<dyn Connector>>>,
}

impl Worker {
    pub fn new(
        book: Book<dyn WorkerStore>,
        new_id: NewId,
        config: WorkerConfig,
        parts: WorkerParts,
    ) -> Worker {
        let WorkerParts { registry, surroundings, core, rules, progress, metrics } = parts;
        metrics.watch_core(Arc::downgrade(&core));
        let connectors = Mutex::default();
        Worker { book, new_id, config, registry, surroundings, core, rules, progress, metrics, connectors }
    }

    /// Runs until asked to stop; then returns what it could not finish.
    pub async fn run(self, mut stop: Stop) -> Result<(), ControlError> {
        let worker = Arc::new(self);
        loop {
            match Session::run(&worker, &mut stop).await {
                Ok(Ended::Asked) => return Ok(()),
                Ok(Ended::Renewed) => {}
                Err(error) if worker.config.is_patient && error.is_passing() => {
                    tracing::warn!(reason = %error, "session ended; beginning another");
                }
                Err(error) => return Err(error),
            }
            tokio::select! {
                () = stop.asked() => return Ok(()),
                () = tokio::time::sleep(jitter(SESSION_PAUSE)) => {}
            }
        }
    }

    /// Where the time of a packet's kind of data source is counted.
    pub(crate) fn kind_slot(&self, packet: &WorkPacket) -> KindSlot {
        self.metrics.kinds.slot(&packet.datasource.kind)
    }

    fn store(&self) -> &Arc<dyn WorkerStore> {
        &self.book.store
    }

    /// What reads the data source of a packet, as its job has it read.
    pub(crate) fn connector(&self, packet: &WorkPacket) -> Result<Arc<dyn Connector>, ConnectorError> {
        let (source, trust_content) = (&packet.datasource, packet.options.trust_content);
        let mut connectors = self.connectors.lock();
        let key = (source.id, source.configuration.to_string(), source.credential.clone(), trust_content);
        if let Some(connector) = connectors.get(&key) {
            return Ok(Arc::clone(connector));
        }
        let surroundings = self.surroundings.for_source(source.credential.as_deref())?;
        let surroundings = Surroundings { trust_content, ..surroundings };
        let connector = self.registry.create(&source.kind, &source.configuration, &surroundings)?;
        if connectors.len() >= CONNECTORS_MAX {
            connectors.clear();
        }
        connectors.insert(key, Arc::clone(&connector));
        Ok(connector)
    }

    /// Whether the content of a packet may say what is reported of it.
    pub(crate) fn trusts_content(&self, packet: &WorkPacket) -> Result<bool, ConnectorError> {
        let source = &packet.datasource;
        self.registry.trusts_content(&source.kind, &source.configuration, packet.options.trust_content)
    }
}
