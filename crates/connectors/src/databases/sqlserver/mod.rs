//! SQL Server: its protocol (by `tiberius`), its catalogue and its types.
//!
//! The server has no read-only transactions. What keeps a scan from writing is that nothing but `SELECT` and `SET` is
//! ever sent, and the rights of the login, which need not be more than to read.

mod error;
mod prelogin;
mod read;
mod session;
mod statement;
#[cfg(test)]
mod tests;
mod types;
mod value;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domesday_connector::address::{Scheme, UserInfo};
use domesday_connector::{ConnectorError, Host, Surroundings};
use domesday_model::Reason;
use tiberius::{AuthMethod, Client, Config};
use tokio_util::compat::TokioAsyncWriteCompatExt;

use super::config::{DatabaseConfig, TlsMode};
use super::dialect::{Dialect, Levels, Session};
use super::factory::ServerFactory;
use super::login::Login;
use super::tls::client_config_of;
use session::SqlServerSession;

pub const KIND: &str = "sqlserver";
/// Where servers listen, unless they are told otherwise.
const PORT: u16 = 1433;
/// How long a server may take to let us in.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of packets that we ask for, as most clients do: fewer cost more headers, and encryption has no room for more
/// than 16 KiB.
const PACKET: u32 = 8_000;
/// How often a server may send us on to another, as those of a cluster do.
const REDIRECTS_MAX: usize = 2;

/// How its addresses begin.
const SCHEMES: &[Scheme] = &[
    Scheme::with_authority("sqlserver", UserInfo::UserAndPassword),
    Scheme::with_authority("mssql", UserInfo::UserAndPassword),
];

/// Makes connectors to SQL Server.
pub const FACTORY: ServerFactory =
    ServerFactory::new(KIND, "a SQL Server", SCHEMES, |config, surroundings| {
        Arc::new(SqlServer { config, surroundings })
    });

struct SqlServer {
    config: DatabaseConfig,
    surroundings: Surroundings,
}

#[async_trait]
impl Dialect for SqlServer {
    fn levels(&self) -> Levels {
        Levels::DatabasesAndSchemas
    }

    async fn connect(&self, database: Option<&str>) -> Result<Box<dyn Session>, ConnectorError> {
        let connecting = self.log_in(database);
        let session = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await.unwrap_or_else(|_| {
            let detail = format!("{}: no log-in within {} s", self.config.host, CONNECT_TIMEOUT.as_secs());
            Err(ConnectorError::unavailable(detail))
        })?;
        Ok(Box::new(session))
    }
}

impl SqlServer {
    async fn log_in(&self, database: Option<&str>) -> Result<SqlServerSession, ConnectorError> {
        let mut address = (self.config.host.clone(), self.config.port.unwrap_or(PORT));
        for _ in 0..=REDIRECTS_MAX {
            // Where it sends us on to may be another place than a credential is for, and not this machine.
            let host = Host::new(&address.0, Some(address.1));
            let login = Login::fetch(&self.config, &self.surroundings, &host).await?;
            let client = self.client_config(&login, database)?;
            let mode = self.config.tls_towards(&address.0);
            // What the protocol's version 7 carries in its packets ends with the handshake; that of TLS 1.3 goes on.
            let tls = match mode {
                TlsMode::Disable => None,
                _ => Some(Arc::new(client_config_of(&self.config, mode, &[&rustls::version::TLS12])?).into()),
            };
            let transport = prelogin::connect(&address, mode, tls.as_ref()).await?;
            match Client::connect(client, transport.compat_write()).await {
                Ok(client) => return SqlServerSession::begin(client, &self.config).await,
                Err(tiberius::error::Error::Routing { host, port }) => address = (host, port),
                Err(error) => return Err(error::told(&error)),
            }
        }
        let detail = format!("{}: sent from one server to the next {REDIRECTS_MAX} times", self.config.host);
        Err(ConnectorError::Container { reason: Reason::ReadError, detail })
    }

    fn client_config(&self, login: &Login, database: Option<&str>) -> Result<Config, ConnectorError> {
        let missing = |field: &str| ConnectorError::Configuration {
            kind: KIND,
            detail: format!("field `{field}`: SQL Server lets nobody in without a user and a password"),
        };
        let user = login.user.as_deref().ok_or_else(|| missing("user"))?;
        let password = login.password.as_ref().ok_or_else(|| missing("credential"))?;
        let password = std::str::from_utf8(password.expose()).map_err(|_| ConnectorError::Denied {
            detail: "the password in the credential is not UTF-8".to_owned(),
        })?;
        let mut config = Config::new();
        config.host(&self.config.host);
        config.authentication(AuthMethod::sql_server(user, password));
        config.application_name(&self.config.application_name);
        // A cluster may then send us to one of its copies.
        config.readonly(true);
        // What columns hold need not be valid UTF-16, nor what is left of it when it is cut.
        config.lossy_utf16_decoding(true);
        config.packet_size(PACKET);
        config.handshake_timeout(Some(CONNECT_TIMEOUT));
        config.command_timeout(Some(Duration::from_secs(self.config.statement_timeout_seconds)));
        if let Some(database) = database {
            config.database(database);
        }
        Ok(config)
    }
}
