//! What is not committed: compared with what `git status` says.

use std::os::unix::fs::symlink;

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
async fn all_files(repo: &Repo) -> Vec<String> {
    let config = GitConfig { uncommitted: true, ..repo.config() };
    let found = tree(&config).await.into_iter().filter(|(_, reason)| reason.is_none());
    found.map(|(key, _)| key.strip_prefix("worktree/").unwrap().to_owned()).collect()
}

/// The same with only one of the repository's own.
async fn files(repo: &Repo) -> Vec<String> {
    let mut files = all_files(repo).await;
    files.retain(|path| path == ".git/config" || !path.starts_with(".git/"));
    files
}

/// The keys of the history that cannot be read, with what is said of them.
async fn unread(config: &GitConfig) -> BTreeMap<String, String> {
    let connector = connector(config);
    let mut unread = BTreeMap::new();
    for record in list(config).await.unwrap().into_iter().filter(|record| record.kind == RecordKind::File) {
        let key = String::from_utf8(record.name).unwrap();
        if let Err(error) = read(connector.as_ref(), &key) {
            unread.insert(key, error.to_string());
        }
    }
    unread
}

fn loose_path(repo: &Repo, id: &str) -> PathBuf {
    repo.path.join(format!(".git/objects/{}/{}", &id[..2], &id[2..]))
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
        assert_eq!(connector.origins(&keys, &Moved::default()).await.unwrap(), []);
    }
}

#[tokio::test]
async fn only_content_tells_that_a_file_was_not_changed() {
    for format in ["sha1", "sha256"] {
        let repo = Repo::with(&["init", "-q", "-b", "main", "--object-format", format]);
        repo.write("same", "content");
        repo.write("forged", "content");
        repo.commit("first");
        settle(&repo);
        // The times, the number and the size that the index remembers.
        let path = repo.path.join("forged");
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(&path, "CONTENT").unwrap();
        fs::File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
        repo.git(&["-c", "core.trustctime=false", "status"]);
        assert_eq!(files(&repo).await, [".git/config", "forged"], "{format}");
        // An index that names the wrong object for a file with another content.
        repo.git(&["update-index", "--cacheinfo", &format!("100644,{},same", repo.id("HEAD:forged"))]);
        fs::write(repo.path.join("same"), "CONTENT").unwrap();
        assert_eq!(files(&repo).await, [".git/config", "forged", "same"], "{format}");
    }
}

#[tokio::test]
async fn a_file_whose_object_is_not_there_is_listed_and_the_object_named() {
    for format in ["sha1", "sha256"] {
        let repo = Repo::with(&["init", "-q", "-b", "main", "--object-format", format]);
        repo.write("committed", "committed");
        repo.commit("first");
        repo.write("key", "a key");
        repo.git(&["add", "key"]);
        settle(&repo);
        let config = GitConfig { uncommitted: true, ..repo.config() };
        assert_eq!(
            (files(&repo).await, unread(&config).await),
            (vec![".git/config".into()], BTreeMap::new())
        );
        for (path, name) in [("key", ":key"), ("committed", "HEAD:committed")] {
            let id = repo.id(name);
            fs::remove_file(loose_path(&repo, &id)).unwrap();
            assert_eq!(files(&repo).await, [".git/config", path]);
            let unread = unread(&config).await;
            assert_eq!(unread.keys().collect::<Vec<_>>(), [&id]);
            assert!(unread[&id].contains("is not in the repository"), "{unread:?}");
            repo.git(&["hash-object", "-w", path]);
        }
        // A commit or tree that is not there is named, too, and everything else is still found.
        for name in ["HEAD^{tree}", "HEAD"] {
            let path = loose_path(&repo, &repo.id(name));
            let (id, content) = (repo.id(name), fs::read(&path).unwrap());
            fs::remove_file(&path).unwrap();
            assert_eq!(unread(&config).await.into_keys().collect::<Vec<_>>(), [id]);
            fs::write(&path, content).unwrap();
        }
    }
}

#[tokio::test]
async fn a_file_whose_object_lies_is_listed_and_the_object_named() {
    let repo = Repo::new();
    repo.write("key", "a key");
    repo.write("other", "harmless, and not as long");
    repo.commit("first");
    settle(&repo);
    let config = GitConfig { uncommitted: true, ..repo.config() };
    let [id, other, tree] = ["HEAD:key", "HEAD:other", "HEAD^{tree}"].map(|name| repo.id(name));
    let path = loose_path(&repo, &id);
    let content = fs::read(&path).unwrap();
    for lie in [
        fs::read(loose_path(&repo, &other)).unwrap(),
        super::hostile::deflated(b"blob 5\0A KEY"),
        super::hostile::deflated(b"tree 5\0a key"),
    ] {
        fs::remove_file(&path).unwrap();
        fs::write(&path, lie).unwrap();
        assert_eq!(files(&repo).await, [".git/config", "key"]);
        let unread = unread(&config).await;
        assert!(unread.len() == 1 && unread[&id].contains("its content has the id"), "{unread:?}");
    }
    fs::remove_file(&path).unwrap();
    fs::write(&path, content).unwrap();
    // A tree that lies hides nothing, either.
    let path = loose_path(&repo, &tree);
    fs::remove_file(&path).unwrap();
    fs::write(&path, super::hostile::deflated(b"tree 0\0")).unwrap();
    assert_eq!(unread(&config).await.into_keys().collect::<Vec<_>>(), [tree]);
    let range = GitConfig { refs: vec!["main".into()], ..repo.config() };
    assert!(list(&range).await.unwrap_err().to_string().contains("its content has the id"));
}

#[tokio::test]
async fn what_a_filter_made_of_a_file_does_not_stand_for_it() {
    let repo = Repo::new();
    repo.git(&["config", "filter.hide.clean", "sed s/secret/pointer/"]);
    repo.git(&["config", "filter.hide.smudge", "cat"]);
    repo.write(".gitattributes", "*.bin filter=hide\n*.txt text eol=crlf\n");
    repo.write("large.bin", "the secret");
    repo.write("lines.txt", "one\r\ntwo\r\n");
    repo.commit("first");
    settle(&repo);
    assert_eq!(repo.git(&["status", "--porcelain"]), "", "git sees no change");
    assert_eq!(files(&repo).await, [".git/config", "large.bin", "lines.txt"]);
}

#[tokio::test]
async fn a_file_is_listed_when_its_blob_is_not_scanned() {
    let repo = Repo::new();
    repo.write("vendor/key", "a key");
    repo.commit("first");
    repo.write("src/key", "a key");
    repo.git(&["add", "src/key"]);
    settle(&repo);
    let config = GitConfig { uncommitted: true, exclude: vec!["vendor/".into()], ..repo.config() };
    let found = tree(&config).await;
    assert_eq!(found.get("worktree/src/key"), Some(&None), "{found:?}");
    // The blob of a path that only the index has is not taken for what it is elsewhere.
    let repo = Repo::new();
    repo.write("tests/fixture.txt", "a key");
    repo.commit("first");
    let config = GitConfig { uncommitted: true, ..repo.config() };
    let kind = async |config: &GitConfig| {
        let records = list(config).await.unwrap();
        let id = repo.id("HEAD:tests/fixture.txt").into_bytes();
        records.into_iter().find(|record| record.name == id).unwrap().metadata
    };
    assert!(kind(&config).await.is_some(), "a sample");
    repo.write("production.env", "a key");
    repo.git(&["add", "production.env"]);
    assert_eq!(kind(&config).await, None);
}

#[tokio::test]
async fn a_folder_named_git_is_a_folder() {
    let repo = Repo::new();
    repo.write("file", "content");
    let head = repo.commit("first");
    repo.git(&["repack", "-adq"]);
    repo.git(&["prune-packed"]);
    repo.write("second", "content of the second");
    repo.commit("second");
    repo.write("vendor/.git/notes/passwords", "hidden");
    repo.write("vendor/.git/objects/ab/secret.txt", "hidden");
    repo.write(&format!("vendor/.git/objects/ab/{}", "c".repeat(38)), "no object at all");
    repo.write("vendor/.git/objects/pack/pack-1.pack", "no pack at all");
    repo.write(".git/objects/secret.txt", "hidden");
    repo.write(".git/objects/ab/secret.txt", "hidden");
    repo.write(".git/objects/pack/notes.txt", "hidden");
    repo.write(".git/hooks/pre-push", "curl -u me:secret");
    repo.write(".git/modules/sub/config", "[remote]");
    settle(&repo);
    let found = all_files(&repo).await;
    for path in [
        ".git/HEAD",
        ".git/config",
        ".git/COMMIT_EDITMSG",
        ".git/hooks/pre-push",
        ".git/logs/HEAD",
        ".git/modules/sub/config",
        ".git/objects/secret.txt",
        ".git/objects/ab/secret.txt",
        ".git/objects/pack/notes.txt",
        "vendor/.git/notes/passwords",
        "vendor/.git/objects/ab/secret.txt",
        &format!("vendor/.git/objects/ab/{}", "c".repeat(38)),
        "vendor/.git/objects/pack/pack-1.pack",
    ] {
        assert!(found.iter().any(|found| found == path), "{path}: {found:?}");
    }
    let stored =
        |path: &&String| path.ends_with(".pack") || path.ends_with(".idx") || path.contains(&head[2..]);
    let own: Vec<_> = found.iter().filter(|path| path.starts_with(".git/")).filter(stored).collect();
    assert_eq!(own, Vec::<&String>::new(), "objects are listed as such");
    // The repository itself as the root: its own files.
    let bare = all_files(&Repo::at(repo.path.join(".git"))).await;
    for path in ["HEAD", "config", "hooks/pre-push", "objects/secret.txt"] {
        assert!(bare.iter().any(|found| found == path), "{path}: {bare:?}");
    }
    assert!(!bare.iter().any(|path| path.ends_with(".pack")));
}

#[tokio::test]
async fn a_pack_without_an_index_is_named() {
    let repo = Repo::new();
    repo.write("file", "content");
    repo.commit("first");
    repo.git(&["repack", "-adq"]);
    let pack = super::hostile::pack_file(&repo);
    fs::copy(&pack, pack.with_file_name("pack-alone.pack")).unwrap();
    let unread = unread(&repo.config()).await;
    assert!(unread.len() == 1 && unread["pack-alone.pack"].contains("no index"), "{unread:?}");
}

#[tokio::test]
async fn a_copy_under_the_id_of_another_object_is_named() {
    let repo = Repo::new();
    repo.write("file", "content");
    repo.commit("first");
    repo.git(&["repack", "-adq"]);
    repo.git(&["prune-packed"]);
    let id = repo.id("HEAD:file");
    let path = loose_path(&repo, &id);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, super::hostile::deflated(b"blob 5\0a key")).unwrap();
    let unread = unread(&repo.config()).await;
    assert!(
        unread.len() == 1 && unread[&format!("{id}@loose")].contains("its content has the id"),
        "{unread:?}"
    );
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
    let mut found = tree(&config).await;
    found.retain(|path, _| path == "worktree/.git/config" || !path.starts_with("worktree/.git/"));
    assert_eq!(found, expected);
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
    let is_shown = |key: &String| key == "worktree/.git/config" || !key.starts_with("worktree/.git/");
    let kept: Vec<String> = kept.map(|(key, _)| key).filter(is_shown).collect();
    assert_eq!(kept, ["worktree/.git/config", "worktree/sub/new"]);
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
    let mut found = files(&outer).await;
    found.retain(|path| path == "nested/.git/config" || !path.starts_with("nested/.git/"));
    assert_eq!(found, [".git/config", "nested/.git/config", "nested/inner.txt", "sub/.git", "sub/inner.txt"]);
    let config = GitConfig { uncommitted: true, ..outer.config() };
    let gaps = |found: BTreeMap<String, Option<Reason>>| -> Vec<String> {
        let gaps = found.into_iter().filter(|(_, reason)| *reason == Some(Reason::NestedRepository));
        gaps.map(|(path, _)| path).collect()
    };
    let unread = gaps(tree(&config).await);
    assert_eq!(unread.len(), 6, "three objects each: {unread:?}");
    for folder in ["worktree/.git/modules/sub/objects/", "worktree/nested/.git/objects/"] {
        assert_eq!(unread.iter().filter(|path| path.starts_with(folder)).count(), 3, "{unread:?}");
    }
    git(&outer.path.join("nested"), &["repack", "-adq"], 0);
    let packed = gaps(tree(&config).await);
    assert!(packed.iter().any(|path| path.ends_with(".pack")), "{packed:?}");
    let beside = tempfile::tempdir().unwrap();
    let linked = Repo::at(beside.path().join("tree"));
    inner.git(&["worktree", "add", "-q", "-b", "side", linked.path.to_str().unwrap()]);
    linked.write("new", "new");
    settle(&linked);
    assert_eq!(files(&linked).await, [".git", "new"]);
    settle(&Repo::at(outer.path.join("sub")));
    assert_eq!(files(&Repo::at(outer.path.join("sub"))).await, [".git"]);
    let bare = Repo::with(&["clone", "-q", "--bare", inner.path.to_str().unwrap()]);
    assert!(files(&bare).await.iter().any(|path| path == "config"));
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
    assert_eq!(discover(&repo.path, true), Some(Shape::Worktree));
    assert_eq!(discover(&repo.path.join(".git"), true), Some(Shape::Bare));
    assert_eq!(discover(&repo.path.join("sub"), true), None);
    assert_eq!(discover(&repo.path.join("sub/file"), true), None);
    assert_eq!(discover(&repo.path.join("nothing"), true), None);
    let bare = Repo::with(&["init", "-q", "--bare"]);
    assert_eq!(discover(&bare.path, true), Some(Shape::Bare));
    let beside = tempfile::tempdir().unwrap();
    let linked = beside.path().join("tree");
    repo.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    assert_eq!(discover(&linked, true), Some(Shape::Worktree));
    // Copied without what it belongs to.
    fs::write(linked.join(".git"), "gitdir: /nowhere/at/all\n").unwrap();
    assert_eq!(discover(&linked, true), None);
    fs::create_dir_all(beside.path().join("empty/.git")).unwrap();
    assert_eq!(discover(&beside.path().join("empty"), true), None);
}
