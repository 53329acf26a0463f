//! Books of other versions: older ones are upgraded, newer and changed ones refused; by many at once.

use super::super::book::{self, MIGRATIONS};
use super::*;
use crate::migrate::Migration;

#[tokio::test]
async fn many_processes_may_migrate_at_once() {
    const PROCESSES: usize = 12;
    let database = Database::new();
    let opened: Vec<_> = (0..PROCESSES)
        .map(|_| {
            let url = database.url.clone();
            tokio::spawn(async move { PostgresStore::connect(&url, Options::default()).await })
        })
        .collect();
    for store in opened {
        let store = store.await.unwrap().unwrap();
        assert_eq!(store.master_jobs(1).await.unwrap(), []);
    }
    assert_eq!(database.psql("SELECT count(*) FROM schema_migrations"), MIGRATIONS.len().to_string());
}

#[tokio::test]
async fn an_older_book_is_upgraded_with_what_is_in_it() {
    let database = Database::new();
    book::migrate(&mut database.session().await, &MIGRATIONS[..2]).await.unwrap();
    database.psql(
        "INSERT INTO master_jobs VALUES (decode(repeat('01', 16), 'hex'), '', 'kept', 5);
         INSERT INTO jobs (master_job_id, node_group, status, master_pending_commands, configuration, created_at)
         VALUES (decode(repeat('01', 16), 'hex'), 'main', 'QUEUED', '[]', '{}', 5)",
    );
    for _ in 0..2 {
        let store = database.open().await;
        let job = store.master_job(MASTER).await.unwrap().unwrap();
        assert_eq!((job.description.as_str(), job.created_at_ms), ("kept", 5));
        assert_eq!(store.events("test", 1).await.unwrap(), [], "the new tables are there");
    }
}

async fn refusal(tampering: &str) -> StoreError {
    let database = Database::new();
    drop(database.open().await);
    database.psql(tampering);
    match PostgresStore::connect(&database.url, Options::default()).await {
        Ok(_) => panic!("the book was taken"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn newer_and_changed_books_are_refused() {
    let newer = refusal("INSERT INTO schema_migrations VALUES (99, 'later', 'x', 0)").await;
    assert!(
        matches!(newer, StoreError::NewerSchema { found: 99, known } if known == MIGRATIONS.len() as i64),
        "{newer}"
    );
    let changed = refusal("UPDATE schema_migrations SET checksum = 'x' WHERE version = 2").await;
    assert!(
        matches!(&changed, StoreError::ChangedMigration { version: 2, name } if name == "enumeration"),
        "{changed}"
    );
}

#[tokio::test]
async fn a_migration_that_fails_leaves_the_old_schema_whole() {
    let database = Database::new();
    book::migrate(&mut database.session().await, &MIGRATIONS[..2]).await.unwrap();
    let mut known = MIGRATIONS.to_vec();
    known.push(Migration { name: "bad", sql: "CREATE TABLE extra (x int); INSERT INTO nowhere VALUES (1);" });
    let error = book::migrate(&mut database.session().await, &known).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused(_)), "{error}");
    let tables = "SELECT count(*) FROM pg_tables WHERE tablename IN ('extra', 'findings', 'events')";
    assert_eq!(database.psql(tables), "0");
    database.open().await.submit(request(MASTER)).await.unwrap();
}

#[tokio::test]
async fn a_book_that_is_up_to_date_needs_no_right_to_change_it() {
    let database = Database::new();
    database.open().await.submit(request(MASTER)).await.unwrap();
    database.psql(&format!(
        "DO $$ BEGIN CREATE ROLE reader LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
         REVOKE CREATE ON DATABASE {} FROM PUBLIC;
         GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
        database.name
    ));
    let url = database.url.replace("postgres@", "reader@");
    let reader = PostgresStore::connect(&url, Options::default()).await.unwrap();
    assert_eq!(reader.master_jobs(10).await.unwrap().len(), 1);
    let refused = reader.submit(request(MasterJobId([9; 16]))).await.unwrap_err();
    assert!(matches!(refused, StoreError::Refused(_)) && !refused.is_retryable(), "{refused}");
}

#[tokio::test]
async fn an_older_book_is_refused_where_it_is_not_to_be_changed() {
    let database = Database::new();
    let opens = || async {
        let options = Options { migrate: false, ..Options::default() };
        PostgresStore::connect(&database.url, options).await.map(drop)
    };
    let known = MIGRATIONS.len() as i64;
    for found in [0, 2] {
        book::migrate(&mut database.session().await, &MIGRATIONS[..found]).await.unwrap();
        let refused = opens().await.unwrap_err();
        let expected = StoreError::OlderSchema { found: found as i64, known };
        assert_eq!(refused.to_string(), expected.to_string());
        assert!(refused.to_string().contains("domesday db migrate") && !refused.is_retryable());
    }
    PostgresStore::migrate(&database.url).await.unwrap();
    opens().await.unwrap();
}

#[tokio::test]
async fn the_status_tells_what_a_migration_would_do() {
    let database = Database::new();
    let names: Vec<_> = MIGRATIONS.iter().map(|migration| migration.name.to_owned()).collect();
    let known = names.len() as i64;
    let empty = PostgresStore::status(&database.url).await.unwrap();
    assert_eq!((empty.found, empty.known, &empty.pending), (0, known, &names));
    assert!(empty.database_bytes > 0 && empty.server_version.starts_with(char::is_numeric), "{empty:?}");
    assert_eq!(database.psql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), "0");
    let migrating: Vec<_> = (0..8)
        .map(|_| {
            let url = database.url.clone();
            tokio::spawn(async move { PostgresStore::migrate(&url).await.unwrap() })
        })
        .collect();
    let mut applied = Vec::new();
    for one in migrating {
        applied.extend(one.await.unwrap());
    }
    assert_eq!(applied, names, "each by one of them");
    let done = PostgresStore::status(&database.url).await.unwrap();
    assert_eq!((done.found, done.pending), (known, vec![]));
    database.psql("INSERT INTO schema_migrations VALUES (99, 'later', 'x', 0)");
    let newer = PostgresStore::status(&database.url).await.unwrap();
    assert_eq!((newer.found, newer.pending), (99, vec![]));
}

/// What was raw in books of earlier versions is in no row any more, and unfinished work that needed it is said to have ended.
#[tokio::test]
async fn raw_values_are_taken_out_of_every_row() {
    let database = Database::new();
    book::migrate(&mut database.session().await, &MIGRATIONS[..8]).await.unwrap();
    database.psql(
        r#"INSERT INTO master_jobs (id, request_key, description, created_at) VALUES (decode(repeat('01', 16), 'hex'), '', 'https://h/?code=mrkdescription', 5);
         INSERT INTO jobs (master_job_id, node_group, status, master_pending_commands, configuration, created_at)
         VALUES (decode(repeat('01', 16), 'hex'), 'main', 'RUNNING', '[]', '{}', 5);
         INSERT INTO datasources (name, kind, node_group, configuration, created_at)
         VALUES ('a', 'postgres', 'main', '{}', 5),
                ('url:https://h/?token=mrkname', 'url', 'main', '{"addresses":["https://ann:mrkpass@h/?x=0mrk456789abcdef0"]}', 5);
         INSERT INTO enumeration_sessions (job_id, datasource_id, source_type, status, configuration, started_at, last_update)
         VALUES (1, 1, 'postgres', 'IN_PROGRESS', '{}', 5, 5);
         INSERT INTO tasks (job_id, datasource_id, session_id, type, status, payload, created_at)
         VALUES (1, 1, 1, 'CLASSIFICATION', 'RUNNING', '{}', 5);
         INSERT INTO task_units (task_id, job_id, session_id, key, page, status, resume_point)
         VALUES (1, 1, 1, 'a', 0, 'COMMITTED', '{"after":["mrkpoint"]}');
         INSERT INTO task_output_records (unit_id, sequence, kind, name, object_key_hash, size, mtime_ns, ctime_ns, inode, metadata)
         VALUES (1, 0, 9, 'a', '', 1, 0, 0, 0, '{"to":["mrkbound"]}'), (1, 1, 0, 'https://h/x?sig=mrklink&a=1', '', 1, 0, 0, 0, NULL),
                (1, 2, 0, '\x61ff', '', 1, 0, 0, 0, NULL);
         INSERT INTO finding_occurrences (job_id, task_id, sequence, finding_id, score, reasons, span_start, span_end, line, column_number, decoding, row_key)
         VALUES (1, 1, 0, '', 90, '', 0, 1, 1, 1, '', 'mrkrow'), (1, 1, 1, '', 90, '', 0, 1, 1, 1, '', '42'),
                (1, 1, 2, '', 90, '', 0, 1, 1, 1, '', '731426508'), (1, 1, 3, '', 90, '', 0, 1, 1, 1, '', '#123456789');
         INSERT INTO table_observations VALUES
             (1, 1, 0, 1, 'a', '', 'a', '{"columns":[{"name":"ssn","type_name":"text"}],"primary_key":[0]}', 5, false, 'mrksketch'),
             (1, 1, 1, 1, 'b', '', 'b', '{"columns":[{"name":"id","type_name":"bigint"}],"primary_key":[0]}', 5, false, '');
         INSERT INTO rule_sets VALUES ('\x02', '[["a","[[allow]]\nvalues = [''mrkallow'']"]]', 5);
         INSERT INTO events (job_id, kind, payload, created_at) VALUES (1, 'a', 'AKIAMRK0123456789mrk', 5)"#,
    );
    let store = database.open().await;
    let dump = Server::shared().dump(&database.name);
    let at = dump.find("mrk").map(|at| &dump[at.saturating_sub(100)..(at + 60).min(dump.len())]);
    assert_eq!(at, None);
    assert_eq!(store.master_job(MASTER).await.unwrap().unwrap().status, domesday_model::JobStatus::Failed);
    let keys = "SELECT string_agg(row_key, ' ' ORDER BY sequence) FROM finding_occurrences";
    assert_eq!(database.psql(keys), "**** 42 **** #123456789");
    let names = "SELECT string_agg(encode(name, 'escape'), ' ' ORDER BY sequence) FROM task_output_records";
    assert_eq!(database.psql(names), r"a https://h/x?sig=****&a=1 a\377");
    let configuration = "SELECT configuration FROM datasources WHERE kind = 'url'";
    assert_eq!(database.psql(configuration), r#"{"addresses":["https://ann:****@h/?x=****"]}"#);
    assert_eq!(database.psql("SELECT status FROM tasks"), "CANCELLED");
    assert_eq!(database.psql("SELECT encode(object_key, 'escape') FROM table_observations"), "b");
}
