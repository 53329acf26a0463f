//! Books of other versions: older ones are upgraded, newer and changed ones refused.

use super::super::book::{self, Access, MIGRATIONS};
use super::*;
use crate::migrate::Migration;

fn connect(folder: &Path) -> Connection {
    book::connect(&folder.join(BOOK_FILE), &options().clock, Access::Write).unwrap()
}

/// A book that has only the first migrations, and a job.
fn older(folder: &Path, migrations: usize) {
    let mut connection = connect(folder);
    book::migrate(&mut connection, &MIGRATIONS[..migrations]).unwrap();
    connection
        .execute_batch(
            "INSERT INTO master_jobs (id, request_key, description, created_at) VALUES (x'01010101010101010101010101010101', x'00', 'kept', 5);
             INSERT INTO jobs (id, master_job_id, node_group, status, master_pending_commands, configuration, created_at)
             VALUES (9, x'01010101010101010101010101010101', 'main', 'QUEUED', '[\"START\"]', '{}', 5);",
        )
        .unwrap();
}

/// What a book is made of: kinds, names and statements.
fn schema(connection: &Connection) -> Vec<[Option<String>; 3]> {
    let sql = "SELECT type, name, sql FROM sqlite_schema ORDER BY rowid";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?])).unwrap();
    rows.map(|row| row.unwrap()).collect()
}

#[test]
fn a_new_book_is_what_the_migrations_make() {
    let [migrated, new] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let mut connection = connect(migrated.path());
    book::migrate(&mut connection, MIGRATIONS).unwrap();
    let migrated = schema(&connection);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        let own = |name: &Option<String>| name.as_ref().is_some_and(|name| name.starts_with("sqlite_"));
        let statements =
            migrated.iter().filter(|[_, name, _]| !own(name)).filter_map(|[_, _, sql]| sql.as_ref());
        let text: String = statements.map(|sql| format!("{sql};\n\n")).collect();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/sqlite/schema.sql");
        std::fs::write(path, text.trim_end().to_owned() + "\n").unwrap();
        return;
    }
    drop(open(new.path()));
    let sorted = |mut schema: Vec<_>| {
        schema.sort();
        schema
    };
    assert_eq!(
        sorted(schema(&connect(new.path()))),
        sorted(migrated),
        "stale: run `UPDATE_SNAPSHOTS=1 cargo test -p domesday-store migrations` and commit schema.sql"
    );
}

/// Units of a book from before there were pages.
#[tokio::test]
async fn units_are_kept_when_they_get_pages() {
    let folder = tempfile::tempdir().unwrap();
    older(folder.path(), 5);
    connect(folder.path())
        .execute_batch(
            "INSERT INTO datasources (id, name, kind, node_group, configuration, created_at)
                 VALUES (1, 'a', 'filesystem', 'main', '{}', 5);
             INSERT INTO tasks (id, job_id, datasource_id, session_id, type, status, payload, created_at)
                 VALUES (3, 9, 1, 1, 'DISCOVERY_ENUMERATE', 'RUNNING', '{}', 5);
             INSERT INTO task_units (id, task_id, job_id, session_id, key, status, records, objects, bytes, resume_point)
                 VALUES (7, 3, 9, 1, x'61', 'COMMITTED', 4, 3, 2, 'stale'), (8, 3, 9, 1, x'62', 'STAGING', 1, 1, 1, NULL);",
        )
        .unwrap();
    let store = open(folder.path());
    let claim = Claim { task: domesday_model::TaskId(3), claim: domesday_model::ClaimId(0) };
    let units = store.task_units(&claim).await.unwrap();
    let seen: Vec<_> =
        units.iter().map(|unit| (unit.unit.0, unit.page, unit.status.as_str(), unit.records)).collect();
    assert_eq!(seen, [(7, 0, "COMMITTED", 4), (8, 0, "STAGING", 1)]);
    assert!(units.iter().all(|unit| unit.resume_point.is_none()), "no page comes behind them");
    let summary = store.summary(MASTER).await.unwrap();
    assert_eq!((summary.units, summary.objects_listed, summary.bytes_listed), (1, 3, 2));
}

#[tokio::test]
async fn an_older_book_is_upgraded_with_what_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    older(folder.path(), 2);
    let Err(refused) = SqliteStore::open_for_reading(folder.path()) else {
        panic!("a reader cannot upgrade")
    };
    assert!(refused.to_string().contains("older version"), "{refused}");
    for _ in 0..2 {
        let store = open(folder.path());
        let job = store.master_job(MASTER).await.unwrap().unwrap();
        assert_eq!((job.description.as_str(), job.created_at_ms), ("kept", 5));
        assert_eq!(store.events("test", 1).await.unwrap(), [], "the new tables are there");
    }
    let count: i64 = connect(folder.path())
        .query_row("SELECT count(*) FROM schema_migrations", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, MIGRATIONS.len() as i64);
}

/// What opening a book says whose migrations were tampered with.
fn refusals(sql: &str) -> [StoreError; 2] {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    connect(folder.path()).execute_batch(sql).unwrap();
    let Err(writer) = SqliteStore::open(folder.path(), options()) else { panic!("a writer took it") };
    let Err(reader) = SqliteStore::open_for_reading(folder.path()) else { panic!("a reader took it") };
    [writer, reader]
}

#[test]
fn a_newer_book_is_refused() {
    for error in refusals("INSERT INTO schema_migrations VALUES (99, 'later', 'x', 0)") {
        assert!(matches!(error, StoreError::NewerSchema { found: 99, known: 9 }), "{error}");
    }
}

#[test]
fn a_changed_migration_is_refused() {
    for error in refusals("UPDATE schema_migrations SET checksum = 'x' WHERE version = 2") {
        assert!(
            matches!(&error, StoreError::ChangedMigration { version: 2, name } if name == "enumeration"),
            "{error}"
        );
    }
}

#[test]
fn a_migration_that_fails_leaves_the_old_schema_whole() {
    let folder = tempfile::tempdir().unwrap();
    older(folder.path(), 2);
    let mut known = MIGRATIONS.to_vec();
    known.push(Migration { name: "bad", sql: "CREATE TABLE extra (x); INSERT INTO nowhere VALUES (1);" });
    let mut connection = connect(folder.path());
    assert!(book::migrate(&mut connection, &known).is_err());
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name IN ('extra', 'findings', 'events')";
    assert_eq!(connection.query_row(tables, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    drop(connection);
    drop(open(folder.path()));
}
