//! Kind `postgres`: the tables of a PostgreSQL server, version 12 or newer.
//!
//! Sessions are read-only, trust no operator or function outside of `pg_catalog`, and have the source's time
//! limits. Rows come by `COPY … TO STDOUT` in its binary format: values as the server has them where their bytes
//! are the text already or cheaply become it, and as the server's own text where not.

mod attempt;
mod cancel;
mod catalogue;
mod copy;
mod error;
mod read;
mod session;
#[cfg(test)]
mod tests;
mod values;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domesday_connector::address::{Scheme, UserInfo};
use domesday_connector::{ConnectorError, Surroundings};
use domesday_tls::is_socket;
use domesday_tls::postgres::{Encryption, Tls};

use self::error::meaning;
use self::session::PostgresSession;
use super::config::{DatabaseConfig, TlsMode};
use super::dialect::{Dialect, Levels, Session};
use super::factory::ServerFactory;
use super::login::Login;
use super::tls::client_config;

/// The kind, as data sources name it.
pub const KIND: &str = "postgres";

const PORT: u16 = 5432;
/// Where a discovery begins, unless set otherwise: every server has it.
const DATABASE: &str = "postgres";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
const KEEPALIVE: Duration = Duration::from_secs(60);

/// How its addresses begin.
const SCHEMES: &[Scheme] = &[
    Scheme::with_authority("postgres", UserInfo::UserAndPassword),
    Scheme::with_authority("postgresql", UserInfo::UserAndPassword),
];

/// Makes connectors to PostgreSQL.
pub const FACTORY: ServerFactory =
    ServerFactory::new(KIND, "a PostgreSQL server", SCHEMES, |config, surroundings| {
        Arc::new(Postgres { config, surroundings })
    });

struct Postgres {
    config: DatabaseConfig,
    surroundings: Surroundings,
}

#[async_trait]
impl Dialect for Postgres {
    fn levels(&self) -> Levels {
        Levels::DatabasesAndSchemas
    }

    async fn connect(&self, database: Option<&str>) -> Result<Box<dyn Session>, ConnectorError> {
        let config = &self.config;
        let login = Login::fetch(config, &self.surroundings, &config.server(PORT)).await?;
        let Some(user) = login.user else {
            let detail = "field `user`: say who connects, here or with a credential".to_owned();
            return Err(ConnectorError::Configuration { kind: KIND, detail });
        };
        let mut server = tokio_postgres::Config::new();
        server
            .host(&config.host)
            .port(config.port.unwrap_or(PORT))
            .user(user)
            .dbname(database.unwrap_or(DATABASE))
            .application_name(&config.application_name)
            .connect_timeout(CONNECT_TIMEOUT)
            .keepalives_idle(KEEPALIVE);
        if let Some(password) = &login.password {
            server.password(password.expose());
        }
        let encryption = match config.tls() {
            TlsMode::Disable => Encryption::Never,
            TlsMode::Prefer if is_socket(&config.host) => Encryption::Never,
            TlsMode::Prefer => Encryption::Preferred,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => Encryption::Required,
        };
        let tls = Tls::new(client_config(config)?, encryption, &mut server);
        let session = PostgresSession::connect(&mut server, tls, config);
        Ok(Box::new(session.await.map_err(|error| meaning(&error))?))
    }
}
