//! Opening the book's file: lock, pragmas, migrations.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use rusqlite::config::DbConfig;
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use rustix::fs::{FlockOperation, flock};

use super::{LOCK_FILE, Result, scrub};
use crate::clock::Clock;
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
    Migration { name: "no_raw_values", sql: include_str!("migrations/0010_no_raw_values.sql") },
    Migration { name: "object_checkpoints", sql: include_str!("migrations/0011_object_checkpoints.sql") },
];

/// What the migrations make of an empty book. Altering tables step by step takes several times as long as making
/// them as they are in the end, and every first scan would wait for it. A test compares the two.
const SCHEMA: &str = include_str!("schema.sql");

/// How long a connection waits for a lock of another one (a checkpoint, a reader's recovery).
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// WAL pages after which a commit also checkpoints: 64 MiB of 4 KiB pages.
const CHECKPOINT_PAGES: u32 = 16_384;
/// Pages that the writer keeps in memory, in KiB: 4 MiB. What a scan writes to again and again fits into it.
const WRITER_CACHE_KIB: i64 = 4 << 10;
/// Statements kept prepared per connection.
const STATEMENT_CACHE: usize = 128;

pub(super) enum Access {
    Write,
    Read,
}

/// The right to write to a state folder; it goes with the process, however that ends.
pub(super) struct Lock(File);

impl Drop for Lock {
    /// Closing the file is not enough: a child that is just being started still has a copy of it.
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Takes the state folder's lock, making the folder (mode 0700) if need be.
pub(super) fn lock(folder: &Path) -> Result<Lock> {
    let unwritable = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::StorageFull => StoreError::DiskFull,
        _ => StoreError::ReadOnly(format!("{}: {error}", folder.display())),
    };
    if folder.exists() && !folder.is_dir() {
        return Err(StoreError::NoFolder(folder.display().to_string()));
    }
    if !folder.is_dir() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(unwritable)?;
    }
    let path = folder.join(LOCK_FILE);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(unwritable)?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let mut holder = String::new();
        // Only for the message: without it the error is as clear as it can be.
        let _ = file.read_to_string(&mut holder);
        let holder = if holder.trim().is_empty() { "unknown" } else { holder.trim() };
        return Err(StoreError::Locked(folder.display().to_string(), holder.to_owned()));
    }
    let mut lock = Lock(file);
    lock.0.set_len(0).and_then(|()| lock.0.rewind()).map_err(unwritable)?;
    writeln!(lock.0, "{}", std::process::id()).map_err(unwritable)?;
    Ok(lock)
}

/// A connection with the book's settings and its clock.
pub(super) fn connect(path: &Path, clock: &Arc<dyn Clock>, access: Access) -> Result<Connection> {
    let connection = match access {
        Access::Write => {
            // SQLite gives its side files the mode of the main one: make that one private first.
            OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(path)
                .map_err(|error| StoreError::ReadOnly(format!("{}: {error}", path.display())))?;
            open_file(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?
        }
        Access::Read => open_to_read(path)?,
    };
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    // One plan for a statement, whatever is bound to it: otherwise some are planned anew each time they run.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    let clock = Arc::clone(clock);
    connection.create_scalar_function(
        "now_ms",
        0,
        FunctionFlags::SQLITE_UTF8,
        move |_| Ok(clock.now_ms()),
    )?;
    match access {
        Access::Write => {
            scrub::add_functions(&connection)?;
            // The mode is written once, into a file with nothing in it yet. A journal keeps that whole if the process
            // dies; if the power fails, the file is empty still, as it may be for as long as nothing was copied to it
            // from the log. So there is nothing to wait for the disk for.
            connection.pragma_update(None, "synchronous", "OFF")?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "NORMAL")?;
            connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
            connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
            // What a savepoint would roll back to is kept in memory, and not written to a file of its own: as many
            // pages as the verbs of one group change. The writer sorts nothing that would be kept there too.
            connection.pragma_update(None, "temp_store", "MEMORY")?;
            // References are kept by the verbs. Checking them would walk through all results for each task
            // that is removed: there is no index to find them by, since nothing else needs one.
            connection.pragma_update(None, "foreign_keys", false)?;
        }
        Access::Read => connection.pragma_update(None, "query_only", true)?,
    }
    Ok(connection)
}

fn open_file(path: impl AsRef<Path>, flags: OpenFlags) -> Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

/// Readers of a WAL share a file beside the book, which SQLite cannot make in a folder it may not write
/// to. A book there without a log beside it is complete and has no writer, so it is read as it is.
fn open_to_read(path: &Path) -> Result<Connection> {
    let connection = open_file(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let Err(error) = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())) else {
        return Ok(connection);
    };
    match StoreError::from(error) {
        StoreError::ReadOnly(_) if !log_of(path).exists() => {
            let escaped = percent_encode(path.as_os_str().as_bytes(), NON_ALPHANUMERIC);
            let uri = format!("file:{escaped}?immutable=1");
            open_file(uri, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)
        }
        error => Err(error),
    }
}

/// The log beside a book.
pub(super) fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}

/// Whether the file has ever become a book; one whose first migration was cut short has not.
pub(super) fn is_book(connection: &Connection) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations')";
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}

/// Brings the book to the newest schema this version knows.
pub(super) fn upgrade(connection: &mut Connection) -> Result<()> {
    if is_book(connection)? {
        migrate(connection, MIGRATIONS)?;
        return scrub::finish(connection);
    }
    // The first frame of a log waits for its head to be on the disk, lest frames of an older log be taken for those
    // that follow it. Nothing was ever committed to this one: there are none.
    connection.pragma_update(None, "synchronous", "OFF")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(SCHEMA)?;
    for (version, migration) in pending(MIGRATIONS, &[])? {
        record(&transaction, version, migration)?;
    }
    transaction.commit()?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(())
}

/// Applies what is pending of the `known` migrations. One transaction for all of them: a crash in the middle
/// leaves the old schema whole.
pub(super) fn migrate(connection: &mut Connection, known: &[Migration]) -> Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(
        "CREATE TABLE IF NOT EXISTS schema_migrations (
             version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL
         ) STRICT",
    )?;
    for (version, migration) in pending(known, &applied(&transaction)?)? {
        transaction.execute_batch(migration.sql)?;
        record(&transaction, version, migration)?;
    }
    transaction.commit()?;
    Ok(())
}

/// Notes that a migration is applied.
fn record(connection: &Connection, version: i64, migration: &Migration) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (?1, ?2, ?3, now_ms())",
        )?
        .execute((version, migration.name, migration.checksum()))?;
    Ok(())
}

/// Whether a reader of this version understands the book.
pub(super) fn check_readable(connection: &Connection, known: &[Migration]) -> Result<()> {
    match pending(known, &applied(connection)?)?.first() {
        None => Ok(()),
        Some(_) => Err(StoreError::Damaged(
            "it was written by an older version; run a scan with this --state to upgrade it".into(),
        )),
    }
}

pub(super) fn applied(connection: &Connection) -> Result<Vec<Applied>> {
    let mut statement =
        connection.prepare("SELECT version, checksum FROM schema_migrations ORDER BY version")?;
    let rows = statement.query_map([], |row| Ok(Applied { version: row.get(0)?, checksum: row.get(1)? }))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
