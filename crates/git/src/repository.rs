//! Where a repository keeps what: its folders, its hash, and what it knows to be missing.
//!
//! Of a repository's configuration only the few settings are read without which its objects cannot be
//! understood. Includes are not followed, and nothing is ever run.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::{env, fs};

use super::bounds::Bounds;
use super::error::GitError;
use super::files::{LARGE_FILE_MAX, read_file, small_file};
use super::id::{HashKind, ObjectId, ObjectKind};
use super::parse::{Commit, Tag, TreeEntry, tree_entries};
use super::reftable::Table;
use super::remote::Mirror;
use super::store::{Bytes, Folders, ObjectStore};

/// The variable in which git names the index to its hooks.
const INDEX_VARIABLE: &str = "GIT_INDEX_FILE";

pub(super) struct Repository {
    /// What is of this worktree alone: `HEAD`, the index.
    pub git_dir: PathBuf,
    /// What worktrees share: objects, references.
    pub common_dir: PathBuf,
    /// What is staged in this worktree.
    pub index: PathBuf,
    /// The folder that was given: with its worktree, or itself when it is bare. A mirror has none of its own.
    pub root: Option<PathBuf>,
    pub store: ObjectStore,
    /// References are in tables, those that worktrees share in this one: read when one is asked for.
    pub reftable: Option<OnceLock<Table>>,
    /// Some objects are elsewhere, and were left there on purpose.
    pub partial: bool,
    /// Commits whose parents were not fetched, in order.
    shallow: Vec<ObjectId>,
    /// What keeps a mirror from being removed while it is read.
    _mirror: Option<Mirror>,
}

impl Repository {
    /// The repository at this path: bare, a folder with a worktree, or a submodule's. Unless links are followed, it
    /// is all below the path.
    pub fn open(path: &Path, follow_links_out: bool) -> Result<Repository, GitError> {
        Repository::open_with(path, follow_links_out, env::var_os(INDEX_VARIABLE).as_deref())
    }

    /// The same with the index that this names, if it is one of the repository's own.
    pub fn open_with(
        path: &Path,
        follow_links_out: bool,
        index: Option<&OsStr>,
    ) -> Result<Repository, GitError> {
        let bounds = Bounds::new(path, follow_links_out)?;
        let (git_dir, _) = git_dir(path, &bounds)?;
        let common_dir = common_dir(&git_dir, &bounds)?;
        bounds.check_all(&git_dir)?;
        bounds.check_all(&common_dir)?;
        let settings = Settings::read(&common_dir)?;
        let store = ObjectStore::open(&common_dir.join("objects"), settings.hash, &bounds)?;
        let promised = store.packs().iter().any(|pack| pack.path().with_extension("promisor").exists());
        let shallow = read_file(&common_dir.join("shallow"), LARGE_FILE_MAX)?.unwrap_or_default();
        let mut shallow: Vec<ObjectId> =
            shallow.split(|&byte| byte == b'\n').filter_map(ObjectId::from_hex).collect();
        shallow.sort_unstable();
        Ok(Repository {
            index: index.and_then(|name| named_index(&git_dir, name)).unwrap_or(git_dir.join("index")),
            git_dir,
            common_dir,
            root: Some(path.to_path_buf()),
            store,
            reftable: settings.reftable.then(OnceLock::new),
            partial: settings.partial || promised,
            shallow,
            _mirror: None,
        })
    }

    pub fn of_mirror(mirror: Mirror) -> Result<Repository, GitError> {
        let repository = Repository::open(mirror.path(), true)?;
        Ok(Repository { root: None, _mirror: Some(mirror), ..repository })
    }

    /// Whether its history begins where it was cut.
    pub fn is_shallow(&self) -> bool {
        !self.shallow.is_empty()
    }

    /// The commits at which its history was cut: those of which a parent is not here.
    pub fn cut_commits(&self) -> Result<Vec<ObjectId>, GitError> {
        let mut cut = Vec::new();
        for id in &self.shallow {
            // What is named and not here, or damaged, says nothing of its parents.
            let Some(Ok(object)) = self.store.find_known(id)?.map(|_| self.store.read(id)) else { continue };
            let Ok(commit) = Commit::parse(id, &object.data) else { continue };
            for parent in commit.parents {
                if self.store.find_known(&parent)?.is_none() {
                    cut.push(*id);
                    break;
                }
            }
        }
        Ok(cut)
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
        let Some(data) = self.tree_data(id)? else { return Ok(()) };
        tree_entries(*id, &data, self.store.hash).try_for_each(|entry| each(entry?))
    }

    /// A tree as it is kept; `None` where its absence is no fault.
    pub fn tree_data(&self, id: &ObjectId) -> Result<Option<Arc<Bytes>>, GitError> {
        self.object(id, ObjectKind::Tree)
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

    fn object(&self, id: &ObjectId, kind: ObjectKind) -> Result<Option<Arc<Bytes>>, GitError> {
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

/// What a repository's root looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A folder with `.git`: a clone, a linked worktree or a submodule.
    Worktree,
    /// The repository itself, without files beside it.
    Bare,
}

/// Whether this folder is the root of a repository, and of which shape. Cheap: a few files are looked at. One whose
/// database is outside of the folder is none where that may not be followed.
pub fn discover(path: &Path, follow_links_out: bool) -> Option<Shape> {
    let bounds = Bounds::new(path, follow_links_out).ok()?;
    let (git_dir, shape) = git_dir(path, &bounds).ok()?;
    let common_dir = common_dir(&git_dir, &bounds).ok()?;
    bounds.check(&common_dir.join("objects")).ok()?;
    is_repository(&git_dir, &common_dir).then_some(shape)
}

/// Where the repository at this path leads to outside of it: its folder, what worktrees share, the objects it borrows.
pub fn leads_out(path: &Path) -> Vec<PathBuf> {
    let folders = || {
        let bounds = Bounds::new(path, true)?;
        let (git_dir, _) = git_dir(path, &bounds)?;
        let common_dir = common_dir(&git_dir, &bounds)?;
        let objects = Folders::find(&common_dir.join("objects"), &bounds)?;
        Ok::<_, GitError>([git_dir, common_dir].into_iter().chain(objects.paths))
    };
    let (Ok(root), Ok(folders)) = (fs::canonicalize(path), folders()) else { return Vec::new() };
    let mut outside: Vec<PathBuf> = folders.filter_map(|folder| fs::canonicalize(folder).ok()).collect();
    outside.retain(|folder| !folder.starts_with(&root));
    outside.sort_unstable();
    outside.dedup();
    outside
}

fn is_repository(git_dir: &Path, common_dir: &Path) -> bool {
    // `HEAD` may be a link, and may lead nowhere yet.
    fs::symlink_metadata(git_dir.join("HEAD")).is_ok() && common_dir.join("objects").is_dir()
}

/// Where the repository at this path keeps what is its own.
fn git_dir(path: &Path, bounds: &Bounds) -> Result<(PathBuf, Shape), GitError> {
    let inside = path.join(".git");
    bounds.check(&inside)?;
    match fs::metadata(&inside) {
        Ok(metadata) if metadata.is_dir() => return Ok((inside, Shape::Worktree)),
        Ok(_) => {
            let text = small_file(&inside)?.unwrap_or_default();
            let Some(target) = text.strip_prefix(b"gitdir:") else {
                return Err(GitError::corrupt(inside.display(), "it names no folder of a repository"));
            };
            let target = path.join(path_of(target));
            bounds.check(&target)?;
            return Ok((target, Shape::Worktree));
        }
        Err(_) => {}
    }
    fs::metadata(path).map_err(|error| GitError::io(path, error))?;
    if is_repository(path, path) {
        return Ok((path.to_path_buf(), Shape::Bare));
    }
    Err(GitError::Configuration(format!(
        "`path`: `{}` is no git repository; give the folder that has `.git`, or a bare one",
        path.display()
    )))
}

/// The index that git tells its hooks of: before `git commit -a`, what is to be committed is in no other.
fn named_index(git_dir: &Path, name: &OsStr) -> Option<PathBuf> {
    let index = fs::canonicalize(name).ok()?;
    (index.parent() == Some(fs::canonicalize(git_dir).ok()?.as_path())).then_some(index)
}

fn common_dir(git_dir: &Path, bounds: &Bounds) -> Result<PathBuf, GitError> {
    let named = git_dir.join("commondir");
    bounds.check(&named)?;
    let Some(text) = small_file(&named)? else { return Ok(git_dir.to_path_buf()) };
    let target = git_dir.join(path_of(&text));
    bounds.check(&target)?;
    Ok(target)
}

fn path_of(text: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(text.trim_ascii()))
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
