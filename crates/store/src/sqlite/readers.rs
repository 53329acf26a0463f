//! Readers: a bounded pool of connections, each verb on a snapshot of its own.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::{Semaphore, mpsc};

use super::Result;
use super::book::{self, Access};
use super::spent::Meter;
use crate::clock::Clock;
use crate::error::StoreError;

/// Connections that read at once, at most. An old snapshot keeps the WAL from being reset, so few.
const READERS_MAX: usize = 4;
/// Rows read ahead of whoever consumes a stream.
const STREAM_AHEAD: usize = 256;

pub(super) struct Readers {
    pool: Arc<Pool>,
    permits: Arc<Semaphore>,
}

struct Pool {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    meter: Arc<Meter>,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub fn new(path: PathBuf, clock: Arc<dyn Clock>, meter: Arc<Meter>) -> Readers {
        let pool = Pool { path, clock, meter, idle: Mutex::new(Vec::new()) };
        Readers { pool: Arc::new(pool), permits: Arc::new(Semaphore::new(READERS_MAX)) }
    }

    pub async fn run<T, F>(&self, f: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| StoreError::Stopped)?;
        let pool = Arc::clone(&self.pool);
        let ran = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            pool.with(|connection| snapshot(connection, f))
        });
        ran.await.map_err(|error| StoreError::Backend(format!("a reader ended: {error}")))?
    }

    /// Runs `f` on a snapshot and streams what it emits; `f` stops when emitting fails.
    pub async fn stream<T, F>(&self, f: F) -> Result<mpsc::Receiver<Result<T>>>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &mut dyn FnMut(T) -> bool) -> Result<()> + Send + 'static,
    {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| StoreError::Stopped)?;
        let pool = Arc::clone(&self.pool);
        let (rows, stream) = mpsc::channel(STREAM_AHEAD);
        tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let mut emit = |row| rows.blocking_send(Ok(row)).is_ok();
            if let Err(error) =
                pool.with(|connection| snapshot(connection, |connection| f(connection, &mut emit)))
            {
                let _ = rows.blocking_send(Err(error));
            }
        });
        Ok(stream)
    }
}

/// Runs `f` in a read transaction, so that its statements see one state of the book.
fn snapshot<T>(connection: &Connection, f: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    connection.execute_batch("BEGIN")?;
    let result = f(connection);
    // Nothing to lose: the transaction only read.
    let _ = connection.execute_batch("ROLLBACK");
    result
}

impl Pool {
    fn with<T>(&self, f: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let idle = self.idle.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => book::connect(&self.path, &self.clock, Access::Read)?,
        };
        let result = self.meter.read(|| f(&connection));
        self.idle.lock().push(connection);
        result
    }
}
