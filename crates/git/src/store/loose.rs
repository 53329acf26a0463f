//! Loose objects: a file each, its head deflated with its content.

use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file::StoreFile;
use super::stream::InflateReader;
use crate::error::GitError;
use crate::id::{HashKind, ObjectId, ObjectKind};

/// Bytes of a loose object's head, at most: a kind's name, a size, and the byte that ends it.
const HEAD_MAX: usize = 32;

/// A loose object's head, and its content.
pub(super) struct Loose {
    pub kind: ObjectKind,
    pub size: u64,
    pub content: InflateReader,
}

pub(crate) fn path(objects: &Path, id: &ObjectId) -> PathBuf {
    let name = id.to_string();
    objects.join(&name[..2]).join(&name[2..])
}

pub(super) fn open(path: PathBuf) -> Result<Loose, GitError> {
    let file = Arc::new(StoreFile::open(path, true)?);
    let mut content = InflateReader::new(Arc::clone(&file), 0, None);
    let mut head = Vec::new();
    let mut byte = [0];
    // The decompressor ends where the head does, because it is given no room beyond.
    while head.len() < HEAD_MAX && !head.ends_with(&[0]) {
        content
            .read_exact(&mut byte)
            .map_err(|error| file.corrupt(format!("its head cannot be read: {error}")))?;
        head.push(byte[0]);
    }
    let (kind, size) = parse_head(&head).ok_or_else(|| file.corrupt("its head names no kind and size"))?;
    content.expect(size);
    Ok(Loose { kind, size, content })
}

fn parse_head(head: &[u8]) -> Option<(ObjectKind, u64)> {
    let head = head.strip_suffix(&[0])?;
    let space = head.iter().position(|&byte| byte == b' ')?;
    let size = std::str::from_utf8(&head[space + 1..]).ok()?;
    Some((ObjectKind::from_name(&head[..space])?, size.parse().ok()?))
}

/// The loose objects of one of the 256 folders, in order of their ids. A folder that is not there is empty.
pub(crate) fn list(objects: &Path, first: u8, hash: HashKind) -> Result<Vec<ObjectId>, GitError> {
    let folder = objects.join(format!("{first:02x}"));
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(GitError::io(&folder, error)),
    };
    let mut ids = Vec::new();
    for entry in entries {
        let name = entry.map_err(|error| GitError::io(&folder, error))?.file_name();
        let hex = [format!("{first:02x}").as_bytes(), name.as_bytes()].concat();
        // Beside objects there may be temporary files.
        ids.extend(ObjectId::from_hex(&hex).filter(|id| id.as_bytes().len() == hash.len()));
    }
    ids.sort_unstable();
    Ok(ids)
}
