//! The files of a repository's folder that are not scanned as objects: changed ones, such that git does not track,
//! ignored or not, and the repository's own.
//!
//! The folder is a container beside the objects, listed one level at a time under keys that begin with [`WORKTREE`]
//! and a slash, which no id has. A file is left out only when an object with its content is scanned, see
//! [`covered`](super::covered). A folder `.git` is a folder: its configuration, hooks and logs are files. Only what is
//! listed as objects is left out of it, and objects of other repositories, which are named. Files of submodules and
//! of other repositories inside are listed whole. Links are never followed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use domesday_connector::{ConnectorError, Listing, RegularFile};
use domesday_content::ObjectError;
use domesday_model::{ObjectKey, Reason, RecordKind, UnitRecord, VersionMarks};
use domesday_scheduler::OpenBytes;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, openat, openat2, readlinkat, statat,
};
use rustix::io::Errno;

use super::conditions::Conditions;
use super::config::GitConfig;
use super::covered::Covered;
use super::error::GitError;
use super::listing::{blocking, cut_short, record};
use super::storage::StorageFile;

/// The container of the folder's files.
pub const WORKTREE: &[u8] = b"worktree";
/// The folder of the repository inside its working tree.
const GIT_FOLDER: &[u8] = b".git/";
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// The path inside the working tree that a key means, if it means one.
pub(super) fn path_of(key: &ObjectKey) -> Option<&[u8]> {
    match key.as_bytes().strip_prefix(WORKTREE)? {
        [] => Some(&[]),
        [b'/', path @ ..] if !path.is_empty() => Some(path),
        _ => None,
    }
}

/// A working tree, open.
pub(super) struct Worktree {
    root: OwnedFd,
    conditions: Conditions,
    max_file_size: Option<u64>,
    /// Device and inode of Domesday's own state folder.
    own_state: Option<(u64, u64)>,
    /// Its path, links resolved.
    path: PathBuf,
    covered: Arc<Covered>,
}

impl Worktree {
    pub fn open(
        root: &Path,
        config: &GitConfig,
        own_state: Option<&Path>,
        covered: Arc<Covered>,
    ) -> Result<Worktree, GitError> {
        let identity = |path| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
        Ok(Worktree {
            root: open_root(root).map_err(|error| GitError::io(root, error))?,
            conditions: Conditions::new(config)?,
            max_file_size: config.max_file_size,
            own_state: own_state.and_then(identity),
            path: std::fs::canonicalize(root).map_err(|error| GitError::io(root, error))?,
            covered,
        })
    }

    /// Begins to list one folder, one level deep.
    pub fn list(self, folder: &[u8]) -> Result<FolderListing, ConnectorError> {
        let failed = |error: &io::Error| ConnectorError::io("list", error);
        let path = if folder.is_empty() { b"." } else { folder };
        let opened = open_below(self.root.as_fd(), path, OFlags::RDONLY | OFlags::DIRECTORY);
        let opened = opened.map_err(|error| failed(&error))?;
        let entries = opened.try_clone().map_err(|error| failed(&error))?;
        let entries = Dir::new(entries).map_err(|errno| failed(&errno.into()))?;
        let prefix = if folder.is_empty() { Vec::new() } else { [folder, b"/"].concat() };
        Ok(FolderListing(Some(Folder { tree: self, prefix, folder: opened, entries })))
    }
}

/// Opens a file of the working tree at `root`.
pub(super) fn open_file(root: &Path, path: &[u8]) -> Result<OpenBytes, ObjectError> {
    // A fifo put in a file's place must not hang the scan.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = open_root(root).and_then(|root| open_below(root.as_fd(), path, flags));
    let file = opened.map_err(|error| {
        let error = ConnectorError::io("open", &error);
        ObjectError::new(error.reason(), error.to_string())
    })?;
    RegularFile::new(File::from(file)).open()
}

fn open_root(root: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, root.as_os_str().as_bytes(), flags, Mode::empty())?)
}

/// Opens without passing through any link, so that a tree that changes cannot lead elsewhere.
fn open_below(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::BENEATH;
    match openat2(root, path, flags, Mode::empty(), resolve) {
        // A kernel or sandbox without openat2: at least the last step is no link.
        Err(Errno::NOSYS | Errno::PERM) if !path.split(|&byte| byte == b'/').any(|part| part == b"..") => {
            Ok(openat(root, path, flags | OFlags::NOFOLLOW, Mode::empty())?)
        }
        Err(Errno::LOOP) => {
            Err(io::Error::new(io::ErrorKind::NotADirectory, "a symbolic link has taken its place"))
        }
        opened => Ok(opened?),
    }
}

/// A folder of the working tree being listed; `None` after a batch that failed or was not waited for.
pub(super) struct FolderListing(Option<Folder>);

struct Folder {
    tree: Worktree,
    /// Its path in the tree, with the slash that ends it.
    prefix: Vec<u8>,
    folder: OwnedFd,
    entries: Dir,
}

#[async_trait]
impl Listing for FolderListing {
    async fn next_batch(&mut self, max: usize) -> Result<Vec<UnitRecord>, ConnectorError> {
        let mut folder = self.0.take().ok_or_else(cut_short)?;
        let (folder, batch) = blocking(move || {
            let batch = folder.next_batch(max);
            (folder, batch)
        })
        .await?;
        let batch = batch.map_err(|errno| ConnectorError::io("list", &errno.into()))?;
        self.0 = Some(folder);
        Ok(batch)
    }
}

impl Folder {
    fn next_batch(&mut self, max: usize) -> rustix::io::Result<Vec<UnitRecord>> {
        let mut records = Vec::new();
        while records.len() < max
            && let Some(entry) = self.entries.read()
        {
            let entry = entry?;
            match entry.file_name().to_bytes() {
                b"." | b".." => {}
                name => records.extend(self.record(name.to_vec())),
            }
        }
        Ok(records)
    }

    fn record(&self, name: Vec<u8>) -> Option<UnitRecord> {
        let Ok(stat) = statat(&self.folder, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) else {
            // Gone or out of reach between the listing and now: opening it tells why.
            return Some(record(name, 0, VersionMarks::default(), None));
        };
        let path = [self.prefix.as_slice(), &name].concat();
        let kind = FileType::from_raw_mode(stat.st_mode);
        let reason = match kind {
            FileType::Symlink if self.is_covered_link(&path, &name) => return None,
            FileType::RegularFile | FileType::Directory if self.is_listed_as_objects(&name, kind) => {
                return None;
            }
            _ if !self.keeps(&path, kind.is_dir()) => Some(Reason::Excluded),
            FileType::Directory if self.tree.own_state == Some((stat.st_dev, stat.st_ino)) => {
                Some(Reason::OwnState)
            }
            FileType::Directory => {
                return Some(UnitRecord { kind: RecordKind::Directory, ..of_stat(name, &stat, None) });
            }
            FileType::RegularFile => {
                let size = stat.st_size.cast_unsigned();
                if self.tree.max_file_size.is_some_and(|max| size > max) {
                    Some(Reason::TooLarge)
                } else if self.is_covered(&path, &name, size) {
                    return None;
                } else {
                    self.is_stored_object(&path, &name).then_some(Reason::NestedRepository)
                }
            }
            FileType::Symlink => Some(Reason::Symlink),
            _ => Some(Reason::SpecialFile),
        };
        Some(of_stat(name, &stat, reason))
    }

    /// Whether the user's patterns leave it in. `paths` are those of versioned files, which the repository's own are
    /// not.
    fn keeps(&self, path: &[u8], is_folder: bool) -> bool {
        let (is_own, conditions) = (path.starts_with(GIT_FOLDER), &self.tree.conditions);
        let path = Path::new(OsStr::from_bytes(path));
        if is_own { !conditions.excludes(path, is_folder) } else { conditions.keeps(path, is_folder) }
    }

    /// Whether this link is what git would check out, and leads where a scanned object says.
    fn is_covered_link(&self, path: &[u8], name: &[u8]) -> bool {
        let target = readlinkat(&self.folder, name, Vec::new());
        target.is_ok_and(|target| {
            let target = target.as_bytes();
            self.tree.covered.has(path, target.len() as u64, || Ok(target))
        })
    }

    fn is_covered(&self, path: &[u8], name: &[u8], size: u64) -> bool {
        self.tree.covered.has(path, size, || self.open(name))
    }

    /// Whether it is listed as objects, or is a folder of nothing else.
    fn is_listed_as_objects(&self, name: &[u8], kind: FileType) -> bool {
        let folder = self.tree.path.join(OsStr::from_bytes(&self.prefix));
        let is_listed =
            |folder: &Path, name: &[u8]| self.tree.covered.lists(&folder.join(OsStr::from_bytes(name)));
        if !kind.is_dir() {
            return is_listed(&folder, name);
        }
        if !self.tree.covered.has_objects(&folder) {
            return false;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let Ok(entries) = open_below(self.folder.as_fd(), name, flags).and_then(|dir| Ok(Dir::new(dir)?))
        else {
            return false;
        };
        let folder = folder.join(OsStr::from_bytes(name));
        let mut names = entries.map(|entry| entry.map(|entry| entry.file_name().to_bytes().to_vec()));
        names.all(|name| name.is_ok_and(|name| matches!(&*name, b"." | b"..") || is_listed(&folder, &name)))
    }

    /// Whether it is an object or a pack of another repository. What merely has such a name is a file.
    fn is_stored_object(&self, path: &[u8], name: &[u8]) -> bool {
        let Some(file) = StorageFile::at(path) else { return false };
        let mut start = [0; StorageFile::START_LEN];
        let read = self.open(name).and_then(|mut opened| opened.read_exact(&mut start));
        read.is_ok() && file.may_begin_with(start)
    }

    fn open(&self, name: &[u8]) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        open_below(self.folder.as_fd(), name, flags).map(File::from)
    }
}

fn of_stat(name: Vec<u8>, stat: &Stat, reason: Option<Reason>) -> UnitRecord {
    let marks = VersionMarks {
        mtime_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
        ctime_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
        inode: stat.st_ino,
        tag: None,
    };
    record(name, stat.st_size.cast_unsigned(), marks, reason)
}

fn nanoseconds(seconds: i64, nanos: u64) -> i64 {
    seconds.saturating_mul(NANOS_PER_SECOND).saturating_add(nanos.cast_signed())
}
