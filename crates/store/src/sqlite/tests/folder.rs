//! The state folder: one writer, readers any time, a folder or disk that cannot be written.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use super::*;

/// `nobody` on the systems this runs on; any id without rights would do.
const UNPRIVILEGED: u32 = 65_534;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn a_second_writer_is_refused_and_readers_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    store.submit(request(MASTER)).await.unwrap();
    let Err(error) = SqliteStore::open(folder.path(), options()) else { panic!("two writers") };
    let StoreError::Locked(locked, pid) = &error else { panic!("{error}") };
    assert_eq!(
        (locked.as_str(), pid.as_str()),
        (&*folder.path().to_string_lossy(), &*std::process::id().to_string())
    );
    let reader = SqliteStore::open_for_reading(folder.path()).unwrap();
    assert_eq!(reader.master_jobs(10).await.unwrap().len(), 1);
    store.submit(request(MasterJobId([9; 16]))).await.unwrap();
    assert_eq!(reader.master_jobs(10).await.unwrap().len(), 2, "a reader keeps up with the writer");
    let refused = reader.submit(request(MasterJobId([8; 16]))).await.unwrap_err();
    assert!(matches!(refused, StoreError::ReadOnly(_)), "{refused}");
    drop(store);
    let store = open(folder.path());
    assert_eq!(store.master_jobs(10).await.unwrap().len(), 2);
}

#[test]
fn without_a_book_there_is_nothing_to_read() {
    let folder = tempfile::tempdir().unwrap();
    for missing in [folder.path().to_owned(), folder.path().join("nowhere")] {
        let Err(error) = SqliteStore::open_for_reading(&missing) else { panic!("no book to open") };
        assert!(matches!(error, StoreError::NoBook(_)), "{error}");
    }
    // A writer that ended before its first migration leaves an empty file.
    fs::write(folder.path().join(BOOK_FILE), b"").unwrap();
    let Err(error) = SqliteStore::open_for_reading(folder.path()) else { panic!("no book to open") };
    assert!(matches!(error, StoreError::NoBook(_)), "{error}");
    drop(open(folder.path()));
}

#[test]
fn the_book_is_private() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("state");
    let store = open(&folder);
    assert_eq!(mode(&folder), 0o700);
    let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 2);
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    drop(store);
}

#[test]
fn something_else_is_not_a_book() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(BOOK_FILE), "x".repeat(8_192)).unwrap();
    let Err(error) = SqliteStore::open(folder.path(), options()) else { panic!("not a book") };
    assert!(matches!(error, StoreError::Damaged(_)), "{error}");
    let Err(error) = SqliteStore::open(&folder.path().join(BOOK_FILE), options()) else {
        panic!("not a folder")
    };
    assert!(matches!(error, StoreError::NoFolder(_)), "{error}");
}

#[tokio::test]
async fn a_restart_expires_every_earlier_process() {
    let folder = tempfile::tempdir().unwrap();
    let (lease, worker, _) = root(&open(folder.path())).await;
    let store = open(folder.path());
    assert!(!store.renew(Role::Worker, worker, LEASE, Load::default()).await.unwrap());
    assert_eq!(store.reap_tasks(GROUP, LEASE * 100).await.unwrap().returned, 1);
    let process = Process::new(ProcessId([4; 16]), Role::Orchestrator, GROUP);
    store.register(&process, LEASE).await.unwrap();
    let owned = store.claim_job(process.id, GROUP, LEASE).await.unwrap().unwrap();
    assert_eq!(owned.lease.job, lease.job, "without waiting");
}

/// The superuser may write anywhere, so a process without its rights does the looking.
#[tokio::test]
async fn a_folder_that_cannot_be_written_can_be_read() {
    let parent = tempfile::tempdir().unwrap();
    set_mode(parent.path(), 0o755);
    let folder = parent.path().join("100% read-only?#");
    let store = open(&folder);
    store.submit(request(MASTER)).await.unwrap();
    drop(store);
    assert!(!folder.join(format!("{BOOK_FILE}-wal")).exists(), "a book that is closed is one file");
    for entry in fs::read_dir(&folder).unwrap() {
        set_mode(&entry.unwrap().path(), 0o444);
    }
    set_mode(&folder, 0o555);
    // Where the build puts its programs, only the superuser may look.
    let program = parent.path().join("child");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut command = child(&program, "sqlite::tests::folder::look_at_a_read_only_folder", &folder);
    if rustix::process::geteuid().is_root() {
        command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
    }
    let status = loop {
        match command.status() {
            // A child of another test that is just being started still has the copy open.
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            status => break status.unwrap(),
        }
    };
    set_mode(&folder, 0o755);
    assert!(status.success(), "{status}");
    for entry in fs::read_dir(&folder).unwrap() {
        set_mode(&entry.unwrap().path(), 0o600);
    }
    assert_eq!(open(&folder).master_jobs(10).await.unwrap().len(), 1);
}

#[tokio::test]
#[ignore = "a child of the test above"]
async fn look_at_a_read_only_folder() {
    let folder = childs_folder();
    for refused in [folder.clone(), folder.join("inside")] {
        let Err(error) = SqliteStore::open(&refused, options()) else { panic!("opened for writing") };
        assert!(matches!(error, StoreError::ReadOnly(_)), "{error}");
    }
    let reader = SqliteStore::open_for_reading(&folder).unwrap();
    assert_eq!(reader.master_jobs(10).await.unwrap().len(), 1);
}

/// The page limit gives SQLite's own "database or disk is full", in the middle of a write.
#[tokio::test]
async fn a_full_disk_loses_nothing() {
    const PAGES_LEFT: i64 = 20;
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let (_, _, claim) = root(&store).await;
    store.commit_units(&claim, vec![listed("before", files("f", 10))]).await.unwrap();
    let before = (store.summary(MASTER).await.unwrap(), store.events("test", 100).await.unwrap());
    let limit = |pages: i64| {
        store.write("test", move |c| {
            let used: i64 = c.pragma_query_value(None, "page_count", |row| row.get(0))?;
            c.pragma_update(None, "max_page_count", used + pages)?;
            Ok(())
        })
    };
    limit(PAGES_LEFT).await.unwrap();
    let large =
        vec![listed("small", files("f", 1)), listed("large", files("a name that takes some room ", 20_000))];
    for _ in 0..2 {
        let error = store.commit_units(&claim, large.clone()).await.unwrap_err();
        assert!(matches!(error, StoreError::DiskFull), "{error}");
        assert_eq!((store.summary(MASTER).await.unwrap(), store.events("test", 100).await.unwrap()), before);
    }
    store
        .commit_units(&claim, vec![listed("little", files("f", 1))])
        .await
        .expect("what fits is still written");
    limit(1_000_000).await.unwrap();
    store.commit_units(&claim, large).await.unwrap();
    assert_eq!(store.summary(MASTER).await.unwrap().objects_listed, 10 + 1 + 1 + 20_000);
    let check: String = store
        .write("test", |c| Ok(c.pragma_query_value(None, "integrity_check", |row| row.get(0))?))
        .await
        .unwrap();
    assert_eq!(check, "ok");
}
