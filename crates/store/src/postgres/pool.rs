//! A few connections, each with its prepared statements.
//!
//! A connection goes back only when its transaction has ended for certain. One that is given up in the
//! middle, because its caller went away or the network did, is closed, and the server rolls back.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::task::Poll;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

use super::config::Target;
use super::error::store_error;
use super::{Result, session_settings, settings_apart};
use crate::error::StoreError;

/// Connections apart from the pool, at most; further callers wait.
const APART_MAX: usize = 4;

pub(super) type Param = Box<dyn ToSql + Sync + Send>;

/// A statement to be sent, with its parameters.
pub(super) struct Call {
    pub sql: &'static str,
    pub params: Vec<Param>,
}

/// What the server answered to a statement.
pub(super) struct Answer {
    rows: Vec<Row>,
    /// Rows that were changed by a statement that gives none back.
    pub changed: u64,
}

impl Deref for Answer {
    type Target = [Row];

    fn deref(&self) -> &[Row] {
        &self.rows
    }
}

pub(super) struct Pool {
    target: Target,
    permits: Arc<Semaphore>,
    /// For connections apart.
    apart: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
    /// Waits for the server so far.
    #[cfg(feature = "conformance")]
    round_trips: std::sync::atomic::AtomicU64,
}

pub(super) struct Connection {
    client: Client,
    /// By the address of the statement's text, which is a constant.
    statements: Mutex<HashMap<usize, Statement>>,
}

/// A connection on loan.
pub(super) struct Loan {
    connection: Option<Connection>,
    pool: Arc<Pool>,
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    pub fn new(target: Target, connections_max: usize) -> Arc<Pool> {
        let (permits, apart) = (Semaphore::new(connections_max.max(1)), Semaphore::new(APART_MAX));
        let idle = Mutex::new(Vec::new());
        Arc::new(Pool {
            target,
            permits: Arc::new(permits),
            apart: Arc::new(apart),
            idle,
            #[cfg(feature = "conformance")]
            round_trips: Default::default(),
        })
    }

    #[cfg(feature = "conformance")]
    pub fn round_trips(&self) -> u64 {
        self.round_trips.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn count_round_trip(&self) {
        #[cfg(feature = "conformance")]
        self.round_trips.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    /// A connection that is idle, or a new one; waits while as many as may be are on loan.
    pub async fn get(self: &Arc<Pool>) -> Result<Loan> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| StoreError::Stopped)?;
        let connection = match self.pop() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        Ok(Loan { connection: Some(connection), pool: Arc::clone(self), _permit: permit })
    }

    /// A new connection that is never shared, for someone who may be slow: verbs do not wait for it, and no
    /// time limit is on its statements.
    pub async fn get_apart(self: &Arc<Pool>) -> Result<Loan> {
        let permit = Arc::clone(&self.apart).acquire_owned().await.map_err(|_| StoreError::Stopped)?;
        let connection = self.connect().await?;
        let unlimited = connection.client.batch_execute(settings_apart()).await;
        unlimited.map_err(|error| store_error(&error))?;
        Ok(Loan { connection: Some(connection), pool: Arc::clone(self), _permit: permit })
    }

    fn pop(&self) -> Option<Connection> {
        let mut idle = self.idle.lock();
        // What the server closed meanwhile is dropped on the way.
        while let Some(connection) = idle.pop() {
            if !connection.client.is_closed() {
                return Some(connection);
            }
        }
        None
    }

    async fn connect(&self) -> Result<Connection> {
        let (client, driver) = self.target.connect().await?;
        tokio::spawn(driver);
        client.batch_execute(session_settings()).await.map_err(|error| store_error(&error))?;
        Ok(Connection { client, statements: Mutex::new(HashMap::new()) })
    }
}

impl Loan {
    /// Sends all calls at once; the answers in their order. A node group may be far from the database: this is
    /// one round trip, and one more the first time a connection meets a statement. A call that cannot be sent
    /// is the last one that has an answer: what comes behind it is not sent either.
    pub async fn pipeline(&self, calls: &[Call]) -> Vec<std::result::Result<Answer, Error>> {
        let connection = self.connection();
        if calls.iter().any(|call| connection.known(call.sql).is_none()) {
            self.pool.count_round_trip();
        }
        self.pool.count_round_trip();
        let prepared = in_order(calls.iter().map(|call| connection.prepare(call.sql))).await;
        let sent = calls
            .iter()
            .zip(prepared)
            .map(|(call, statement)| async move { connection.send(call, &statement?).await });
        in_order(sent).await
    }

    /// One call.
    pub async fn ask(&self, call: &Call) -> std::result::Result<Answer, Error> {
        self.pipeline(std::slice::from_ref(call)).await.pop().expect("a call has an answer")
    }

    pub fn client(&self) -> &Client {
        &self.connection().client
    }

    /// Nothing is open on the connection: others may use it.
    pub fn give_back(mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.idle.lock().push(connection);
        }
    }

    fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("a loan has its connection until it is given back")
    }
}

impl Connection {
    fn known(&self, sql: &'static str) -> Option<Statement> {
        let known = self.statements.lock();
        known.get(&sql.as_ptr().addr()).cloned()
    }

    async fn prepare(&self, sql: &'static str) -> std::result::Result<Statement, Error> {
        if let Some(statement) = self.known(sql) {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        let mut known = self.statements.lock();
        known.insert(sql.as_ptr().addr(), statement.clone());
        Ok(statement)
    }

    async fn send(&self, call: &Call, statement: &Statement) -> std::result::Result<Answer, Error> {
        let params: Vec<&(dyn ToSql + Sync)> =
            call.params.iter().map(|param| &**param as &(dyn ToSql + Sync)).collect();
        Ok(match statement.columns().is_empty() {
            true => Answer { rows: Vec::new(), changed: self.client.execute(statement, &params).await? },
            false => Answer { rows: self.client.query(statement, &params).await?, changed: 0 },
        })
    }
}

/// Runs futures together and polls them in order each time. What a query sends, it sends when it is first
/// polled, so statements reach the server in the order given. One that fails at once was not sent, and
/// nothing behind it may be: a COMMIT least of all.
async fn in_order<T, F>(futures: impl Iterator<Item = F>) -> Vec<std::result::Result<T, Error>>
where
    F: Future<Output = std::result::Result<T, Error>>,
{
    let mut running: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    let mut sent = 0;
    std::future::poll_fn(move |context| {
        let mut at = 0;
        while at < running.len() {
            let (future, result) = &mut running[at];
            at += 1;
            if result.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                if at > sent && value.is_err() {
                    running.truncate(at);
                    running[at - 1].1 = Some(value);
                } else {
                    *result = Some(value);
                }
            }
            sent = sent.max(at);
        }
        match running.iter().all(|(_, result)| result.is_some()) {
            true => Poll::Ready(running.iter_mut().filter_map(|(_, result)| result.take()).collect()),
            false => Poll::Pending,
        }
    })
    .await
}
