//! Makes connectors of kind `git`, and says which addresses, paths and flags mean a repository.

use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domesday_connector::address::{Address, Scheme, UserInfo};
use domesday_connector::credentials::Method;
use domesday_connector::fields::{self, Field};
use domesday_connector::{
    Configured, Connector, ConnectorError, ConnectorFactory, Coverage, Description, HistoryFlags, NamedBy,
    Recognition, Surroundings, TargetError, TargetFlags, path_root,
};
use domesday_model::TrustContent;
use serde_json::Value;

use super::config::KIND;
use super::repository::{discover, leads_out};
use super::worktree::WORKTREE;
use super::{Git, GitConfig};

/// How addresses of repositories begin.
const SCHEMES: &[Scheme] = &[
    Scheme::with_authority("https", UserInfo::Login),
    Scheme::with_authority("http", UserInfo::Login),
    Scheme::with_authority("ssh", UserInfo::User),
    Scheme::with_authority("git", UserInfo::Refused),
    Scheme::with_authority("file", UserInfo::Refused),
];
/// The host all of whose addresses with two names are repositories.
const REPOSITORY_HOST: &str = "github.com";

const NO_REPOSITORY: &str =
    "it is not a git repository, or one outside of the folder where its content is not trusted";

/// Makes connectors of kind `git`.
pub struct GitFactory;

impl ConnectorFactory for GitFactory {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn create(
        &self,
        configuration: &Value,
        surroundings: &Surroundings,
    ) -> Result<Arc<dyn Connector>, ConnectorError> {
        Ok(Arc::new(Git::new(GitConfig::parse(configuration)?, surroundings)?))
    }

    fn describe(&self) -> Description {
        Description {
            about: "the history of a repository, local or remote",
            schemes: SCHEMES,
            token: Method::Github,
            hidden_key_prefix: WORKTREE,
            has_history: true,
            ..Description::default()
        }
    }

    fn fields(&self) -> Vec<Field> {
        fields::fields(&GitConfig::default())
    }

    fn recognises(&self, address: &Address) -> Recognition {
        let is_of_host = || {
            let names = address.path.split('/').filter(|name| !name.is_empty());
            address.host == REPOSITORY_HOST && names.count() == 2
        };
        let is_repository = match address.scheme.as_str() {
            "http" | "https" => address.path.ends_with(".git") || is_of_host(),
            scheme => SCHEMES.iter().any(|known| known.name == scheme),
        };
        if is_repository { Recognition::Certain } else { Recognition::No }
    }

    /// A remote repository, of which nothing is staged here.
    fn configure_address(&self, address: &Address, flags: &TargetFlags) -> Result<Configured, TargetError> {
        let history = &flags.history;
        if history.staged || history.worktree {
            return Err(TargetError::new("--staged and --worktree are for a repository on this machine"));
        }
        let config = GitConfig { url: Some(address.text.clone()), ..GitConfig::default() };
        // Checked before the flags change it, so that a wrong address is told first.
        GitConfig::parse(&to_value(&config)?)?;
        let configuration = to_value(&selected(history, config))?;
        Ok(Configured { kind: KIND, configuration, concurrency_limit: None })
    }

    fn recognises_path(&self, path: &Path, flags: &TargetFlags) -> Result<Recognition, TargetError> {
        let HistoryFlags { worktree, .. } = flags.history;
        match discover(path, follows_links_out(flags)) {
            Some(_) if !worktree => Ok(Recognition::Certain),
            None if worktree || flags.history.selects() => Err(TargetError::new(
                "it is not the folder of a git repository, of which alone a part can be asked for",
            )),
            _ => Ok(Recognition::No),
        }
    }

    /// A repository with its history, and with what is not in it yet unless only a part is asked for.
    fn configure_path(&self, path: &Path, flags: &TargetFlags) -> Result<Option<Value>, TargetError> {
        discover(path, follows_links_out(flags)).ok_or_else(|| TargetError::new(NO_REPOSITORY))?;
        let config = GitConfig {
            uncommitted: !flags.history.selects(),
            staged: flags.history.staged,
            ..selected(&flags.history, GitConfig::new(path.to_owned()))
        };
        to_value(&config).map(Some)
    }

    fn display_root(&self, configuration: &Value, named: NamedBy<'_>) -> Vec<u8> {
        match named {
            NamedBy::Path(typed) => path_root(typed),
            NamedBy::Address(address) => address.text.clone().into_bytes(),
            NamedBy::Configuration => match GitConfig::parse(configuration) {
                Ok(GitConfig { path: Some(path), .. }) => path.into_os_string().into_vec(),
                _ => configuration.get("url").and_then(Value::as_str).unwrap_or_default().into(),
            },
        }
    }

    fn is_local_tree(&self, configuration: &Value) -> bool {
        GitConfig::parse(configuration).is_ok_and(|config| config.path.is_some())
    }

    fn leads_out(&self, configuration: &Value) -> Vec<PathBuf> {
        let config = GitConfig::parse(configuration).ok();
        config.and_then(|config| config.path).map(|path| leads_out(&path)).unwrap_or_default()
    }

    fn coverage(&self, configuration: &Value) -> Coverage {
        let Ok(config) = GitConfig::parse(configuration) else { return Coverage::default() };
        let is_part = !config.refs.is_empty()
            || config.since_commit.is_some()
            || config.range.is_some()
            || config.staged;
        Coverage { root: config.path, only: None, is_part }
    }
}

/// A folder of this machine is trusted unless the user says otherwise.
fn follows_links_out(flags: &TargetFlags) -> bool {
    flags.trust_content != TrustContent::No
}

/// The part of a history that is asked for.
fn selected(flags: &HistoryFlags, config: GitConfig) -> GitConfig {
    let HistoryFlags { refs, since_commit, range, .. } = flags;
    GitConfig { refs: refs.clone(), since_commit: since_commit.clone(), range: range.clone(), ..config }
}

fn to_value(config: &GitConfig) -> Result<Value, TargetError> {
    serde_json::to_value(config).map_err(|error| TargetError::new(error.to_string()))
}
