//! Content that Git LFS keeps beside the objects: `lfs/objects/ab/cd/<SHA-256>`, where a blob is only a pointer.
//!
//! A pointer whose content is here is read as that content. One whose content was not fetched stays a blob, which the
//! scan recognises as a format that is not read, and names. Nobody checks that the content has the hash that names it:
//! what is found in it is found either way. Links in these folders were judged with the repository's other ones.

use std::io;
use std::path::PathBuf;
use std::{fs, ops::RangeInclusive};

use domesday_connector::RegularFile;
use domesday_content::{ObjectError, git_lfs_oid};
use domesday_scheduler::OpenBytes;

use super::config::GitConfig;
use super::files::open_regular;
use super::id::ObjectId;
use super::repository::Repository;

/// Bytes of a pointer: its fixed text, a hash, and a size of 1 to 20 digits.
const POINTER_LEN: RangeInclusive<u64> = 126..=145;

/// The size of the content that this blob points to, if it is a pointer and the content is here.
pub(super) fn content_size(repository: &Repository, id: &ObjectId, size: u64) -> Option<u64> {
    if !POINTER_LEN.contains(&size) || !folder(repository).is_dir() {
        return None;
    }
    let blob = repository.store.read(id).ok()?;
    let metadata = fs::metadata(path(repository, &blob.data)?).ok()?;
    metadata.is_file().then_some(metadata.len())
}

/// The same content, open. Where the repository's own files are scanned too it is one of them, and not read twice.
pub(super) fn content(
    repository: &Repository,
    config: &GitConfig,
    blob: &[u8],
) -> Option<Result<OpenBytes, ObjectError>> {
    if !POINTER_LEN.contains(&(blob.len() as u64)) {
        return None;
    }
    let path = path(repository, blob)?;
    let file = open_regular(&path).ok()?;
    let is_scanned =
        config.uncommitted && repository.root.as_ref().is_some_and(|root| path.starts_with(root));
    Some(match is_scanned {
        true => Ok(OpenBytes::stream(Box::new(io::empty()), Some(0))),
        false => RegularFile::new(file).open(),
    })
}

fn folder(repository: &Repository) -> PathBuf {
    repository.common_dir.join("lfs/objects")
}

/// Where the content is that a blob points to, if it is a pointer.
fn path(repository: &Repository, blob: &[u8]) -> Option<PathBuf> {
    let oid = git_lfs_oid(blob)?;
    Some(folder(repository).join(&oid[..2]).join(&oid[2..4]).join(oid))
}
