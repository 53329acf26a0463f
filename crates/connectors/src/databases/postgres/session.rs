//! A connection, and what every transaction on it is told first.
//!
//! Everything that is asked is asked within a transaction, whose settings are its own and end with it. Between us and
//! the server there may be a pool that gives each transaction another of its connections, and each connection to others
//! afterwards: no setting outlives its transaction, and no prepared statement does either.

use std::fmt::Write as _;
use std::time::Duration;

use async_trait::async_trait;
use domesday_connector::ConnectorError;
use domesday_model::TableShape;
use domesday_tls::postgres::Tls;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::{Client, Config, Error};

use super::cancel::Canceller;
use super::error::meaning;
use super::{PORT, attempt, catalogue};
use crate::databases::config::DatabaseConfig;
use crate::databases::dialect::{Found, FoundTable, RowKey, Session, TableName, Which};
use crate::databases::rows::RowSink;

/// How the server writes values, so that the same value is always the same text, and that nothing but the
/// server's own operators and functions is ever called by a name.
const SETTINGS: [(&str, &str); 11] = [
    ("search_path", "pg_catalog"),
    ("standard_conforming_strings", "on"),
    ("DateStyle", "'ISO,YMD'"),
    ("IntervalStyle", "postgres"),
    ("TimeZone", "'UTC'"),
    ("extra_float_digits", "1"),
    ("bytea_output", "hex"),
    ("lc_monetary", "'C'"),
    ("synchronize_seqscans", "off"),
    ("max_parallel_workers_per_gather", "0"),
    ("jit", "off"),
];
/// So that a server, where it can, notices within this time that nobody waits any more.
const LEFT_ALONE: &str = "SELECT pg_catalog.set_config('client_connection_check_interval', '10s', true) \
                          WHERE pg_catalog.current_setting('client_connection_check_interval', true) IS NOT NULL";
/// An encoding of a database that is none: the server takes any bytes, and has no UTF-8 to give of them.
const NO_ENCODING: &str = "SQL_ASCII";
/// How long asking the server to stop may take.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long taking leave of the server may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// What a transaction is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// To look into the catalogue, waiting for a lock for so many milliseconds at most.
    Catalogue { lock_timeout_ms: u64 },
    /// To read rows in one snapshot, of which the time limit of statements is not asked: it is the sink's to watch how
    /// long the server gives nothing, for the server cannot tell its own time from the reader's. With `policies` the
    /// server leaves out what row-level policies hide; without, it refuses where it would.
    Rows { policies: bool },
    /// To look for a key.
    Key { policies: bool },
}

pub(super) struct PostgresSession {
    pub client: Client,
    /// How long a lock may be waited for when the catalogue is asked.
    pub lock_timeout_ms: u64,
    statement_timeout_ms: u64,
    /// Whether texts are bytes in no certain encoding.
    pub has_no_encoding: bool,
    /// Whether a statement is under way, which the server is asked to stop when nobody wants it any more.
    pub is_busy: bool,
    connection: Option<JoinHandle<()>>,
    runtime: Handle,
    canceller: Canceller,
}

impl PostgresSession {
    pub async fn connect(
        server: &mut Config,
        tls: Tls,
        config: &DatabaseConfig,
    ) -> Result<PostgresSession, Error> {
        let (client, connection) = server.connect(tls.clone()).await?;
        let has_no_encoding = connection.parameter("server_encoding") == Some(NO_ENCODING);
        let connection = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to PostgreSQL broke");
            }
        });
        Ok(PostgresSession {
            canceller: Canceller {
                token: client.cancel_token(),
                tls,
                host: config.host.clone(),
                port: config.port.unwrap_or(PORT),
            },
            client,
            lock_timeout_ms: config.lock_timeout_seconds * 1_000,
            statement_timeout_ms: config.statement_timeout_seconds * 1_000,
            has_no_encoding,
            is_busy: false,
            connection: Some(connection),
            runtime: Handle::current(),
        })
    }

    /// Begins a transaction, which can only read.
    pub async fn begin(&self, purpose: Purpose) -> Result<(), Error> {
        self.client.batch_execute(&self.opening(purpose)).await
    }

    pub async fn commit(&self) -> Result<(), Error> {
        self.client.batch_execute("COMMIT").await
    }

    pub async fn roll_back(&self) -> Result<(), Error> {
        self.client.batch_execute("ROLLBACK").await
    }

    fn opening(&self, purpose: Purpose) -> String {
        let (isolation, lock_ms, statement_ms, policies) = match purpose {
            Purpose::Catalogue { lock_timeout_ms } => ("", lock_timeout_ms, self.statement_timeout_ms, true),
            Purpose::Key { policies } => ("", self.lock_timeout_ms, self.statement_timeout_ms, policies),
            Purpose::Rows { policies } => {
                (" ISOLATION LEVEL REPEATABLE READ", self.lock_timeout_ms, 0, policies)
            }
        };
        let mut opening = format!("BEGIN{isolation} READ ONLY");
        let mut set = |name: &str, value: &str| {
            let _ = write!(opening, "; SET LOCAL {name} = {value}");
        };
        SETTINGS.iter().for_each(|(name, value)| set(name, value));
        set("row_security", if policies { "on" } else { "off" });
        set("lock_timeout", &lock_ms.to_string());
        set("statement_timeout", &statement_ms.to_string());
        set("idle_in_transaction_session_timeout", &self.statement_timeout_ms.to_string());
        if self.has_no_encoding {
            // Else it refuses to give what is not UTF-8.
            set("client_encoding", NO_ENCODING);
        }
        let _ = write!(opening, "; {LEFT_ALONE}");
        opening
    }
}

impl Drop for PostgresSession {
    /// Takes leave of the server, which the library does when the client is gone and nothing is under way any more. What
    /// is under way is called off first, while the connection is there: a pool in between knows it by that. Whoever
    /// drops this may be on no runtime at all.
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        let is_busy = self.is_busy;
        let canceller = self.canceller.clone();
        self.runtime.spawn(async move {
            if is_busy {
                // It ends by itself if this fails, only later.
                let _ = timeout(CANCEL_TIMEOUT, canceller.cancel()).await;
            }
            if timeout(CLOSE_TIMEOUT, &mut connection).await.is_err() {
                connection.abort();
            }
        });
    }
}

#[async_trait]
impl Session for PostgresSession {
    async fn databases(&mut self) -> Result<Vec<Found>, ConnectorError> {
        catalogue::databases(self).await.map_err(|error| meaning(&error))
    }

    async fn schemas(&mut self) -> Result<Vec<Found>, ConnectorError> {
        catalogue::schemas(self).await.map_err(|error| meaning(&error))
    }

    async fn tables(
        &mut self,
        schema: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<FoundTable>, ConnectorError> {
        catalogue::tables(self, schema, after, None, max).await.map_err(|error| meaning(&error))
    }

    async fn table(&mut self, table: &TableName) -> Result<Option<FoundTable>, ConnectorError> {
        let found = catalogue::tables(self, &table.schema, None, Some(&table.table), 1).await;
        Ok(found.map_err(|error| meaning(&error))?.pop())
    }

    async fn boundary(
        &mut self,
        table: &TableName,
        shape: &TableShape,
        after: Option<&RowKey>,
        rows: u64,
    ) -> Result<Option<RowKey>, ConnectorError> {
        self.is_busy = true;
        let found = attempt::boundary(self, table, shape, after, rows).await;
        self.is_busy = false;
        found
    }

    async fn read(
        &mut self,
        table: &TableName,
        shape: &TableShape,
        which: &Which,
        sink: &mut RowSink,
    ) -> Result<(), ConnectorError> {
        self.is_busy = true;
        let read = attempt::read(self, table, shape, which, sink).await;
        self.is_busy = false;
        read
    }
}
