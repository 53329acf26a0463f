//! What belongs to a repository and is not in it is named, once, and only where the scan asks for it.

use super::*;

/// What stands for something that is not here, with the reason that opening it tells.
async fn gaps(config: &GitConfig) -> Vec<(String, Reason)> {
    let connector = connector(config);
    let records = list_container(connector.as_ref(), "").await.unwrap();
    let names = records.into_iter().map(|record| String::from_utf8(record.name).unwrap());
    let gaps = names.filter(|name| ObjectId::from_hex(name.as_bytes()).is_none() && name != "worktree");
    gaps.map(|name| (name.clone(), read(connector.as_ref(), &name).unwrap_err().reason)).collect()
}

fn gap(name: &str, reason: Reason) -> Vec<(String, Reason)> {
    vec![(name.to_owned(), reason)]
}

#[tokio::test]
async fn history_that_was_not_fetched() {
    let origin = Repo::new();
    origin.fill(6);
    let from = format!("file://{}", origin.path.display());
    let cut = gap("shallow history", Reason::ShallowHistory);
    let shallow = Repo::with(&["clone", "-q", "--depth=3", &from]);
    let config = |range: &str| GitConfig { range: Some(range.to_owned()), ..shallow.config() };
    assert_eq!(gaps(&shallow.config()).await, cut);
    assert_eq!(gaps(&GitConfig { refs: vec!["main".into()], ..shallow.config() }).await, cut);
    assert_eq!(gaps(&config("main~1..main")).await, [], "all that was asked for is here");
    assert_eq!(gaps(&GitConfig { staged: true, ..shallow.config() }).await, []);
    // As a remote it is cut as well.
    let place = tempfile::tempdir().unwrap();
    let remote =
        GitConfig { url: Some(format!("file://{}", shallow.path.display())), ..GitConfig::default() };
    let surroundings = Surroundings { own_state: Some(place.path().to_owned()), ..Surroundings::default() };
    let mirror = GitFactory.create(&serde_json::to_value(&remote).unwrap(), &surroundings).unwrap();
    let records = list_container(mirror.as_ref(), "").await.unwrap();
    assert_eq!(records.iter().filter(|record| record.name == b"shallow history").count(), 1);
    shallow.git(&["fetch", "-q", "--unshallow"]);
    assert_eq!(gaps(&shallow.config()).await, []);
}

#[tokio::test]
async fn objects_that_were_left_at_the_remote() {
    let origin = Repo::new();
    origin.fill(6);
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    let from = format!("file://{}", origin.path.display());
    let partial = Repo::with(&["clone", "-q", "--bare", "--filter=blob:none", &from]);
    assert_eq!(gaps(&partial.config()).await, gap("partial clone", Reason::PartialClone));
    let all = Repo::with(&["clone", "-q", "--bare", "--filter=blob:limit=1g", &from]);
    assert_eq!(gaps(&all.config()).await, [], "nothing was left there");
}

#[tokio::test]
async fn repositories_of_submodules() {
    let inner = Repo::new();
    inner.fill(2);
    let outer = Repo::new();
    outer.write("file", "outer");
    let first = outer.commit("outer");
    for path in ["vendor/inner", "inner"] {
        outer.git(&["submodule", "-q", "add", inner.path.to_str().unwrap(), path]);
        outer.commit(path);
    }
    outer.git(&["submodule", "-q", "add", inner.path.to_str().unwrap(), "staged"]);
    let submodule = |path: &str| (format!("submodule {path}"), Reason::SubmoduleHistory);
    assert_eq!(gaps(&outer.config()).await, [submodule("inner"), submodule("vendor/inner")]);
    let with_files = GitConfig { uncommitted: true, ..outer.config() };
    let all = [submodule("inner"), submodule("staged"), submodule("vendor/inner")];
    assert_eq!(gaps(&with_files).await, all);
    let excluding = GitConfig { exclude: vec!["vendor/".into()], ..outer.config() };
    assert_eq!(gaps(&excluding).await, [submodule("inner")]);
    let before = GitConfig { refs: vec![first], ..outer.config() };
    assert_eq!(gaps(&before).await, []);
}

/// A pointer of Git LFS, and where its content would be.
fn pointer(repo: &Repo, content: &[u8]) -> (String, PathBuf) {
    let digest = ring::digest::digest(&ring::digest::SHA256, content);
    let oid: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let text =
        format!("version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {}\n", content.len());
    let path = repo.path.join(".git/lfs/objects").join(&oid[..2]).join(&oid[2..4]).join(&oid);
    (text, path)
}

#[tokio::test]
async fn content_that_git_lfs_keeps() {
    let repo = Repo::new();
    let (here, path) =
        pointer(&repo, b"content that is here, and longer than its pointer: ".repeat(9).as_slice());
    let (absent, _) = pointer(&repo, b"content that is not");
    repo.write("here.bin", &here);
    repo.write("absent.bin", &absent);
    repo.commit("large files");
    let content = b"content that is here, and longer than its pointer: ".repeat(9);
    let record = || async {
        let id = repo.id("main:here.bin");
        let records = list(&repo.config()).await.unwrap();
        records.into_iter().find(|record| record.name == id.as_bytes()).unwrap()
    };
    let connector = connector(&repo.config());
    let before = record().await;
    assert_eq!(read(connector.as_ref(), &repo.id("main:here.bin")).unwrap(), here.as_bytes());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, &content).unwrap();
    let after = record().await;
    assert_ne!(before.marks, after.marks, "what was scanned without its content is scanned again");
    assert_eq!((before.size, after.size), (here.len() as u64, content.len() as u64));
    assert_eq!(read(connector.as_ref(), &repo.id("main:here.bin")).unwrap(), content);
    // What is not here stays a pointer, which the scan recognises.
    assert_eq!(read(connector.as_ref(), &repo.id("main:absent.bin")).unwrap(), absent.as_bytes());
    let small = GitConfig { max_file_size: Some(300), ..repo.config() };
    let records = list(&small).await.unwrap();
    let reasons: Vec<Reason> = records.into_iter().filter_map(|record| record.reason).collect();
    assert_eq!(reasons, [Reason::TooLarge]);
    // Where the repository's own files are scanned it is one of them.
    let with_files = super::connector(&GitConfig { uncommitted: true, ..repo.config() });
    let own = format!("worktree/{}", path.strip_prefix(&repo.path).unwrap().display());
    assert_eq!(read(with_files.as_ref(), &own).unwrap(), content);
    assert_eq!(read(with_files.as_ref(), &repo.id("main:here.bin")).unwrap(), b"");
}
