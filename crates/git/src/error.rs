//! What goes wrong when a repository is read. Nothing a repository holds is trusted: whatever does not
//! fit is one of these, never a panic.

use std::io;
use std::path::Path;

use domesday_connector::ConnectorError;
use domesday_content::ObjectError;
use domesday_model::Reason;

use super::config::KIND;
use super::id::ObjectId;

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
    /// The repository's files contradict themselves.
    #[error("{what} is damaged: {detail}; `git fsck` tells more")]
    Corrupt { what: String, detail: String },
    #[error("object {0} is not in the repository")]
    Missing(ObjectId),
    /// What is under an id is not what has that id.
    #[error("object {id} is not what its name says: its content has the id {actual}; `git fsck` tells more")]
    Mismatch { id: ObjectId, actual: ObjectId },
    /// More than may be held in memory.
    #[error("{what} has {size} bytes, beyond the limit of {max}")]
    TooLarge { what: String, size: u64, max: u64 },
    #[error("{0}")]
    Unsupported(String),
    /// A remote does not answer, or breaks off; or a listing of what it has was cut short.
    #[error("{0}")]
    Unavailable(String),
    /// A remote does not let us in.
    #[error("{0}")]
    Denied(String),
    /// The configuration asks for something that is not there.
    #[error("{0}")]
    Configuration(String),
}

impl GitError {
    pub(super) fn io(path: &Path, source: io::Error) -> GitError {
        GitError::Io { what: path.display().to_string(), source }
    }

    pub(super) fn corrupt(what: impl ToString, detail: impl Into<String>) -> GitError {
        GitError::Corrupt { what: what.to_string(), detail: detail.into() }
    }

    /// Why, in the words the book uses.
    pub fn reason(&self) -> Reason {
        match self {
            GitError::Io { what, source } => ConnectorError::io(what, source).reason(),
            GitError::Missing(_) => Reason::Vanished,
            GitError::TooLarge { .. } => Reason::ByteLimit,
            GitError::Denied(_) => Reason::PermissionDenied,
            GitError::Unavailable(_) => Reason::Unavailable,
            GitError::Corrupt { .. }
            | GitError::Mismatch { .. }
            | GitError::Unsupported(_)
            | GitError::Configuration(_) => Reason::ReadError,
        }
    }
}

impl From<GitError> for ObjectError {
    fn from(error: GitError) -> ObjectError {
        ObjectError::new(error.reason(), error.to_string())
    }
}

impl From<GitError> for ConnectorError {
    fn from(error: GitError) -> ConnectorError {
        match error {
            GitError::Configuration(detail) => ConnectorError::Configuration { kind: KIND, detail },
            GitError::Denied(detail) => ConnectorError::Denied { detail },
            error => ConnectorError::Container { reason: error.reason(), detail: error.to_string() },
        }
    }
}
