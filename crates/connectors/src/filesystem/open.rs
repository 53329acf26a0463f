//! Opening things below the root: without passing through links unless they are followed, and however
//! long the path is.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use domesday_connector::{ReadAhead, RegularFile};
use domesday_content::ObjectError;
use domesday_model::{ListedObject, ObjectKey};
use domesday_scheduler::Opened;
use parking_lot::Mutex;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

use super::{FilesystemConfig, Tree, open_error};

/// The longest path handed to the kernel in one call; a longer one is walked in pieces. PATH_MAX is 4096
/// with the final NUL.
const PATH_PIECE_MAX: usize = 4_000;
/// Folders that a packet keeps open, at most. Its files come folder by folder, so the threads that read it are
/// rarely in more.
pub(super) const PACKET_FOLDERS_MAX: usize = 4;
/// Folders that all packets of a data source keep open, at most; beyond that each file is found for itself.
pub(super) const KEPT_FOLDERS_MAX: usize = 64;
/// How files are opened; `O_NONBLOCK` so that a fifo put in a file's place does not hang the scan.
const FILE_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Device and inode: what a file is, whatever it is called.
pub(super) type Identity = (u64, u64);

pub(super) fn identity(path: &Path) -> Option<Identity> {
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// The root folder, opened once, at first use: a connector may be made where its root is not there yet.
pub(super) struct Root {
    path: PathBuf,
    follow: bool,
    folder: OnceLock<OwnedFd>,
    /// How many folders packets keep open.
    kept_folders: AtomicUsize,
}

impl Root {
    pub fn new(config: &FilesystemConfig) -> Root {
        Root {
            path: config.root.clone(),
            follow: config.follow_symlinks,
            folder: OnceLock::new(),
            kept_folders: AtomicUsize::new(0),
        }
    }

    pub fn open_file(&self, key: &ObjectKey) -> io::Result<File> {
        self.open(key.as_bytes(), FILE_FLAGS).map(File::from)
    }

    /// A file of a folder that is open.
    pub fn open_file_in(&self, folder: BorrowedFd<'_>, name: &[u8]) -> io::Result<File> {
        // One step, which is no link: there is nothing else on the way that openat2 could forbid.
        let follow = if self.follow { OFlags::empty() } else { OFlags::NOFOLLOW };
        match openat(folder, name, FILE_FLAGS | OFlags::CLOEXEC | follow, Mode::empty()) {
            Err(rustix::io::Errno::LOOP) if !self.follow => Err(link_in_its_place()),
            opened => Ok(File::from(opened?)),
        }
    }

    /// Counts one folder more that is kept open, if that is not too many.
    fn take_room(&self) -> bool {
        let one_more = |kept: usize| (kept < KEPT_FOLDERS_MAX).then_some(kept + 1);
        self.kept_folders.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    pub fn open_folder(&self, key: &ObjectKey) -> io::Result<OwnedFd> {
        self.open(key.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY)
    }

    fn open(&self, mut path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let root = self.folder()?;
        if path.is_empty() {
            return self.open_at(root, b".", flags);
        }
        let mut folder: Option<OwnedFd> = None;
        while path.len() > PATH_PIECE_MAX {
            let cut = path[..PATH_PIECE_MAX]
                .iter()
                .rposition(|&byte| byte == b'/')
                .ok_or(rustix::io::Errno::NAMETOOLONG)?;
            let at = folder.as_ref().map_or(root, AsFd::as_fd);
            folder = Some(self.open_at(at, &path[..cut], OFlags::PATH | OFlags::DIRECTORY)?);
            path = &path[cut + 1..];
        }
        self.open_at(folder.as_ref().map_or(root, AsFd::as_fd), path, flags)
    }

    fn folder(&self) -> io::Result<BorrowedFd<'_>> {
        if let Some(folder) = self.folder.get() {
            return Ok(folder.as_fd());
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(CWD, self.path.as_os_str().as_bytes(), flags, Mode::empty())?;
        Ok(self.folder.get_or_init(|| opened).as_fd())
    }

    fn open_at(&self, folder: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        if self.follow {
            return Ok(openat(folder, path, flags, Mode::empty())?);
        }
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::BENEATH;
        match openat2(folder, path, flags, Mode::empty(), resolve) {
            // A kernel or sandbox without openat2: at least the last step is no link.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {
                Ok(openat(folder, path, flags | OFlags::NOFOLLOW, Mode::empty())?)
            }
            Err(rustix::io::Errno::LOOP) => Err(link_in_its_place()),
            opened => Ok(opened?),
        }
    }
}

fn link_in_its_place() -> io::Error {
    io::Error::new(io::ErrorKind::NotADirectory, "a symbolic link has taken its place")
}

/// The files of one packet. They come folder by folder, and the way to a folder is a good part of what opening a
/// file costs: so it is gone once, and the folder stays open while its files are read.
pub(super) struct PacketFiles {
    tree: Arc<Tree>,
    files: Arc<[ListedObject]>,
    /// The last one used first.
    folders: Mutex<Vec<KeptFolder>>,
}

/// A folder by the key of its container.
type KeptFolder = (Box<[u8]>, Arc<OwnedFd>);

impl PacketFiles {
    pub fn new(tree: Arc<Tree>, objects: &Arc<[ListedObject]>) -> PacketFiles {
        PacketFiles { tree, files: Arc::clone(objects), folders: Mutex::default() }
    }

    fn open_file(&self, key: &ObjectKey) -> io::Result<File> {
        let path = key.as_bytes();
        let Some(cut) = path.iter().rposition(|&byte| byte == b'/') else {
            return self.tree.root.open_file(key);
        };
        let folder = self.folder(&path[..cut])?;
        self.tree.root.open_file_in(folder.as_fd(), &path[cut + 1..])
    }

    fn folder(&self, path: &[u8]) -> io::Result<Arc<OwnedFd>> {
        {
            let mut folders = self.folders.lock();
            if let Some(at) = folders.iter().position(|(known, _)| **known == *path) {
                folders[..=at].rotate_right(1);
                return Ok(Arc::clone(&folders[0].1));
            }
        }
        let opened = Arc::new(self.tree.root.open(path, OFlags::PATH | OFlags::DIRECTORY)?);
        self.keep(path, Arc::clone(&opened));
        Ok(opened)
    }

    /// Keeps a folder open; where there is no room, instead of the one that was not used for the longest time.
    fn keep(&self, path: &[u8], folder: Arc<OwnedFd>) {
        let mut folders = self.folders.lock();
        let has_room = folders.len() < PACKET_FOLDERS_MAX && self.tree.root.take_room();
        if has_room || folders.pop().is_some() {
            folders.insert(0, (path.into(), folder));
        }
    }
}

impl Drop for PacketFiles {
    fn drop(&mut self) {
        let kept = self.folders.get_mut().len();
        self.tree.root.kept_folders.fetch_sub(kept, Ordering::Relaxed);
    }
}

impl ReadAhead for PacketFiles {
    fn open(&self, index: usize) -> Result<Opened, ObjectError> {
        let ListedObject { key, size, .. } = &self.files[index];
        let file = self.open_file(key).map_err(|error| open_error(&error))?;
        Ok(Opened::Bytes(RegularFile::new(file).open_listed(*size)))
    }
}
