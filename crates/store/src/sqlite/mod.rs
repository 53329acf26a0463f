//! The embedded book: SQLite in WAL mode, one writer thread with group commit, a few readers.
//!
//! One process writes, guarded by an OS lock on the state folder; whoever gets the lock expires the
//! leases of every earlier process at once, so a restart never waits. Any number of processes read.
//!
//! Crash argument: `synchronous=NORMAL` means that power loss may roll the book back to a slightly
//! earlier *consistent* state, and that work is redone. A killed process loses nothing that was answered.

mod administering;
mod base;
mod book;
mod checkpoints;
mod composing;
mod error;
mod flusher;
mod jobs;
mod kept;
mod leasing;
mod orchestrating;
mod origins;
mod prune;
mod queries;
mod readers;
mod records;
mod reporting;
mod results;
mod retry;
mod rows;
mod scrub;
mod shared;
mod spent;
mod targets;
mod tasks;
mod templates;
mod units;
mod working;
mod writer;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use domesday_model::ListedObject;
use rusqlite::Connection;

use crate::clock::{Clock, SystemClock};
use crate::decide::tasks::RecordKinds;
use crate::error::StoreError;
pub use crate::hook::{Fault, Stage, WriteHook};
use crate::types::WorkPacket;
use flusher::Flusher;
use kept::Kept;
use readers::Readers;
use spent::Meter;
pub use spent::Spent;
use writer::Writer;

type Result<T> = std::result::Result<T, StoreError>;

/// The book's file inside the state folder.
pub const BOOK_FILE: &str = "book.sqlite";
/// Locked by the one process that writes.
pub const LOCK_FILE: &str = "lock";

/// How to open a book.
pub struct Options {
    pub clock: Arc<dyn Clock>,
    /// Called at each stage of each write; for failpoints and lost answers.
    pub hook: Option<Box<dyn WriteHook>>,
    /// Whether writes of results are fenced. Only the test of the fence itself turns this off.
    #[cfg(feature = "conformance")]
    pub fence: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            clock: Arc::new(SystemClock),
            hook: None,
            #[cfg(feature = "conformance")]
            fence: true,
        }
    }
}

/// The embedded store.
pub struct SqliteStore {
    /// Absent when opened for reading only.
    writer: Option<Writer>,
    /// Absent, too. Ends after the writer, who gives it work.
    _flusher: Option<Flusher>,
    readers: Readers,
    kept: Arc<Kept>,
    meter: Arc<Meter>,
    changes: tokio::sync::watch::Receiver<u64>,
    fence: Fence,
    /// Held for as long as this process may write.
    _lock: Option<book::Lock>,
}

/// Which statement stands before every write of results.
#[derive(Clone, Copy)]
struct Fence(&'static str);

impl SqliteStore {
    /// Opens the book in `folder` for writing, making or upgrading it. Fails at once when another
    /// process has it.
    pub fn open(folder: &Path, options: Options) -> Result<SqliteStore> {
        let lock = book::lock(folder)?;
        let path = folder.join(BOOK_FILE);
        let mut connection = book::connect(&path, &options.clock, book::Access::Write)?;
        book::upgrade(&mut connection)?;
        leasing::expire_earlier_processes(&connection)?;
        let (changed, changes) = tokio::sync::watch::channel(0);
        #[cfg(feature = "conformance")]
        let fence = if options.fence { tasks::FENCE } else { tasks::NO_FENCE };
        #[cfg(not(feature = "conformance"))]
        let fence = tasks::FENCE;
        let meter = Arc::<Meter>::default();
        let flusher = Flusher::start(path.clone());
        let gauge = flusher.gauge();
        Ok(SqliteStore {
            writer: Some(Writer::start(connection, options.hook, changed, Arc::clone(&meter), gauge)?),
            _flusher: Some(flusher),
            readers: Readers::new(path, options.clock, Arc::clone(&meter)),
            kept: Arc::default(),
            meter,
            changes,
            fence,
            _lock: Some(lock),
        })
    }

    /// Opens the book in `folder` for reading, at any time, whoever writes.
    pub fn open_for_reading(folder: &Path) -> Result<SqliteStore> {
        let path = folder.join(BOOK_FILE);
        let no_book = || StoreError::NoBook(folder.display().to_string());
        if !path.exists() {
            return Err(no_book());
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let connection = book::connect(&path, &clock, book::Access::Read)?;
        if !book::is_book(&connection)? {
            return Err(no_book());
        }
        book::check_readable(&connection, book::MIGRATIONS)?;
        let meter = Arc::<Meter>::default();
        Ok(SqliteStore {
            writer: None,
            _flusher: None,
            readers: Readers::new(path, clock, Arc::clone(&meter)),
            kept: Arc::default(),
            meter,
            changes: tokio::sync::watch::channel(0).1,
            fence: tasks::FENCE,
            _lock: None,
        })
    }

    /// The newest migration of the book in `folder`, 0 where there is none yet, and the names of those that
    /// are still to be applied.
    pub fn schema(folder: &Path) -> Result<(i64, Vec<String>)> {
        let path = folder.join(BOOK_FILE);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let applied = if path.exists() {
            book::applied(&book::connect(&path, &clock, book::Access::Read)?)?
        } else {
            Vec::new()
        };
        let newest = applied.iter().map(|migration| migration.version).max().unwrap_or(0);
        let pending = crate::migrate::pending(book::MIGRATIONS, &applied)?;
        Ok((newest, pending.into_iter().map(|(_, migration)| migration.name.to_owned()).collect()))
    }

    /// What this process has spent on the book so far.
    pub fn spent(&self) -> Spent {
        self.meter.spent()
    }

    /// Runs `f` in a transaction of its own on the writer thread. `verb` names it for hooks.
    async fn write<T, F>(&self, verb: &'static str, f: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        self.write_then(verb, f, |value| value).await
    }

    /// As `write`, and makes the answer of what `f` gave once it is committed, before anything else is written.
    async fn write_then<V, T, F, G>(&self, verb: &'static str, f: F, then: G) -> Result<T>
    where
        V: Send + 'static,
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<V> + Send + 'static,
        G: FnOnce(V) -> T + Send + 'static,
    {
        let writer = self.writer.as_ref().ok_or_else(|| StoreError::ReadOnly("opened for reading".into()))?;
        writer.run(verb, f, then).await
    }

    /// Runs `f` on a reader's snapshot.
    async fn read<T, F>(&self, f: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        self.readers.run(f).await
    }

    /// The records of these kinds that a packet covers: as they were committed, or from the book.
    async fn records(&self, packet: &WorkPacket, kinds: RecordKinds) -> Result<Vec<ListedObject>> {
        if let Some(kept) = self.kept.take(&packet.payload, kinds) {
            return Ok(kept);
        }
        let payload = packet.payload.clone();
        self.read(move |c| tasks::records(c, &payload, kinds)).await
    }
}
