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

/// Brings the book to the newest schema this version knows. One transaction for all pending steps: a crash
/// in the middle leaves the old schema whole. A book that is up to date is only looked at, so that a user
/// without the right to change it can open it.
pub(super) async fn migrate(client: &mut Client, known: &[Migration]) -> Result<()> {
    let failed = |error: tokio_postgres::Error| store_error(&error);
    let version: String = client
        .query_one("SHOW server_version_num", &[])
        .await
        .and_then(|row| row.try_get(0))
        .map_err(failed)?;
    if version.parse::<i32>().is_ok_and(|version| version / 10_000 < OLDEST_SERVER) {
        let why = format!("PostgreSQL {OLDEST_SERVER} or newer is needed; the server is {version}");
        return Err(StoreError::Refused(why));
    }
    let exists: bool = client
        .query_one("SELECT to_regclass('schema_migrations') IS NOT NULL", &[])
        .await
        .and_then(|row| row.try_get(0))
        .map_err(failed)?;
    if exists && pending(known, &applied(client).await?)?.is_empty() {
        return Ok(());
    }
    // Not a `transaction()`: its BEGIN cannot come together with the lock. An error ends the connection.
    client.batch_execute(BEGIN).await.map_err(failed)?;
    for (version, migration) in pending(known, &applied(client).await?)? {
        client.batch_execute(migration.sql).await.map_err(failed)?;
        let record = "INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES ($1, $2, $3, now_ms())";
        client.execute(record, &[&version, &migration.name, &migration.checksum()]).await.map_err(failed)?;
    }
    client.batch_execute("COMMIT").await.map_err(failed)
}

async fn applied(client: &impl GenericClient) -> Result<Vec<Applied>> {
    let rows = client
        .query("SELECT version, checksum FROM schema_migrations ORDER BY version", &[])
        .await
        .map_err(|error| store_error(&error))?;
    let applied = rows.iter().map(|row| Ok(Applied { version: row.try_get(0)?, checksum: row.try_get(1)? }));
    applied.collect::<std::result::Result<_, _>>().map_err(|error| store_error(&error))
}
