//! The id that an object's content has. Nothing else proves what an object is: names of files, indices and
//! sizes are scanned content too.

use std::io::{self, Read};

use ring::digest::{Context, SHA256};
use sha1::{Digest, Sha1};

use super::id::{HashKind, ObjectId, ObjectKind};

/// Bytes read at once to be hashed: 64 KiB.
const READ_LEN: usize = 64 << 10;

/// Computes an id from content that comes in parts.
enum IdHasher {
    /// With the processor's instructions for it, where it has them: four times as fast as `ring`, which keeps
    /// SHA-1 for old protocols only.
    Sha1(Sha1),
    Sha256(Context),
}

impl IdHasher {
    fn new(hash: HashKind, kind: ObjectKind, size: u64) -> IdHasher {
        let mut hasher = match hash {
            HashKind::Sha1 => IdHasher::Sha1(Sha1::new()),
            HashKind::Sha256 => IdHasher::Sha256(Context::new(&SHA256)),
        };
        hasher.update(format!("{} {size}\0", kind.name()).as_bytes());
        hasher
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            IdHasher::Sha1(hasher) => hasher.update(bytes),
            IdHasher::Sha256(hasher) => hasher.update(bytes),
        }
    }

    fn finish(self) -> ObjectId {
        let id = match self {
            IdHasher::Sha1(hasher) => ObjectId::from_bytes(&hasher.finalize()),
            IdHasher::Sha256(hasher) => ObjectId::from_bytes(hasher.finish().as_ref()),
        };
        id.expect("a digest has the length of an id")
    }
}

/// The id of an object with this content.
pub(super) fn id_of(hash: HashKind, kind: ObjectKind, content: &[u8]) -> ObjectId {
    let mut hasher = IdHasher::new(hash, kind, content.len() as u64);
    hasher.update(content);
    hasher.finish()
}

/// The id of an object whose content of `size` bytes is read here.
pub(super) fn id_of_reader(
    hash: HashKind,
    kind: ObjectKind,
    size: u64,
    mut content: impl Read,
) -> io::Result<ObjectId> {
    let mut hasher = IdHasher::new(hash, kind, size);
    let mut buffer = vec![0; READ_LEN];
    loop {
        match content.read(&mut buffer) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(got) => hasher.update(&buffer[..got]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
