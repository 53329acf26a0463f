//! The tables of one packet, read one after another over one connection at most.
//!
//! Whoever opens a table while another is being read waits for that one to end, or to be dropped. So connections
//! are as many as packets, which the data source's own limit holds down over the whole fleet. A table that was
//! begun is to be read on before others are waited for: it has the connection.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use domesday_connector::remote::{ATTEMPTS_MAX, begin, pause, rest};
use domesday_connector::{ConnectorError, ReadAhead};
use domesday_content::{ObjectError, OpenTable};
use domesday_model::{ListedObject, ObjectKey, Reason, TableShape};
use domesday_scheduler::Opened;
use tokio::sync::Mutex;

use super::connector::{Place, Source, dial};
use super::dialect::{Session, TableName, Which};
use super::parts::Bounds;
use super::rows::{RowSink, line};

/// How often reading a table is begun, when it fails before any of its rows was handed over.
const READ_ATTEMPTS_MAX: u32 = 3;
/// Rows read of a sampled table, as a multiple of what was asked for: a server's sampling is not exact.
const SAMPLE_EXCESS: u64 = 2;

pub(super) struct PacketTables {
    source: Arc<Source>,
    objects: Arc<[ListedObject]>,
    connection: Arc<Mutex<Connection>>,
}

/// The packet's connection, whose lock is held as long as a table is read.
#[derive(Default)]
struct Connection {
    /// With the database it is for.
    session: Option<(String, Box<dyn Session>)>,
}

impl PacketTables {
    pub fn new(source: &Arc<Source>, objects: Arc<[ListedObject]>) -> PacketTables {
        PacketTables { source: Arc::clone(source), objects, connection: Arc::default() }
    }

    /// The shape of a table that is read in parts, which its parts do not have.
    fn shape_of(&self, table: &TableName) -> Result<Arc<TableShape>, ObjectError> {
        if let Some(shape) = self.source.known_shape(table) {
            return Ok(shape);
        }
        let (sender, answer) = channel();
        let (source, connection, name) =
            (Arc::clone(&self.source), Arc::clone(&self.connection), table.clone());
        let _begun = begin(async move {
            let found = async {
                let mut connection = connection.lock().await;
                let mut session = connection.take(&source, &name.database).await?;
                let found = session.table(&name).await?;
                connection.give_back(&name.database, session);
                Ok::<_, ConnectorError>(found)
            };
            // Nobody waits any more: nobody wants it.
            let _ = sender.send(found.await);
        })?;
        let lost = |_| ObjectError::new(Reason::ReadError, "a question to the server was lost");
        let found = answer.recv().map_err(lost)?.map_err(|error| told(&self.source, table, &error))?;
        let gone = || ObjectError::new(Reason::Vanished, format!("{}: is gone", self.source.key(table)));
        let shape = Arc::new(found.ok_or_else(gone)?.shape);
        self.source.keep_shape(table, &shape);
        Ok(shape)
    }

    fn begin(&self, table: TableName, shape: Arc<TableShape>, which: Which) -> Result<Opened, ObjectError> {
        let rows_max = match which {
            Which::Sample { rows, .. } => rows.saturating_mul(SAMPLE_EXCESS),
            Which::All | Which::Range { .. } => u64::MAX,
        };
        let (mut sink, arriving) = line(shape.columns.len(), rows_max, &self.source.limits);
        let (source, connection) = (Arc::clone(&self.source), Arc::clone(&self.connection));
        let is_sample = matches!(which, Which::Sample { .. });
        let key = source.key(&table);
        let read = Read { source, table, shape: Arc::clone(&shape), which };
        let sender = begin(async move {
            let mut connection = connection.lock().await;
            let outcome = read.run(&mut connection, &mut sink).await;
            drop(connection);
            sink.end(outcome).await;
        })?;
        Ok(Opened::Rows { table: key, rows: OpenTable { shape, is_sample, rows: arriving.from(sender) } })
    }
}

impl ReadAhead for PacketTables {
    fn open(&self, index: usize) -> Result<Opened, ObjectError> {
        let ListedObject { key, kind, metadata, .. } = &self.objects[index];
        if !kind.is_rows() {
            return Err(ObjectError::new(Reason::ReadError, format!("{key} is read by rows, not by bytes")));
        }
        let unusable =
            || ObjectError::new(Reason::ReadError, format!("{key}: was listed without what it is"));
        match self.source.place(key) {
            Some(Place::Table(table)) => {
                let shape = match metadata.as_deref() {
                    Some(metadata) => Arc::new(serde_json::from_str(metadata).map_err(|_| unusable())?),
                    None => self.shape_of(&table)?,
                };
                let which = self.source.which(&shape);
                self.begin(table, shape, which)
            }
            Some(Place::Rows(table)) => {
                let metadata = metadata.as_deref().ok_or_else(unusable)?;
                let Bounds { after, to } = serde_json::from_str(metadata).map_err(|_| unusable())?;
                let shape = self.shape_of(&table)?;
                self.begin(table, shape, Which::Range { after, to })
            }
            _ => Err(ObjectError::new(Reason::ReadError, format!("{key} is no table"))),
        }
    }
}

impl Connection {
    /// A session for this database: the one there is, or another instead of it.
    async fn take(&mut self, source: &Source, database: &str) -> Result<Box<dyn Session>, ConnectorError> {
        if let Some((of, session)) = self.session.take()
            && of == database
        {
            return Ok(session);
        }
        let database = (!database.is_empty()).then_some(database);
        let mut failed = 0;
        loop {
            match dial(&*source.dialect, database).await {
                Err(ConnectorError::Wait { after, .. }) if failed + 1 < ATTEMPTS_MAX => {
                    failed += 1;
                    rest(pause(failed, Some(after))).await;
                }
                connected => return connected,
            }
        }
    }

    fn give_back(&mut self, database: &str, session: Box<dyn Session>) {
        self.session = Some((database.to_owned(), session));
    }
}

/// One table to be read.
struct Read {
    source: Arc<Source>,
    table: TableName,
    shape: Arc<TableShape>,
    which: Which,
}

impl Read {
    async fn run(&self, connection: &mut Connection, sink: &mut RowSink) -> Result<(), ObjectError> {
        let mut failed = 0;
        loop {
            let error = match self.once(connection, sink).await {
                Ok(()) => return self.whole(sink),
                Err(error) => error,
            };
            failed += 1;
            // Only what the connection or the server's moment is to blame for.
            let is_passing = error.reason() == Reason::Unavailable;
            if !is_passing || sink.handed() > 0 || failed >= READ_ATTEMPTS_MAX {
                return Err(told(&self.source, &self.table, &error));
            }
            tracing::debug!(table = %self.source.key(&self.table), %error, "table not read, trying again");
            sink.begin_again();
            rest(pause(failed, None)).await;
        }
    }

    /// A table of which something is missing ends with a reason, after its rows.
    fn whole(&self, sink: &RowSink) -> Result<(), ObjectError> {
        sink.gap().map_or(Ok(()), |(reason, detail)| {
            Err(ObjectError::new(*reason, format!("{}: {detail}", self.source.key(&self.table))))
        })
    }

    async fn once(&self, connection: &mut Connection, sink: &mut RowSink) -> Result<(), ConnectorError> {
        let mut session = connection.take(&self.source, &self.table.database).await?;
        let watch = sink.watch();
        watch.progress();
        let limit = Duration::from_secs(self.source.config.statement_timeout_seconds);
        tokio::select! {
            read = session.read(&self.table, &self.shape, &self.which, sink) => read?,
            () = watch.stalled(limit) => {
                let detail = format!("the server gave no rows for {} s (`statement_timeout_seconds`)", limit.as_secs());
                return Err(ConnectorError::Container { reason: Reason::TimedOut, detail });
            }
        }
        connection.give_back(&self.table.database, session);
        Ok(())
    }
}

/// Why a table was not read.
fn told(source: &Source, table: &TableName, error: &ConnectorError) -> ObjectError {
    let key: ObjectKey = source.key(table);
    ObjectError::new(error.reason(), format!("{key}: {error}"))
}
