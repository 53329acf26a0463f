//! Origins, compared with what `git log` says.

use super::*;

/// Looks up everything a repository has.
async fn origins(repo: &Repo) -> HashMap<String, Origin> {
    let config = repo.config();
    let ids: Vec<ObjectId> =
        ids(&config).await.iter().map(|id| ObjectId::from_hex(id.as_bytes()).unwrap()).collect();
    let found = Git::new(config).origins(&ids).unwrap();
    found.into_iter().map(|(id, origin)| (id.to_string(), origin)).collect()
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
                    assert_eq!(origin.commit.to_string(), introduced(&repo, id), "{id}");
                    let path = origin.path.as_ref().unwrap();
                    assert_eq!(repo.id(&format!("{}:{path}", origin.commit)), *id);
                    assert_eq!(origin.author, "A U Thor <author@example.com>");
                    let time = repo.git(&["log", "-1", "--format=%at", &origin.commit.to_string()]);
                    assert_eq!(origin.time.to_string(), time);
                    blobs += 1;
                }
                "commit" => assert_eq!((origin.commit.to_string(), &origin.path), (id.clone(), &None)),
                _ => assert_eq!(origin.commit.to_string(), repo.id("heavy^{commit}")),
            }
        }
        assert_eq!(blobs, 25);
        let on_the_side = &origins[&repo.id("side:side/file.txt")];
        assert_eq!(on_the_side.commit.to_string(), side);
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
    assert_eq!(origins[&repo.id("HEAD:file")].commit.to_string(), first);
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
        assert_eq!(origin.commit.to_string(), abandoned);
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
