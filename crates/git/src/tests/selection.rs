//! Selections, compared with what `git rev-list` and `git diff` say.

use super::*;
use crate::repository::Repository;

/// What git finds from these, without trees.
fn rev_list(repo: &Repo, arguments: &[&str]) -> Vec<String> {
    let said = repo.git(&[&["rev-list", "--objects"], arguments].concat());
    let mut ids: Vec<String> = said
        .lines()
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .filter(|id| repo.git(&["cat-file", "-t", id]) != "tree")
        .collect();
    ids.sort_unstable();
    ids
}

fn branched() -> Repo {
    let repo = Repo::new();
    repo.fill(6);
    repo.git(&["checkout", "-q", "-b", "side", "HEAD~3"]);
    for number in 0..3 {
        repo.write("side.txt", format!("side {number}"));
        repo.commit("side");
    }
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["merge", "-q", "--no-ff", "-m", "merge", "side~1"]);
    repo.write("last.txt", "last");
    repo.commit("last");
    repo
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[tokio::test]
async fn refs_and_ranges_are_what_git_says() {
    let repo = branched();
    for packed in [false, true] {
        if packed {
            repo.git(&["gc", "-q"]);
        }
        for chosen in [&["main"][..], &["side", "heavy"], &["HEAD~1^2"], &["light"], &["refs/heads/side~2"]] {
            let config = GitConfig { refs: names(chosen), ..repo.config() };
            assert_eq!(ids(&config).await, rev_list(&repo, chosen), "{chosen:?}");
        }
        for range in ["main~1..main", "side..main", "main..side", "heavy..HEAD", "side~2..", "main..main"] {
            let config = GitConfig { range: Some(range.to_owned()), ..repo.config() };
            assert_eq!(ids(&config).await, rev_list(&repo, &[range]), "{range}");
        }
        let short = |name: &str| repo.git(&["rev-parse", "--short=8", name]);
        for chosen in [short("main~1"), short("heavy"), format!("{}~1", short("side").to_uppercase())] {
            let config = GitConfig { refs: vec![chosen.clone()], ..repo.config() };
            assert_eq!(ids(&config).await, rev_list(&repo, &[&chosen]), "{chosen}");
        }
        let since = repo.id("HEAD~2");
        let config = GitConfig { since_commit: Some(since.clone()), ..repo.config() };
        assert_eq!(ids(&config).await, rev_list(&repo, &["--all", &format!("^{since}")]));
        let config = GitConfig { refs: names(&["side"]), ..config };
        assert_eq!(ids(&config).await, rev_list(&repo, &["side", &format!("^{since}")]));
    }
}

#[tokio::test]
async fn what_cannot_be_resolved_is_named() {
    let repo = branched();
    for (config, said) in [
        (GitConfig { refs: names(&["nothing"]), ..repo.config() }, "`refs`: `nothing`: no such reference"),
        (
            GitConfig { refs: vec![repo.id("HEAD:last.txt")[..8].to_owned()], ..repo.config() },
            "no such reference",
        ),
        (GitConfig { refs: names(&["refs/../HEAD"]), ..repo.config() }, "no such reference"),
        (GitConfig { range: Some("main~99..main".into()), ..repo.config() }, "no such parent"),
        (GitConfig { since_commit: Some("0".repeat(40)), ..repo.config() }, "is not in the repository"),
        (GitConfig { since_commit: Some(repo.id("HEAD:last.txt")), ..repo.config() }, "not a commit"),
        (GitConfig { exclude: names(&["{"]), ..repo.config() }, "`exclude`"),
    ] {
        let error = list(&config).await.unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[tokio::test]
async fn a_range_beyond_a_shallow_history_says_what_to_do() {
    let repo = branched();
    let from = format!("file://{}", repo.path.display());
    let shallow = Repo::with(&["clone", "-q", "--depth=2", &from]);
    let config = GitConfig { range: Some(format!("{}..", repo.id("main~3"))), ..shallow.config() };
    let error = list(&config).await.unwrap_err().to_string();
    assert!(error.contains("fetch more of its history"), "{error}");
}

#[tokio::test]
async fn staged_is_what_the_next_commit_brings() {
    let repo = Repo::new();
    let config = GitConfig { staged: true, ..repo.config() };
    assert_eq!(ids(&config).await, names(&[]), "no index yet");
    repo.write("first", "first");
    repo.git(&["add", "-A"]);
    assert_eq!(ids(&config).await, [repo.id(":first")], "no commit yet");
    repo.commit("first");
    assert_eq!(ids(&config).await, names(&[]));
    repo.write("first", "changed");
    repo.write("sub/new", "new");
    repo.write("copy", "first");
    repo.write("unstaged", "x");
    repo.git(&["add", "first", "sub", "copy"]);
    let mut expected = vec![repo.id(":first"), repo.id(":sub/new")];
    expected.sort_unstable();
    for version in ["2", "4"] {
        repo.git(&["update-index", "--index-version", version]);
        assert_eq!(ids(&config).await, expected, "index version {version}");
    }
    let config = GitConfig { exclude: names(&["sub/"]), ..config };
    assert_eq!(ids(&config).await, [repo.id(":first")]);
    repo.git(&["update-index", "--split-index"]);
    let error = list(&config).await.unwrap_err().to_string();
    assert!(error.contains("--no-split-index"), "{error}");
}

#[test]
fn a_hook_sees_what_is_committed_and_not_what_was_staged_before() {
    let repo = Repo::new();
    repo.write("file", "first");
    repo.commit("first");
    repo.write("file", "a secret");
    // What git tells a hook, and the index as it is then.
    let hook = repo.path.join(".git/hooks/pre-commit");
    repo.write(
        ".git/hooks/pre-commit",
        "#!/bin/sh\ncp \"$GIT_INDEX_FILE\" .git/saved; echo \"$GIT_INDEX_FILE\" > .git/named; exit 1\n",
    );
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let refused = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.com", "-C"])
        .arg(&repo.path)
        .args(["commit", "-qam", "x"])
        .status();
    assert!(!refused.unwrap().success());
    let named = repo.path.join(fs::read_to_string(repo.path.join(".git/named")).unwrap().trim());
    assert_ne!(named, repo.path.join(".git/index"));
    let secret = repo.git(&["hash-object", "file"]);
    fs::rename(repo.path.join(".git/saved"), &named).unwrap();
    let staged = |index: Option<&Path>| {
        let repository = Repository::open_with(&repo.path, true, index.map(Path::as_os_str)).unwrap();
        let mut ids = Vec::new();
        staged::each_entry(&repository, |entry| {
            ids.push(entry.id.to_string());
            Ok(())
        })
        .unwrap();
        ids
    };
    assert_eq!(staged(Some(&named)), [secret]);
    assert_eq!(staged(None), [repo.id("HEAD:file")]);
    // That of another repository is none of ours, and neither is one that is not there.
    let other = Repo::new();
    other.write("other", "other");
    other.commit("other");
    for index in [other.path.join(".git/index"), repo.path.join(".git/nothing")] {
        assert_eq!(staged(Some(&index)), [repo.id("HEAD:file")]);
    }
}

#[tokio::test]
async fn a_blob_is_left_out_only_when_all_its_paths_are() {
    let repo = Repo::new();
    repo.write("vendor/deep/only.txt", "only vendored");
    repo.write("vendor/both.txt", "both");
    repo.write("src/both.txt", "both");
    repo.write("src/own.txt", "own");
    repo.write("lib/vendor/kept.min.js", "minified");
    repo.commit("first");
    repo.write("vendor/deep/only.txt", "vendored again");
    repo.commit("second");
    let lost = repo.git(&["hash-object", "-w", "--stdin"]);
    let all = ids(&repo.config()).await;
    let without = |gone: &[&str]| {
        let gone: Vec<String> = gone.iter().map(|name| repo.id(name)).collect();
        all.iter().filter(|id| !gone.contains(id)).cloned().collect::<Vec<_>>()
    };
    let check = async |exclude: &[&str], paths: &[&str], expected: Vec<String>| {
        for refs in [names(&[]), names(&["main"])] {
            let expected: Vec<String> =
                expected.iter().filter(|id| refs.is_empty() || **id != lost).cloned().collect();
            let config = GitConfig { exclude: names(exclude), paths: names(paths), refs, ..repo.config() };
            assert_eq!(ids(&config).await, expected, "{config:?}");
            let records = list(&config).await.unwrap();
            let skipped = records.iter().filter(|record| record.kind == RecordKind::Skipped);
            assert!(skipped.clone().all(|record| record.reason == Some(Reason::Excluded)));
        }
    };
    check(&["/vendor/"], &[], without(&["HEAD:vendor/deep/only.txt", "HEAD~1:vendor/deep/only.txt"])).await;
    check(&["*.js", "!kept.*"], &[], all.clone()).await;
    check(&["both.txt"], &[], without(&["HEAD:src/both.txt"])).await;
    let only_src: Vec<String> = {
        let mut kept = vec![
            repo.id("HEAD"),
            repo.id("HEAD~1"),
            repo.id("HEAD:src/both.txt"),
            repo.id("HEAD:src/own.txt"),
        ];
        kept.sort_unstable();
        kept
    };
    check(&[], &["src/"], only_src.clone()).await;
    let no_both: Vec<String> =
        only_src.into_iter().filter(|id| *id != repo.id("HEAD:src/both.txt")).collect();
    check(&["both.txt"], &["src/"], no_both).await;
}

#[tokio::test]
async fn large_files_are_left_out_by_size() {
    let repo = Repo::new();
    repo.write("large", "x".repeat(2_000));
    repo.write("small", "x");
    repo.commit("files");
    let config = GitConfig { max_file_size: Some(1_000), ..repo.config() };
    let records = list(&config).await.unwrap();
    let large = records.iter().find(|record| record.name == repo.id("HEAD:large").as_bytes()).unwrap();
    assert_eq!((large.kind, large.reason, large.size), (RecordKind::Skipped, Some(Reason::TooLarge), 2_000));
    assert_eq!(ids(&config).await.len(), 2);
}
