//! Configurations of data sources, and addresses. Who writes a data source decides what is in both.

use std::sync::LazyLock;

use domesday_connector::address::Address;
use domesday_connector::{NamedBy, Registry, TargetFlags};
use domesday_connectors::databases::sqlite::SqliteFactory;
use domesday_connectors::databases::{mysql, postgres, sqlserver};
use domesday_connectors::filesystem::FilesystemFactory;
use domesday_connectors::github::GithubFactory;
use domesday_connectors::objects::{Kind, ObjectsFactory};
use domesday_connectors::url::UrlFactory;
use domesday_git::GitFactory;
use serde_json::Value;

static KINDS: LazyLock<Registry> = LazyLock::new(|| {
    Registry::default()
        .with(GitFactory)
        .with(GithubFactory::over(GitFactory))
        .with(ObjectsFactory(Kind::S3))
        .with(ObjectsFactory(Kind::Gcs))
        .with(ObjectsFactory(Kind::Azure))
        .with(postgres::FACTORY)
        .with(mysql::FACTORY)
        .with(sqlserver::FACTORY)
        .with(SqliteFactory)
        .with(UrlFactory)
        .with(FilesystemFactory)
});

/// The first byte chooses the kind whose configuration the rest is, in JSON; what is none is an address.
pub fn check(input: &[u8]) {
    let Some((&which, rest)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let Ok(configuration) = serde_json::from_str::<Value>(text) else { return address(text) };
    let kinds: Vec<&str> = KINDS.kinds().collect();
    let kind = kinds[usize::from(which) % kinds.len()];
    if let Err(error) = KINDS.check(kind, &configuration) {
        assert!(!error.to_string().is_empty(), "a refusal says why");
    }
    KINDS.coverage(kind, &configuration);
    KINDS.display_root(kind, &configuration, NamedBy::Configuration);
}

fn address(text: &str) {
    let Ok(Some(address)) = Address::parse(text, KINDS.schemes()) else { return };
    address.server();
    let Some(factory) = KINDS.for_address(&address, None) else { return };
    // What the kind makes of an address is a configuration of its own, or a refusal.
    let _ = factory.configure_address(&address, &TargetFlags::default());
}
