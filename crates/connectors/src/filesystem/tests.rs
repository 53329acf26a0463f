//! The connector on real trees: what it lists, what it opens, and what it refuses.

mod conformance;

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use domesday_connector::conformance::open;
use domesday_connector::{Connector, ConnectorError, ConnectorFactory, ReadAhead, Surroundings};
use domesday_model::{ListedObject, ObjectKey, Reason, RecordKind, ResumePolicy, UnitRecord};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::*;

/// Entries asked for at once, as the worker does.
const BATCH: usize = 1_000;

fn connector(config: &FilesystemConfig) -> Arc<dyn Connector> {
    let configuration = serde_json::to_value(config).unwrap();
    FilesystemFactory.create(&configuration, &Surroundings::default()).unwrap()
}

fn tree() -> (TempDir, Arc<dyn Connector>) {
    let folder = tempfile::tempdir().unwrap();
    let connector = connector(&FilesystemConfig::new(folder.path().to_owned()));
    (folder, connector)
}

async fn batches(connector: &dyn Connector, container: &str) -> Result<Vec<Vec<UnitRecord>>, ConnectorError> {
    let mut listing = connector.list(&ObjectKey::new(container), None).await?;
    let mut batches = Vec::new();
    loop {
        let batch = listing.next_batch(BATCH).await?;
        if batch.is_empty() {
            return Ok(batches);
        }
        batches.push(batch);
    }
}

async fn listed(connector: &dyn Connector, container: &str) -> Vec<(String, RecordKind, Option<Reason>)> {
    let batches = batches(connector, container).await.unwrap();
    let shown = |record: UnitRecord| (String::from_utf8(record.name).unwrap(), record.kind, record.reason);
    let mut records: Vec<_> = batches.into_iter().flatten().map(shown).collect();
    records.sort_by(|a, b| a.0.cmp(&b.0));
    records
}

fn open_reason(connector: &dyn Connector, key: &str) -> Option<Reason> {
    open(connector, &ObjectKey::new(key)).err().map(|error| error.reason)
}

fn read(connector: &dyn Connector, key: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    open(connector, &ObjectKey::new(key)).unwrap().reader.read_to_end(&mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn a_huge_folder_comes_in_small_batches() {
    const ENTRIES: usize = 50_000;
    let (folder, connector) = tree();
    fs::write(folder.path().join("00000"), "x").unwrap();
    for index in 1..ENTRIES {
        // Names of one file: cheap to make, and entries like any other.
        fs::hard_link(folder.path().join("00000"), folder.path().join(format!("{index:05}"))).unwrap();
    }
    let batches = batches(connector.as_ref(), "").await.unwrap();
    assert!(batches.iter().all(|batch| batch.len() <= BATCH));
    let names: HashSet<Vec<u8>> = batches.into_iter().flatten().map(|record| record.name).collect();
    assert_eq!(names.len(), ENTRIES);
}

#[tokio::test]
async fn entries_are_listed_with_kind_size_and_marks() {
    let (folder, connector) = tree();
    fs::write(folder.path().join("file"), "12345").unwrap();
    fs::create_dir(folder.path().join("folder")).unwrap();
    symlink("file", folder.path().join("link")).unwrap();
    mknodat(CWD, folder.path().join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    assert_eq!(
        listed(connector.as_ref(), "").await,
        [
            ("fifo".into(), RecordKind::Skipped, Some(Reason::SpecialFile)),
            ("file".into(), RecordKind::File, None),
            ("folder".into(), RecordKind::Directory, None),
            ("link".into(), RecordKind::Skipped, Some(Reason::Symlink)),
        ]
    );
    let batches = batches(connector.as_ref(), "").await.unwrap();
    let file = batches[0].iter().find(|record| record.name == b"file").unwrap();
    assert_eq!(file.size, 5);
    assert!(file.marks.mtime_ns > 0 && file.marks.ctime_ns > 0 && file.marks.inode > 0);
    assert_eq!(connector.resume_policy(&ObjectKey::default()), ResumePolicy::ExcludeStaged);
}

#[tokio::test]
async fn what_took_a_files_place_is_not_read() {
    let (folder, connector) = tree();
    let path = |name: &str| folder.path().join(name);
    for name in ["gone", "linked", "folder", "fifo", "in/file"] {
        fs::create_dir_all(path(name).parent().unwrap()).unwrap();
        fs::write(path(name), "text").unwrap();
    }
    assert_eq!(read(connector.as_ref(), "in/file"), b"text");
    for name in ["gone", "linked", "folder", "fifo"] {
        fs::remove_file(path(name)).unwrap();
    }
    symlink("/etc/passwd", path("linked")).unwrap();
    fs::create_dir(path("folder")).unwrap();
    mknodat(CWD, path("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    // A link in the middle of the way leads out of the tree.
    fs::rename(path("in"), path("was_in")).unwrap();
    symlink("was_in", path("in")).unwrap();
    for (key, reason) in [
        ("gone", Reason::Vanished),
        ("linked", Reason::Changed),
        ("folder", Reason::Changed),
        ("fifo", Reason::Changed),
        ("in/file", Reason::Changed),
        ("was_in/file/more", Reason::Changed),
    ] {
        assert_eq!(open_reason(connector.as_ref(), key), Some(reason), "{key}");
    }
    for (container, reason) in
        [("in", Reason::Changed), ("gone", Reason::Vanished), ("was_in/file", Reason::Changed)]
    {
        let error = batches(connector.as_ref(), container).await.unwrap_err();
        assert_eq!(error.reason(), reason, "{container}: {error}");
    }
}

/// Files of one packet, which keeps their folders open.
fn packet(connector: &dyn Connector, keys: &[String]) -> Box<dyn ReadAhead> {
    let object = |key: &String| ListedObject::by_key(ObjectKey::new(key.as_str()));
    connector.read_ahead(&keys.iter().map(object).collect()).unwrap()
}

fn read_of_packet(packet: &dyn ReadAhead, index: usize) -> Result<String, Reason> {
    let mut opened = packet.open(index).and_then(Opened::into_bytes).map_err(|error| error.reason)?;
    // As whoever reads it does: the size that was listed is not the one it has.
    opened.random.unwrap().size().map_err(|error| ObjectError::from(error).reason)?;
    let mut text = String::new();
    opened.reader.read_to_string(&mut text).unwrap();
    Ok(text)
}

#[test]
fn a_packet_reads_its_files_in_any_order_from_more_folders_than_it_keeps_open() {
    let (folder, connector) = tree();
    let mut keys = vec!["file".to_owned(), "f1/f2/f3/file".to_owned()];
    keys.extend((0..3 * open::PACKET_FOLDERS_MAX).map(|index| format!("f{index}/file")));
    for key in &keys {
        fs::create_dir_all(folder.path().join(key).parent().unwrap()).unwrap();
        fs::write(folder.path().join(key), key).unwrap();
    }
    let packet = packet(connector.as_ref(), &keys);
    for step in [1, 5, 11] {
        for index in (0..keys.len()).map(|index| index * step % keys.len()) {
            assert_eq!(read_of_packet(packet.as_ref(), index).as_ref(), Ok(&keys[index]));
        }
    }
}

#[test]
fn however_many_packets_there_are_few_folders_are_kept_open() {
    let (folder, connector) = tree();
    let keys: Vec<String> = (0..open::PACKET_FOLDERS_MAX).map(|index| format!("f{index}/file")).collect();
    for key in &keys {
        fs::create_dir_all(folder.path().join(key).parent().unwrap()).unwrap();
        fs::write(folder.path().join(key), key).unwrap();
    }
    let kept = || {
        let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
        open.filter_map(|entry| fs::read_link(entry.path()).ok())
            .filter(|path| path.starts_with(folder.path()) && path.as_path() != folder.path())
            .count()
    };
    let packets: Vec<_> = (0..open::KEPT_FOLDERS_MAX).map(|_| packet(connector.as_ref(), &keys)).collect();
    for packet in &packets {
        for (index, key) in keys.iter().enumerate() {
            assert_eq!(read_of_packet(packet.as_ref(), index).as_ref(), Ok(key));
        }
    }
    assert_eq!(kept(), open::KEPT_FOLDERS_MAX);
    drop(packets);
    assert_eq!(kept(), 0);
    let packet = packet(connector.as_ref(), &keys);
    assert_eq!(read_of_packet(packet.as_ref(), 0).as_ref(), Ok(&keys[0]));
    assert_eq!(kept(), 1, "there is room again");
}

#[test]
fn what_took_a_files_place_in_a_folder_that_is_open_is_not_read() {
    let (folder, connector) = tree();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("in")).unwrap();
    let keys = ["in/file", "in/gone", "in/linked", "in/folder", "in/fifo"].map(str::to_owned);
    for key in &keys {
        fs::write(path(key), "text").unwrap();
    }
    let first = packet(connector.as_ref(), &keys);
    assert_eq!(read_of_packet(first.as_ref(), 0), Ok("text".to_owned()));
    for key in &keys[1..] {
        fs::remove_file(path(key)).unwrap();
    }
    symlink("file", path("in/linked")).unwrap();
    fs::create_dir(path("in/folder")).unwrap();
    mknodat(CWD, path("in/fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for (index, reason) in
        [(1, Reason::Vanished), (2, Reason::Changed), (3, Reason::Changed), (4, Reason::Changed)]
    {
        assert_eq!(read_of_packet(first.as_ref(), index), Err(reason), "{}", keys[index]);
    }
    // A link in the place of the folder leads nowhere: neither from the folder that is open, nor anew.
    fs::rename(path("in"), path("was_in")).unwrap();
    fs::create_dir(path("elsewhere")).unwrap();
    fs::write(path("elsewhere/file"), "other").unwrap();
    symlink("elsewhere", path("in")).unwrap();
    assert_eq!(read_of_packet(first.as_ref(), 0), Ok("text".to_owned()));
    assert_eq!(read_of_packet(packet(connector.as_ref(), &keys).as_ref(), 0), Err(Reason::Changed));
}

#[tokio::test]
async fn a_file_that_grows_or_shrinks_is_read_as_it_is() {
    let (folder, connector) = tree();
    let path = folder.path().join("file");
    fs::write(&path, "first").unwrap();
    let mut opened = open(connector.as_ref(), &ObjectKey::new("file")).unwrap();
    assert_eq!(opened.size, Some(5));
    fs::write(&path, "first and more").unwrap();
    let mut text = String::new();
    opened.reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "first and more");
    let mut opened = open(connector.as_ref(), &ObjectKey::new("file")).unwrap();
    fs::write(&path, "fi").unwrap();
    text.clear();
    opened.reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "fi");
}

#[tokio::test]
async fn a_file_that_vanishes_while_it_is_listed_is_told_when_it_is_opened() {
    let (folder, _) = tree();
    let only = FilesystemConfig {
        only: Some(ObjectKey::new("gone")),
        ..FilesystemConfig::new(folder.path().to_owned())
    };
    let connector = connector(&only);
    assert_eq!(listed(connector.as_ref(), "").await, [("gone".into(), RecordKind::File, None)]);
    assert_eq!(open_reason(connector.as_ref(), "gone"), Some(Reason::Vanished));
}

/// What applies in a folder does not depend on which folders were looked at before it.
#[tokio::test]
async fn ignore_files_apply_in_whatever_order_folders_come() {
    let (folder, first) = tree();
    let path = folder.path().join("a/b/c");
    fs::create_dir_all(&path).unwrap();
    fs::write(folder.path().join(".domesdayignore"), "*.log\n").unwrap();
    fs::write(folder.path().join("a/b/.domesdayignore"), "/c/skip\n!*.log\n").unwrap();
    for name in ["x.log", "skip", "y"] {
        fs::write(path.join(name), "").unwrap();
        fs::write(folder.path().join("a").join(name), "").unwrap();
    }
    let second = connector(&FilesystemConfig::new(folder.path().to_owned()));
    for (connector, order) in [(&first, ["a", "a/b/c"]), (&second, ["a/b/c", "a"])] {
        for container in order {
            let records = listed(connector.as_ref(), container).await;
            let left: Vec<&str> = records
                .iter()
                .filter(|(_, _, reason)| matches!(reason, Some(Reason::Excluded | Reason::Ignored)))
                .map(|(name, ..)| name.as_str())
                .collect();
            let expected = if container == "a" { ["x.log"] } else { ["skip"] };
            assert_eq!(left, expected, "{container}");
        }
    }
}

#[test]
fn configurations_are_checked() {
    let refused = |value: serde_json::Value| {
        let made = FilesystemFactory.create(&value, &Surroundings::default());
        made.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(refused(serde_json::json!({})).contains("root"));
    assert!(refused(serde_json::json!({ "root": "relative" })).contains("absolute"));
    assert!(refused(serde_json::json!({ "root": "/", "excludes": [] })).contains("excludes"));
    assert!(refused(serde_json::json!({ "root": "/", "exclude": ["{a"] })).contains("`exclude`"));
    assert!(refused(serde_json::json!({ "root": "/", "exclude": ["a", 1] })).contains("`exclude[1]`"));
}

#[test]
fn a_credential_it_cannot_use_is_refused() {
    let given = Surroundings::default().for_source(Some("env:TOKEN")).unwrap();
    let made = FilesystemFactory.create(&serde_json::json!({ "root": "/" }), &given);
    assert!(made.err().unwrap().to_string().contains("field `credential`"));
    let wrong = Surroundings::default().for_source(Some("hunter2")).unwrap_err().to_string();
    assert!(wrong.contains("field `credential`") && !wrong.contains("hunter2"), "{wrong}");
}

#[tokio::test]
async fn a_test_lists_the_root_and_nothing_else() {
    let (folder, connector) = tree();
    fs::write(folder.path().join("a"), "").unwrap();
    fs::create_dir(folder.path().join("b")).unwrap();
    fs::write(folder.path().join("b/c"), "").unwrap();
    assert_eq!(connector.test().await.unwrap(), 2);
    let missing = self::connector(&FilesystemConfig::new(folder.path().join("missing")));
    assert!(missing.test().await.is_err());
}

#[test]
fn a_configuration_survives_the_book_whatever_the_root_is_called() {
    let odd = PathBuf::from(std::ffi::OsString::from_vec(b"/od\xffd\n".to_vec()));
    for root in [Path::new("/plain"), &odd] {
        let config = FilesystemConfig { max_file_size: Some(7), ..FilesystemConfig::new(root.to_owned()) };
        let text = serde_json::to_string(&config).unwrap();
        let back = FilesystemConfig::parse(&serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(back, config);
    }
}
