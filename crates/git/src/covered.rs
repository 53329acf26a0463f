//! Which files need not be scanned, because an object with their content is.
//!
//! Only content proves that. The index says which object to compare a file with, and nothing else: it is scanned
//! content, and so are the times and sizes in it. A file is the same as a blob if the blob is in the object database
//! under an id that was computed from its content, is chosen by this scan, and has the same bytes. So what a clean
//! filter made of a file (LFS, git-crypt, line ends) never stands for the file, and a lost object loses nothing.

use std::collections::HashMap;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use domesday_model::ObjectKey;

use super::id::{HashKind, ObjectId, ObjectKind};
use super::parse::EntryKind;
use super::repository::Repository;
use super::select::{Chosen, Verdict};
use super::staged;
use super::store::ObjectData;

/// Bytes of the largest file that is compared: 256 MiB. A larger one is scanned.
const COMPARED_MAX: u64 = 256 << 20;
/// Bytes compared at once: 64 KiB.
const COMPARED_LEN: usize = 64 << 10;

/// The staged files, by the hashes of their paths: some 60 bytes each.
#[derive(Default)]
pub(super) struct Tracked(HashMap<[u8; 16], ObjectId>);

impl Tracked {
    /// Of an index that cannot be read no file is known, and each is scanned.
    pub fn load(repository: &Repository) -> Tracked {
        let mut files = HashMap::new();
        let read = staged::each_entry(repository, |entry| {
            if !entry.is_side && entry.kind == EntryKind::Blob {
                files.insert(ObjectKey::hash128(entry.path), entry.id);
            }
            Ok(())
        });
        read.map_or_else(|_| Tracked::default(), |()| Tracked(files))
    }
}

/// What one scan of a repository reads as objects.
pub(super) struct Covered {
    pub repository: Arc<Repository>,
    /// As they were before objects were listed.
    pub tracked: Tracked,
    pub chosen: Arc<Chosen>,
}

impl Covered {
    /// Whether a scanned blob has the content that the file at this path has. In doubt it has not.
    pub fn has<R: Read>(&self, path: &[u8], size: u64, open: impl FnOnce() -> io::Result<R>) -> bool {
        let Some(id) = self.tracked.0.get(&ObjectKey::hash128(path)) else { return false };
        size <= COMPARED_MAX
            && self.chosen.judge(id, Some(ObjectKind::Blob)) == Verdict::Scan
            && self
                .blob(id, size)
                .is_some_and(|blob| open().and_then(|file| is_same(file, blob)).unwrap_or(false))
    }

    /// A blob of this size whose content has its id.
    fn blob(&self, id: &ObjectId, size: u64) -> Option<Box<dyn Read>> {
        let store = &self.repository.store;
        let place = store.find_known(id).ok()??;
        if store.describe(&place).ok()? != (ObjectKind::Blob, size) {
            return None;
        }
        Some(match store.open_object(id).ok()? {
            ObjectData::Held(held) => Box::new(io::Cursor::new(super::Shared(held.object.data))),
            ObjectData::Stream { reader, .. } => reader,
        })
    }

    /// Whether objects are listed from this folder.
    pub fn has_objects(&self, folder: &Path) -> bool {
        self.repository.store.folders.iter().any(|objects| objects == folder)
    }

    /// Whether this file is listed as an object, or as a pack with its objects or with what is wrong with it.
    pub fn lists(&self, file: &Path) -> bool {
        let Some((parent, name)) = file.parent().zip(file.file_name()) else { return false };
        let Some((objects, folder)) = parent.parent().zip(parent.file_name()) else { return false };
        if !self.has_objects(objects) {
            return false;
        }
        let (folder, name) = (folder.as_bytes(), name.as_bytes());
        if folder == b"pack" {
            return self.repository.store.has_file(file);
        }
        let is_lower = |&byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let hash: HashKind = self.repository.store.hash;
        folder.len() == 2 && name.len() + 2 == 2 * hash.len() && folder.iter().chain(name).all(is_lower)
    }
}

/// Whether both have the same bytes.
fn is_same(mut file: impl Read, mut blob: impl Read) -> io::Result<bool> {
    let (mut one, mut other) = (vec![0; COMPARED_LEN], vec![0; COMPARED_LEN]);
    loop {
        let len = fill(&mut file, &mut one)?;
        if len != fill(&mut blob, &mut other)? || one[..len] != other[..len] {
            return Ok(false);
        }
        if len < COMPARED_LEN {
            return Ok(true);
        }
    }
}

/// Reads until the buffer is full or nothing comes; how much came.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < buffer.len() {
        match from.read(&mut buffer[len..]) {
            Ok(0) => break,
            Ok(got) => len += got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}
