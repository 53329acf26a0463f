//! Connections: lost ones, TLS, wake-ups, and text that PostgreSQL has no way to keep.

use domesday_model::{Command, RuleSetHash};
use domesday_testkit::postgres::Certificates;

use super::*;

#[tokio::test]
async fn a_server_that_is_not_there_may_be_later() {
    let url = "postgresql://nobody@127.0.0.1:1/none?connect_timeout=2";
    let Err(error) = PostgresStore::connect(url, Options::default()).await else { panic!("nobody is there") };
    assert!(matches!(error, StoreError::Backend(_)) && error.is_retryable(), "{error}");
    assert!(error.to_string().contains("none on 127.0.0.1"), "{error}");
    let missing = Server::shared().url("missing");
    let Err(error) = PostgresStore::connect(&missing, Options::default()).await else {
        panic!("no database")
    };
    assert!(matches!(error, StoreError::Refused(_)) && !error.is_retryable(), "{error}");
}

const END_OTHERS: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()";

#[tokio::test]
async fn connections_that_the_server_ended_are_replaced() {
    let database = Database::new();
    let store = database.open().await;
    store.submit(request(MASTER)).await.unwrap();
    let mut changes = store.changes();
    for number in 2..6 {
        database.psql(END_OTHERS);
        // Whether the client has heard of it yet or not.
        let id = MasterJobId([number; 16]);
        while let Err(error) = store.submit(request(id)).await {
            assert!(error.is_retryable(), "{error}");
        }
        assert!(store.master_job(id).await.unwrap().is_some());
    }
    assert_eq!(store.master_jobs(10).await.unwrap().len(), 5);
    // Wake-ups come again, too.
    changes.mark_unchanged();
    changes.changed().await.unwrap();
}

/// Makes the commit of any change to a task end with its connection.
const DIE_IN_COMMIT: &str = "
    CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER die AFTER UPDATE ON tasks DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION die();";

#[tokio::test]
async fn a_connection_that_is_lost_in_commit_leaves_it_open() {
    let database = Database::new();
    let store = database.open().await;
    let (_, _, claim) = root(&store).await;
    database.psql(DIE_IN_COMMIT);
    let error = store.complete_enumeration(&claim, Vec::new()).await.unwrap_err();
    assert!(matches!(error, StoreError::CommitUnknown(_)) && error.is_retryable(), "{error}");
    assert_eq!(store.are_done(&[claim]).await.unwrap(), [false], "it had not happened");
    database.psql("DROP TRIGGER die ON tasks");
    store.complete_enumeration(&claim, Vec::new()).await.unwrap();
    assert_eq!(store.are_done(&[claim]).await.unwrap(), [true]);
}

/// Gives way the first times, as the victim of a deadlock does.
const GIVE_WAY_TWICE: &str = "
    CREATE SEQUENCE attempts;
    CREATE FUNCTION give_way() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF nextval('attempts') <= 2 THEN RAISE EXCEPTION 'deadlock' USING ERRCODE = '40P01'; END IF;
            RETURN NULL;
        END $$;
    CREATE TRIGGER give_way AFTER INSERT ON master_jobs FOR EACH ROW EXECUTE FUNCTION give_way();";

#[tokio::test]
async fn the_victim_of_a_deadlock_tries_again() {
    let database = Database::new();
    let store = database.open().await;
    database.psql(GIVE_WAY_TWICE);
    store.submit(request(MASTER)).await.unwrap();
    assert_eq!(database.psql("SELECT last_value FROM attempts"), "3");
    assert_eq!(store.events("test", 10).await.unwrap().len(), 1, "once");
}

#[tokio::test]
async fn one_process_hears_of_another() {
    let database = Database::new();
    let store = database.open().await;
    let (heard, mut notifications) = tokio::sync::mpsc::unbounded_channel();
    let target = config::Target::parse(&database.url).unwrap();
    let (listener, driver) = target.connect_to_listen(move |_| heard.send(()).unwrap()).await.unwrap();
    tokio::spawn(driver);
    listener.batch_execute("LISTEN domesday").await.unwrap();
    let begun = std::time::Instant::now();
    for number in 0..40 {
        store.put_rule_set(RuleSetHash([number; 16]), "").await.unwrap();
    }
    notifications.recv().await.unwrap();
    // However slow the writes were, the notifications are no closer together than they may be.
    let most = begun.elapsed().div_duration_f64(wake::NOTIFY_INTERVAL) + f64::from(wake::NOTIFY_BURST) + 2.0;
    assert!((notifications.len() as f64) < most, "not with each write");
    let other = database.open().await;
    let mut changes = other.changes();
    changes.mark_unchanged();
    store.submit(request(MasterJobId([255; 16]))).await.unwrap();
    changes.changed().await.unwrap();
}

/// What a user starts is heard of, though the process that started it is gone at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_ends_at_once_is_heard() {
    let database = Database::new();
    let (heard, mut notifications) = tokio::sync::mpsc::unbounded_channel();
    drop(database.open().await);
    let target = config::Target::parse(&database.url).unwrap();
    let (listener, driver) = target.connect_to_listen(move |_| heard.send(()).unwrap()).await.unwrap();
    tokio::spawn(driver);
    listener.batch_execute("LISTEN domesday").await.unwrap();
    let source = request(MASTER).configuration.datasources.remove(0);
    for step in 0..4 {
        // A runtime of its own, which ends with the call: nothing goes on in the background.
        let (url, source) = (database.url.clone(), source.clone());
        let process = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let store = PostgresStore::connect(&url, Options::default()).await.unwrap();
                match step {
                    0 => store.submit(request(MASTER)).await.unwrap(),
                    1 => drop(store.append_command(MASTER, Command::Pause).await.unwrap()),
                    2 => store.put_datasource(&source, Put::New).await.unwrap(),
                    _ => drop(store.retry(Retry::AllOf(MASTER), RetryScope::Passing).await.unwrap()),
                }
            });
        });
        process.join().unwrap();
        let second = std::time::Duration::from_secs(1);
        tokio::time::timeout(second, notifications.recv()).await.expect("within a second").unwrap();
        while notifications.try_recv().is_ok() {}
    }
}

#[tokio::test]
async fn tls_is_as_strict_as_asked() {
    let certificates = Certificates::generate();
    let server = Server::start(Some(&certificates));
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (authority, stranger) =
        (write("authority.pem", &certificates.authority), write("stranger.pem", &certificates.stranger));
    let opens = |host: &str, query: String| {
        let url = format!("postgresql://postgres@{host}:{}/postgres?{query}", server.port());
        async move {
            let (client, driver) = match config::Target::parse(&url)?.connect().await {
                Ok(connected) => connected,
                Err(error) => return Err(error),
            };
            tokio::spawn(driver);
            let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
            let row = client.query_one(sql, &[]).await.map_err(|error| store_error(&error))?;
            Ok::<bool, StoreError>(row.get(0))
        }
    };
    for (host, query, encrypted) in [
        ("localhost", "sslmode=disable".to_owned(), false),
        ("localhost", "sslmode=prefer".to_owned(), true),
        ("localhost", format!("sslrootcert={authority}"), true),
        ("localhost", String::new(), true),
        ("127.0.0.1", "sslmode=require".to_owned(), true),
        ("127.0.0.1", format!("sslmode=verify-ca&sslrootcert={authority}"), true),
        ("localhost", format!("sslmode=verify-full&sslrootcert={authority}"), true),
    ] {
        assert_eq!(opens(host, query.clone()).await.unwrap(), encrypted, "{host} {query}");
    }
    for (host, query) in [
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={authority}")),
        ("127.0.0.1", format!("sslrootcert={authority}")),
        ("localhost", "sslmode=verify-full".to_owned()),
        ("localhost", format!("sslmode=verify-full&sslrootcert={stranger}")),
        ("localhost", format!("sslmode=verify-ca&sslrootcert={stranger}")),
        ("localhost", format!("sslmode=require&sslrootcert={stranger}")),
    ] {
        let error = opens(host, query.clone()).await.unwrap_err();
        assert!(error.to_string().contains("certificate"), "{host} {query}: {error}");
        assert!(error.to_string().contains("sslmode") && !error.is_retryable(), "{error}");
    }
    // A server without TLS is good enough for `prefer`, and not for `require`.
    let plain = Server::shared().url("postgres");
    let preferred = plain.replace("sslmode=disable", "sslmode=prefer");
    assert!(config::Target::parse(&preferred).unwrap().connect().await.is_ok());
    let required = plain.replace("sslmode=disable", "sslmode=require");
    let refused = config::Target::parse(&required).unwrap().connect().await.err().unwrap().to_string();
    assert!(refused.contains("offers no TLS") && refused.contains("`disable`"), "{refused}");
}

#[tokio::test]
async fn text_may_have_nul_in_it_and_keys_may_be_long() {
    let database = Database::new();
    let store = database.open().await;
    let (_, _, claim) = root(&store).await;
    let long = ObjectKey::new(vec![b'k'; 8_000]);
    let listing = UnitListing::whole(long.clone(), files("f", 1));
    let failed = UnitListing::failed(ObjectKey::new(*b"x"), 0, domesday_model::Reason::ReadError, "a\0b");
    for _ in 0..2 {
        store.commit_units(&claim, vec![listing.clone(), failed.clone()]).await.unwrap();
    }
    let cursor = UnitListing { resume_point: Some("page\0two".to_owned()), ..listed("y", files("g", 1)) };
    store.commit_units(&claim, vec![cursor]).await.unwrap();
    let units = store.task_units(&claim).await.unwrap();
    assert_eq!(
        units.iter().map(|unit| &unit.key).collect::<Vec<_>>(),
        [&long, &failed.key, &ObjectKey::new(*b"y")]
    );
    assert_eq!(units[2].resume_point.as_deref(), Some("page\0two"), "a cursor is the source's own");
    assert_eq!(store.problems(MASTER, 10).await.unwrap()[0].detail, "a\u{fffd}b");
    let retry = GiveBack::Retry { error: "no\0route".to_owned(), after: LEASE };
    store.give_back(&claim, retry).await.unwrap();
}
