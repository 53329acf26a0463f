//! Which book a command works on: that of a fleet, or the embedded one.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use domesday_connector::address::Parts;
use domesday_store::postgres::{self, PostgresStore};
use domesday_store::sqlite::{self, SqliteStore};
use domesday_store::{AdminStore, ComposerStore, ReportStore, Store};

use crate::args::StateArgs;
use crate::{say, state};

/// Where the environment names the book of a fleet.
const STORE_VARIABLE: &str = "DOMESDAY_STORE";

/// Where a book is.
#[derive(PartialEq, Eq)]
pub enum Place {
    /// The URL of a fleet's database. It may hold a password, so it is never shown.
    Fleet(String),
    /// The state folder of the embedded book.
    Embedded(PathBuf),
}

/// The book that the arguments or the environment name, for a command that shows something. The embedded one is opened
/// for reading, at any time, whoever writes.
pub async fn read(args: &StateArgs) -> Result<Arc<dyn ReportStore>> {
    Ok(match place(args)? {
        Place::Fleet(url) => Arc::new(connect(&url).await?),
        Place::Embedded(folder) => Arc::new(SqliteStore::open_for_reading(&folder)?),
    })
}

/// The same for a command that starts or directs jobs.
pub async fn compose(args: &StateArgs) -> Result<Arc<dyn ComposerStore>> {
    Ok(write(args).await?)
}

/// The same for a command that sets the book up, or cleans it.
pub async fn administer(args: &StateArgs) -> Result<Arc<dyn AdminStore>> {
    Ok(write(args).await?)
}

async fn write(args: &StateArgs) -> Result<Arc<dyn Store>> {
    Ok(match place(args)? {
        Place::Fleet(url) => Arc::new(connect(&url).await?),
        Place::Embedded(folder) => Arc::new(SqliteStore::open(&folder, sqlite::Options::default())?),
    })
}

pub async fn connect(url: &str) -> Result<PostgresStore> {
    Ok(PostgresStore::connect(url, postgres::Options::default().without_migrating()).await?)
}

/// A flag outranks the environment: `--state` means the embedded book, whatever `DOMESDAY_STORE` says.
pub fn place(args: &StateArgs) -> Result<Place> {
    if args.store.as_deref().is_some_and(has_password) {
        warn_of_password();
    }
    let from_environment = || match std::env::var(STORE_VARIABLE) {
        Ok(url) => Ok(Some(url).filter(|url| !url.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => bail!("{STORE_VARIABLE} is not text: write a URL there"),
    };
    let url = match (&args.store, &args.state) {
        (Some(url), _) => Some(url.clone()),
        (None, Some(_)) => None,
        (None, None) => from_environment()?,
    };
    Ok(match url {
        Some(url) => Place::Fleet(url),
        None => Place::Embedded(state::folder(args.state.as_deref())?),
    })
}

/// Once, however often the place is asked for.
fn warn_of_password() {
    static WARNED: std::sync::Once = std::sync::Once::new();
    WARNED.call_once(|| {
        say(format_args!(
            "warning: the password in --store can be seen by everyone on this machine who lists its \
             processes: put the URL in {STORE_VARIABLE}, or the password in PGPASSWORD"
        ));
    });
}

/// Whether a URL carries a password, before its host or among its settings.
fn has_password(url: &str) -> bool {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let user = Parts::of(url).and_then(|parts| parts.user).unwrap_or_default();
    user.split_once(':').is_some_and(|(_, password)| !password.is_empty())
        || query.split('&').any(|pair| pair.starts_with("password="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_urls_are_noticed() {
        for url in [
            "postgresql://u:hunter2@h/d",
            "postgres://u:p@ss@h:5432/d?sslmode=require",
            "postgresql://h/d?user=u&password=hunter2",
        ] {
            assert!(has_password(url), "{url}");
        }
        for url in ["postgresql://u@h:5432/d", "postgresql://u:@h/d", "postgresql:///d?host=/run/a:b@c", ""] {
            assert!(!has_password(url), "{url}");
        }
    }
}
