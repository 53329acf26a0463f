//! Opening things below the root: without passing through links unless they are followed, and however
//! long the path is.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use domesday_model::ObjectKey;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

use super::FilesystemConfig;

/// The longest path handed to the kernel in one call; a longer one is walked in pieces. PATH_MAX is 4096
/// with the final NUL.
const PATH_PIECE_MAX: usize = 4_000;

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
}

impl Root {
    pub fn new(config: &FilesystemConfig) -> Root {
        Root { path: config.root.clone(), follow: config.follow_symlinks, folder: OnceLock::new() }
    }

    /// `O_NONBLOCK` so that a fifo put in a file's place does not hang the scan.
    pub fn open_file(&self, key: &ObjectKey) -> io::Result<File> {
        self.open(key.as_bytes(), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).map(File::from)
    }

    /// Where a file is by a path that passes through no link. It is so now: whoever opens it by that path must
    /// not follow links.
    pub fn path_of(&self, key: &ObjectKey) -> io::Result<PathBuf> {
        let file = self.open(key.as_bytes(), OFlags::PATH)?;
        std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
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
            Err(rustix::io::Errno::LOOP) => {
                Err(io::Error::new(io::ErrorKind::NotADirectory, "a symbolic link has taken its place"))
            }
            opened => Ok(opened?),
        }
    }
}

/// A file's bytes from first to last, through a handle that others read at any place.
pub(super) struct SharedFile(pub Arc<File>);

impl Read for SharedFile {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buf)
    }
}
