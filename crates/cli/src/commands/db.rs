//! `domesday db migrate|status|key|grant|grants|revoke`: the book's database itself.

use std::path::Path;

use anyhow::{Context, Result, bail};
use domesday_connector::credentials::{CredentialManager, CredentialReference};
use domesday_store::postgres::PostgresStore;
use domesday_store::sqlite::{self, SqliteStore};
use serde::Serialize;

use super::{list_format, logins, runtime, stdout_style};
use crate::args::{DbArgs, DbCommand, StateArgs};
use crate::book::{self, Place};
use crate::sealing::Sealing;
use crate::{Exit, fingerprint, output};

pub fn run(args: &DbArgs) -> Result<Exit> {
    runtime()?.block_on(async {
        match &args.command {
            DbCommand::Migrate { fingerprint_key, json, state } => {
                migrate(fingerprint_key.as_deref(), *json, state).await
            }
            DbCommand::Status { json, state } => status(*json, state).await,
            DbCommand::Key { reference, replace, json, state } => {
                set_key(reference, *replace, *json, state).await
            }
            DbCommand::Grant { login, role, node_group, json, state } => {
                logins::grant(login, *role, node_group, *json, state).await
            }
            DbCommand::Grants { json, state } => logins::list(*json, state).await,
            DbCommand::Revoke { login, node_group, json, state } => {
                logins::revoke(login, node_group.as_deref(), *json, state).await
            }
        }
    })
}

#[derive(Serialize)]
struct StatusJson<'a> {
    server: &'a str,
    /// Of the schema; 0 before the first migration.
    version: i64,
    pending: &'a [String],
    size_bytes: u64,
    fingerprint_key: Option<&'a str>,
}

async fn migrate(fingerprint_key: Option<&str>, json: bool, state: &StateArgs) -> Result<Exit> {
    // A key that cannot be had is told before anything is changed.
    let id = match fingerprint_key {
        Some(reference) => Some(key_id(reference).await?),
        None => None,
    };
    match book::place(state)? {
        Place::Fleet(url) => drop(PostgresStore::migrate(&url).await?),
        Place::Embedded(folder) => drop(SqliteStore::open(&folder, sqlite::Options::default())?),
    }
    let now = schema(state).await?;
    let store = book::administer(state).await?;
    let holds = match &id {
        Some(id) => Some(store.set_fingerprint_key(id, false).await?),
        None => store.fingerprint_key().await?,
    };
    if id.is_some() && holds != id {
        bail!(
            "the book has another fingerprint key (id {}): `domesday db key --replace` changes it",
            holds.unwrap_or_default()
        );
    }
    let sealing = Sealing::with(fingerprint_key, state, store.as_ref()).await?;
    sealing.definitions(store.as_ref()).await?;
    let mut line = format!("the book has schema {}", now.version);
    if let Some(id) = &holds {
        line.push_str(&format!(" and fingerprint key {id}"));
    }
    let answer = serde_json::json!({ "version": now.version, "fingerprint_key": holds });
    output::write_answer(&mut std::io::stdout().lock(), &answer, &[line], list_format(json))?;
    Ok(Exit::Clean)
}

async fn status(json: bool, state: &StateArgs) -> Result<Exit> {
    let now = schema(state).await?;
    let key = if now.pending.is_empty() { book::read(state).await?.fingerprint_key().await? } else { None };
    let fields = vec![
        ("server", now.server.clone()),
        ("schema", now.version.to_string()),
        ("pending", now.pending.join("\n")),
        ("size", output::bytes(now.size_bytes)),
        ("fingerprint key", key.clone().unwrap_or_else(|| "none yet".to_owned())),
    ];
    let answer = StatusJson {
        server: &now.server,
        version: now.version,
        pending: &now.pending,
        size_bytes: now.size_bytes,
        fingerprint_key: key.as_deref(),
    };
    output::write_detail(&mut std::io::stdout().lock(), &answer, fields, list_format(json), stdout_style())?;
    Ok(if now.pending.is_empty() { Exit::Clean } else { Exit::Incomplete })
}

/// How a book is.
struct Schema {
    server: String,
    version: i64,
    pending: Vec<String>,
    size_bytes: u64,
}

/// Looks at the book without changing it.
async fn schema(state: &StateArgs) -> Result<Schema> {
    Ok(match book::place(state)? {
        Place::Fleet(url) => {
            let status = PostgresStore::status(&url).await?;
            Schema {
                server: format!("PostgreSQL {}", status.server_version),
                version: status.found,
                pending: status.pending,
                size_bytes: status.database_bytes,
            }
        }
        Place::Embedded(folder) => {
            let (version, pending) = SqliteStore::schema(&folder)?;
            let server = format!("embedded, in {}", folder.display());
            Schema { server, version, pending, size_bytes: size_of(&folder) }
        }
    })
}

/// Bytes of the files in a folder; what cannot be read counts for nothing.
fn size_of(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len())).sum()
}

/// The id of the key that a reference names.
async fn key_id(text: &str) -> Result<String> {
    // What is no reference may be the key itself, and is not repeated.
    CredentialReference::defined(text).context("the fingerprint key")?;
    Ok(fingerprint::resolve(&CredentialManager::default(), text).await?.id())
}

async fn set_key(reference: &str, replace: bool, json: bool, state: &StateArgs) -> Result<Exit> {
    let id = key_id(reference).await?;
    let store = book::administer(state).await?;
    let holds =
        store.set_fingerprint_key(&id, replace).await.context("the fingerprint key stays as it is")?;
    if holds != id {
        bail!("the book has another fingerprint key (id {holds}): --replace puts this one in its place");
    }
    let answer = serde_json::json!({ "fingerprint_key": id });
    let line = format!("fingerprints are made with key {id} from now on");
    output::write_answer(&mut std::io::stdout().lock(), &answer, &[line], list_format(json))?;
    Ok(Exit::Clean)
}
