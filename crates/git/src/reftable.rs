//! References that are kept in tables: a stack of sorted files, of which the newer say what the older do not
//! hold any more.
//!
//! A table is blocks of records; those of references come first, and only these are read, from the first to
//! the last. A record's name is what it has in common with the one before, and the rest.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::GitError;
use super::files::{LARGE_FILE_MAX, read_file, small_file};
use super::id::{HashKind, ObjectId};
use super::parse::varint;

/// References by name, as a file of one would have them: an id, or `ref: ` and a name.
pub(super) type Table = BTreeMap<Vec<u8>, Vec<u8>>;

const MAGIC: &[u8] = b"REFT";
/// The kind of a block that has references.
const REFERENCES: u8 = b'r';
/// A block's kind and its length.
const BLOCK_HEAD_LEN: usize = 4;
/// Bytes of the length of a footer beside a copy of the header.
const FOOTER_REST_LEN: usize = 44;
/// Tables of one stack, at most.
const TABLES_MAX: usize = 4_096;
/// Bytes of a reference's name, at most.
const NAME_LEN_MAX: usize = 16 << 10;

/// What the stack in `folder` says; nothing where there is none.
pub(super) fn read(folder: &Path, hash: HashKind) -> Result<Table, GitError> {
    let mut table = Table::new();
    let list = folder.join("tables.list");
    let names = small_file(&list)?.unwrap_or_default();
    let names: Vec<&[u8]> = names.split(|&byte| byte == b'\n').filter(|name| !name.is_empty()).collect();
    if names.len() > TABLES_MAX || names.iter().any(|name| name.contains(&b'/')) {
        return Err(GitError::corrupt(list.display(), "it names no tables"));
    }
    for name in names {
        let path = folder.join(String::from_utf8_lossy(name).as_ref());
        // Gone since the list was read: another listing will see what took its place.
        let bytes = read_file(&path, LARGE_FILE_MAX)?
            .ok_or_else(|| GitError::io(&path, std::io::ErrorKind::NotFound.into()))?;
        add(&bytes, hash, &mut table)
            .ok_or_else(|| GitError::corrupt(path.display(), "it does not read as a table of references"))?;
    }
    Ok(table)
}

/// Adds what one table says to what older ones did. `None` where it is damaged.
fn add(bytes: &[u8], hash: HashKind, table: &mut Table) -> Option<()> {
    let header_len = match bytes.get(..5)? {
        [magic @ .., 1] if magic == MAGIC => 24,
        [magic @ .., 2] if magic == MAGIC => 28,
        _ => return None,
    };
    let block_size = number24(bytes, 5)?;
    let end = bytes.len().checked_sub(header_len + FOOTER_REST_LEN)?;
    // The footer begins as the file does: one that was cut short has none.
    if bytes[end..end + header_len] != bytes[..header_len] {
        return None;
    }
    // The header is in the first block, and counts in its length.
    let (mut at, mut skip) = (0, header_len);
    while at + skip < end && bytes[at + skip] == REFERENCES {
        let len = number24(bytes, at + skip + 1)?;
        let block = bytes.get(at..at.checked_add(len)?).filter(|_| at + len <= end)?;
        records(block, skip + BLOCK_HEAD_LEN, hash, table)?;
        // Blocks are filled up with zeros to their size, or follow each other.
        at += if bytes.get(at + len) == Some(&0) && block_size > len { block_size } else { len };
        skip = 0;
    }
    Some(())
}

/// The references of one block, whose first record is at `at`.
fn records(block: &[u8], mut at: usize, hash: HashKind, table: &mut Table) -> Option<()> {
    // At the end are the places from which names begin anew, and how many.
    let [high, low] = *block.last_chunk::<2>()?;
    let restarts = usize::from(u16::from_be_bytes([high, low]));
    let end = block.len().checked_sub(2 + 3 * restarts)?;
    let mut name = Vec::new();
    while at < end {
        let prefix_len = varint(block, &mut at)?;
        let suffix = varint(block, &mut at)?;
        let (suffix_len, kind) = (suffix >> 3, suffix & 7);
        if prefix_len > name.len() || prefix_len + suffix_len > NAME_LEN_MAX {
            return None;
        }
        name.truncate(prefix_len);
        name.extend_from_slice(take(block, &mut at, suffix_len)?);
        // When it was updated last.
        varint(block, &mut at)?;
        match kind {
            0 => drop(table.remove(&name)),
            1 | 2 => {
                let id = ObjectId::from_bytes(take(block, &mut at, hash.len())?)?;
                if kind == 2 {
                    // What a tag leads to.
                    take(block, &mut at, hash.len())?;
                }
                table.insert(name.clone(), id.to_name());
            }
            3 => {
                let len = varint(block, &mut at)?;
                let target = take(block, &mut at, len)?;
                table.insert(name.clone(), [b"ref: ", target].concat());
            }
            _ => return None,
        }
    }
    Some(())
}

fn take<'a>(bytes: &'a [u8], at: &mut usize, len: usize) -> Option<&'a [u8]> {
    let taken = bytes.get(*at..at.checked_add(len)?)?;
    *at += len;
    Some(taken)
}

fn number24(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + 3)?;
    Some(usize::from(bytes[0]) << 16 | usize::from(bytes[1]) << 8 | usize::from(bytes[2]))
}
