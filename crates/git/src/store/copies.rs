//! Further copies of an object that is listed already. They are passed over because of their id, so it is computed: a
//! copy that is something else is listed under a name of its own, which says where it is.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use domesday_model::Reason;

use super::inflate::inflater;
use super::pack::Content;
use super::stream::InflateReader;
use super::{ObjectStore, Place, STREAM_MIN, loose};
use crate::error::GitError;
use crate::id::ObjectId;

/// Stands between the id and the name of the file.
const SEPARATOR: u8 = b'@';
/// In place of a file name: a loose object's file is named by its id.
const LOOSE: &[u8] = b"loose";

impl ObjectStore {
    /// The name under which a copy is listed, if it is not what its id says or cannot be read.
    pub fn lying_copy(&self, id: &ObjectId, place: Place) -> Option<Vec<u8>> {
        let file = match &place {
            Place::Packed(pack, _) => file_name(pack.path()).to_vec(),
            Place::Loose(_) => LOOSE.to_vec(),
        };
        match self.verify_copy(id, place) {
            Ok(()) => None,
            // Removed since: its other copy is there.
            Err(error) if error.reason() == Reason::Vanished => None,
            Err(_) => Some([id.to_name().as_slice(), &[SEPARATOR], &file].concat()),
        }
    }

    /// What is wrong with the copy that was listed under this name.
    pub fn copy_error(&self, name: &[u8]) -> Option<GitError> {
        let at = name.iter().position(|&byte| byte == SEPARATOR)?;
        let (id, file) = (ObjectId::from_hex(&name[..at])?, &name[at + 1..]);
        if file == LOOSE {
            let paths = self.folders.iter().map(|folder| loose::path(folder, &id));
            let mut copies = paths.filter(|path| path.exists()).map(Place::Loose);
            return copies.find_map(|place| self.verify_copy(&id, place).err());
        }
        let packs = self.packs();
        let pack = packs.iter().find(|pack| file_name(pack.path()) == file)?;
        let found = pack.index.find(&id).and_then(|offset| match offset {
            Some(offset) => self.verify_copy(&id, Place::Packed(Arc::clone(pack), offset)),
            None => Ok(()),
        });
        found.err()
    }

    fn verify_copy(&self, id: &ObjectId, place: Place) -> Result<(), GitError> {
        match place {
            Place::Packed(pack, offset) => {
                let head = inflater(|inflater| pack.begin(inflater, offset))?;
                if let Content::Whole(kind) = head.content
                    && head.size > STREAM_MIN
                {
                    let start = offset + head.len as u64;
                    let reader = InflateReader::new(Arc::clone(&pack.file), start, Some(head.size));
                    return self.verify_stream(id, kind, head.size, reader);
                }
                let object = self.decode(&pack, offset, pack.may_be_base(offset), None)?;
                object.data.verify(self.hash, object.kind, id)
            }
            Place::Loose(path) => {
                let loose = loose::open(path)?;
                self.verify_stream(id, loose.kind, loose.size, loose.content)
            }
        }
    }
}

fn file_name(path: &Path) -> &[u8] {
    path.file_name().unwrap_or_default().as_bytes()
}
