//! What is not committed: compared with what `git status` says.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::repository::{Shape, discover};

/// Everything of the working tree, folder by folder: keys and what became of them.
async fn tree(config: &GitConfig) -> BTreeMap<String, Option<Reason>> {
    let connector = connector(config);
    let root = list_container(connector.as_ref(), "").await.unwrap();
    let folders = root.into_iter().filter(|record| record.kind == RecordKind::Directory);
    let mut pending: Vec<String> = folders.map(|record| String::from_utf8(record.name).unwrap()).collect();
    let mut found = BTreeMap::new();
    while let Some(folder) = pending.pop() {
        for record in list_container(connector.as_ref(), &folder).await.unwrap() {
            let key = format!("{folder}/{}", String::from_utf8_lossy(&record.name));
            match record.kind {
                RecordKind::Directory => pending.push(key),
                _ => assert!(found.insert(key, record.reason).is_none(), "listed twice"),
            }
        }
    }
    found
}

/// The same without the prefix, and without what is left out.
async fn files(repo: &Repo) -> Vec<String> {
    let config = GitConfig { uncommitted: true, ..repo.config() };
    let found = tree(&config).await.into_iter().filter(|(_, reason)| reason.is_none());
    found.map(|(key, _)| key.strip_prefix("worktree/").unwrap().to_owned()).collect()
}

/// An index that was written well after the files: what they look like can be trusted.
fn settle(repo: &Repo) {
    for path in repo.git(&["ls-files"]).lines() {
        // All but submodules.
        let Ok(file) = fs::File::options().append(true).open(repo.path.join(path)) else { continue };
        let before = file.metadata().unwrap().modified().unwrap() - std::time::Duration::from_secs(100);
        file.set_modified(before).unwrap();
    }
    repo.git(&["update-index", "--refresh"]);
}

#[tokio::test]
async fn changed_and_untracked_files_are_listed_and_read_from_disk() {
    for format in ["sha1", "sha256"] {
        let repo = Repo::with(&["init", "-q", "-b", "main", "--object-format", format]);
        repo.write(".gitignore", ".env\nbuilt/\n");
        for path in ["clean", "changed", "staged", "touched", "sub/clean", "sub/changed"] {
            repo.write(path, format!("first {path}"));
        }
        repo.commit("first");
        settle(&repo);
        assert_eq!(files(&repo).await, [".git/config"], "nothing differs");
        repo.write(".env", "TOKEN=forgotten");
        repo.write("built/out.bin", "built");
        repo.write("new", "untracked");
        repo.write("changed", "other content, of another length");
        // Of the same length: only the times tell.
        repo.write("sub/changed", "FIRST sub/changed");
        repo.write("touched", "first touched");
        repo.write("staged", "staged content");
        repo.git(&["add", "staged"]);
        for version in ["2", "3", "4"] {
            repo.git(&["update-index", "--index-version", version]);
            let expected = [".env", ".git/config", "built/out.bin", "changed", "new", "sub/changed"];
            assert_eq!(files(&repo).await, expected, "{format}, index version {version}");
        }
        let connector = connector(&repo.config());
        assert_eq!(read(connector.as_ref(), "worktree/.env").unwrap(), b"TOKEN=forgotten");
        assert_eq!(read(connector.as_ref(), "worktree/sub/changed").unwrap(), b"FIRST sub/changed");
        assert_eq!(read(connector.as_ref(), "worktree/gone").unwrap_err().reason, Reason::Vanished);
        // Not asked for, and no container then.
        assert_eq!(tree(&repo.config()).await, BTreeMap::new());
        assert!(list_container(connector.as_ref(), "worktree").await.is_err());
        assert!(list_container(connector.as_ref(), "worktrees").await.is_err());
        let keys = [ObjectKey::new("worktree/.env")];
        assert_eq!(connector.origins(&keys).await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_file_that_is_not_changed_is_not_read() {
    let repo = Repo::new();
    repo.write("secret", "content");
    repo.write("racy", "content");
    repo.commit("first");
    settle(&repo);
    // Unreadable, so that whoever tried would list it.
    fs::set_permissions(repo.path.join("secret"), fs::Permissions::from_mode(0o000)).unwrap();
    repo.git(&["update-index", "--refresh", "-q"]);
    let root_reads_all = fs::read(repo.path.join("secret")).is_ok();
    assert_eq!(files(&repo).await, [".git/config"], "as root: {root_reads_all}");
    // Changed in the moment in which the index was written, to the same length and times.
    let path = repo.path.join("racy");
    let modified = fs::metadata(repo.path.join(".git/index")).unwrap().modified().unwrap();
    fs::write(&path, "CONTENT").unwrap();
    fs::File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
    assert_eq!(files(&repo).await, [".git/config", "racy"]);
}

#[tokio::test]
async fn marks_are_those_of_the_file() {
    use std::os::unix::fs::MetadataExt;
    let repo = Repo::new();
    repo.write("new", "untracked");
    let config = GitConfig { uncommitted: true, ..repo.config() };
    let records = list_container(connector(&config).as_ref(), "worktree").await.unwrap();
    let record = records.iter().find(|record| record.name == b"new").unwrap();
    let metadata = fs::metadata(repo.path.join("new")).unwrap();
    assert_eq!((record.size, record.marks.inode, record.marks.tag), (9, metadata.ino(), None));
    assert_eq!(record.marks.mtime_ns, metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec());
    assert_eq!(record.marks.ctime_ns, metadata.ctime() * 1_000_000_000 + metadata.ctime_nsec());
}

#[tokio::test]
async fn an_index_that_cannot_be_read_leaves_everything_in_doubt() {
    let repo = Repo::new();
    repo.write("a", "a");
    repo.write("sub/b", "b");
    repo.commit("first");
    settle(&repo);
    let index = repo.path.join(".git/index");
    let whole = fs::read(&index).unwrap();
    repo.git(&["update-index", "--split-index"]);
    assert_eq!(files(&repo).await, [".git/config", "a", "sub/b"], "a split index");
    for damaged in [b"no index".to_vec(), whole[..60].to_vec(), Vec::new()] {
        fs::write(&index, damaged).unwrap();
        assert_eq!(files(&repo).await, [".git/config", "a", "sub/b"]);
    }
    fs::remove_file(&index).unwrap();
    assert_eq!(files(&repo).await, [".git/config", "a", "sub/b"], "no index");
}

#[tokio::test]
async fn links_lead_nowhere_and_odd_things_are_named() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "outside").unwrap();
    let repo = Repo::new();
    symlink(outside.path(), repo.path.join("tracked")).unwrap();
    repo.write("sub/file", "x");
    repo.commit("first");
    symlink(outside.path(), repo.path.join("folder")).unwrap();
    symlink("nowhere", repo.path.join("dangling")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        repo.path.join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    repo.write("large", "x".repeat(2_000));
    repo.write("out/built", "x");
    let config = GitConfig {
        uncommitted: true,
        max_file_size: Some(1_000),
        exclude: vec!["out/".into()],
        ..repo.config()
    };
    let expected = [
        (".git/config", None),
        ("dangling", Some(Reason::Symlink)),
        ("fifo", Some(Reason::SpecialFile)),
        ("folder", Some(Reason::Symlink)),
        ("large", Some(Reason::TooLarge)),
        ("out", Some(Reason::Excluded)),
    ];
    let expected: BTreeMap<String, Option<Reason>> =
        expected.into_iter().map(|(path, reason)| (format!("worktree/{path}"), reason)).collect();
    assert_eq!(tree(&config).await, expected);
    let connector = connector(&config);
    for key in ["worktree/folder/secret", "worktree/tracked/secret", "worktree/fifo", "worktree/sub"] {
        assert!(read(connector.as_ref(), key).is_err(), "{key}");
    }
    let up = format!("worktree/../{}/secret", outside.path().file_name().unwrap().to_str().unwrap());
    assert!(read(connector.as_ref(), &up).is_err());
    assert!(list_container(connector.as_ref(), "worktree/folder").await.is_err());
    assert!(list_container(connector.as_ref(), "worktree/../..").await.is_err());
    let config = GitConfig { paths: vec!["sub/".into()], uncommitted: true, ..repo.config() };
    repo.write("sub/new", "new");
    let kept = tree(&config).await.into_iter().filter(|(_, reason)| reason.is_none());
    assert_eq!(kept.map(|(key, _)| key).collect::<Vec<_>>(), ["worktree/.git/config", "worktree/sub/new"]);
}

#[tokio::test]
async fn submodules_worktrees_and_repositories_inside_are_listed_whole() {
    let inner = Repo::new();
    inner.write("inner.txt", "inner");
    inner.commit("inner");
    let outer = Repo::new();
    outer.write("file", "outer");
    outer.commit("outer");
    outer.git(&["submodule", "-q", "add", inner.path.to_str().unwrap(), "sub"]);
    outer.commit("a submodule");
    git(&outer.path, &["clone", "-q", inner.path.to_str().unwrap(), "nested"], 0);
    settle(&outer);
    // A submodule has a file `.git`, and its history elsewhere; a clone has its own folder.
    let expected = [".git/config", "nested/.git/config", "nested/inner.txt", "sub/inner.txt"];
    assert_eq!(files(&outer).await, expected);
    let beside = tempfile::tempdir().unwrap();
    let linked = Repo::at(beside.path().join("tree"));
    inner.git(&["worktree", "add", "-q", "-b", "side", linked.path.to_str().unwrap()]);
    linked.write("new", "new");
    settle(&linked);
    assert_eq!(files(&linked).await, ["new"]);
    settle(&Repo::at(outer.path.join("sub")));
    assert_eq!(files(&Repo::at(outer.path.join("sub"))).await, Vec::<String>::new());
    let bare = Repo::with(&["clone", "-q", "--bare", inner.path.to_str().unwrap()]);
    assert_eq!(files(&bare).await, Vec::<String>::new());
}

#[tokio::test]
async fn own_state_is_left_out() {
    let repo = Repo::new();
    repo.write("state/book", "own");
    let surroundings = Surroundings { own_state: Some(repo.path.join("state")), ..Surroundings::default() };
    let config = GitConfig { uncommitted: true, ..repo.config() };
    let git = Git::new(config, &surroundings).unwrap();
    let records = list_container(&git, "worktree").await.unwrap();
    let state = records.iter().find(|record| record.name == b"state").unwrap();
    assert_eq!((state.kind, state.reason), (RecordKind::Skipped, Some(Reason::OwnState)));
}

#[test]
fn roots_of_repositories_are_recognised() {
    let repo = Repo::new();
    repo.write("sub/file", "x");
    repo.commit("first");
    assert_eq!(discover(&repo.path), Some(Shape::Worktree));
    assert_eq!(discover(&repo.path.join(".git")), Some(Shape::Bare));
    assert_eq!(discover(&repo.path.join("sub")), None);
    assert_eq!(discover(&repo.path.join("sub/file")), None);
    assert_eq!(discover(&repo.path.join("nothing")), None);
    let bare = Repo::with(&["init", "-q", "--bare"]);
    assert_eq!(discover(&bare.path), Some(Shape::Bare));
    let beside = tempfile::tempdir().unwrap();
    let linked = beside.path().join("tree");
    repo.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    assert_eq!(discover(&linked), Some(Shape::Worktree));
    // Copied without what it belongs to.
    fs::write(linked.join(".git"), "gitdir: /nowhere/at/all\n").unwrap();
    assert_eq!(discover(&linked), None);
    fs::create_dir_all(beside.path().join("empty/.git")).unwrap();
    assert_eq!(discover(&beside.path().join("empty")), None);
}
