//! Files of object databases, by their paths and first bytes: `objects/ab/cdef…` and `objects/pack/pack-….pack`.

use super::id::ObjectId;

/// What a file's path makes of it, if it is in a folder of objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StorageFile {
    Loose,
    Pack,
    PackIndex,
}

impl StorageFile {
    /// First bytes that tell whether a file is what its path says.
    pub const START_LEN: usize = 4;

    pub fn at(path: &[u8]) -> Option<StorageFile> {
        let mut names = path.rsplit(|&byte| byte == b'/');
        let (name, folder, objects) = (names.next()?, names.next()?, names.next()?);
        if objects != b"objects" {
            return None;
        }
        match folder {
            b"pack" if name.ends_with(b".pack") => Some(StorageFile::Pack),
            b"pack" if name.ends_with(b".idx") => Some(StorageFile::PackIndex),
            _ if folder.len() == 2 => {
                ObjectId::from_hex(&[folder, name].concat()).map(|_| StorageFile::Loose)
            }
            _ => None,
        }
    }

    /// Whether a file of this kind can begin so.
    pub fn may_begin_with(self, start: [u8; Self::START_LEN]) -> bool {
        match self {
            StorageFile::Pack => start == *b"PACK",
            StorageFile::PackIndex => start == *b"\xfftOc",
            // The head of a zlib stream: deflate, and a checksum over both bytes.
            StorageFile::Loose => {
                start[0] & 15 == 8 && u16::from_be_bytes([start[0], start[1]]).is_multiple_of(31)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_path_and_start() {
        let loose = format!("a/.git/objects/ab/{}", "c".repeat(38));
        let pack = "objects/pack/pack-1.pack";
        for (path, kind) in [
            (loose.as_str(), Some(StorageFile::Loose)),
            (pack, None),
            ("r/objects/pack/pack-1.pack", Some(StorageFile::Pack)),
            ("r/objects/pack/pack-1.idx", Some(StorageFile::PackIndex)),
            ("r/objects/pack/pack-1.rev", None),
            ("r/objects/ab/notes.txt", None),
            ("r/object/pack/a.pack", None),
        ] {
            let found = StorageFile::at(path.as_bytes());
            assert_eq!(found, kind.or_else(|| (path == pack).then_some(StorageFile::Pack)), "{path}");
        }
        assert!(StorageFile::Loose.may_begin_with([0x78, 0x01, 0, 0]));
        assert!(!StorageFile::Loose.may_begin_with(*b"AKIA"));
        assert!(!StorageFile::Pack.may_begin_with(*b"AKIA"));
    }
}
