//! Opening files of a repository: regular ones only, and none that would make the reader wait.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use super::error::GitError;

/// Bytes of a small file of a repository, at most: its configuration, a reference.
const SMALL_FILE_MAX: u64 = 1 << 20;
/// Bytes of `packed-refs`, `shallow` or the index, at most.
pub(super) const LARGE_FILE_MAX: u64 = 1 << 30;

/// Opens a regular file. `O_NONBLOCK` so that a fifo in its place does not hang the scan.
pub(super) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let file = File::options().read(true).custom_flags(flags.cast_signed()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(file)
}

/// A file's bytes; `None` when it is not there, or is a folder.
pub(super) fn read_file(path: &Path, max: u64) -> Result<Option<Vec<u8>>, GitError> {
    let file = match open_regular(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(_) if path.is_dir() => return Ok(None),
        Err(error) => return Err(GitError::io(path, error)),
    };
    let mut bytes = Vec::new();
    let read = file.take(max + 1).read_to_end(&mut bytes).map_err(|error| GitError::io(path, error))?;
    if read as u64 > max {
        return Err(GitError::TooLarge { what: path.display().to_string(), size: read as u64, max });
    }
    Ok(Some(bytes))
}

pub(super) fn small_file(path: &Path) -> Result<Option<Vec<u8>>, GitError> {
    read_file(path, SMALL_FILE_MAX)
}
