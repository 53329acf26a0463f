//! The files of a working tree that are not what is staged: changed ones, and such that git does not
//! track, ignored or not.
//!
//! The tree is a container beside the objects, listed folder by folder under keys that begin with
//! [`WORKTREE`] and a slash, which no id has. What the index remembers of a file decides, as it does for
//! git: equal times, number and size mean that it was not changed, unless it was changed no earlier than
//! the index was written. Where that leaves a doubt the content is hashed and compared. An index that
//! cannot be read leaves everything in doubt, and every file is listed.
//!
//! Of a folder `.git` only `config` is listed, which may hold a password: the rest is what the history is
//! listed from. Files of submodules and of other repositories inside are listed whole, for their history
//! is not in this one. Links are never followed.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use domesday_connector::{ConnectorError, Listing, RegularFile};
use domesday_content::ObjectError;
use domesday_model::{ObjectKey, Reason, RecordKind, UnitRecord, VersionMarks};
use domesday_scheduler::OpenBytes;
use ring::digest;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, openat, openat2, statat};
use rustix::io::Errno;

use super::conditions::Conditions;
use super::config::GitConfig;
use super::error::GitError;
use super::id::{HashKind, ObjectId};
use super::listing::{blocking, cut_short, record};
use super::repository::Repository;
use super::staged;

/// The container of the working tree.
pub const WORKTREE: &[u8] = b"worktree";
/// What is listed of a repository itself.
const GIT_CONFIG: &[u8] = b".git/config";
/// Bytes of the largest file whose content is compared; a larger one counts as changed.
const COMPARED_MAX: u64 = 256 << 20;
/// Bytes read at once to be hashed.
const HASHED_LEN: usize = 64 << 10;
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
    /// `None` when the index cannot be read.
    tracked: Option<Arc<Tracked>>,
}

impl Worktree {
    pub fn open(
        root: &Path,
        config: &GitConfig,
        own_state: Option<&Path>,
        tracked: Option<Arc<Tracked>>,
    ) -> Result<Worktree, GitError> {
        let identity = |path| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
        Ok(Worktree {
            root: open_root(root).map_err(|error| GitError::io(root, error))?,
            conditions: Conditions::new(config)?,
            max_file_size: config.max_file_size,
            own_state: own_state.and_then(identity),
            tracked,
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
                b".git" => records.extend(self.git_config()),
                name => records.extend(self.record(name.to_vec())),
            }
        }
        Ok(records)
    }

    /// The configuration of the repository whose root this is.
    fn git_config(&self) -> Option<UnitRecord> {
        let stat = |name: &[u8]| statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        let is = |stat: &Stat, kind| FileType::from_raw_mode(stat.st_mode) == kind;
        stat(b".git").filter(|stat| is(stat, FileType::Directory))?;
        let config = stat(GIT_CONFIG).filter(|stat| is(stat, FileType::RegularFile))?;
        Some(of_stat(GIT_CONFIG.to_vec(), &config, None))
    }

    fn record(&self, name: Vec<u8>) -> Option<UnitRecord> {
        let Ok(stat) = statat(&self.folder, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) else {
            // Gone or out of reach between the listing and now: opening it tells why.
            return Some(record(name, 0, VersionMarks::default(), None));
        };
        let path = [self.prefix.as_slice(), &name].concat();
        let kind = FileType::from_raw_mode(stat.st_mode);
        let reason = match kind {
            FileType::Symlink if self.is_tracked(&path) => return None,
            FileType::RegularFile if self.is_unchanged(&path, &name, &stat) => return None,
            _ if !self.tree.conditions.keeps(Path::new(OsStr::from_bytes(&path)), kind.is_dir()) => {
                Some(Reason::Excluded)
            }
            FileType::Directory if self.tree.own_state == Some((stat.st_dev, stat.st_ino)) => {
                Some(Reason::OwnState)
            }
            FileType::Directory => {
                return Some(UnitRecord { kind: RecordKind::Directory, ..of_stat(name, &stat, None) });
            }
            FileType::RegularFile => {
                let size = stat.st_size.cast_unsigned();
                self.tree.max_file_size.filter(|max| size > *max).map(|_| Reason::TooLarge)
            }
            FileType::Symlink => Some(Reason::Symlink),
            _ => Some(Reason::SpecialFile),
        };
        Some(of_stat(name, &stat, reason))
    }

    fn is_tracked(&self, path: &[u8]) -> bool {
        self.tree.tracked.as_ref().is_some_and(|tracked| tracked.get(path).is_some())
    }

    fn is_unchanged(&self, path: &[u8], name: &[u8], stat: &Stat) -> bool {
        let Some(tracked) = &self.tree.tracked else { return false };
        let Some(known) = tracked.get(path) else { return false };
        match tracked.judge(known, stat) {
            Change::None => true,
            Change::Certain => false,
            Change::Unsure => {
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
                let opened = open_below(self.folder.as_fd(), name, flags);
                // What cannot be read is listed: opening it tells why.
                opened.and_then(|file| blob_id(File::from(file), tracked.hash)).ok() == Some(Some(known.id))
            }
        }
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

/// The id that this content has as a blob; `None` when it is too large, or changes meanwhile.
fn blob_id(mut file: File, hash: HashKind) -> io::Result<Option<ObjectId>> {
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > COMPARED_MAX {
        return Ok(None);
    }
    let mut digest = digest::Context::new(match hash {
        HashKind::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
        HashKind::Sha256 => &digest::SHA256,
    });
    digest.update(format!("blob {}\0", metadata.len()).as_bytes());
    let (mut buffer, mut len) = (vec![0; HASHED_LEN], 0);
    loop {
        match file.read(&mut buffer)? {
            0 if len == metadata.len() => return Ok(ObjectId::from_bytes(digest.finish().as_ref())),
            0 => return Ok(None),
            got => {
                digest.update(&buffer[..got]);
                len += got as u64;
                if len > metadata.len() {
                    return Ok(None);
                }
            }
        }
    }
}

/// What the index remembers of the files, by the hashes of their paths: some hundred bytes each.
pub(super) struct Tracked {
    files: HashMap<[u8; 16], Known>,
    hash: HashKind,
    /// When the index was written, as it has times itself.
    written: Time,
    /// What tells this index from the next one.
    version: VersionMarks,
}

/// Seconds and nanoseconds, cut to 32 bits each as the index has them.
type Time = (u32, u32);

struct Known {
    id: ObjectId,
    ctime: Time,
    mtime: Time,
    inode: u32,
    size: u32,
}

enum Change {
    None,
    Certain,
    /// The content has to tell.
    Unsure,
}

impl Tracked {
    /// What the index says now: `before`, if it still holds. An error when it cannot be read.
    pub fn load(repository: &Repository, before: Option<&Arc<Tracked>>) -> Result<Arc<Tracked>, GitError> {
        // Looked at before it is read: one that is written in between only leaves more in doubt.
        let path = &repository.index;
        let stat = match statat(CWD, path, AtFlags::empty()) {
            Ok(stat) => Some(stat),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(GitError::io(path, errno.into())),
        };
        let version =
            stat.as_ref().map_or_else(VersionMarks::default, |stat| of_stat(Vec::new(), stat, None).marks);
        if let Some(before) = before.filter(|before| stat.is_some() && before.version == version) {
            return Ok(Arc::clone(before));
        }
        let written = stat.map_or((0, 0), |stat| (stat.st_mtime as u32, stat.st_mtime_nsec as u32));
        let mut files = HashMap::new();
        staged::each_entry(repository, |entry| {
            if !entry.is_side {
                files.insert(ObjectKey::hash128(entry.path), Known::new(entry.id, entry.stat));
            }
            Ok(())
        })?;
        Ok(Arc::new(Tracked { files, hash: repository.store.hash, written, version }))
    }

    fn get(&self, path: &[u8]) -> Option<&Known> {
        self.files.get(&ObjectKey::hash128(path))
    }

    fn judge(&self, known: &Known, stat: &Stat) -> Change {
        let is_same_size = known.size == stat.st_size as u32;
        let is_same = is_same_size
            && known.mtime == (stat.st_mtime as u32, stat.st_mtime_nsec as u32)
            && known.ctime == (stat.st_ctime as u32, stat.st_ctime_nsec as u32)
            && known.inode == stat.st_ino as u32;
        match is_same {
            true if known.mtime < self.written => Change::None,
            // Git writes a size of zero where it is in doubt itself.
            false if !is_same_size && known.size != 0 => Change::Certain,
            _ => Change::Unsure,
        }
    }
}

impl Known {
    fn new(id: ObjectId, stat: &[u8]) -> Known {
        let number = |at: usize| staged::number(stat, 4 * at);
        Known {
            id,
            ctime: (number(0), number(1)),
            mtime: (number(2), number(3)),
            inode: number(5),
            size: number(9),
        }
    }
}
