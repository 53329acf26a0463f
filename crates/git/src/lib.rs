//! Kind `git`: the history of a repository, object by object.
//!
//! The unit of scanning is the object, not the file of a commit: each distinct blob is read once, however
//! many commits and paths have it, and so is each commit's and tag's message. An object's key is its id,
//! so that any worker with the same repository can open it, however its objects are packed there. Paths
//! and commits are looked up with [`Connector::origins`], and only for objects that matter. What is not
//! committed yet is a container of its own, see [`worktree`].
//!
//! Repositories are hostile input. They are only read, by this code alone: no hook, filter, configured
//! program or `git` runs. Only to mirror a remote one `git` is run, see [`remote`].

mod bounds;
mod conditions;
mod config;
mod covered;
mod error;
mod factory;
mod files;
mod forest;
mod gaps;
mod hash;
mod id;
mod kinds;
mod lfs;
mod listing;
mod origin;
mod parse;
mod refs;
mod reftable;
mod remote;
mod repository;
mod select;
mod source;
mod staged;
mod storage;
mod store;
#[cfg(test)]
mod tests;
mod worktree;

use std::io::Cursor;
use std::sync::Arc;

use async_trait::async_trait;
use domesday_connector::{Connector, ConnectorError, Listing, Surroundings};
use domesday_content::ObjectError;
use domesday_model::{ListedObject, ObjectKey, Origin, Reason, ResumePolicy};
use domesday_scheduler::{DeltaReuse, Moved, OpenBytes, Opened, PathKind};

pub use config::GitConfig;
pub use factory::GitFactory;
use gaps::Gap;
use id::ObjectId;
use source::Source;
use store::{Bytes, Decoded, ObjectData, Scannable};

/// One repository, with what is scanned of it.
pub struct Git(Arc<Source>);

impl Git {
    pub fn new(config: GitConfig, surroundings: &Surroundings) -> Result<Git, ConnectorError> {
        Ok(Git(Arc::new(Source::new(config, surroundings)?)))
    }
}

#[async_trait]
impl Connector for Git {
    fn resume_policy(&self, container: &ObjectKey) -> ResumePolicy {
        match container.as_bytes() {
            // Scanned while it is listed. A repository that was repacked meanwhile has another order.
            b"" => ResumePolicy::ExcludeListed,
            _ => ResumePolicy::ExcludeStaged,
        }
    }

    async fn list(&self, container: &ObjectKey, _: Option<&str>) -> Result<Box<dyn Listing>, ConnectorError> {
        let source = Arc::clone(&self.0);
        if container.as_bytes().is_empty() {
            return Ok(Box::new(listing::RepositoryListing::begin(source).await?));
        }
        if let Some(path) = worktree::path_of(container).map(<[u8]>::to_vec)
            && let Some(tree) = listing::blocking(move || source.worktree()).await??
        {
            return Ok(Box::new(tree.list(&path)?));
        }
        let detail = format!("a repository has no container `{container}`");
        Err(ConnectorError::Container { reason: Reason::Vanished, detail })
    }

    fn path_kind(&self, object: &ListedObject) -> PathKind {
        match worktree::path_of(&object.key) {
            Some(path) => PathKind::of(path),
            None => kinds::kind_of(object.metadata.as_deref()),
        }
    }

    fn open(&self, object: &ListedObject) -> Result<Opened, ObjectError> {
        let key = &object.key;
        let failed = |error: ConnectorError| ObjectError::new(error.reason(), error.to_string());
        if let Some(id) = ObjectId::from_hex(key.as_bytes()) {
            let data = self.0.open_object(&id).map_err(failed)?;
            if let ObjectData::Held(held) = &data
                && let Some(content) = self.0.lfs_content(&held.object.data)
            {
                return content.map(Opened::Bytes);
            }
            return Ok(opened(data));
        }
        if let Some(gap) = Gap::of_key(key.as_bytes()) {
            return Err(gap.error());
        }
        let repository = self.0.repository().map_err(failed)?;
        if let (Some(path), Some(root)) = (worktree::path_of(key), &repository.root) {
            return worktree::open_file(root, path).map(Opened::Bytes);
        }
        if let Some(error) = repository.store.copy_error(key.as_bytes()) {
            return Err(error.into());
        }
        Err(match repository.store.broken_file(key.as_bytes()) {
            Some(error) => ObjectError::new(error.reason(), error.to_string()),
            None => ObjectError::new(Reason::Vanished, format!("`{key}` is no object's id")),
        })
    }

    fn traces_origins(&self) -> bool {
        true
    }

    /// Walks the history once, from its beginning, until all are found; then, if need be, what no reference
    /// leads to any more. Files of the working tree say themselves where they are.
    async fn origins(
        &self,
        objects: &[ObjectKey],
        moved: &Moved,
    ) -> Result<Vec<(ObjectKey, Origin)>, ConnectorError> {
        let id = |key: &ObjectKey| ObjectId::from_hex(key.as_bytes());
        let ids: Vec<ObjectId> = objects.iter().filter_map(id).collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let (source, moved) = (Arc::clone(&self.0), moved.clone());
        let search = move || -> Result<_, ConnectorError> {
            Ok(origin::origins(&*source.repository()?, &source.config, &ids, &moved)?)
        };
        let found = listing::blocking(search).await??;
        Ok(objects.iter().filter_map(|key| Some((key.clone(), found.get(&id(key)?)?.clone()))).collect())
    }

    async fn test(&self) -> Result<usize, ConnectorError> {
        self.0.test().await
    }
}

/// An object of the database, as the scan core reads it.
fn opened(data: ObjectData) -> Opened {
    Opened::Bytes(match data {
        ObjectData::Held(held) => {
            let Scannable { object: Decoded { data, hits, .. }, base, is_base } = *held;
            OpenBytes {
                reader: Box::new(Cursor::new(Shared(Arc::clone(&data)))),
                size: Some(data.len() as u64),
                random: Some(data),
                delta_reuse: Some(DeltaReuse { base, own: is_base.then_some(hits) }),
            }
        }
        ObjectData::Stream { size, reader } => OpenBytes::stream(reader, Some(size)),
    })
}

/// A decoded object, as others may hold it too.
struct Shared(Arc<Bytes>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
