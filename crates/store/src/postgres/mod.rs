//! The book of a fleet: PostgreSQL, 15 or newer.
//!
//! Any number of processes write at once. What SQLite's one writer does by coming first, row locks do
//! here; each statement file says which, and why nobody waits in a circle. Transactions are short: none is
//! open while anyone but the server works. Times are the database's clock, whatever the machines think.
//!
//! Crash argument: a verb is one transaction, so a process that dies leaves all of it or nothing, and its
//! leases run out. A connection that dies in COMMIT gives [`StoreError::CommitUnknown`]; reading back waits
//! for whatever the server is still doing. `synchronous_commit` is left to the server: turned off there, a
//! crash of the server may roll the book back to a slightly earlier consistent state, and work is redone.

mod book;
mod config;
mod error;
mod jobs;
mod pool;
mod reports;
mod results;
mod rows;
mod tasks;
mod tls;
mod transaction;
mod units;
mod verbs;
mod wake;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use tokio_postgres::Row;

#[cfg(feature = "conformance")]
use crate::clock::Clock;
use crate::error::StoreError;
use crate::hook::{Fault, Stage};
use error::{is_lost, store_error};
use pool::{Call, Param, Pool};
use wake::Waker;

type Result<T> = std::result::Result<T, StoreError>;

/// Connections of one process, unless said otherwise; one more listens.
const CONNECTIONS_MAX: usize = 8;

/// How often a read is tried again that lost its connection.
const READ_RETRIES_MAX: u32 = 3;

/// How to use a book.
pub struct Options {
    /// Connections of this process at once, at most; one more listens for changes.
    pub connections_max: usize,
    /// Stands in for the database's clock. Only tests of lease expiry do without it.
    #[cfg(feature = "conformance")]
    pub clock: Option<Arc<dyn Clock>>,
    /// Called at each stage of each write; for lost answers.
    #[cfg(feature = "conformance")]
    pub hook: Option<Box<dyn crate::hook::WriteHook>>,
    /// Whether writes of results are fenced. Only the test of the fence itself turns this off.
    #[cfg(feature = "conformance")]
    pub fence: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            connections_max: CONNECTIONS_MAX,
            #[cfg(feature = "conformance")]
            clock: None,
            #[cfg(feature = "conformance")]
            hook: None,
            #[cfg(feature = "conformance")]
            fence: true,
        }
    }
}

/// The store of a fleet.
pub struct PostgresStore {
    pool: Arc<Pool>,
    waker: Waker,
    /// Which statement stands before every write of results.
    fence: &'static str,
    #[cfg(feature = "conformance")]
    clock: Option<Arc<dyn Clock>>,
    #[cfg(feature = "conformance")]
    hook: Option<std::sync::Mutex<Box<dyn crate::hook::WriteHook>>>,
}

/// Puts a clock that tests move in the place of the database's own, in this database only.
#[cfg(feature = "conformance")]
const TEST_CLOCK: &str = "CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE
    AS $$ SELECT current_setting('domesday.clock')::bigint $$";

impl PostgresStore {
    /// Opens the book at `url` (`postgresql://user@host/database?sslmode=…`), making or upgrading it.
    pub async fn connect(url: &str, options: Options) -> Result<PostgresStore> {
        let pool = Pool::new(config::Target::parse(url)?, options.connections_max);
        let (mut client, driver) = pool.target().connect().await?;
        tokio::spawn(driver);
        book::migrate(&mut client, book::MIGRATIONS).await?;
        #[cfg(feature = "conformance")]
        if options.clock.is_some() {
            client.batch_execute(TEST_CLOCK).await.map_err(|error| store_error(&error))?;
        }
        let waker = Waker::start(Arc::clone(&pool));
        Ok(PostgresStore {
            pool,
            waker,
            #[cfg(feature = "conformance")]
            fence: if options.fence { tasks::FENCE } else { tasks::NO_FENCE },
            #[cfg(not(feature = "conformance"))]
            fence: tasks::FENCE,
            #[cfg(feature = "conformance")]
            clock: options.clock,
            #[cfg(feature = "conformance")]
            hook: options.hook.map(std::sync::Mutex::new),
        })
    }

    /// One statement that reads, in a transaction of its own.
    async fn read(&self, sql: &'static str, params: Vec<Param>) -> Result<Vec<Row>> {
        let call = [Call { sql, params }];
        let mut attempt = 0;
        loop {
            let loan = self.pool.get().await?;
            let answer = loan.pipeline(&call).await.pop().expect("a call has an answer");
            match &answer {
                // It died while it was idle, as others may have; reading again does no harm.
                Err(error) if is_lost(error) && attempt < READ_RETRIES_MAX => attempt += 1,
                Err(error) if is_lost(error) => return Err(store_error(error)),
                _ => {
                    loan.give_back();
                    return answer.map_err(|error| store_error(&error));
                }
            }
        }
    }

    /// What a hook wants to happen here.
    #[cfg(feature = "conformance")]
    fn fault(&self, verb: &'static str, stage: Stage) -> Fault {
        let Some(hook) = &self.hook else { return Fault::None };
        hook.lock().unwrap_or_else(std::sync::PoisonError::into_inner).at(verb, stage)
    }

    #[cfg(not(feature = "conformance"))]
    fn fault(&self, _: &'static str, _: Stage) -> Fault {
        Fault::None
    }
}

/// What every connection is set to. No statement of the store runs long: one that does is stuck, and the
/// verb fails and can be tried again. Plans are small, and compiling them costs more than running them.
fn session_settings() -> &'static str {
    "SET statement_timeout = '60s'; SET lock_timeout = '20s'; SET idle_in_transaction_session_timeout = '60s';
     SET jit = off; SET timezone = 'UTC'; SET client_min_messages = warning"
}
