//! Makes connectors to servers, which are configured alike: a kind is a name and a dialect.

use std::sync::Arc;

use domesday_connector::address::{Address, Scheme};
use domesday_connector::credentials::Method;
use domesday_connector::fields::{self, Field};
use domesday_connector::{
    Configured, Connector, ConnectorError, ConnectorFactory, Description, Exclude, NamedBy, Surroundings,
    TargetError, TargetFlags,
};
use serde_json::Value;

use super::address::parse_address;
use super::config::DatabaseConfig;
use super::connector::DatabaseConnector;
use super::dialect::Dialect;

/// What speaks to the servers of a data source.
type MakeDialect = fn(DatabaseConfig, Surroundings) -> Arc<dyn Dialect>;

/// Tasks of a server that run at once across the fleet, unless said otherwise: each holds a connection.
const SERVER_CONCURRENCY: u32 = 4;

/// The parameter of an address that says how many connections there may be at once.
const MAX_CONNECTIONS: &str = "max_connections";

/// Makes connectors to one kind of server.
pub struct ServerFactory {
    kind: &'static str,
    about: &'static str,
    schemes: &'static [Scheme],
    dialect: MakeDialect,
}

impl ServerFactory {
    pub(super) const fn new(
        kind: &'static str,
        about: &'static str,
        schemes: &'static [Scheme],
        dialect: MakeDialect,
    ) -> ServerFactory {
        ServerFactory { kind, about, schemes, dialect }
    }

    /// What speaks to the servers of a data source, and its configuration.
    pub(super) fn dialect(
        &self,
        configuration: &Value,
        surroundings: &Surroundings,
    ) -> Result<(Arc<dyn Dialect>, DatabaseConfig), ConnectorError> {
        let config = DatabaseConfig::parse(self.kind, configuration)?;
        Ok(((self.dialect)(config.clone(), surroundings.clone()), config))
    }
}

impl ConnectorFactory for ServerFactory {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn create(
        &self,
        configuration: &Value,
        surroundings: &Surroundings,
    ) -> Result<Arc<dyn Connector>, ConnectorError> {
        let (dialect, config) = self.dialect(configuration, surroundings)?;
        Ok(Arc::new(DatabaseConnector::new(dialect, config)))
    }

    fn describe(&self) -> Description {
        Description {
            about: self.about,
            schemes: self.schemes,
            password: Method::Database,
            default_concurrency: Some(SERVER_CONCURRENCY),
            exclude: Some(Exclude::Names("exclude")),
            max_file_size: None,
            ..Description::default()
        }
    }

    fn fields(&self) -> Vec<Field> {
        fields::fields(&DatabaseConfig::default())
    }

    fn configure_address(&self, address: &Address, _: &TargetFlags) -> Result<Configured, TargetError> {
        let parsed = parse_address(&address.text);
        let mut configuration = parsed.map_err(|error| TargetError::new(error.to_string()))?;
        // Each task that runs has one connection.
        let limit = configuration.as_object_mut().and_then(|fields| fields.remove(MAX_CONNECTIONS));
        let concurrency_limit = limit.map(|limit| {
            let number =
                limit.as_u64().and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0);
            number.ok_or_else(|| TargetError::new(format!("`{MAX_CONNECTIONS}`: expected a number from 1")))
        });
        let concurrency_limit = concurrency_limit.transpose()?;
        Ok(Configured { kind: self.kind, configuration, concurrency_limit })
    }

    /// Keys begin with the database.
    fn display_root(&self, _: &Value, named: NamedBy<'_>) -> Vec<u8> {
        match named {
            NamedBy::Address(address) => address.server().as_bytes().to_vec(),
            NamedBy::Path(_) | NamedBy::Configuration => Vec::new(),
        }
    }
}
