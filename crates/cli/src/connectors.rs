//! The connectors that this program has: the one place where a kind of data source is registered.
//!
//! Everything else asks a kind's factory what it needs to know, and names no kind. `cargo xtask tidy` checks that.

use std::sync::LazyLock;

use domesday_connector::{NamedBy, Registry};
use domesday_connectors::databases::sqlite::SqliteFactory;
use domesday_connectors::databases::{mysql, postgres, sqlserver};
use domesday_connectors::filesystem::FilesystemFactory;
use domesday_connectors::github::GithubFactory;
use domesday_connectors::objects::{Kind, ObjectsFactory};
use domesday_connectors::stdin::StdinFactory;
use domesday_connectors::url::UrlFactory;
use domesday_git::GitFactory;
use serde_json::Value;

use crate::output::Source;

/// The kinds of data source a fleet reads: one line each. Standard input is nobody else's.
pub fn of_fleet() -> Registry {
    let registry = Registry::default()
        .with(GitFactory)
        .with(GithubFactory::over(GitFactory))
        .with(ObjectsFactory(Kind::S3))
        .with(ObjectsFactory(Kind::Gcs))
        .with(ObjectsFactory(Kind::Azure))
        .with(postgres::FACTORY)
        .with(mysql::FACTORY)
        .with(sqlserver::FACTORY)
        .with(SqliteFactory)
        .with(UrlFactory);
    #[cfg(feature = "failpoints")]
    return registry.with(crate::failpoints::Aborting(FilesystemFactory));
    #[cfg(not(feature = "failpoints"))]
    registry.with(FilesystemFactory)
}

/// What a fleet reads, and the standard input of this process. With `keeps_input` it can be read a second time.
pub fn of_scan(keeps_input: bool) -> Registry {
    of_fleet().with(if keeps_input { StdinFactory::keeping() } else { StdinFactory::default() })
}

/// All kinds, to be asked about themselves. Nothing is read with it.
pub fn known() -> &'static Registry {
    static KNOWN: LazyLock<Registry> = LazyLock::new(|| of_scan(false));
    &KNOWN
}

/// How the objects of a data source are shown.
pub fn display(name: &str, kind: &str, configuration: &Value, named: NamedBy<'_>) -> Source {
    Source {
        name: name.to_owned(),
        root: known().display_root(kind, configuration, named),
        hidden: known().describe(kind).hidden_key_prefix.to_vec(),
    }
}
