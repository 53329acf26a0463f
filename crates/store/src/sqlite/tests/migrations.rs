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
        assert!(
            matches!(error, StoreError::NewerSchema { found: 99, known } if known == MIGRATIONS.len() as i64),
            "{error}"
        );
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

/// What was raw in books of earlier versions is nowhere in the file or its log, and unfinished work that needed it is
/// said to have ended.
#[tokio::test]
async fn raw_values_are_taken_out_of_every_page() {
    let folder = tempfile::tempdir().unwrap();
    older(folder.path(), 8);
    let filler = "x".repeat(2_000);
    connect(folder.path())
        .execute_batch(&format!(
            "INSERT INTO datasources (id, name, kind, node_group, configuration, created_at)
                 VALUES (1, 'a', 'postgres', 'main', '{{}}', 5),
                        (2, 'url:https://h/?token=mrkname', 'url', 'main', '{{\"addresses\":[\"https://h/?token=mrkconf\"]}}', 5);
             INSERT INTO enumeration_sessions (id, job_id, datasource_id, source_type, status, configuration, started_at, last_update)
                 VALUES (1, 9, 1, 'postgres', 'IN_PROGRESS', '{{}}', 5, 5);
             INSERT INTO tasks (id, job_id, datasource_id, session_id, type, status, payload, created_at)
                 VALUES (3, 9, 1, 1, 'CLASSIFICATION', 'RUNNING', '{{}}', 5);
             INSERT INTO task_units (id, task_id, job_id, session_id, key, page, status, resume_point)
                 VALUES (7, 3, 9, 1, x'61', 0, 'COMMITTED', '{{\"parts\":1,\"after\":[\"mrkpoint\"]}}');
             INSERT INTO task_output_records (unit_id, sequence, kind, name, object_key_hash, size, mtime_ns, ctime_ns, inode, metadata)
                 VALUES (7, 0, 9, x'61', x'00', 1, 0, 0, 0, '{{\"to\":[\"mrkbound\"]}}'),
                        (7, 1, 0, CAST('https://h/x?token=mrklink' AS BLOB), x'00', 1, 0, 0, 0, NULL);
             INSERT INTO staged_results (task_id, claim_id, sequence, body) VALUES (3, 1, 0, 'mrkstaged');
             INSERT INTO findings VALUES (x'01', 1, CAST('https://h/x?token=mrklink' AS BLOB), x'', 'r', x'', 'secret', 90, 'p', 'open', 5, 5);
             INSERT INTO finding_occurrences (job_id, task_id, sequence, finding_id, score, reasons, span_start, span_end, line, column, decoding, row_key)
                 VALUES (9, 3, 0, x'01', 90, '', 0, 1, 1, 1, '', 'mrkrow'), (9, 3, 1, x'01', 90, '', 0, 1, 1, 1, '', '42'),
                        (9, 3, 2, x'01', 90, '', 0, 1, 1, 1, '', '731426508'), (9, 3, 3, x'01', 90, '', 0, 1, 1, 1, '', '#123456789');
             INSERT INTO table_observations VALUES (9, 3, 0, 1, x'61', x'', x'61',
                 '{{\"columns\":[{{\"name\":\"ssn\",\"type_name\":\"text\"}}],\"primary_key\":[0]}}', 5, 0, CAST('mrksketch' AS BLOB)),
                 (9, 3, 1, 1, x'62', x'', x'62',
                 '{{\"columns\":[{{\"name\":\"id\",\"type_name\":\"INTEGER\"}}],\"primary_key\":[0]}}', 5, 0, x'01');
             INSERT INTO rule_sets VALUES (x'02', '[[\"a\",\"[[allow]]\\nvalues = [''mrkallow'']\"]]', 5);
             INSERT INTO url_targets VALUES (1, 'https://h/x?token=mrktarget', '{{}}', 5, 5);
             INSERT INTO scan_targets VALUES (x'03', 'https://h/x?token=mrktarget', 'url', 1, '{{}}', 5, NULL);
             INSERT INTO job_scan_targets VALUES (9, x'03', 1);
             INSERT INTO events (job_id, kind, payload, created_at) VALUES (9, 'a', 'https://h/?sig=mrkevent {filler}', 5);
             DELETE FROM events;",
        ))
        .unwrap();
    let raw = |name: &str| std::fs::read(folder.path().join(name)).unwrap_or_default();
    let all = || [raw(BOOK_FILE), raw("book.sqlite-wal")].concat();
    let has = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has(&all(), "mrkbound") && has(&all(), "mrkevent"), "nothing to take out");
    let store = open(folder.path());
    let left = all();
    assert!(
        !has(&left, "mrk"),
        "{}",
        String::from_utf8_lossy(&left[left.windows(3).position(|w| w == b"mrk").unwrap()..][..60])
    );
    let job = store.master_job(MASTER).await.unwrap().unwrap();
    assert_eq!(job.status, domesday_model::JobStatus::Failed);
    drop(store);
    let connection = connect(folder.path());
    let texts = |sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(|row| row.unwrap()).collect()
    };
    assert_eq!(
        texts("SELECT row_key FROM finding_occurrences ORDER BY sequence"),
        ["****", "42", "****", "#123456789"]
    );
    assert_eq!(
        texts("SELECT configuration FROM datasources WHERE id = 2"),
        ["{\"addresses\":[\"https://h/?token=****\"]}"]
    );
    assert_eq!(texts("SELECT status FROM tasks"), ["CANCELLED"]);
    assert_eq!(texts("SELECT hex(object_key) FROM table_observations"), ["62"]);
    assert_eq!(texts("SELECT value FROM book_settings WHERE name = 'scrub'"), Vec::<String>::new());
}
