//! What git names things by: object ids of either hash, and the kinds of objects.

use std::fmt;

/// The hash a repository names its objects with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HashKind {
    Sha1,
    Sha256,
}

impl HashKind {
    /// Bytes of an id.
    pub const fn len(self) -> usize {
        match self {
            HashKind::Sha1 => 20,
            HashKind::Sha256 => 32,
        }
    }
}

/// Bytes of the longest id.
const ID_MAX: usize = HashKind::Sha256.len();

/// An object's id, of either hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    bytes: [u8; ID_MAX],
    len: u8,
}

impl ObjectId {
    /// The id in these bytes, if they are as many as a hash has.
    pub fn from_bytes(bytes: &[u8]) -> Option<ObjectId> {
        if bytes.len() != HashKind::Sha1.len() && bytes.len() != HashKind::Sha256.len() {
            return None;
        }
        let mut id = ObjectId { bytes: [0; ID_MAX], len: bytes.len() as u8 };
        id.bytes[..bytes.len()].copy_from_slice(bytes);
        Some(id)
    }

    /// The id in these hexadecimal digits, of either case.
    pub fn from_hex(hex: &[u8]) -> Option<ObjectId> {
        let mut bytes = [0; ID_MAX];
        if !hex.len().is_multiple_of(2) || hex.len() / 2 > ID_MAX {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        ObjectId::from_bytes(&bytes[..hex.len() / 2])
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The id as the name of a record: its hexadecimal digits.
    pub fn to_name(self) -> Vec<u8> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digits = |byte: &u8| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        self.as_bytes().iter().flat_map(digits).collect()
    }

    /// The first half of the longest id, for sets that hold many. Two objects that share it take 2^64
    /// hashes to find, so that nobody hides one behind another.
    pub(super) fn short(&self) -> u128 {
        let mut short = [0; 16];
        short.copy_from_slice(&self.bytes[..16]);
        u128::from_be_bytes(short)
    }
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId({self})")
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectKind {
    Commit,
    Tree,
    Blob,
    Tag,
}

impl ObjectKind {
    /// The name that loose objects and tags give the kind, and that is hashed with an object's content.
    pub(super) fn name(self) -> &'static str {
        match self {
            ObjectKind::Commit => "commit",
            ObjectKind::Tree => "tree",
            ObjectKind::Blob => "blob",
            ObjectKind::Tag => "tag",
        }
    }

    /// The kind by its name.
    pub(super) fn from_name(name: &[u8]) -> Option<ObjectKind> {
        [ObjectKind::Commit, ObjectKind::Tree, ObjectKind::Blob, ObjectKind::Tag]
            .into_iter()
            .find(|kind| kind.name().as_bytes() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_both_hashes_survive_hex() {
        for len in [20, 32] {
            let bytes: Vec<u8> = (0..len).map(|i| i * 8 + 3).collect();
            let id = ObjectId::from_bytes(&bytes).unwrap();
            assert_eq!(ObjectId::from_hex(&id.to_name()), Some(id));
            assert_eq!(id.to_string().as_bytes(), id.to_name());
        }
        for wrong in ["", "abc", "zz", &"0".repeat(38), &"0".repeat(66), &"g".repeat(40)] {
            assert_eq!(ObjectId::from_hex(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
