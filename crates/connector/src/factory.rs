//! What makes connectors of one kind, and says everything about the kind that others need to know.
//!
//! The command line, the reports and the documents ask a [`ConnectorFactory`]; none of them matches on a kind's
//! name. So a new kind is one implementation of this trait and one line of registration. Most methods have a
//! default that fits a kind which is configured as a managed data source only.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use domesday_model::{ObjectKey, TrustContent};
use serde_json::Value;

use crate::address::{Address, Scheme};
use crate::credentials::Method;
use crate::fields::Field;
use crate::{Connector, ConnectorError, Surroundings};

/// Makes connectors of one kind.
pub trait ConnectorFactory: Send + Sync {
    /// The kind, as data sources name it.
    fn kind(&self) -> &'static str;

    /// A connector for this configuration, or what is wrong with it. Reaches for nothing yet: the source may
    /// be out of this process's reach.
    fn create(
        &self,
        configuration: &Value,
        surroundings: &Surroundings,
    ) -> Result<Arc<dyn Connector>, ConnectorError>;

    /// The facts about the kind that do not depend on a configuration.
    fn describe(&self) -> Description {
        Description::default()
    }

    /// The fields of the configuration, with their documentation.
    fn fields(&self) -> Vec<Field> {
        Vec::new()
    }

    /// How sure it is that this kind reads the address.
    fn recognises(&self, address: &Address) -> Recognition {
        let is_own = self.describe().schemes.iter().any(|scheme| scheme.name == address.scheme);
        if is_own { Recognition::Possible } else { Recognition::No }
    }

    /// The configuration that an address means, with the flags that were typed beside it. Called for addresses
    /// that the kind recognises, and for any other with `--kind`.
    fn configure_address(&self, _address: &Address, _flags: &TargetFlags) -> Result<Configured, TargetError> {
        Err(TargetError::new("no connector reads such an address; --kind names one"))
    }

    /// How sure it is that this kind reads a path of this machine, links resolved, or that the flags ask for
    /// something that the path cannot give.
    fn recognises_path(&self, _path: &Path, _flags: &TargetFlags) -> Result<Recognition, TargetError> {
        Ok(Recognition::No)
    }

    /// The configuration that a path of this machine means, links resolved. `None` for a kind that is elsewhere.
    fn configure_path(&self, _path: &Path, _flags: &TargetFlags) -> Result<Option<Value>, TargetError> {
        Ok(None)
    }

    /// What is shown before the keys of a data source's objects.
    fn display_root(&self, _configuration: &Value, named: NamedBy<'_>) -> Vec<u8> {
        match named {
            NamedBy::Path(typed) => path_root(typed),
            NamedBy::Address(address) => address.text.clone().into_bytes(),
            NamedBy::Configuration => Vec::new(),
        }
    }

    /// Whether it is a folder or work tree of this machine, whose content is trusted unless somebody says otherwise.
    fn is_local_tree(&self, _configuration: &Value) -> bool {
        false
    }

    /// Folders outside of the scanned one that its content leads to, all of which are read where it is trusted.
    fn leads_out(&self, _configuration: &Value) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Which part of this machine's files a data source covers.
    fn coverage(&self, _configuration: &Value) -> Coverage {
        Coverage::default()
    }
}

/// The facts about a kind that do not depend on a configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Description {
    /// What a data source of the kind is, in a few words.
    pub about: &'static str,
    /// How its addresses begin; empty for a kind without any.
    pub schemes: &'static [Scheme],
    /// What a password in one of its addresses is.
    pub password: Method,
    /// What a single word in the place of user and password is.
    pub token: Method,
    /// Tasks of a data source that run at once across the fleet, where nobody says it; `None` leaves it to the
    /// workers.
    pub default_concurrency: Option<u32>,
    /// What patterns of things to leave out are of. `None` ignores them: there is one object only.
    pub exclude: Option<Exclude>,
    /// The field that `--max-file-size` sets. `None` ignores it: nothing of the kind is a file.
    pub max_file_size: Option<&'static str>,
    /// A folder of its keys that says nothing to people; empty for a kind without one.
    pub hidden_key_prefix: &'static [u8],
    /// Whether a part of a history can be asked for ([`HistoryFlags`]).
    pub has_history: bool,
    /// Whether it is what `-` means.
    pub is_standard_input: bool,
    /// Whether the same command reads the same thing again, so that it continues an unfinished scan.
    pub is_repeatable: bool,
}

impl Default for Description {
    fn default() -> Description {
        Description {
            about: "",
            schemes: &[],
            password: Method::Basic,
            token: Method::Bearer,
            default_concurrency: None,
            exclude: Some(Exclude::Paths("exclude")),
            max_file_size: Some("max_file_size"),
            hidden_key_prefix: b"",
            has_history: false,
            is_standard_input: false,
            is_repeatable: true,
        }
    }
}

/// Which field takes the patterns of things to leave out, and what these match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exclude {
    /// Paths of files: patterns of flags and of the configuration file of a tree.
    Paths(&'static str),
    /// Names of something else, such as tables: patterns of flags only.
    Names(&'static str),
}

impl Exclude {
    pub fn field(self) -> &'static str {
        match self {
            Exclude::Paths(field) | Exclude::Names(field) => field,
        }
    }
}

/// How sure a kind is that something is its own. The surest one reads it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Recognition {
    No,
    /// It can read it; another kind may know it better.
    Possible,
    Certain,
}

/// A kind and a configuration for it. The kind is the factory's own, unless kinds share an address parser.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Configured {
    pub kind: &'static str,
    pub configuration: Value,
    /// How many tasks of it may run at once, where the address says so.
    pub concurrency_limit: Option<u32>,
}

/// The flags that change what a target means. A kind ignores those that say nothing to it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TargetFlags {
    /// What the user says of the content, so that it does not decide where it is looked for.
    pub trust_content: TrustContent,
    pub follow_symlinks: bool,
    pub history: HistoryFlags,
    pub web: WebFlags,
}

/// Which part of a repository is asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HistoryFlags {
    /// Branches, tags or commits.
    pub refs: Vec<String>,
    pub since_commit: Option<String>,
    /// `a..b`.
    pub range: Option<String>,
    pub staged: bool,
    /// The files of the working tree, without the history.
    pub worktree: bool,
}

impl HistoryFlags {
    /// Whether only a part of the history is asked for.
    pub fn selects(&self) -> bool {
        !self.refs.is_empty() || self.since_commit.is_some() || self.range.is_some() || self.staged
    }
}

/// What a web address is, and how far its links are followed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WebFlags {
    pub crawl_depth: Option<u32>,
    /// The address is that of a sitemap.
    pub sitemap: bool,
    /// The address is that of a list of addresses.
    pub address_list: bool,
    /// What is reached beside the public network: without ranges, private networks and this machine.
    pub allow_private: Option<Vec<String>>,
}

/// How a data source was named where its objects are shown.
#[derive(Clone, Copy, Debug)]
pub enum NamedBy<'a> {
    /// By this path, as it was typed: objects are shown as seen from the same folder.
    Path(&'a Path),
    /// By this address.
    Address(&'a Address),
    /// Not at all: its configuration was read from the book, perhaps in another folder.
    Configuration,
}

/// The part of this machine's files that a data source covers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    /// The folder that keys are relative to; `None` for what is elsewhere.
    pub root: Option<PathBuf>,
    /// The one file of the folder that is scanned.
    pub only: Option<ObjectKey>,
    /// Whether a part of a history is scanned, so that what is not found may still be there.
    pub is_part: bool,
}

/// Why a target cannot be scanned. Quotes no secret.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TargetError(String);

impl TargetError {
    pub fn new(why: impl Into<String>) -> TargetError {
        TargetError(why.into())
    }
}

impl From<ConnectorError> for TargetError {
    fn from(error: ConnectorError) -> TargetError {
        TargetError(error.to_string())
    }
}

/// A typed path as a display root: nothing is shown for the current folder.
pub fn path_root(typed: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    if typed.as_os_str() == "." { Vec::new() } else { typed.as_os_str().as_bytes().to_vec() }
}
