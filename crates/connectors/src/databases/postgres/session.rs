//! A connection, and what every one is told first.

use std::fmt::Write as _;
use std::time::Duration;

use async_trait::async_trait;
use domesday_connector::ConnectorError;
use domesday_model::TableShape;
use domesday_tls::postgres::Tls;
use tokio::task::AbortHandle;
use tokio_postgres::{CancelToken, Client, Config, Error};

use super::error::meaning;
use super::{catalogue, read};
use crate::databases::config::DatabaseConfig;
use crate::databases::dialect::{Found, FoundTable, RowKey, Session, TableName, Which};
use crate::databases::rows::RowSink;

/// How the server writes values, so that the same value is always the same text, and that nothing but the
/// server's own operators and functions is ever called by a name. They are asked for when the connection is made
/// and never later: a pool in between refuses them then, and does not hand them on to others.
const SETTINGS: [(&str, &str); 12] = [
    ("default_transaction_read_only", "on"),
    ("search_path", "pg_catalog"),
    ("standard_conforming_strings", "on"),
    ("DateStyle", "ISO,YMD"),
    ("IntervalStyle", "postgres"),
    ("TimeZone", "UTC"),
    ("extra_float_digits", "1"),
    ("bytea_output", "hex"),
    ("lc_monetary", "C"),
    ("synchronize_seqscans", "off"),
    ("max_parallel_workers_per_gather", "0"),
    ("jit", "off"),
];
/// So that a server, where it can, notices within this time that nobody waits any more.
const LEFT_ALONE: &str = "SELECT set_config(name, '10s', false) FROM pg_settings \
                          WHERE name = 'client_connection_check_interval'";
/// How long asking the server to stop may take.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct PostgresSession {
    pub client: Client,
    /// How long a lock may be waited for when the catalogue is asked.
    pub lock_timeout_ms: u64,
    /// Whether a statement is under way, which the server is asked to stop when nobody wants it any more.
    pub is_busy: bool,
    connection: AbortHandle,
    cancel: CancelToken,
    tls: Tls,
}

impl PostgresSession {
    pub async fn connect(
        server: &mut Config,
        tls: Tls,
        config: &DatabaseConfig,
    ) -> Result<PostgresSession, Error> {
        let (lock_ms, statement_ms) =
            (config.lock_timeout_seconds * 1_000, config.statement_timeout_seconds * 1_000);
        let mut options: String =
            SETTINGS.iter().map(|(name, value)| format!("-c {name}={value} ")).collect();
        let _ = write!(
            options,
            "-c lock_timeout={lock_ms} -c statement_timeout={statement_ms} \
             -c idle_in_transaction_session_timeout={statement_ms}"
        );
        let (client, connection) = server.options(options).connect(tls.clone()).await?;
        let connection = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to PostgreSQL broke");
            }
        });
        let session = PostgresSession {
            cancel: client.cancel_token(),
            client,
            lock_timeout_ms: lock_ms,
            is_busy: false,
            connection: connection.abort_handle(),
            tls,
        };
        session.client.batch_execute(LEFT_ALONE).await?;
        Ok(session)
    }
}

impl Drop for PostgresSession {
    fn drop(&mut self) {
        self.connection.abort();
        if self.is_busy
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (cancel, tls) = (self.cancel.clone(), self.tls.clone());
            runtime.spawn(async move {
                // It ends by itself if this fails, only later.
                let _ = tokio::time::timeout(CANCEL_TIMEOUT, cancel.cancel_query(tls)).await;
            });
        }
    }
}

#[async_trait]
impl Session for PostgresSession {
    async fn databases(&mut self) -> Result<Vec<Found>, ConnectorError> {
        catalogue::databases(&self.client).await.map_err(|error| meaning(&error))
    }

    async fn schemas(&mut self) -> Result<Vec<Found>, ConnectorError> {
        catalogue::schemas(&self.client).await.map_err(|error| meaning(&error))
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
        let found = read::boundary(self, table, shape, after, rows).await;
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
        let read = read::read(self, table, shape, which, sink).await;
        self.is_busy = false;
        read
    }
}
