//! The index of a worktree: what would be committed. What it says of the files themselves is not read.

use super::error::GitError;
use super::files::{LARGE_FILE_MAX, read_file};
use super::id::{HashKind, ObjectId};
use super::parse::{EntryKind, varint};
use super::repository::Repository;

const HEADER_LEN: usize = 12;
/// Times, numbers and sizes of the file before the id. The mode is among them.
const STAT_LEN: usize = 40;
const MODE_AT: usize = 24;
/// The flag that says that there are more flags.
const EXTENDED: u16 = 0x4000;
/// The flags that tell the sides of a conflict apart; zero without one.
const SIDES: u16 = 0x3000;
/// Bytes of a path, at most: each of a few bytes of an index may make its path longer.
const PATH_LEN_MAX: usize = 8_192;

/// A staged file or folder.
pub(super) struct Entry<'a> {
    pub kind: EntryKind,
    pub id: ObjectId,
    pub path: &'a [u8],
    /// One side of a conflict.
    pub is_side: bool,
}

/// Calls `each` with every staged file or folder. No index: nothing is staged.
pub(super) fn each_entry(
    repository: &Repository,
    mut each: impl FnMut(Entry<'_>) -> Result<(), GitError>,
) -> Result<(), GitError> {
    let path = &repository.index;
    let Some(bytes) = read_file(path, LARGE_FILE_MAX)? else { return Ok(()) };
    let damaged = |detail: &str| GitError::corrupt(path.display(), detail);
    let header = bytes.get(..HEADER_LEN).filter(|header| header.starts_with(b"DIRC"));
    let header = header.ok_or_else(|| damaged("it does not begin as an index does"))?;
    let (version, count) = (number(header, 4), number(header, 8));
    if !(2..=4).contains(&version) {
        return Err(GitError::Unsupported(format!("{}: index version {version}", path.display())));
    }
    let mut entries =
        Entries { bytes: &bytes, at: HEADER_LEN, hash: repository.store.hash, version, path: Vec::new() };
    for _ in 0..count {
        let (kind, id, is_side) = entries.next().ok_or_else(|| damaged("an entry is cut short"))?;
        each(Entry { kind, id, path: &entries.path, is_side })?;
    }
    if entries.has_extension(b"link") {
        return Err(GitError::Unsupported(format!(
            "{}: a split index; `git update-index --no-split-index` joins it",
            path.display()
        )));
    }
    Ok(())
}

/// The big-endian number at this place.
fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

struct Entries<'a> {
    bytes: &'a [u8],
    at: usize,
    hash: HashKind,
    version: u32,
    /// The path of the entry that was read last.
    path: Vec<u8>,
}

impl<'a> Entries<'a> {
    fn next(&mut self) -> Option<(EntryKind, ObjectId, bool)> {
        let start = self.at;
        let rest = self.bytes.get(start..)?;
        let stat = rest.get(..STAT_LEN)?;
        let id = ObjectId::from_bytes(rest.get(STAT_LEN..STAT_LEN + self.hash.len())?)?;
        let mut at = STAT_LEN + self.hash.len();
        let flags = rest.get(at..at + 2)?;
        let flags = u16::from_be_bytes([flags[0], flags[1]]);
        at += if self.version >= 3 && flags & EXTENDED != 0 { 4 } else { 2 };
        if self.version == 4 {
            // A path is what it has in common with the last one, and the rest.
            let cut = varint(rest, &mut at)?;
            self.path.truncate(self.path.len().checked_sub(cut)?);
        } else {
            self.path.clear();
        }
        let name = rest.get(at..)?;
        let end = name.iter().position(|&byte| byte == 0)?;
        self.path.extend_from_slice(&name[..end]);
        if self.path.len() > PATH_LEN_MAX {
            return None;
        }
        at += end + 1;
        if self.version < 4 {
            // Filled up with zeros to eights, at least one.
            at = (at - 1) / 8 * 8 + 8;
        }
        self.at = start + at;
        Some((EntryKind::from_mode(number(stat, MODE_AT)), id, flags & SIDES != 0))
    }

    fn has_extension(&self, wanted: &[u8; 4]) -> bool {
        let end = self.bytes.len().saturating_sub(self.hash.len());
        let mut at = self.at;
        while let Some(head) = self.bytes.get(at..at + 8).filter(|_| at + 8 <= end) {
            if head[..4] == *wanted {
                return true;
            }
            at += 8 + u32::from_be_bytes([head[4], head[5], head[6], head[7]]) as usize;
        }
        false
    }
}
