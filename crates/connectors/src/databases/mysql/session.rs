//! A connection: made, told what it may do, and asked.

use std::time::Duration;

use domesday_connector::ConnectorError;
use domesday_model::Reason;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error, Opts, OptsBuilder, Row, SslOpts, Value};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::super::config::{DatabaseConfig, TlsMode};
use super::super::login::Login;
use super::error::{container, failure, tls_problem};
use super::tls;

/// The kind's usual port.
pub(super) const PORT: u16 = 3306;
/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long taking leave of the server may take.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long after its own time limit a server may be silent: then it is gone.
const GRACE: Duration = Duration::from_secs(30);
/// How often a silent connection is tried.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// Bytes of a packet, and so of a row: more than what long values are cut to can be.
const PACKET_MAX: usize = 128 << 20;
/// How long the server waits for us to take rows: longer than the scan core may be busy with others.
const WRITE_TIMEOUT_SECONDS: u64 = 600;

/// A connection in use.
pub(super) struct Connection {
    /// `None` only while it is dropped.
    conn: Option<Conn>,
    runtime: Handle,
    /// How long a short answer may take. Whoever reads rows watches over them.
    patience: Duration,
    /// Whether the server works on a statement, or has rows that nobody took yet.
    pub is_busy: bool,
}

impl Connection {
    pub async fn open(
        config: &DatabaseConfig,
        login: &Login,
        database: Option<&str>,
    ) -> Result<Connection, ConnectorError> {
        let about = format!("{}:{}", config.host, config.port.unwrap_or(PORT));
        let opening = connect(config, login, database);
        let conn = match timeout(CONNECT_TIMEOUT, opening).await {
            Ok(opened) => opened?.map_err(|error| failure(&about, &error))?,
            Err(_) => {
                let detail = format!("no connection after {} s", CONNECT_TIMEOUT.as_secs());
                return Err(container(&about, Reason::Unavailable, &detail));
            }
        };
        let patience = Duration::from_secs(config.statement_timeout_seconds) + GRACE;
        let (conn, runtime) = (Some(conn), Handle::current());
        let mut connection = Connection { conn, runtime, patience, is_busy: false };
        connection.rows(&about, &settings(config)).await?;
        Ok(connection)
    }

    pub fn conn(&mut self) -> &mut Conn {
        self.conn.as_mut().expect("a connection has its library's until it is dropped")
    }

    /// A short answer.
    pub async fn rows(&mut self, what: &str, sql: &str) -> Result<Vec<Row>, ConnectorError> {
        let silent =
            || Error::from(std::io::Error::new(std::io::ErrorKind::TimedOut, "the server fell silent"));
        self.is_busy = true;
        let answer = timeout(self.patience, self.conn().query(sql)).await;
        self.is_busy = answer.is_err();
        answer.unwrap_or_else(|_| Err(silent())).map_err(|error| failure(what, &error))
    }
}

impl Drop for Connection {
    /// Takes leave of the server, so that it does not count us among the clients that broke off. Whoever drops this may
    /// be on no runtime at all.
    ///
    /// While a panic of the library unwinds, nothing is asked of it: a second panic would end the process.
    fn drop(&mut self) {
        let Some(conn) = self.conn.take() else { return };
        if std::thread::panicking() {
            return;
        }
        let is_busy = self.is_busy;
        self.runtime.spawn(take_leave(conn, is_busy));
    }
}

/// Ends a connection. The library reads rows that are still coming to their end, however many they are, before it says
/// anything else. So the server, which looks at its clients only when it has something for them, is told over another
/// connection to stop first; one that cannot be told has its time limit. If the rows do not end soon even so, the
/// request is given up, which makes the library let go of the connection at once.
async fn take_leave(mut conn: Conn, is_busy: bool) {
    if is_busy {
        let _ = timeout(CONNECT_TIMEOUT, kill(conn.opts().clone(), conn.id())).await;
        // What was stopped ends with an error, which is the answer to whatever is asked next.
        match timeout(LEAVE_TIMEOUT, conn.ping()).await {
            Ok(Ok(()) | Err(Error::Server(_))) => {}
            _ => return,
        }
    }
    let _ = timeout(LEAVE_TIMEOUT, conn.disconnect()).await;
}

/// Ends what a connection of ours works on.
async fn kill(options: Opts, id: u32) -> Result<(), Error> {
    let mut conn = Conn::new(options).await?;
    conn.query_drop(format!("KILL QUERY {id}")).await?;
    conn.disconnect().await
}

/// Connects as the configuration's TLS mode has it.
async fn connect(
    config: &DatabaseConfig,
    login: &Login,
    database: Option<&str>,
) -> Result<Result<Conn, Error>, ConnectorError> {
    let options = |tls: Option<SslOpts>| options(config, login, database, tls);
    let tls = tls::options(config)?;
    let error = match Conn::new(options(tls.clone())).await {
        Err(error) => error,
        connected => return Ok(connected),
    };
    let offers_none = matches!(error, Error::Driver(DriverError::NoClientSslFlagFromServer));
    // No password goes in clear text either way: the library is not told to know that method.
    if config.tls() == TlsMode::Prefer && (offers_none || tls_problem(&error).is_some()) {
        return Ok(Conn::new(options(None)).await);
    }
    match (tls, tls::presented_name(config.tls(), &error)) {
        (Some(tls), Some(name)) => {
            let tls = tls.with_danger_tls_hostname_override(Some(name));
            Ok(Conn::new(options(Some(tls))).await)
        }
        _ => Ok(Err(error)),
    }
}

fn options(config: &DatabaseConfig, login: &Login, database: Option<&str>, tls: Option<SslOpts>) -> Opts {
    let password = login.password.as_ref().map(|secret| String::from_utf8_lossy(secret.expose()));
    let is_socket = config.host.starts_with('/');
    OptsBuilder::default()
        .ip_or_hostname(if is_socket { "localhost" } else { &config.host })
        .tcp_port(config.port.unwrap_or(PORT))
        .socket(is_socket.then_some(&config.host))
        // Where we were told, and not where the server says that it also is.
        .prefer_socket(false)
        .user(login.user.as_deref())
        .pass(password)
        .db_name(database)
        .tcp_keepalive(Some(KEEPALIVE))
        .max_allowed_packet(Some(PACKET_MAX))
        // Of no use here; when it is given, the server is not asked for it.
        .wait_timeout(Some(WRITE_TIMEOUT_SECONDS as usize))
        .stmt_cache_size(0)
        .connect_attribute("program_name", &config.application_name)
        .ssl_opts(tls)
        .into()
}

/// What a session is told first: texts as UTF-8, times as UTC, nothing that the server's own settings change in
/// how statements are read or how many rows they give, the time limits, and that it only reads. What only one of
/// MariaDB and MySQL knows is a comment to the other.
fn settings(config: &DatabaseConfig) -> String {
    let (statement, lock) = (config.statement_timeout_seconds, config.lock_timeout_seconds);
    format!(
        "SET NAMES utf8mb4; \
         SET SESSION time_zone = '+00:00', sql_mode = '', sql_select_limit = 18446744073709551615, \
         sql_big_selects = 1, lock_wait_timeout = {lock}, innodb_lock_wait_timeout = {lock}, \
         net_write_timeout = {WRITE_TIMEOUT_SECONDS} \
         /*M!100101 , max_statement_time = {statement} */ /*!50708 , max_execution_time = {statement}000 */ \
         /*!80000 , information_schema_stats_expiry = 0 */; \
         SET SESSION TRANSACTION READ ONLY"
    )
}

/// The text of a row's column.
pub(super) fn text(row: &Row, column: usize) -> Option<String> {
    match row.as_ref(column)? {
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    }
}

pub(super) fn number<T: std::str::FromStr>(row: &Row, column: usize) -> Option<T> {
    text(row, column)?.parse().ok()
}
