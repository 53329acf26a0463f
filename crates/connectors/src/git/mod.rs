//! Kind `git`: the history of a repository, object by object.
//!
//! The unit of scanning is the object, not the file of a commit: each distinct blob is read once, however
//! many commits and paths have it, and so is each commit's and tag's message. An object's key is its id,
//! so that any worker with the same repository can open it, however its objects are packed there. Paths
//! and commits are looked up with [`Git::origins`], and only for objects that matter.
//!
//! Repositories are hostile input. They are only read, by this code alone: no hook, filter, configured
//! program or `git` runs.

mod config;
mod error;
mod forest;
mod id;
mod listing;
mod origin;
mod parse;
mod refs;
pub mod remote;
mod repository;
mod select;
mod staged;
mod store;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::Cursor;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use domesday_connector::{Connector, ConnectorError, ConnectorFactory, Listing, Surroundings};
use domesday_model::{ObjectKey, Reason, ResumePolicy};
use domesday_scheduler::{ObjectError, OpenObject};

pub use config::{GitConfig, KIND};
pub use error::GitError;
pub use id::ObjectId;
pub use origin::Origin;
use repository::Repository;
use store::Opened;

/// Makes connectors of kind `git`.
pub struct GitFactory;

impl ConnectorFactory for GitFactory {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn create(
        &self,
        configuration: &serde_json::Value,
        _: &Surroundings,
    ) -> Result<Arc<dyn Connector>, ConnectorError> {
        Ok(Arc::new(Git::new(GitConfig::parse(configuration)?)))
    }
}

/// One repository, with what is scanned of it.
pub struct Git {
    config: GitConfig,
    /// Opened at first use: a connector may be made where its repository is not there yet.
    repository: Mutex<Option<Arc<Repository>>>,
}

impl Git {
    pub fn new(config: GitConfig) -> Git {
        Git { config, repository: Mutex::default() }
    }

    /// Where these objects came from; those that no reference leads to are absent. Walks the history once,
    /// from its beginning, until all are found.
    pub fn origins(&self, ids: &[ObjectId]) -> Result<HashMap<ObjectId, Origin>, GitError> {
        origin::origins(&*self.repository()?, ids)
    }

    fn repository(&self) -> Result<Arc<Repository>, GitError> {
        let mut opened = self.repository.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(repository) = &*opened {
            return Ok(Arc::clone(repository));
        }
        let repository = Arc::new(Repository::open(&self.config.path)?);
        *opened = Some(Arc::clone(&repository));
        Ok(repository)
    }
}

#[async_trait]
impl Connector for Git {
    fn resume_policy(&self) -> ResumePolicy {
        ResumePolicy::ExcludeStaged
    }

    async fn list(&self, container: &ObjectKey, _: Option<&str>) -> Result<Box<dyn Listing>, ConnectorError> {
        if !container.as_bytes().is_empty() {
            let detail = format!("a repository has no container `{container}`");
            return Err(ConnectorError::Container { reason: Reason::Vanished, detail });
        }
        let listing = listing::RepositoryListing::begin(self.repository()?, self.config.clone()).await?;
        Ok(Box::new(listing))
    }

    fn open(&self, object: &ObjectKey) -> Result<OpenObject, ObjectError> {
        let repository = self.repository()?;
        let Some(id) = ObjectId::from_hex(object.as_bytes()) else {
            return Err(match repository.store.broken_pack(object.as_bytes()) {
                Some(error) => ObjectError::new(error.reason(), error.to_string()),
                None => ObjectError::new(Reason::Vanished, format!("`{object}` is no object's id")),
            });
        };
        Ok(match repository.store.open_object(&id)? {
            Opened::Held(decoded) => OpenObject {
                reader: Box::new(Cursor::new(Shared(Arc::clone(&decoded.data)))),
                size: Some(decoded.data.len() as u64),
                random: Some(decoded.data),
            },
            Opened::Stream { size, reader } => OpenObject { reader, random: None, size: Some(size) },
        })
    }
}

/// A decoded object, as others may hold it too.
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
