//! Where a repository keeps what: its folders, its hash, and what it knows to be missing.
//!
//! Of a repository's configuration only the few settings are read without which its objects cannot be
//! understood. Includes are not followed, and nothing is ever run.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::error::GitError;
use super::files::{LARGE_FILE_MAX, read_file, small_file};
use super::id::{HashKind, ObjectId, ObjectKind};
use super::parse::{Commit, Tag, TreeEntry, tree_entries};
use super::remote::Mirror;
use super::store::ObjectStore;

pub(super) struct Repository {
    /// What is of this worktree alone: `HEAD`, the index.
    pub git_dir: PathBuf,
    /// What worktrees share: objects, references.
    pub common_dir: PathBuf,
    pub store: ObjectStore,
    /// References are in a table this release does not read.
    pub reftable: bool,
    /// Some objects are elsewhere, and were left there on purpose.
    pub partial: bool,
    /// Commits whose parents were not fetched, in order.
    shallow: Vec<ObjectId>,
    /// What keeps a mirror from being removed while it is read.
    pub mirror: Option<Mirror>,
}

impl Repository {
    /// The repository at this path: bare, a folder with a worktree, or a submodule's.
    pub fn open(path: &Path) -> Result<Repository, GitError> {
        let git_dir = git_dir(path)?;
        let common_dir = match small_file(&git_dir.join("commondir"))? {
            Some(text) => git_dir.join(path_of(&text)),
            None => git_dir.clone(),
        };
        let settings = Settings::read(&common_dir)?;
        let store = ObjectStore::open(common_dir.join("objects"), settings.hash)?;
        let promised = store.packs().iter().any(|pack| pack.path().with_extension("promisor").exists());
        let shallow = read_file(&common_dir.join("shallow"), LARGE_FILE_MAX)?.unwrap_or_default();
        let mut shallow: Vec<ObjectId> =
            shallow.split(|&byte| byte == b'\n').filter_map(ObjectId::from_hex).collect();
        shallow.sort_unstable();
        Ok(Repository {
            git_dir,
            common_dir,
            store,
            reftable: settings.reftable,
            partial: settings.partial || promised,
            shallow,
            mirror: None,
        })
    }

    /// Calls `with` with a commit; `None` where its absence is no fault.
    pub fn commit<T>(
        &self,
        id: &ObjectId,
        with: impl FnOnce(Commit<'_>) -> T,
    ) -> Result<Option<T>, GitError> {
        let Some(data) = self.object(id, ObjectKind::Commit)? else { return Ok(None) };
        let mut commit = Commit::parse(id, &data)?;
        if self.shallow.binary_search(id).is_ok() {
            commit.parents.clear();
        }
        Ok(Some(with(commit)))
    }

    /// Calls `each` with the entries of a tree. One whose absence is no fault has none.
    pub fn tree(
        &self,
        id: &ObjectId,
        mut each: impl FnMut(TreeEntry<'_>) -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        let Some(data) = self.object(id, ObjectKind::Tree)? else { return Ok(()) };
        tree_entries(*id, &data, self.store.hash).try_for_each(|entry| each(entry?))
    }

    /// What a tag leads to in the end, with the tags on the way.
    pub fn peel(&self, id: &ObjectId) -> Result<(Vec<ObjectId>, ObjectId, ObjectKind), GitError> {
        /// Tags of tags, at most.
        const TAGS_MAX: usize = 64;
        let (mut tags, mut id) = (Vec::new(), *id);
        loop {
            let object = self.store.read(&id)?;
            if object.kind != ObjectKind::Tag {
                return Ok((tags, id, object.kind));
            }
            if tags.len() >= TAGS_MAX {
                return Err(GitError::corrupt(format!("tag {id}"), "too many tags of tags"));
            }
            tags.push(id);
            id = Tag::parse(&id, &object.data)?.target;
        }
    }

    fn object(&self, id: &ObjectId, kind: ObjectKind) -> Result<Option<std::sync::Arc<Vec<u8>>>, GitError> {
        match self.store.read(id) {
            Ok(object) if object.kind == kind => Ok(Some(object.data)),
            Ok(object) => {
                let detail = format!("it should be a {kind:?} and is a {:?}", object.kind);
                Err(GitError::corrupt(format!("object {id}"), detail.to_lowercase()))
            }
            Err(GitError::Missing(_)) if self.partial => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn git_dir(path: &Path) -> Result<PathBuf, GitError> {
    let inside = path.join(".git");
    match fs::metadata(&inside) {
        Ok(metadata) if metadata.is_dir() => return Ok(inside),
        Ok(_) => {
            let text = small_file(&inside)?.unwrap_or_default();
            let Some(target) = text.strip_prefix(b"gitdir:") else {
                return Err(GitError::corrupt(inside.display(), "it names no folder of a repository"));
            };
            return Ok(path.join(path_of(target)));
        }
        Err(_) => {}
    }
    fs::metadata(path).map_err(|error| GitError::io(path, error))?;
    if path.join("objects").is_dir() && path.join("HEAD").exists() {
        return Ok(path.to_path_buf());
    }
    Err(GitError::Configuration(format!(
        "`path`: `{}` is no git repository; give the folder that has `.git`, or a bare one",
        path.display()
    )))
}

fn path_of(text: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(text.trim_ascii()))
}

/// What a repository's configuration says about its objects.
struct Settings {
    hash: HashKind,
    reftable: bool,
    partial: bool,
}

impl Settings {
    fn read(common_dir: &Path) -> Result<Settings, GitError> {
        let path = common_dir.join("config");
        let text = small_file(&path)?.unwrap_or_default();
        let mut settings = Settings { hash: HashKind::Sha1, reftable: false, partial: false };
        let mut section = String::new();
        for line in String::from_utf8_lossy(&text).lines() {
            let line = line.trim();
            if let Some(name) = line.strip_prefix('[') {
                section = name.split([']', ' ']).next().unwrap_or_default().to_ascii_lowercase();
                continue;
            }
            let (name, value) = line.split_once('=').unwrap_or((line, "true"));
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().trim_matches('"'));
            match (section.as_str(), name.as_str()) {
                ("extensions", "objectformat") => {
                    settings.hash = match value.to_ascii_lowercase().as_str() {
                        "sha1" => HashKind::Sha1,
                        "sha256" => HashKind::Sha256,
                        other => {
                            let detail = format!("{}: objects named by `{other}`", path.display());
                            return Err(GitError::Unsupported(detail));
                        }
                    }
                }
                ("extensions", "refstorage") => settings.reftable = value.eq_ignore_ascii_case("reftable"),
                ("extensions", "partialclone") => settings.partial = true,
                ("remote", "promisor") => settings.partial |= value.eq_ignore_ascii_case("true"),
                _ => {}
            }
        }
        Ok(settings)
    }
}
