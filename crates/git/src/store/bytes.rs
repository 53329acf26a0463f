//! The bytes of a decoded object. Most objects are scanned once and dropped: their memory goes to the next one that the
//! same thread decodes, because to have the system hand out fresh pages each time costs as much as decoding.

use std::cell::Cell;
use std::io;
use std::ops::Deref;
use std::sync::OnceLock;

use domesday_content::ReadAt;

use crate::error::GitError;
use crate::hash::id_of;
use crate::id::{HashKind, ObjectId, ObjectKind};

/// Bytes that a thread keeps for its next object, at most: 1 MiB.
const SPARE_MAX: usize = 1 << 20;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// An empty buffer for `len` bytes. One for what stays has no more room than that.
pub(super) fn buffer(len: usize, stays: bool) -> Vec<u8> {
    if stays {
        return Vec::with_capacity(len);
    }
    let mut spare = SPARE.take();
    spare.clear();
    spare.reserve(len);
    spare
}

pub(crate) struct Bytes {
    bytes: Vec<u8>,
    /// The id that they have, computed once. Not whether they were verified: an index may give the same bytes two ids.
    id: OnceLock<ObjectId>,
}

impl Bytes {
    pub fn new(bytes: Vec<u8>) -> Bytes {
        Bytes { bytes, id: OnceLock::new() }
    }

    /// Bytes of memory that it takes.
    pub fn room(&self) -> usize {
        self.bytes.capacity()
    }

    /// An error unless this is the content of the object `id`.
    pub fn verify(&self, hash: HashKind, kind: ObjectKind, id: &ObjectId) -> Result<(), GitError> {
        let actual = *self.id.get_or_init(|| id_of(hash, kind, &self.bytes));
        if actual == *id { Ok(()) } else { Err(GitError::Mismatch { id: *id, actual }) }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl ReadAt for Bytes {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.bytes.read_at(buf, offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.bytes.size()
    }

    fn in_memory(&self) -> Option<&[u8]> {
        Some(&self.bytes)
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes.capacity() > SPARE_MAX {
            return;
        }
        // A thread that ends has no next object.
        let _ = SPARE.try_with(|spare| {
            let other = spare.take();
            spare.set(if other.capacity() < bytes.capacity() { bytes } else { other });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_used_again_unless_it_is_large_or_for_what_stays() {
        drop(Bytes::new(vec![1; 1000]));
        assert_eq!(buffer(10, true).capacity(), 10);
        let again = buffer(10, false);
        assert_eq!((again.len(), again.capacity()), (0, 1000));
        drop(Bytes::new(again));
        drop(Bytes::new(vec![1; 500]));
        assert_eq!(buffer(10, false).capacity(), 1000, "the larger one is kept");
        drop(Bytes::new(vec![1; SPARE_MAX + 1]));
        assert!(buffer(10, false).capacity() < SPARE_MAX);
    }
}
