//! The connector on repositories that git itself made, judged by what git says about them.

mod conformance;
mod delta_reuse;
mod gaps;
mod hostile;
mod http;
mod kinds;
mod origins;
mod remote;
mod selection;
mod shapes;
mod worktree;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use domesday_connector::conformance::open;
use domesday_connector::{Connector, ConnectorError, ConnectorFactory, Surroundings};
use domesday_content::ObjectError;
use domesday_model::{ObjectKey, Reason, RecordKind, TrustContent, UnitRecord};
use tempfile::TempDir;

use super::*;
use crate::error::GitError;

/// Entries asked for at once: few, so that listings have several batches.
const BATCH: usize = 7;

/// A repository that git made, in a folder of its own.
struct Repo {
    _folder: Option<TempDir>,
    path: PathBuf,
    /// Commits made so far; each is a minute after the last.
    commits: std::cell::Cell<u64>,
}

impl Repo {
    fn new() -> Repo {
        Repo::with(&["init", "-q", "-b", "main"])
    }

    /// A repository made by this command, to which the path is added.
    fn with(command: &[&str]) -> Repo {
        let folder = tempfile::tempdir().unwrap();
        let repo = Repo::at(folder.path().join("repo"));
        git(folder.path(), &[command, &[repo.path.to_str().unwrap()]].concat(), 0);
        Repo { _folder: Some(folder), ..repo }
    }

    fn at(path: PathBuf) -> Repo {
        Repo { _folder: None, path, commits: 0.into() }
    }

    fn git(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.git_bytes(arguments)).unwrap().trim_end().to_owned()
    }

    fn git_bytes(&self, arguments: &[&str]) -> Vec<u8> {
        git(&self.path, arguments, self.commits.get())
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Commits everything as it is; the commit's id.
    fn commit(&self, message: &str) -> String {
        self.commits.set(self.commits.get() + 1);
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// A history of a file that grows and changes, with others beside it and tags of both kinds.
    fn fill(&self, commits: usize) {
        let mut lines: Vec<String> = (0..400).map(|line| format!("line {line} {}", line * 7919)).collect();
        for commit in 0..commits {
            lines[commit * 13 % 400] = format!("changed in {commit}");
            self.write("src/main.txt", lines.join("\n"));
            self.write(&format!("docs/note-{}.md", commit % 5), format!("note {commit}\n"));
            self.commit(&format!("commit {commit}"));
        }
        self.git(&["tag", "light"]);
        self.git(&["tag", "-a", "-m", "an annotated tag", "heavy"]);
    }

    fn config(&self) -> GitConfig {
        GitConfig::new(self.path.clone())
    }

    /// The id of what `name` means.
    fn id(&self, name: &str) -> String {
        self.git(&["rev-parse", name])
    }
}

fn git(folder: &Path, arguments: &[&str], minute: u64) -> Vec<u8> {
    let date = format!("{} +0000", 1_700_000_000 + 60 * minute);
    let output = Command::new("git")
        .args(["-c", "protocol.file.allow=always"])
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs([("GIT_AUTHOR_NAME", "A U Thor"), ("GIT_AUTHOR_EMAIL", "author@example.com")])
        .envs([("GIT_COMMITTER_NAME", "C O Mitter"), ("GIT_COMMITTER_EMAIL", "committer@example.com")])
        .env("GIT_AUTHOR_DATE", &date)
        .env("GIT_COMMITTER_DATE", &date)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Of a folder whose content may lead out of it, as that of a folder of this machine may.
fn connector(config: &GitConfig) -> Arc<dyn Connector> {
    connector_trusting(config, TrustContent::Yes)
}

fn connector_trusting(config: &GitConfig, trust_content: TrustContent) -> Arc<dyn Connector> {
    let configuration = serde_json::to_value(config).unwrap();
    let surroundings = Surroundings { trust_content, ..Surroundings::default() };
    GitFactory.create(&configuration, &surroundings).unwrap()
}

async fn list(config: &GitConfig) -> Result<Vec<UnitRecord>, ConnectorError> {
    list_container(connector(config).as_ref(), "").await
}

async fn list_container(connector: &dyn Connector, key: &str) -> Result<Vec<UnitRecord>, ConnectorError> {
    let mut listing = connector.list(&ObjectKey::new(key), None).await?;
    let mut records = Vec::new();
    loop {
        let batch = listing.next_batch(BATCH).await?;
        if batch.is_empty() {
            return Ok(records);
        }
        assert!(batch.len() <= BATCH);
        records.extend(batch);
    }
}

/// The ids of a listing in order, each of which must be there once.
async fn ids(config: &GitConfig) -> Vec<String> {
    ids_of(connector(config).as_ref()).await
}

async fn ids_of(connector: &dyn Connector) -> Vec<String> {
    let records = list_container(connector, "").await.unwrap();
    let files = records.into_iter().filter(|record| record.kind == RecordKind::File);
    let mut ids: Vec<String> = files.map(|record| String::from_utf8(record.name).unwrap()).collect();
    ids.sort_unstable();
    assert!(ids.is_sorted_by(|a, b| a < b), "an object is listed twice");
    ids
}

fn read(connector: &dyn Connector, key: &str) -> Result<Vec<u8>, ObjectError> {
    let mut opened = open(connector, &ObjectKey::new(key))?;
    let mut bytes = Vec::new();
    opened.reader.read_to_end(&mut bytes)?;
    assert_eq!(opened.size, Some(bytes.len() as u64));
    if let Some(random) = opened.random {
        assert_eq!(random.size().unwrap(), bytes.len() as u64);
    }
    Ok(bytes)
}

/// Lists and reads everything, and compares it with what git says: the same objects but trees, with the
/// same sizes and contents. How many there are. What stands for something that is not here is left out.
async fn check_everything(repo: &Repo) -> usize {
    let expected = everything(repo);
    let config = repo.config();
    let listed: BTreeMap<String, u64> = list(&config)
        .await
        .unwrap()
        .into_iter()
        .filter(|record| Gap::of_key(&record.name).is_none())
        .map(|record| (String::from_utf8(record.name).unwrap(), record.size))
        .collect();
    let sizes = expected.iter().map(|(id, content)| (id.clone(), content.len() as u64)).collect();
    assert_eq!(listed, sizes);
    let connector = connector(&config);
    for (id, content) in &expected {
        assert_eq!(&read(connector.as_ref(), id).unwrap(), content, "{id}");
    }
    expected.len()
}

/// Every object but trees, as git reads it.
fn everything(repo: &Repo) -> BTreeMap<String, Vec<u8>> {
    let said = repo.git_bytes(&["--no-replace-objects", "cat-file", "--batch-all-objects", "--batch"]);
    let (mut objects, mut rest) = (BTreeMap::new(), said.as_slice());
    while !rest.is_empty() {
        let end = rest.iter().position(|&byte| byte == b'\n').unwrap();
        let line = std::str::from_utf8(&rest[..end]).unwrap();
        let [id, kind, size] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (content, after) = rest[end + 1..].split_at(size.parse().unwrap());
        if kind != "tree" {
            objects.insert(id.to_owned(), content.to_vec());
        }
        rest = &after[1..];
    }
    objects
}

/// Bytes that do not compress.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}
