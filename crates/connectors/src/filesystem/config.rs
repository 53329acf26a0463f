//! The configuration of a `filesystem` data source. Its fields' comments are their manual.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use domesday_connector::{ConnectorError, parse_configuration};
use domesday_model::ObjectKey;
use serde::{Deserialize, Serialize};

/// The kind, as data sources name it.
pub const KIND: &str = "filesystem";

domesday_connector::configuration! {
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct FilesystemConfig {
        /// The absolute path of the folder to scan.
        #[serde(with = "path_bytes")]
        pub root: PathBuf,
        /// Scan only this file of the folder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub only: Option<ObjectKey>,
        /// Patterns of what to leave out, with the syntax and meaning of `.gitignore` lines.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub exclude: Vec<String>,
        /// Leave out files larger than this, in bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub max_file_size: Option<u64>,
        /// Follow symbolic links. Links back to a folder above them are left out.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub follow_symlinks: bool,
    }
}

impl FilesystemConfig {
    pub fn new(root: PathBuf) -> FilesystemConfig {
        FilesystemConfig {
            root,
            only: None,
            exclude: Vec::new(),
            max_file_size: None,
            follow_symlinks: false,
        }
    }

    pub fn parse(value: &serde_json::Value) -> Result<FilesystemConfig, ConnectorError> {
        let config: FilesystemConfig = parse_configuration(KIND, value)?;
        if !config.root.is_absolute() {
            let root = config.root.display();
            let detail = format!("field `root`: must be an absolute path, not `{root}`");
            return Err(ConnectorError::Configuration { kind: KIND, detail });
        }
        Ok(config)
    }
}

/// A path in JSON: text where it is UTF-8, else as an object key has it.
mod path_bytes {
    use super::*;

    pub fn serialize<S: serde::Serializer>(path: &std::path::Path, serializer: S) -> Result<S::Ok, S::Error> {
        ObjectKey::new(path.as_os_str().as_bytes()).serialize(serializer)
    }

    pub fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        ObjectKey::deserialize(deserializer).map(|key| OsString::from_vec(key.0).into())
    }
}
