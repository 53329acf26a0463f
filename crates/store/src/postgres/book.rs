//! Making and upgrading the schema. Any number of processes may do so at once: the first one that finds
//! something to do does it under an advisory lock, and the others find it done.

use tokio_postgres::{Client, GenericClient};

use super::Result;
use super::error::store_error;
use crate::error::StoreError;
use crate::migrate::{Applied, Migration, pending};

pub(super) const MIGRATIONS: &[Migration] = &[
    Migration { name: "jobs_and_tasks", sql: include_str!("migrations/0001_jobs_and_tasks.sql") },
    Migration { name: "enumeration", sql: include_str!("migrations/0002_enumeration.sql") },
    Migration { name: "findings", sql: include_str!("migrations/0003_findings.sql") },
    Migration { name: "events", sql: include_str!("migrations/0004_events.sql") },
    Migration { name: "fleet", sql: include_str!("migrations/0005_fleet.sql") },
    Migration { name: "pages_and_bases", sql: include_str!("migrations/0006_pages_and_bases.sql") },
    Migration { name: "targets_and_origins", sql: include_str!("migrations/0007_targets_and_origins.sql") },
    Migration { name: "tables", sql: include_str!("migrations/0008_tables.sql") },
    Migration { name: "suppressed", sql: include_str!("migrations/0009_suppressed.sql") },
    Migration { name: "node_group_logins", sql: include_str!("migrations/0010_node_group_logins.sql") },
    Migration { name: "no_raw_values", sql: include_str!("migrations/0011_no_raw_values.sql") },
    Migration { name: "who_connected", sql: include_str!("migrations/0012_who_connected.sql") },
    Migration { name: "read_again", sql: include_str!("migrations/0013_read_again.sql") },
    Migration { name: "object_checkpoints", sql: include_str!("migrations/0014_object_checkpoints.sql") },
];

/// Oldest server whose SQL this is written in.
const OLDEST_SERVER: i32 = 15;

/// Whoever migrates waits for whoever does, however long that takes, and no longer than the connection lives.
const BEGIN: &str = "BEGIN;
    SET LOCAL lock_timeout = 0;
    SET LOCAL statement_timeout = 0;
    SELECT pg_advisory_xact_lock(hashtextextended('domesday migrations', 0));
    CREATE TABLE IF NOT EXISTS schema_migrations (
        version bigint PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at bigint NOT NULL);";

/// What a database says of itself and of the book in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchemaStatus {
    /// As the server spells it, such as `16.4`.
    pub server_version: String,
    /// The newest migration that the book has; 0 where there is no book yet.
    pub found: i64,
    /// The newest one that this version knows.
    pub known: i64,
    /// Names of the migrations that are still to be applied, in order.
    pub pending: Vec<String>,
    pub database_bytes: u64,
}

/// Brings the book to the newest schema this version knows; which migrations that took, by name. One
/// transaction for all pending steps: a crash in the middle leaves the old schema whole. A book that is up to
/// date is only looked at, so that a user without the right to change it can open it.
pub(super) async fn migrate(client: &mut Client, known: &[Migration]) -> Result<Vec<String>> {
    check_server(client).await?;
    if pending(known, &applied(client).await?)?.is_empty() {
        return Ok(Vec::new());
    }
    // Not a `transaction()`: its BEGIN cannot come together with the lock. An error ends the connection.
    client.batch_execute(BEGIN).await.map_err(failed)?;
    let mut done = Vec::new();
    for (version, migration) in pending(known, &applied(client).await?)? {
        client.batch_execute(migration.sql).await.map_err(failed)?;
        let record = "INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES ($1, $2, $3, now_ms())";
        client.execute(record, &[&version, &migration.name, &migration.checksum()]).await.map_err(failed)?;
        done.push(migration.name.to_owned());
    }
    client.batch_execute("COMMIT").await.map_err(failed)?;
    Ok(done)
}

/// Whether the book has the schema that this version needs; changes nothing.
pub(super) async fn check(client: &mut Client, known: &[Migration]) -> Result<()> {
    check_server(client).await?;
    let applied = applied(client).await?;
    match pending(known, &applied)?.is_empty() {
        true => Ok(()),
        false => Err(StoreError::OlderSchema { found: newest(&applied), known: known.len() as i64 }),
    }
}

pub(super) async fn status(client: &mut Client, known: &[Migration]) -> Result<SchemaStatus> {
    let applied = applied(client).await?;
    let (found, newest_known) = (newest(&applied), known.len() as i64);
    // That a book is newer is something to tell, not a failure to tell it.
    let pending = if found > newest_known { Vec::new() } else { pending(known, &applied)? };
    let sql = "SELECT current_setting('server_version'), pg_database_size(current_database())";
    let row = client.query_one(sql, &[]).await.map_err(failed)?;
    Ok(SchemaStatus {
        server_version: row.try_get(0).map_err(failed)?,
        found,
        known: newest_known,
        pending: pending.into_iter().map(|(_, migration)| migration.name.to_owned()).collect(),
        database_bytes: row.try_get::<_, i64>(1).map_err(failed)?.cast_unsigned(),
    })
}

fn failed(error: tokio_postgres::Error) -> StoreError {
    store_error(&error)
}

fn newest(applied: &[Applied]) -> i64 {
    applied.iter().map(|migration| migration.version).max().unwrap_or(0)
}

async fn check_server(client: &impl GenericClient) -> Result<()> {
    let version: String = client
        .query_one("SHOW server_version_num", &[])
        .await
        .and_then(|row| row.try_get(0))
        .map_err(failed)?;
    if version.parse::<i32>().is_ok_and(|version| version / 10_000 < OLDEST_SERVER) {
        let why = format!("PostgreSQL {OLDEST_SERVER} or newer is needed; the server is {version}");
        return Err(StoreError::Refused(why));
    }
    Ok(())
}

/// The migrations that the book has; none where there is no book.
async fn applied(client: &impl GenericClient) -> Result<Vec<Applied>> {
    let exists: bool = client
        .query_one("SELECT to_regclass('schema_migrations') IS NOT NULL", &[])
        .await
        .and_then(|row| row.try_get(0))
        .map_err(failed)?;
    if !exists {
        return Ok(Vec::new());
    }
    let rows = client
        .query("SELECT version, checksum FROM schema_migrations ORDER BY version", &[])
        .await
        .map_err(failed)?;
    let applied = rows.iter().map(|row| Ok(Applied { version: row.try_get(0)?, checksum: row.try_get(1)? }));
    applied.collect::<std::result::Result<_, _>>().map_err(failed)
}
