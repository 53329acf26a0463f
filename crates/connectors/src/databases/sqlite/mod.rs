//! Kind `sqlite`: a file that is a database. How one is opened and read is in [`domesday_content::sqlite`], which reads
//! those that a scan of something else meets, too.

mod config;
mod session;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domesday_connector::address::{Scheme, SchemeForm};
use domesday_connector::fields::{self, Field};
use domesday_connector::{
    Connector, ConnectorError, ConnectorFactory, Description, Exclude, Surroundings, TargetError, TargetFlags,
};
use serde_json::{Value, json};

use super::connector::DatabaseConnector;
pub use config::SqliteConfig;
use session::SqliteDialect;

/// The kind, as data sources name it.
pub const KIND: &str = "sqlite";

/// Makes connectors of kind `sqlite`.
pub struct SqliteFactory;

impl ConnectorFactory for SqliteFactory {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn create(
        &self,
        configuration: &serde_json::Value,
        surroundings: &Surroundings,
    ) -> Result<Arc<dyn Connector>, ConnectorError> {
        let (config, common) = SqliteConfig::parse(configuration)?;
        if surroundings.credential.is_some() {
            let detail =
                "field `credential`: a file is read with the rights of the worker; leave it out".into();
            return Err(ConnectorError::Configuration { kind: KIND, detail });
        }
        let dialect = SqliteDialect {
            path: config.path,
            patience: Duration::from_secs(common.statement_timeout_seconds),
            system: common.system,
        };
        Ok(Arc::new(DatabaseConnector::new(Arc::new(dialect), common)))
    }

    fn describe(&self) -> Description {
        Description {
            about: "a file that is a SQLite database",
            schemes: &[Scheme { name: KIND, form: SchemeForm::Path }],
            exclude: Some(Exclude::Names("exclude")),
            max_file_size: None,
            ..Description::default()
        }
    }

    fn fields(&self) -> Vec<Field> {
        fields::fields(&SqliteConfig::new(PathBuf::from("/")))
    }

    fn configure_path(&self, path: &Path, _: &TargetFlags) -> Result<Option<Value>, TargetError> {
        let path = path.to_str().ok_or_else(|| TargetError::new("its path is no text"))?;
        Ok(Some(json!({ "path": path })))
    }
}
