//! Kind `git`: the history of a repository, object by object.
//!
//! The unit of scanning is the object, not the file of a commit: each distinct blob is read once, however
//! many commits and paths have it, and so is each commit's and tag's message. An object's key is its id,
//! so that any worker with the same repository can open it, however its objects are packed there. Paths
//! and commits are looked up with [`Git::origins`], and only for objects that matter.
//!
//! Repositories are hostile input. They are only read, by this code alone: no hook, filter, configured
//! program or `git` runs. Only to mirror a remote one `git` is run, see [`remote`].

mod config;
mod error;
mod files;
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
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use domesday_connector::{Connector, ConnectorError, ConnectorFactory, Listing, Surroundings};
use domesday_model::{ObjectKey, Reason, ResumePolicy};
use domesday_scheduler::{ObjectError, OpenObject};

pub use config::{GitConfig, KIND};
pub use error::GitError;
pub use id::ObjectId;
pub use origin::Origin;
use remote::{MIRRORS_BYTES, MirrorCache, RemoteUrl, Token};
use repository::Repository;
use store::Opened;

/// The folder of Domesday's state in which mirrors of remote repositories are.
const MIRRORS_FOLDER: &str = "git-mirrors";

/// Makes connectors of kind `git`.
pub struct GitFactory;

impl ConnectorFactory for GitFactory {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn create(
        &self,
        configuration: &serde_json::Value,
        surroundings: &Surroundings,
    ) -> Result<Arc<dyn Connector>, ConnectorError> {
        let config = GitConfig::parse(configuration)?;
        let Some(url) = &config.url else { return Ok(Arc::new(Git::new(config))) };
        let url = RemoteUrl::parse(url)?;
        let Some(own_state) = &surroundings.own_state else {
            let detail = "`url`: there is no state folder to keep a mirror in".to_owned();
            return Err(ConnectorError::Configuration { kind: KIND, detail });
        };
        let mirrors = MirrorCache::new(own_state.join(MIRRORS_FOLDER), MIRRORS_BYTES);
        Ok(Arc::new(Git::mirrored(config, url, mirrors, None)))
    }
}

/// One repository, with what is scanned of it.
pub struct Git(Arc<Source>);

/// What listings of one repository share.
struct Source {
    config: GitConfig,
    remote: Option<Remote>,
    /// Opened at first use, for a connector may be made where its repository is not there yet, and again
    /// for each listing, so that it is seen as it is then.
    current: Mutex<Option<Arc<Repository>>>,
}

struct Remote {
    url: RemoteUrl,
    mirrors: MirrorCache,
    token: Option<Token>,
}

impl Git {
    /// A local repository.
    pub fn new(config: GitConfig) -> Git {
        Git(Arc::new(Source { config, remote: None, current: Mutex::default() }))
    }

    /// A remote repository, through a mirror of it.
    pub fn mirrored(config: GitConfig, url: RemoteUrl, mirrors: MirrorCache, token: Option<Token>) -> Git {
        let remote = Some(Remote { url, mirrors, token });
        Git(Arc::new(Source { config, remote, current: Mutex::default() }))
    }

    /// Where these objects came from; those that no commit leads to are absent. Walks the history once, from
    /// its beginning, until all are found; then, if need be, what no reference leads to any more.
    pub fn origins(&self, ids: &[ObjectId]) -> Result<HashMap<ObjectId, Origin>, GitError> {
        origin::origins(&*self.0.repository()?, ids)
    }
}

impl Source {
    fn repository(&self) -> Result<Arc<Repository>, GitError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        match &*current {
            Some(repository) => Ok(Arc::clone(repository)),
            None => self.open_repository(&mut current),
        }
    }

    /// The repository as it is now.
    fn reopen(&self) -> Result<Arc<Repository>, GitError> {
        self.open_repository(&mut self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn open_repository(&self, current: &mut Option<Arc<Repository>>) -> Result<Arc<Repository>, GitError> {
        let repository = match &self.remote {
            None => Repository::open(self.config.path.as_deref().unwrap_or(Path::new("")))?,
            Some(remote) => {
                let mirror = remote.mirrors.fetch(&remote.url, remote.token.as_ref())?;
                let mut repository = Repository::open(mirror.path())?;
                repository.mirror = Some(mirror);
                repository
            }
        };
        let repository = Arc::new(repository);
        *current = Some(Arc::clone(&repository));
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
        let listing = listing::RepositoryListing::begin(Arc::clone(&self.0)).await?;
        Ok(Box::new(listing))
    }

    fn open(&self, object: &ObjectKey) -> Result<OpenObject, ObjectError> {
        let repository = self.0.repository()?;
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
