//! Origins, compared with what `git log` says.

use super::*;

/// Looks up everything a repository has.
async fn origins(repo: &Repo) -> HashMap<String, Origin> {
    origins_of(&repo.config()).await
}

/// Looks up everything that is listed.
async fn origins_of(config: &GitConfig) -> HashMap<String, Origin> {
    let keys: Vec<ObjectKey> = ids(config).await.into_iter().map(ObjectKey::new).collect();
    let connector = connector(config);
    assert!(connector.traces_origins());
    let found = connector.origins(&keys, &Moved::default()).await.unwrap();
    found.into_iter().map(|(key, origin)| (key.to_string(), origin)).collect()
}

/// The oldest commit that git says brought a blob.
fn introduced(repo: &Repo, blob: &str) -> String {
    let find = format!("--find-object={blob}");
    let said = repo.git(&["log", "--all", "--format=%H", "--reverse", "--topo-order", "-m", &find]);
    said.lines().next().unwrap().to_owned()
}

#[tokio::test]
async fn a_blob_comes_from_the_commit_that_brought_it() {
    let repo = Repo::new();
    repo.fill(12);
    repo.git(&["checkout", "-q", "-b", "side", "HEAD~5"]);
    repo.write("side/file.txt", "on the side");
    let side = repo.commit("side");
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["merge", "-q", "--no-ff", "-m", "merge", "side"]);
    for packed in [false, true] {
        if packed {
            repo.git(&["gc", "-q"]);
        }
        let origins = origins(&repo).await;
        assert_eq!(origins.len(), ids(&repo.config()).await.len());
        let mut blobs = 0;
        for (id, origin) in &origins {
            match repo.git(&["cat-file", "-t", id]).as_str() {
                "blob" => {
                    assert_eq!(origin.commit, introduced(&repo, id), "{id}");
                    let path = origin.path.as_ref().unwrap();
                    assert_eq!(repo.id(&format!("{}:{path}", origin.commit)), *id);
                    assert_eq!(origin.author, "A U Thor <author@example.com>");
                    let time = repo.git(&["log", "-1", "--format=%at", &origin.commit]);
                    assert_eq!(origin.time_ms, time.parse::<i64>().unwrap() * 1_000);
                    blobs += 1;
                }
                "commit" => assert_eq!((&origin.commit, &origin.path), (id, &None)),
                _ => assert_eq!(origin.commit, repo.id("heavy^{commit}")),
            }
        }
        assert_eq!(blobs, 25);
        let on_the_side = &origins[&repo.id("side:side/file.txt")];
        assert_eq!(on_the_side.commit, side);
        assert_eq!(on_the_side.path, Some(ObjectKey::new(*b"side/file.txt")));
    }
}

#[tokio::test]
async fn clocks_that_go_wrong_do_not_put_a_child_before_its_parent() {
    let repo = Repo::new();
    repo.commits.set(1_000);
    repo.write("file", "content");
    let first = repo.commit("brought");
    repo.commits.set(10);
    repo.write("other", "other");
    repo.commit("later, and dated earlier");
    let origins = origins(&repo).await;
    assert_eq!(origins[&repo.id("HEAD:file")].commit, first);
}

#[tokio::test]
async fn of_two_paths_the_first_is_taken_and_lost_blobs_have_none() {
    let repo = Repo::new();
    for path in ["b/z", "a.txt", "a/y", "c"] {
        repo.write(path, "the same");
    }
    repo.commit("four paths");
    let lost = {
        repo.write("lost", "lost");
        repo.git(&["hash-object", "-w", "lost"])
    };
    let origins = origins(&repo).await;
    assert_eq!(origins[&repo.id("HEAD:c")].path, Some(ObjectKey::new(*b"a.txt")));
    assert!(!origins.contains_key(&lost));
}

#[tokio::test]
async fn what_was_taken_back_is_traced_to_the_abandoned_commit() {
    let repo = Repo::new();
    repo.write("kept", "kept");
    repo.commit("kept");
    repo.write("deep/secret", "taken back");
    let abandoned = repo.commit("a mistake");
    let blob = repo.id("HEAD:deep/secret");
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    for packed in [false, true] {
        if packed {
            repo.git(&["repack", "-adkq"]);
            repo.git(&["prune-packed"]);
        }
        let origins = origins(&repo).await;
        let origin = &origins[&blob];
        assert_eq!(origin.commit, abandoned);
        assert_eq!(origin.path, Some(ObjectKey::new(*b"deep/secret")));
        assert!(origin.is_abandoned);
        assert!(!origins[&repo.id("HEAD:kept")].is_abandoned);
    }
}

#[tokio::test]
async fn an_abandoned_commit_may_lead_nowhere() {
    let repo = Repo::new();
    repo.write("kept", "kept");
    repo.commit("kept");
    repo.write("secret", "taken back");
    let abandoned = repo.commit("a mistake");
    let (blob, tree) = (repo.id("HEAD:secret"), repo.id("HEAD^{tree}"));
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    fs::remove_file(repo.path.join(format!(".git/objects/{}/{}", &tree[..2], &tree[2..]))).unwrap();
    let origins = origins(&repo).await;
    assert!(origins.contains_key(&abandoned) && !origins.contains_key(&blob));
}

#[tokio::test]
async fn what_is_staged_has_its_path_and_no_commit() {
    let repo = Repo::new();
    repo.write("old", "once here");
    repo.commit("old");
    fs::remove_file(repo.path.join("old")).unwrap();
    repo.commit("gone");
    repo.write("new/again", "once here");
    repo.write("new/secret", "staged");
    repo.git(&["add", "-A"]);
    let config = GitConfig { staged: true, ..repo.config() };
    let origins = origins_of(&config).await;
    for path in ["new/again", "new/secret"] {
        let origin = &origins[&repo.id(&format!(":{path}"))];
        assert_eq!((origin.path.clone(), origin.commit.as_str()), (Some(ObjectKey::new(path)), ""));
    }
    // In a scan of everything the history comes first.
    let origins = self::origins(&repo).await;
    assert_eq!(origins[&repo.id(":new/again")].path, Some(ObjectKey::new("old")));
    assert_eq!(origins[&repo.id(":new/secret")].path, Some(ObjectKey::new("new/secret")));
}

#[tokio::test]
async fn of_a_range_the_commit_inside_of_it_is_named() {
    let repo = Repo::new();
    repo.write("a", "comes and goes");
    repo.commit("first");
    fs::remove_file(repo.path.join("a")).unwrap();
    repo.commit("gone");
    repo.write("b", "comes and goes");
    let again = repo.commit("again");
    repo.write("c", "c");
    repo.commit("last");
    let config = GitConfig { range: Some("HEAD~2..".into()), ..repo.config() };
    let origins = origins_of(&config).await;
    assert_eq!(origins.len(), 4, "two commits with a blob each");
    let origin = &origins[&repo.id("HEAD:b")];
    assert_eq!((&origin.commit, origin.path.clone()), (&again, Some(ObjectKey::new("b"))));
}

#[tokio::test]
async fn a_damaged_history_does_not_hide_the_rest() {
    let repo = Repo::new();
    repo.write("deep/file", "deep");
    repo.write("file", "file");
    repo.commit("first");
    let (blob, hidden, tree) = (repo.id("HEAD:file"), repo.id("HEAD:deep/file"), repo.id("HEAD:deep"));
    let path = repo.path.join(format!(".git/objects/{}/{}", &tree[..2], &tree[2..]));
    fs::remove_file(&path).unwrap();
    fs::write(&path, "not deflated").unwrap();
    let origins = origins(&repo).await;
    assert_eq!(origins[&blob].path, Some(ObjectKey::new("file")));
    assert!(!origins[&blob].commit.is_empty());
    // No commit leads to it any more; the index does.
    assert_eq!(origins[&hidden].path, Some(ObjectKey::new("deep/file")));
    assert!(origins[&hidden].commit.is_empty());
}
