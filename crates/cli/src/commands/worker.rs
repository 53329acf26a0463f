//! `domesday worker`: scans for a node group until it is asked to stop.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use domesday_connector::credentials::{CredentialManager, CredentialPolicy};
use domesday_connector::{Seal, Surroundings};
use domesday_control::{RuleCache, WindowLimits, Worker, WorkerConfig, WorkerParts};
use domesday_scheduler::{CoreConfig, ScanCore};
use domesday_store::{AdminStore, WorkerStore};

use super::fleet::{self, Beginning};
use crate::args::fleet::WorkerArgs;
use crate::{Exit, connectors, fingerprint, state};

/// Threads of the runtime: results are written while others are claimed.
const RUNTIME_THREADS: usize = 2;
/// Packets per slot near the book: one is scanned while the next is on its way.
const PACKETS_PER_SLOT: usize = 2;
/// Packets per slot far from it, at most: what a slot scans while the book is asked and answers.
const PACKETS_PER_SLOT_MAX: usize = 64;
/// Enumeration packets at once.
const ENUMERATORS: WindowLimits = WindowLimits { least: 4, most: 32 };
/// Between claims that bring nothing, at most: many workers share a book.
const QUIET_MAX: Duration = Duration::from_millis(250);
/// Connections to the book, at most. They are made as they are needed: a few near it, and many far from it, where
/// each is on its way most of the time.
const CONNECTIONS_MAX: usize = 32;

pub fn run(args: &WorkerArgs) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(RUNTIME_THREADS)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(serve(args))
}

async fn serve(args: &WorkerArgs) -> Result<Exit> {
    let policy = args.allow.policy().context("--allow-credentials")?;
    let policy = policy.keeping(args.fingerprint_key.parse().context("--fingerprint-key")?);
    let policy = state::default_folder().into_iter().fold(policy, CredentialPolicy::keeping_path);
    let credentials = Arc::new(CredentialManager::default().under(policy));
    let key = fingerprint::resolve(&credentials, &args.fingerprint_key).await?;
    let surroundings = Surroundings { credentials, seal: Seal::new(&key), ..Surroundings::default() };
    let core = args.slots.map_or_else(CoreConfig::default, |slots| CoreConfig::for_threads(slots.into()));
    #[cfg(feature = "failpoints")]
    let core = crate::failpoints::core_config(core);
    let slots = core.threads;
    let Some(beginning) = fleet::begin(&args.process, CONNECTIONS_MAX).await? else { return Ok(Exit::Clean) };
    let Beginning { book, metrics, stop, new_id } = beginning;
    let key_id = key.id();
    agree_on_key(book.store.as_ref(), &key_id).await?;
    let mut profile = fleet::profile(slots);
    profile.labels = args.labels.clone();
    profile.fingerprint_key = Some(key_id);
    let config = WorkerConfig {
        node_group: args.process.node_group.clone(),
        lease: args.process.lease,
        enumerators: ENUMERATORS,
        packets: WindowLimits { least: PACKETS_PER_SLOT * slots, most: PACKETS_PER_SLOT_MAX * slots },
        quiet_max: QUIET_MAX,
        retries: args.process.retries(),
        profile,
        is_patient: true,
    };
    let parts = WorkerParts {
        registry: connectors::of_fleet(),
        surroundings,
        core: Arc::new(ScanCore::new(core, key).context("cannot start the scan threads")?),
        rules: RuleCache::default(),
        progress: Arc::default(),
        metrics,
    };
    Worker::new(book.narrow::<dyn WorkerStore>(|store| store), new_id, config, parts).run(stop).await?;
    Ok(Exit::Clean)
}

/// One book has one key: with another, the same value would be two findings.
async fn agree_on_key(store: &dyn AdminStore, id: &str) -> Result<()> {
    // Read first: a worker's role need not have the right to set it.
    let held = match store.fingerprint_key().await? {
        Some(held) => held,
        None => store.set_fingerprint_key(id, false).await.context(
            "cannot bring the book its fingerprint key; `domesday db migrate --fingerprint-key` does that",
        )?,
    };
    if held != id {
        bail!(
            "this worker's fingerprint key has the id {id}, and this book's fingerprints are made with {held}: \
             start the worker with that key (--fingerprint-key), or set the book to the new key with \
             `domesday db key --replace`"
        );
    }
    Ok(())
}
