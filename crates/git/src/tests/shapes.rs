//! Repositories of every shape: each must be listed whole and read as git reads it.

use std::os::unix::fs::symlink;

use super::*;
use crate::repository::{Repository, Shape, discover, leads_out};
use crate::store::HELD_MAX;
use domesday_testkit::feed;

#[tokio::test]
async fn loose_packed_and_both() {
    let repo = Repo::new();
    repo.fill(30);
    // 30 commits, 30 versions of each file, one tag.
    assert_eq!(check_everything(&repo).await, 91);
    repo.git(&["repack", "-adfq", "--depth=50"]);
    repo.git(&["prune-packed"]);
    assert_eq!(check_everything(&repo).await, 91);
    repo.write("src/main.txt", "something else");
    repo.commit("loose beside packed");
    assert_eq!(check_everything(&repo).await, 93);
    repo.write("empty", "");
    repo.commit("an empty file");
    assert_eq!(check_everything(&repo).await, 95);
    repo.git(&["repack", "-dq"]);
    assert_eq!(check_everything(&repo).await, 95);
    // The same objects in three packs, and loose.
    repo.git(&["repack", "-aq"]);
    repo.git(&["unpack-file", "HEAD:src/main.txt"]);
    assert_eq!(check_everything(&repo).await, 95);
    repo.git(&["gc", "-q"]);
    assert_eq!(check_everything(&repo).await, 95);
}

#[tokio::test]
async fn old_indices_and_deltas_by_id() {
    let repo = Repo::new();
    repo.fill(20);
    repo.git(&["-c", "pack.indexVersion=1", "-c", "repack.useDeltaBaseOffset=false", "repack", "-adfq"]);
    assert_eq!(check_everything(&repo).await, 61);
    // 64-bit offsets from the first byte on.
    let pack = fs::read_dir(repo.path.join(".git/objects/pack")).unwrap();
    let pack =
        pack.map(|entry| entry.unwrap().path()).find(|path| path.extension().unwrap() == "pack").unwrap();
    let index = pack.with_extension("idx");
    fs::remove_file(&index).unwrap();
    repo.git(&["index-pack", "--index-version=2,0x40", pack.to_str().unwrap()]);
    assert_eq!(check_everything(&repo).await, 61);
}

#[tokio::test]
async fn bases_come_before_what_is_made_from_them() {
    let repo = Repo::new();
    repo.fill(40);
    repo.git(&["repack", "-adfq"]);
    repo.git(&["prune-packed"]);
    let index = fs::read_dir(repo.path.join(".git/objects/pack"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().unwrap() == "idx")
        .unwrap();
    let listed: Vec<String> = list(&repo.config())
        .await
        .unwrap()
        .into_iter()
        .map(|record| String::from_utf8(record.name).unwrap())
        .collect();
    let place = |id: &str| listed.iter().position(|listed| listed == id);
    let mut deltas = 0;
    for line in repo.git(&["verify-pack", "-v", index.to_str().unwrap()]).lines() {
        // id, kind, size, size in the pack, offset, depth, base
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        if let [id, "blob" | "commit" | "tag", _, _, _, _, base] = fields[..] {
            assert!(place(base).unwrap() < place(id).unwrap(), "{line}");
            deltas += 1;
        }
    }
    assert!(deltas > 20, "only {deltas} deltas");
}

#[tokio::test]
async fn sha256() {
    let repo = Repo::with(&["init", "-q", "-b", "main", "--object-format=sha256"]);
    repo.fill(20);
    assert_eq!(check_everything(&repo).await, 61);
    repo.git(&["gc", "-q"]);
    assert_eq!(check_everything(&repo).await, 61);
    let config = GitConfig { refs: vec!["HEAD".into()], ..repo.config() };
    assert_eq!(ids(&config).await.len(), 60);
}

#[tokio::test]
async fn bare_alternates_and_shallow() {
    let origin = Repo::new();
    origin.fill(20);
    origin.git(&["gc", "-q"]);
    let from = format!("file://{}", origin.path.display());
    let bare = Repo::with(&["clone", "-q", "--bare", &from]);
    assert_eq!(check_everything(&bare).await, 61);
    let borrowing = Repo::with(&["clone", "-q", "--shared", origin.path.to_str().unwrap()]);
    borrowing.write("own.txt", "of its own");
    borrowing.commit("beside what is borrowed");
    assert_eq!(check_everything(&borrowing).await, 63);
    let shallow = Repo::with(&["clone", "-q", "--depth=3", &from]);
    assert_eq!(check_everything(&shallow).await, 14);
    let config = GitConfig { refs: vec!["HEAD".into()], ..shallow.config() };
    assert_eq!(objects(&config).await, 13);
}

#[tokio::test]
async fn partial_clones_have_what_they_have() {
    let origin = Repo::new();
    origin.fill(20);
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    let from = format!("file://{}", origin.path.display());
    let partial = Repo::with(&["clone", "-q", "--bare", "--filter=blob:none", &from]);
    let config = partial.config();
    assert_eq!(objects(&config).await, 21, "commits and the tag");
    let blobs: Vec<String> =
        everything(&origin).into_keys().filter(|id| kind(&origin, id) == "blob").collect();
    assert_eq!(not_fetched(&config).await, blobs, "what is elsewhere is named");
    let reachable = GitConfig { refs: vec!["main".into()], ..config.clone() };
    assert_eq!(objects(&reachable).await, 20);
    assert_eq!(not_fetched(&reachable).await, blobs);
    let range = GitConfig { range: Some("main~1..main".into()), ..config.clone() };
    assert_eq!((objects(&range).await, not_fetched(&range).await.len()), (1, 2));
    let patterns = GitConfig { exclude: vec!["docs/".into()], ..config };
    assert_eq!(objects(&patterns).await, 21);
    // Without trees: nobody knows what is in them.
    let treeless = Repo::with(&["clone", "-q", "--bare", "--filter=tree:0", &from]);
    assert_eq!(objects(&treeless.config()).await, 21);
    assert_eq!(not_fetched(&treeless.config()).await.len(), 20, "the trees of the commits");
    // Part of the blobs is here.
    let some = Repo::with(&["clone", "-q", "--bare", "--filter=blob:limit=100", &from]);
    let large: Vec<String> =
        blobs.into_iter().filter(|id| origin.git(&["cat-file", "-s", id]).len() > 2).collect();
    assert_eq!(not_fetched(&some.config()).await, large);
    assert_eq!(objects(&some.config()).await, 61 - large.len());
}

/// How many objects are listed that are here.
async fn objects(config: &GitConfig) -> usize {
    ids(config).await.iter().filter(|name| ObjectId::from_hex(name.as_bytes()).is_some()).count()
}

fn kind(repo: &Repo, id: &str) -> String {
    repo.git(&["cat-file", "-t", id])
}

/// What is listed as being elsewhere, in order.
async fn not_fetched(config: &GitConfig) -> Vec<String> {
    let records = list(config).await.unwrap();
    let absent = records.into_iter().filter(|record| record.reason == Some(Reason::NotFetched));
    let mut absent: Vec<String> = absent.map(|record| String::from_utf8(record.name).unwrap()).collect();
    absent.sort_unstable();
    absent
}

#[tokio::test]
async fn references_in_tables() {
    for format in ["sha1", "sha256"] {
        let repo =
            Repo::with(&["init", "-q", "-b", "main", "--ref-format=reftable", "--object-format", format]);
        let config = |name: &str| GitConfig { refs: vec![name.into()], ..repo.config() };
        repo.fill(6);
        repo.git(&["symbolic-ref", "refs/heads/also", "refs/heads/main"]);
        repo.git(&["branch", "gone"]);
        repo.git(&["branch", "-D", "gone"]);
        for turn in 0..2 {
            assert_eq!(check_everything(&repo).await, 19);
            for (name, count) in [("main", 18), ("HEAD", 18), ("also", 18), ("heavy", 19), ("main~2", 12)] {
                assert_eq!(ids(&config(name)).await.len(), count, "{name}");
            }
            assert!(list(&config("gone")).await.is_err());
            if turn == 0 {
                // So many that they take several blocks.
                let main = repo.id("main");
                let create = |number| format!("create refs/heads/topic/{number:04} {main}\n");
                update_refs(&repo, &(0..900).map(create).collect::<String>());
                repo.git(&["pack-refs", "--all"]);
            }
        }
        assert_eq!(ids(&config("topic/0899")).await.len(), 18);
        let beside = tempfile::tempdir().unwrap();
        let worktree = Repo::at(beside.path().join("tree"));
        repo.git(&["worktree", "add", "-q", "-b", "side", worktree.path.to_str().unwrap(), "main~3"]);
        let head = GitConfig { refs: vec!["HEAD".into()], ..worktree.config() };
        assert_eq!(ids(&head).await.len(), 9);
        let keys = [ObjectKey::new(repo.id("main:src/main.txt"))];
        assert_eq!(
            connector(&repo.config()).origins(&keys, &Moved::default()).await.unwrap()[0].1.commit,
            repo.id("main")
        );
        // Whatever byte is wrong, it is an error or nothing.
        let folder = repo.path.join(".git/reftable");
        let tables = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        for table in tables.filter(|path| path.extension().is_some_and(|extension| extension == "ref")) {
            let bytes = fs::read(&table).unwrap();
            for at in (0..bytes.len().min(600)).step_by(7) {
                let mut damaged = bytes.clone();
                damaged[at] ^= 0x55;
                fs::write(&table, damaged).unwrap();
                let _ = Repository::open(&repo.path, true).unwrap().tips();
            }
            fs::write(&table, &bytes[..bytes.len() / 2]).unwrap();
            assert!(Repository::open(&repo.path, true).unwrap().tips().is_err());
            fs::write(&table, bytes).unwrap();
        }
    }
}

fn update_refs(repo: &Repo, commands: &str) {
    let mut update = Command::new("git");
    update.arg("-C").arg(&repo.path).args(["update-ref", "--stdin"]);
    let updated = feed(&mut update, commands.as_bytes()).unwrap();
    assert!(updated.status.success(), "{}", String::from_utf8_lossy(&updated.stderr));
}

#[tokio::test]
async fn packs_of_every_making() {
    let repo = Repo::new();
    repo.fill(20);
    repo.git(&["repack", "-dq"]);
    repo.write("more", "more");
    repo.commit("more");
    repo.git(&["repack", "-dq"]);
    repo.git(&["multi-pack-index", "write", "--bitmap"]);
    assert_eq!(check_everything(&repo).await, 63);
    repo.git(&["multi-pack-index", "repack", "--batch-size=0"]);
    assert_eq!(check_everything(&repo).await, 63, "the same in two packs");
    repo.git(&["multi-pack-index", "expire"]);
    assert_eq!(check_everything(&repo).await, 63);
    repo.git(&["commit-graph", "write", "--reachable"]);
    // What nobody leads to, in a pack of its own.
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    repo.git(&["repack", "--cruft", "--cruft-expiration=never", "-dq"]);
    assert_eq!(check_everything(&repo).await, 63);
    repo.git(&["repack", "--geometric=2", "-dq", "--write-midx"]);
    assert_eq!(check_everything(&repo).await, 63);
}

#[tokio::test]
async fn alternates_of_alternates() {
    let first = Repo::new();
    first.fill(3);
    let second = Repo::with(&["clone", "-q", "--shared", first.path.to_str().unwrap()]);
    second.write("second", "second");
    second.commit("second");
    let third = Repo::with(&["clone", "-q", "--shared", second.path.to_str().unwrap()]);
    third.write("third", "third");
    third.commit("third");
    assert_eq!(check_everything(&third).await, 14);
    // One that is not there any more is passed over, as git does.
    let list = third.path.join(".git/objects/info/alternates");
    let with_gone = format!("/nowhere/at/all\n{}", fs::read_to_string(&list).unwrap());
    fs::write(&list, with_gone).unwrap();
    assert_eq!(list_len(&third).await, 14);
}

async fn list_len(repo: &Repo) -> usize {
    list(&repo.config()).await.unwrap().len()
}

#[tokio::test]
async fn what_was_replaced_is_scanned_with_what_replaces_it() {
    let repo = Repo::new();
    repo.write("secret", "the secret");
    repo.commit("a secret");
    let blob = repo.id("HEAD:secret");
    repo.write("secret", "nothing here");
    let other = repo.git(&["hash-object", "-w", "secret"]);
    repo.git(&["replace", &blob, &other]);
    assert_eq!(repo.git(&["cat-file", "blob", &blob]), "nothing here", "git hides it");
    assert_eq!(check_everything(&repo).await, 3);
    let connector = connector(&repo.config());
    assert_eq!(read(connector.as_ref(), &blob).unwrap(), b"the secret");
    assert_eq!(read(connector.as_ref(), &other).unwrap(), b"nothing here");
}

#[tokio::test]
async fn worktrees_and_submodules() {
    let origin = Repo::new();
    origin.fill(5);
    let outer = Repo::new();
    outer.write("file", "outer");
    outer.commit("outer");
    outer.git(&["submodule", "-q", "add", origin.path.to_str().unwrap(), "inner"]);
    outer.commit("a submodule");
    // Two commits, `file` and `.gitmodules`: what the submodule has is its own.
    assert_eq!(check_everything(&outer).await, 4);
    let config = GitConfig { refs: vec!["main".into()], ..outer.config() };
    assert_eq!(objects(&config).await, 4);
    let inner = Repo::at(outer.path.join("inner"));
    assert_eq!(check_everything(&inner).await, 16);
    let beside = tempfile::tempdir().unwrap();
    let worktree = Repo::at(beside.path().join("tree"));
    origin.git(&["worktree", "add", "-q", "-b", "side", worktree.path.to_str().unwrap()]);
    worktree.commits.set(50);
    worktree.write("side.txt", "on the side");
    worktree.commit("side");
    assert_eq!(check_everything(&worktree).await, 18);
    let config = GitConfig { refs: vec!["HEAD".into()], ..worktree.config() };
    assert_eq!(ids(&config).await.len(), 17);
    let config = GitConfig { refs: vec!["HEAD".into()], ..origin.config() };
    assert_eq!(ids(&config).await.len(), 15, "the other worktree's HEAD is another");
}

#[tokio::test]
async fn what_is_larger_than_anything_held_is_streamed() {
    const LEN: u64 = HELD_MAX + (8 << 20) + 13;
    let repo = Repo::new();
    let path = repo.path.join("large");
    // Mostly zeros, so that git makes it quickly, with marks here and there.
    let file = fs::File::create(&path).unwrap();
    file.set_len(LEN).unwrap();
    for at in (0..LEN).step_by(1 << 20) {
        std::os::unix::fs::FileExt::write_all_at(&file, &at.to_le_bytes(), at).unwrap();
    }
    repo.git(&["-c", "core.compression=1", "add", "large"]);
    repo.commit("large");
    let id = repo.id("HEAD:large");
    for _ in 0..2 {
        let connector = connector(&repo.config());
        let mut opened = open(connector.as_ref(), &ObjectKey::new(id.as_bytes())).unwrap();
        assert!(opened.random.is_none() && opened.size == Some(LEN));
        let mut expected = fs::File::open(&path).unwrap();
        let (mut one, mut other) = (vec![0; 1 << 20], vec![0; 1 << 20]);
        let mut read = 0;
        loop {
            let got = opened.reader.read(&mut one).unwrap();
            expected.read_exact(&mut other[..got]).unwrap();
            assert!(one[..got] == other[..got], "after {read} bytes");
            read += got as u64;
            if got == 0 {
                break;
            }
        }
        assert_eq!(read, LEN);
        repo.git(&["repack", "-adq"]);
    }
}

#[tokio::test]
async fn large_blobs_are_streamed() {
    let repo = Repo::new();
    // Larger than what is held, and it spans many reads.
    let large = noise(1, 17 << 20);
    repo.write("large", &large);
    repo.commit("large");
    let id = repo.id("HEAD:large");
    for _ in 0..2 {
        let connector = connector(&repo.config());
        assert!(open(connector.as_ref(), &ObjectKey::new(id.as_bytes())).unwrap().random.is_none());
        assert_eq!(read(connector.as_ref(), &id).unwrap(), large);
        repo.git(&["repack", "-adq"]);
    }
}

#[tokio::test]
async fn a_repository_that_is_repacked_under_a_listing_is_listed_whole() {
    let repo = Repo::new();
    repo.fill(30);
    let connector = connector(&repo.config());
    let mut listing = connector.list(&ObjectKey::default(), None).await.unwrap();
    let mut names = std::collections::BTreeSet::new();
    let mut batches = 0;
    loop {
        let batch = listing.next_batch(BATCH).await.unwrap();
        if batch.is_empty() {
            break;
        }
        for record in batch {
            assert!(names.insert(record.name), "listed twice");
        }
        batches += 1;
        if batches == 3 {
            repo.git(&["repack", "-adq"]);
            repo.git(&["prune-packed"]);
        }
    }
    assert_eq!(names.len(), 91);
    for name in &names {
        read(connector.as_ref(), std::str::from_utf8(name).unwrap()).unwrap();
    }
}

#[tokio::test]
async fn more_packs_than_are_held_open_may_go() {
    let repo = Repo::new();
    for number in 0..70 {
        repo.write("file", format!("version {number}"));
        repo.commit("one more pack");
        repo.git(&["repack", "-dq"]);
    }
    assert_eq!(check_everything(&repo).await, 140);
    let connector = connector(&repo.config());
    let ids = ids(&repo.config()).await;
    read(connector.as_ref(), &ids[0]).unwrap();
    repo.git(&["repack", "-adq"]);
    for id in &ids {
        read(connector.as_ref(), id).unwrap();
    }
}

#[tokio::test]
async fn a_listing_that_was_cut_short_goes_on_to_the_same_result() {
    let repo = Repo::new();
    repo.fill(20);
    repo.git(&["repack", "-dq"]);
    repo.write("loose", "loose");
    repo.commit("loose");
    let config = repo.config();
    assert_eq!(connector(&config).resume_policy(&ObjectKey::default()), ResumePolicy::ExcludeListed);
    let whole = list(&config).await.unwrap();
    for (turn, cut) in (0..whole.len()).step_by(11).enumerate() {
        let mut records = list(&config).await.unwrap();
        records.truncate(cut);
        if turn == 2 {
            // Everything moves between the two.
            repo.git(&["repack", "-adq"]);
        }
        // As the worker does it.
        let staged: Vec<[u8; 16]> = records.iter().map(|record| ObjectKey::hash128(&record.name)).collect();
        let rest = list(&config).await.unwrap();
        records.extend(rest.into_iter().filter(|record| !staged.contains(&ObjectKey::hash128(&record.name))));
        let sorted = |records: &[UnitRecord]| {
            let mut records: Vec<_> = records.iter().map(|r| (r.name.clone(), r.size)).collect();
            records.sort_unstable();
            records
        };
        assert_eq!(sorted(&records), sorted(&whole), "cut at {cut}");
    }
}

#[tokio::test]
async fn a_listing_of_which_a_batch_was_lost_does_not_say_that_it_ended() {
    let repo = Repo::new();
    repo.write("untracked", "x");
    let connector = connector(&GitConfig { uncommitted: true, ..repo.config() });
    for container in ["", "worktree"] {
        let error = loop {
            let mut listing = connector.list(&ObjectKey::new(container), None).await.unwrap();
            let mut batch = listing.next_batch(BATCH);
            let is_lost = std::future::poll_fn(|context| {
                std::task::Poll::Ready(batch.as_mut().poll(context).is_pending())
            });
            // Seldom it is there at once.
            if is_lost.await {
                drop(batch);
                break listing.next_batch(BATCH).await.unwrap_err();
            }
        };
        assert!(error.is_retryable() && error.to_string().contains("cut short"), "{error}");
    }
}

#[tokio::test]
async fn many_threads_read_the_same() {
    let repo = Repo::new();
    repo.fill(60);
    repo.git(&["repack", "-adfq"]);
    let connector = connector(&repo.config());
    let ids = ids(&repo.config()).await;
    let one: Vec<Vec<u8>> = ids.iter().map(|id| read(connector.as_ref(), id).unwrap()).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for (id, expected) in ids.iter().zip(&one) {
                    assert_eq!(&read(connector.as_ref(), id).unwrap(), expected);
                }
            });
        }
    });
}

#[tokio::test]
async fn each_base_is_decoded_about_once_by_each_worker() {
    // Deltas on each other, at most.
    const DEPTH: usize = 50;
    const WORKERS: usize = 4;
    let repo = Repo::new();
    repo.fill(60);
    repo.git(&["repack", "-adfq", &format!("--depth={DEPTH}")]);
    repo.git(&["prune-packed"]);
    let records = list(&repo.config()).await.unwrap();
    let ids: Vec<ObjectId> = records.iter().map(|r| ObjectId::from_hex(&r.name).unwrap()).collect();
    // One worker with all of it, in the order of the listing.
    let alone = Repository::open(&repo.path, true).unwrap();
    for id in &ids {
        alone.store.open_object(id).unwrap();
    }
    assert_eq!(alone.store.decoded(), ids.len());
    // Two threads side by side may both need a base at the same time, and seldom do.
    let shared = Repository::open(&repo.path, true).unwrap();
    std::thread::scope(|scope| {
        for half in ids.chunks(ids.len().div_ceil(2)) {
            scope.spawn(|| half.iter().for_each(|id| drop(shared.store.open_object(id).unwrap())));
        }
    });
    assert!(shared.store.decoded() <= ids.len() + DEPTH, "{} for {}", shared.store.decoded(), ids.len());
    // Workers that share nothing: beside its own objects each decodes the chain its first one hangs on.
    let mut decoded = 0;
    for range in ids.chunks(ids.len().div_ceil(WORKERS)) {
        let worker = Repository::open(&repo.path, true).unwrap();
        range.iter().for_each(|id| drop(worker.store.open_object(id).unwrap()));
        decoded += worker.store.decoded();
    }
    assert!(decoded <= ids.len() + WORKERS * DEPTH, "{decoded} for {}", ids.len());
}

#[tokio::test]
async fn what_is_no_repository_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let config = GitConfig::new(folder.path().to_owned());
    let error = list(&config).await.unwrap_err().to_string();
    assert!(error.contains("is no git repository"), "{error}");
    let config = GitConfig::new(folder.path().join("nothing"));
    assert_eq!(list(&config).await.unwrap_err().reason(), Reason::Vanished);
}

#[tokio::test]
async fn nothing_leads_out_of_the_folder_unless_it_may() {
    let outside = Repo::new();
    outside.write("secret", "outside");
    outside.commit("outside");
    let id = outside.id("HEAD:secret");
    let bound = |repo: &Repo| {
        let config = GitConfig { uncommitted: true, ..repo.config() };
        connector_trusting(&config, TrustContent::No)
    };
    let objects = outside.path.join(".git/objects");
    // A `.git` file.
    let folder = tempfile::tempdir().unwrap();
    let by_file = Repo::at(folder.path().join("by-file"));
    by_file.write(".git", format!("gitdir: {}/.git", outside.path.display()));
    // `commondir`.
    let by_common = Repo::new();
    by_common.write(".git/commondir", outside.path.join(".git").to_str().unwrap());
    // Links: the whole repository, its objects, one folder of objects.
    let by_link = Repo::at(folder.path().join("by-link"));
    fs::create_dir(&by_link.path).unwrap();
    symlink(outside.path.join(".git"), by_link.path.join(".git")).unwrap();
    let by_objects = Repo::new();
    fs::remove_dir_all(by_objects.path.join(".git/objects")).unwrap();
    symlink(&objects, by_objects.path.join(".git/objects")).unwrap();
    let by_folder = Repo::new();
    symlink(objects.join(&id[..2]), by_folder.path.join(".git/objects").join(&id[..2])).unwrap();
    for repo in [&by_file, &by_common, &by_link, &by_objects, &by_folder] {
        assert_eq!(read(connector(&repo.config()).as_ref(), &id).unwrap(), b"outside");
        let error = list_container(bound(repo).as_ref(), "").await.unwrap_err().to_string();
        assert!(error.contains("outside of the scanned folder"), "{error}");
        assert!(read(bound(repo).as_ref(), &id).is_err());
    }
    for repo in [&by_file, &by_common, &by_link, &by_objects] {
        assert_eq!(discover(&repo.path, false), None, "it is a folder of files");
        assert!(!leads_out(&repo.path).is_empty());
    }
    assert_eq!(leads_out(&outside.path), Vec::<PathBuf>::new());
    // Alternates: the rest is scanned, and what was refused is named.
    let borrows = Repo::new();
    borrows.write("own", "own");
    borrows.commit("own");
    borrows.write(".git/objects/info/alternates", objects.to_str().unwrap());
    assert_eq!(leads_out(&borrows.path), [fs::canonicalize(&objects).unwrap()]);
    assert!(ids(&borrows.config()).await.contains(&id));
    let bounded = ids_of(bound(&borrows).as_ref()).await;
    assert!(!bounded.contains(&id) && bounded.contains(&borrows.id("HEAD:own")), "{bounded:?}");
    let error = read(bound(&borrows).as_ref(), "alternates").unwrap_err().to_string();
    assert!(error.contains("outside of the scanned folder"), "{error}");
    assert_eq!(discover(&borrows.path, false), Some(Shape::Worktree));
}
