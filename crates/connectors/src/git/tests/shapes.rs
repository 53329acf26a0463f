//! Repositories of every shape: each must be listed whole and read as git reads it.

use super::*;

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
    // What is beyond the boundary is nobody's fault.
    let config = GitConfig { refs: vec!["HEAD".into()], ..shallow.config() };
    assert_eq!(ids(&config).await.len(), 13);
}

#[tokio::test]
async fn partial_clones_have_what_they_have() {
    let origin = Repo::new();
    origin.fill(20);
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    let from = format!("file://{}", origin.path.display());
    let partial = Repo::with(&["clone", "-q", "--bare", "--filter=blob:none", &from]);
    let config = partial.config();
    assert_eq!(ids(&config).await.len(), 21, "commits and the tag");
    let reachable = GitConfig { refs: vec!["main".into()], ..config.clone() };
    assert_eq!(ids(&reachable).await.len(), 20, "blobs that are elsewhere are passed over");
    let patterns = GitConfig { exclude: vec!["docs/".into()], ..config };
    assert_eq!(ids(&patterns).await.len(), 21);
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
    assert_eq!(ids(&config).await.len(), 4);
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
async fn large_blobs_are_streamed() {
    let repo = Repo::new();
    // Larger than what is held, and it spans many reads.
    let large = noise(1, 17 << 20);
    repo.write("large", &large);
    repo.commit("large");
    let id = repo.id("HEAD:large");
    for _ in 0..2 {
        let connector = connector(&repo.config());
        assert!(connector.open(&ObjectKey::new(id.as_bytes())).unwrap().random.is_none());
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
    assert_eq!(connector(&config).resume_policy(), ResumePolicy::ExcludeStaged);
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
async fn what_is_no_repository_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let config = GitConfig::new(folder.path().to_owned());
    let error = list(&config).await.unwrap_err().to_string();
    assert!(error.contains("is no git repository"), "{error}");
    let config = GitConfig::new(folder.path().join("nothing"));
    assert_eq!(list(&config).await.unwrap_err().reason(), Reason::Vanished);
}
