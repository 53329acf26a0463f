//! What a connector is: something that lists containers and opens objects of one kind of data source.
//!
//! A connector knows nothing of jobs, tasks or the book. It is asked for one container at a time, one
//! level deep, and streams the entries in batches; whoever asks decides what to keep. This crate must
//! not know SQL, nor any concrete connector.

mod configuration;
pub mod credentials;
mod error;
mod registry;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use domesday_model::{ObjectKey, ResumePolicy, UnitRecord};
use domesday_scheduler::{ObjectError, OpenObject};

use credentials::{CredentialManager, CredentialReference};

pub use configuration::parse_configuration;
pub use error::ConnectorError;
pub use registry::Registry;

/// One configured data source, ready to be read. Shared by threads.
#[async_trait]
pub trait Connector: Send + Sync {
    /// How a listing of this kind that was cut short goes on.
    fn resume_policy(&self) -> ResumePolicy;

    /// Begins to list one container, one level deep. `resume_point` is what an interrupted listing of it
    /// last gave, for kinds that go on from there.
    async fn list(
        &self,
        container: &ObjectKey,
        resume_point: Option<&str>,
    ) -> Result<Box<dyn Listing>, ConnectorError>;

    /// Opens an object for reading. Called on the scan core's threads; may block.
    fn open(&self, object: &ObjectKey) -> Result<OpenObject, ObjectError>;

    /// Whether the data source can be reached and read: lists the beginning of its root. How many entries
    /// that gave.
    async fn test(&self) -> Result<usize, ConnectorError> {
        let mut listing = self.list(&ObjectKey::new(""), None).await?;
        Ok(listing.next_batch(TEST_ENTRIES_MAX).await?.len())
    }
}

/// Entries that a test of a data source lists, at most.
const TEST_ENTRIES_MAX: usize = 100;

/// A container being listed.
#[async_trait]
pub trait Listing: Send {
    /// The next entries, at most `max`; an empty batch ends the listing.
    async fn next_batch(&mut self, max: usize) -> Result<Vec<UnitRecord>, ConnectorError>;

    /// Where the listing stands after the last batch, for kinds that resume from there.
    fn resume_point(&self) -> Option<String> {
        None
    }
}

/// What a connector is given beside its data source's configuration.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Domesday's own state folder, which is never scanned.
    pub own_state: Option<PathBuf>,
    /// Resolves references to secrets, each time one is used.
    pub credentials: Arc<CredentialManager>,
    /// Where the data source's secret is.
    pub credential: Option<CredentialReference>,
}

impl Surroundings {
    /// The same for one data source, with its credential reference as the book has it.
    pub fn for_source(&self, credential: Option<&str>) -> Result<Surroundings, ConnectorError> {
        let credential = credential.map(str::parse).transpose().map_err(ConnectorError::Credential)?;
        Ok(Surroundings { credential, ..self.clone() })
    }
}

/// Makes connectors of one kind.
pub trait ConnectorFactory: Send + Sync {
    /// The kind, as data sources name it.
    fn kind(&self) -> &'static str;

    /// A connector for this configuration, or what is wrong with it. Reaches for nothing yet: the source may
    /// be out of this process's reach.
    fn create(
        &self,
        configuration: &serde_json::Value,
        surroundings: &Surroundings,
    ) -> Result<Arc<dyn Connector>, ConnectorError>;
}
