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

mod administering;
mod base;
mod book;
mod checkpoints;
mod composing;
mod config;
mod error;
mod jobs;
mod leasing;
mod logins;
mod occurrences;
mod orchestrating;
mod origins;
mod pass_file;
mod pool;
mod prune;
mod queries;
mod reporting;
mod results;
mod retry;
mod rows;
mod shared;
mod targets;
mod tasks;
mod templates;
mod transaction;
mod units;
mod wake;
mod working;

#[cfg(test)]
mod tests;

use std::sync::Arc;

#[cfg(feature = "conformance")]
use crate::clock::Clock;
use crate::error::StoreError;
use crate::hook::{Fault, Stage};
use crate::rows::FromRow;
pub use book::SchemaStatus;
use error::{is_lost, store_error};
pub use logins::BoundLogin;
use pool::{Answer, Call, Param, Pool};
use wake::Waker;

type Result<T> = std::result::Result<T, StoreError>;

/// Connections of one process, unless said otherwise; one more listens.
const CONNECTIONS_MAX: usize = 8;

/// How often a read is tried again that lost its connection.
const READ_RETRIES_MAX: u32 = 3;

/// How to use a book.
pub struct Options {
    /// Connections of this process at once, at most.
    pub connections_max: usize,
    /// Whether to listen for changes by other processes, on one more connection.
    pub listens: bool,
    /// Makes the book, or brings an older one to this version's schema. Else an older one is refused with
    /// [`StoreError::OlderSchema`], and no right to change the schema is needed.
    pub migrate: bool,
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
            listens: true,
            migrate: true,
            #[cfg(feature = "conformance")]
            clock: None,
            #[cfg(feature = "conformance")]
            hook: None,
            #[cfg(feature = "conformance")]
            fence: true,
        }
    }
}

impl Options {
    /// Of a process that takes the book as it is, and fails when it is older than this version knows.
    #[must_use]
    pub fn without_migrating(mut self) -> Options {
        self.migrate = false;
        self
    }

    #[must_use]
    pub fn with_connections(mut self, max: usize) -> Options {
        self.connections_max = max;
        self
    }

    /// Of a store that nobody waits on: it spares a connection.
    #[must_use]
    pub fn without_listening(mut self) -> Options {
        self.listens = false;
        self
    }
}

/// The store of a fleet.
pub struct PostgresStore {
    pool: Arc<Pool>,
    waker: Waker,
    fence: tasks::Fence,
    #[cfg(feature = "conformance")]
    clock: Option<Arc<dyn Clock>>,
    #[cfg(feature = "conformance")]
    hook: Option<parking_lot::Mutex<Box<dyn crate::hook::WriteHook>>>,
}

/// Puts a clock that tests move in the place of the database's own, in this database only.
#[cfg(feature = "conformance")]
const TEST_CLOCK: &str = "CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE
    AS $$ SELECT current_setting('domesday.clock')::bigint $$";

impl PostgresStore {
    /// Opens the book at `url` (`postgresql://user@host/database?sslmode=…`).
    pub async fn connect(url: &str, options: Options) -> Result<PostgresStore> {
        let pool = Pool::new(config::Target::parse(url)?, options.connections_max);
        let (mut client, driver) = pool.target().connect().await?;
        tokio::spawn(driver);
        match options.migrate {
            true => drop(book::migrate(&mut client, book::MIGRATIONS).await?),
            false => book::check(&mut client, book::MIGRATIONS).await?,
        }
        #[cfg(feature = "conformance")]
        if options.clock.is_some() {
            client.batch_execute(TEST_CLOCK).await.map_err(|error| store_error(&error))?;
        }
        let waker = Waker::start(options.listens.then(|| Arc::clone(&pool)));
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
            hook: options.hook.map(parking_lot::Mutex::new),
        })
    }

    /// Makes the book at `url`, or brings it to this version's schema; the migrations that took, by name.
    /// Any number of processes may do so at once.
    pub async fn migrate(url: &str) -> Result<Vec<String>> {
        let (mut client, driver) = config::Target::parse(url)?.connect().await?;
        tokio::spawn(driver);
        book::migrate(&mut client, book::MIGRATIONS).await
    }

    /// What the database at `url` says of itself; changes nothing.
    pub async fn status(url: &str) -> Result<SchemaStatus> {
        let (mut client, driver) = config::Target::parse(url)?.connect().await?;
        tokio::spawn(driver);
        book::status(&mut client, book::MIGRATIONS).await
    }

    /// How often this process has waited for the server so far.
    #[cfg(feature = "conformance")]
    pub fn round_trips(&self) -> u64 {
        self.pool.round_trips()
    }

    /// One statement that reads, in a transaction of its own.
    async fn read(&self, sql: &'static str, params: Vec<Param>) -> Result<Answer> {
        let call = Call { sql, params };
        let mut attempt = 0;
        loop {
            let loan = self.pool.get().await?;
            let answer = loan.ask(&call).await;
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

    /// The rows of one statement that reads.
    async fn all<T: FromRow>(&self, sql: &'static str, params: Vec<Param>) -> Result<Vec<T>> {
        rows::all_of(&self.read(sql, params).await?)
    }

    /// Its row, if there is one.
    async fn one<T: FromRow>(&self, sql: &'static str, params: Vec<Param>) -> Result<Option<T>> {
        self.read(sql, params).await?.first().map(T::from_row).transpose()
    }

    /// What a hook wants to happen here.
    #[cfg(feature = "conformance")]
    fn fault(&self, verb: &'static str, stage: Stage) -> Fault {
        let Some(hook) = &self.hook else { return Fault::None };
        hook.lock().at(verb, stage)
    }

    #[cfg(not(feature = "conformance"))]
    fn fault(&self, _: &'static str, _: Stage) -> Fault {
        Fault::None
    }
}

/// What every connection is set to. No statement of the store runs long: one that does is stuck, and the
/// verb fails and can be tried again. None waits for its process either, but for a round trip: one that is cut
/// off or suspended in the middle of a verb must not keep what it locked from those who take over.
///
/// A plan is kept for as long as its connection lives, and is made when the fleet idles and the tables are
/// empty. So it must be right for many rows whatever it is made for: an index rather than a walk through the
/// table, and a look into it for each row rather than one look at all of it. Plans are small, and compiling
/// them costs more than running them.
fn session_settings() -> &'static str {
    "SET statement_timeout = '30s'; SET lock_timeout = '20s'; SET idle_in_transaction_session_timeout = '3s';
     SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3;
     SET tcp_user_timeout = '10s';
     SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
     SET jit = off; SET timezone = 'UTC'; SET client_min_messages = warning"
}

/// What a connection apart is set to besides: its statements read much, and are planned when they do; it locks
/// nothing, and whoever reads may take their time.
fn settings_apart() -> &'static str {
    "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; RESET enable_seqscan; RESET enable_hashjoin; RESET enable_mergejoin"
}
