//! What the processes of a fleet have in common: their book, their name, their signals.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use domesday_control::{Book, Metrics, NewId, Stop, StopSignal};
use domesday_model::ProcessId;
use domesday_store::postgres::{Options, PostgresStore};
use domesday_store::{Profile, Store, StoreError};

use crate::args::StateArgs;
use crate::args::fleet::ProcessArgs;
use crate::book::{self, Place};
use crate::state::random_bytes;
use crate::{signals, telemetry};

/// Between two tries to open the book, when the process starts before its database does.
const OPEN_PAUSE: Duration = Duration::from_secs(1);

/// What a process of a fleet begins with.
pub struct Beginning {
    pub book: Book<dyn Store>,
    pub metrics: Arc<Metrics>,
    pub stop: Stop,
    pub new_id: NewId,
}

/// Opens the book with so many connections, serves telemetry and listens for signals. `None` when asked to stop
/// before the book could be opened.
pub async fn begin(args: &ProcessArgs, connections_max: usize) -> Result<Option<Beginning>> {
    let (signal, mut stop) = StopSignal::new();
    signals::listen(signal).context("cannot listen for signals")?;
    let metrics = Arc::new(Metrics::default());
    if let Some(address) = args.telemetry {
        telemetry::serve(address, Arc::clone(&metrics)).await?;
    }
    let book = loop {
        match open(&args.state, connections_max).await {
            Ok(book) => break book,
            Err(error) if error.downcast_ref::<StoreError>().is_some_and(StoreError::is_retryable) => {
                tracing::warn!(error = format!("{error:#}"), "the book cannot be opened yet; trying again");
            }
            Err(error) => return Err(error),
        }
        tokio::select! {
            () = stop.asked() => return Ok(None),
            () = tokio::time::sleep(OPEN_PAUSE) => {}
        }
    };
    let new_id: NewId = Arc::new(|| ProcessId(random_bytes()));
    Ok(Some(Beginning { book, metrics, stop, new_id }))
}

async fn open(args: &StateArgs, connections_max: usize) -> Result<Book<dyn Store>> {
    let Place::Fleet(url) = book::place(args)? else {
        bail!(
            "orchestrators and workers meet in the book of a fleet: name it with --store or DOMESDAY_STORE; \
             on the embedded book `domesday scan` is both"
        );
    };
    let options = Options::default().without_migrating().with_connections(connections_max);
    let store: Arc<dyn Store> = Arc::new(PostgresStore::connect(&url, options).await?);
    Ok(Book::with_own(store, move || {
        let url = url.clone();
        async move {
            let options = Options::default().without_migrating().without_listening().with_connections(1);
            let store: Arc<dyn Store> = Arc::new(PostgresStore::connect(&url, options).await?);
            Ok(store)
        }
    }))
}

/// What a process says of itself.
pub fn profile(slots: usize) -> Profile {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Profile {
        host: format!("{host}:{}", std::process::id()),
        version: env!("CARGO_PKG_VERSION").into(),
        slots: u32::try_from(slots).unwrap_or(u32::MAX),
        labels: Vec::new(),
        fingerprint_key: None,
    }
}
