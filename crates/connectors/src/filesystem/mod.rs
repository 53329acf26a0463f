//! Kind `filesystem`: a tree of files, or one file.
//!
//! Hidden and git-ignored files are listed like any other: secrets are where people do not look. What
//! is narrowed is narrowed by the user, with `exclude`, `max_file_size` and `.domesdayignore` files.
//! Everything is opened relative to the root and, unless links are followed, without passing through
//! any symbolic link, so that a tree that changes under the scan cannot lead it elsewhere.

mod config;
mod ignores;
mod listing;
mod open;
#[cfg(test)]
mod tests;

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use domesday_connector::fields::{self, Field};
use domesday_connector::{
    Connector, ConnectorError, ConnectorFactory, Coverage, Description, Listing, NamedBy, ReadAhead,
    Recognition, RegularFile, Surroundings, TargetError, TargetFlags, path_root,
};
use domesday_content::ObjectError;
use domesday_model::{ListedObject, ObjectKey, Reason, ResumePolicy};
use domesday_scheduler::Opened;
use serde_json::Value;

pub use config::{FilesystemConfig, KIND};
use ignores::Ignores;
use open::{PacketFiles, Root};

/// Makes connectors of kind `filesystem`.
pub struct FilesystemFactory;

impl ConnectorFactory for FilesystemFactory {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn create(
        &self,
        configuration: &serde_json::Value,
        surroundings: &Surroundings,
    ) -> Result<Arc<dyn Connector>, ConnectorError> {
        let config = FilesystemConfig::parse(configuration)?;
        if surroundings.credential.is_some() {
            let detail =
                "field `credential`: files are read with the rights of the worker; leave it out".into();
            return Err(ConnectorError::Configuration { kind: KIND, detail });
        }
        let ignores = Ignores::new(&config, surroundings.trust_content)?;
        let own_state = surroundings.own_state.as_deref().and_then(open::identity);
        Ok(Arc::new(Filesystem(Arc::new(Tree { root: Root::new(&config), ignores, own_state, config }))))
    }

    fn describe(&self) -> Description {
        Description { about: "a tree of files, or one file", ..Description::default() }
    }

    fn fields(&self) -> Vec<Field> {
        fields::fields(&FilesystemConfig::new(PathBuf::from("/")))
    }

    /// Any path that no other kind knows better.
    fn recognises_path(&self, _: &Path, _: &TargetFlags) -> Result<Recognition, TargetError> {
        Ok(Recognition::Possible)
    }

    fn configure_path(&self, path: &Path, flags: &TargetFlags) -> Result<Option<Value>, TargetError> {
        let metadata = path.metadata().map_err(|error| TargetError::new(error.to_string()))?;
        let (root, only) = match (path.parent(), path.file_name()) {
            _ if metadata.is_dir() => (path, None),
            (Some(folder), Some(name)) if metadata.is_file() => {
                (folder, Some(ObjectKey::new(name.as_bytes())))
            }
            _ => {
                return Err(TargetError::new("it is neither a folder nor a file; pipe it in with `-`"));
            }
        };
        let config = FilesystemConfig {
            only,
            follow_symlinks: flags.follow_symlinks,
            exclude: if flags.history.worktree { vec![".git".to_owned()] } else { Vec::new() },
            ..FilesystemConfig::new(root.to_owned())
        };
        serde_json::to_value(config).map(Some).map_err(|error| TargetError::new(error.to_string()))
    }

    fn display_root(&self, configuration: &Value, named: NamedBy<'_>) -> Vec<u8> {
        let config = FilesystemConfig::parse(configuration).ok();
        match (named, config) {
            // Keys are relative to the folder of the one file.
            (NamedBy::Path(typed), Some(config)) if config.only.is_some() => {
                typed.parent().map(path_root).unwrap_or_default()
            }
            (NamedBy::Path(typed), _) => path_root(typed),
            (_, Some(config)) => config.root.into_os_string().into_vec(),
            (_, None) => Vec::new(),
        }
    }

    fn is_local_tree(&self, _: &Value) -> bool {
        true
    }

    fn coverage(&self, configuration: &Value) -> Coverage {
        match FilesystemConfig::parse(configuration) {
            Ok(config) => Coverage { root: Some(config.root), only: config.only, is_part: false },
            Err(_) => Coverage::default(),
        }
    }
}

/// What listings of one tree share.
struct Tree {
    config: FilesystemConfig,
    root: Root,
    ignores: Ignores,
    /// Device and inode of Domesday's own state folder.
    own_state: Option<open::Identity>,
}

struct Filesystem(Arc<Tree>);

#[async_trait]
impl Connector for Filesystem {
    fn resume_policy(&self, _: &ObjectKey) -> ResumePolicy {
        ResumePolicy::ExcludeStaged
    }

    async fn list(&self, container: &ObjectKey, _: Option<&str>) -> Result<Box<dyn Listing>, ConnectorError> {
        listing::begin(&self.0, container)
    }

    fn open(&self, object: &ListedObject) -> Result<Opened, ObjectError> {
        let file = self.0.root.open_file(&object.key).map_err(|error| open_error(&error))?;
        RegularFile::new(file).open().map(Opened::Bytes)
    }

    fn read_ahead(&self, objects: &Arc<[ListedObject]>) -> Option<Box<dyn ReadAhead>> {
        Some(Box::new(PacketFiles::new(Arc::clone(&self.0), objects)))
    }
}

fn open_error(error: &std::io::Error) -> ObjectError {
    match ConnectorError::io("open", error) {
        ConnectorError::Container { reason, detail } => ObjectError::new(reason, detail),
        other => ObjectError::new(Reason::ReadError, other.to_string()),
    }
}
