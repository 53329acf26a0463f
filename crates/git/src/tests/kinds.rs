//! What paths make of blobs, compared with every path that git says they have.

use super::*;

/// By blob, what its record says of its paths.
async fn kinds(config: &GitConfig) -> BTreeMap<String, PathKind> {
    let connector = connector(config);
    let records = list_container(connector.as_ref(), "").await.unwrap();
    let kind = |record: UnitRecord| {
        let object = ListedObject::in_container(&ObjectKey::default(), &record);
        (object.key.to_string(), connector.path_kind(&object))
    };
    records.into_iter().map(kind).collect()
}

/// The same from git: of all objects that are not trees, with the paths they have in these commits.
fn expected(repo: &Repo, commits: &[&str]) -> BTreeMap<String, PathKind> {
    let mut kinds: BTreeMap<String, Vec<PathKind>> =
        everything(repo).into_keys().map(|id| (id, Vec::new())).collect();
    for commit in repo.git(&[&["rev-list"], commits].concat()).lines() {
        for line in repo.git(&["ls-tree", "-r", commit]).lines() {
            let (head, path) = line.split_once('\t').unwrap();
            let id = head.rsplit(' ').next().unwrap();
            kinds.entry(id.to_owned()).or_default().push(PathKind::of(path.as_bytes()));
        }
    }
    let every = |kinds: &[PathKind], is: fn(&PathKind) -> bool| !kinds.is_empty() && kinds.iter().all(is);
    let joined = |kinds: Vec<PathKind>| PathKind {
        code: every(&kinds, |kind| kind.code),
        sample: every(&kinds, |kind| kind.sample),
    };
    kinds.into_iter().map(|(id, kinds)| (id, joined(kinds))).collect()
}

/// Folders and files that come, go and move into others, and branches.
fn moved() -> Repo {
    let repo = Repo::new();
    for (path, content) in [
        ("src/main.c", "one"),
        ("src/deep/er/more.c", "two"),
        ("src/deep/er/data.bin", "three"),
        ("src/deep/mail.txt", "four"),
        ("src/deep.txt", "five"),
        ("tests/mail.txt", "four"),
        ("tests/deep/main.c", "one"),
        ("tests/only.txt", "nine"),
        ("x", "six"),
        ("x.c", "seven"),
    ] {
        repo.write(path, content);
    }
    repo.commit("first");
    repo.git(&["mv", "src/deep", "docs"]);
    repo.commit("a folder moves to where all is documentation");
    repo.git(&["mv", "docs", "elsewhere"]);
    repo.git(&["mv", "x", "tests/x"]);
    repo.write("x/y/one.txt", "one");
    repo.commit("and on, and a file becomes a folder");
    repo.git(&["checkout", "-q", "-b", "side", "HEAD~2"]);
    repo.write("seven.txt", "seven");
    repo.write("only.c", "eight");
    repo.commit("side");
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["merge", "-q", "--no-ff", "-m", "merge", "side"]);
    repo
}

#[tokio::test]
async fn a_blob_is_what_all_its_paths_make_of_it() {
    let repo = moved();
    fs::write(repo.path.join(".git/lost.c"), "no commit has it").unwrap();
    repo.git(&["hash-object", "-w", ".git/lost.c"]);
    for packed in [false, true] {
        if packed {
            repo.git(&["gc", "-q"]);
        }
        let kinds = kinds(&repo.config()).await;
        assert_eq!(kinds, expected(&repo, &["--all"]));
        let code = kinds.values().filter(|kind| kind.code).count();
        let sample = kinds.values().filter(|kind| kind.sample).count();
        assert!(code > 0 && sample > 0 && code < kinds.len(), "{kinds:?}");
    }
}

#[tokio::test]
async fn only_the_paths_of_what_is_chosen_count() {
    let repo = moved();
    let config = GitConfig { range: Some("HEAD~1..side".to_owned()), ..repo.config() };
    let all = expected(&repo, &["side"]);
    let chosen = kinds(&config).await;
    assert!(!chosen.is_empty());
    assert!(chosen.iter().all(|(id, kind)| all[id] == *kind), "{chosen:?}");
    repo.write("docs/staged.txt", "staged");
    repo.write("src/staged.c", "staged, too");
    repo.write("staged.txt", "staged, too");
    repo.git(&["add", "-A"]);
    let config = GitConfig { staged: true, ..repo.config() };
    let [document, source] = ["docs/staged.txt", "src/staged.c"].map(|path| repo.id(&format!(":{path}")));
    let (code, neither) = (PathKind { code: true, sample: false }, PathKind::default());
    assert_eq!(kinds(&config).await, BTreeMap::from([(document, code), (source, neither)]));
}

#[tokio::test]
async fn a_new_path_is_a_new_version() {
    let repo = Repo::new();
    repo.write("a.c", "one");
    repo.write("b.c", "two");
    repo.commit("first");
    let before = list(&repo.config()).await.unwrap();
    repo.write("c.c", "one");
    repo.write("b.txt", "two");
    repo.commit("second");
    let after = list(&repo.config()).await.unwrap();
    let changed = |old: &UnitRecord| {
        let new = after.iter().find(|new| new.name == old.name).unwrap();
        (new.marks != old.marks).then(|| String::from_utf8(old.name.clone()).unwrap())
    };
    let changed: Vec<String> = before.iter().filter_map(changed).collect();
    assert_eq!(
        changed,
        [repo.id("HEAD:b.c")],
        "one of the paths of the other is new, too, and of the same kind"
    );
}

#[tokio::test]
async fn where_a_tree_is_gone_nothing_is_known() {
    let repo = moved();
    let tree = repo.id("side^{tree}:tests");
    let (folder, name) = tree.split_at(2);
    fs::remove_file(repo.path.join(".git/objects").join(folder).join(name)).unwrap();
    let kinds = kinds(&repo.config()).await;
    assert!(kinds.len() > 10 && kinds.values().all(|kind| *kind == PathKind::default()), "{kinds:?}");
}
