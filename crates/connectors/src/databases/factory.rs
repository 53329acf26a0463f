//! Makes connectors to servers, which are configured alike: a kind is a name and a dialect.

use std::sync::Arc;

use domesday_connector::{Connector, ConnectorError, ConnectorFactory, Surroundings};

use super::config::DatabaseConfig;
use super::connector::DatabaseConnector;
use super::dialect::Dialect;

/// What speaks to the servers of a data source.
type MakeDialect = fn(DatabaseConfig, Surroundings) -> Arc<dyn Dialect>;

/// Makes connectors to one kind of server.
pub struct ServerFactory {
    kind: &'static str,
    dialect: MakeDialect,
}

impl ServerFactory {
    pub(super) const fn new(kind: &'static str, dialect: MakeDialect) -> ServerFactory {
        ServerFactory { kind, dialect }
    }
}

impl ConnectorFactory for ServerFactory {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn create(
        &self,
        configuration: &serde_json::Value,
        surroundings: &Surroundings,
    ) -> Result<Arc<dyn Connector>, ConnectorError> {
        let config = DatabaseConfig::parse(self.kind, configuration)?;
        let dialect = (self.dialect)(config.clone(), surroundings.clone());
        Ok(Arc::new(DatabaseConnector::new(dialect, config)))
    }
}
