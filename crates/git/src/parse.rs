//! What commits, tags and trees say. Parsed where they lie, and only as far as it is needed.

use super::error::GitError;
use super::id::{HashKind, ObjectId};

/// A commit's head.
pub(super) struct Commit<'a> {
    pub tree: ObjectId,
    pub parents: Vec<ObjectId>,
    pub author: Option<Signature<'a>>,
    /// When it was committed; 0 when it does not say.
    pub time: i64,
}

impl<'a> Commit<'a> {
    pub fn parse(id: &ObjectId, data: &'a [u8]) -> Result<Commit<'a>, GitError> {
        let mut tree = None;
        let mut commit = (Vec::new(), None, 0);
        for (name, value) in header(data) {
            match name {
                b"tree" => tree = tree.or_else(|| ObjectId::from_hex(value)),
                b"parent" => commit.0.extend(ObjectId::from_hex(value)),
                b"author" => commit.1 = Signature::parse(value),
                b"committer" => commit.2 = Signature::parse(value).map_or(0, |signature| signature.time),
                _ => {}
            }
        }
        let (parents, author, time) = commit;
        let tree = tree.ok_or_else(|| GitError::corrupt(format!("commit {id}"), "it names no tree"))?;
        Ok(Commit { tree, parents, author, time })
    }
}

/// A tag's head.
pub(super) struct Tag<'a> {
    pub target: ObjectId,
    pub tagger: Option<Signature<'a>>,
}

impl<'a> Tag<'a> {
    pub fn parse(id: &ObjectId, data: &'a [u8]) -> Result<Tag<'a>, GitError> {
        let (mut target, mut tagger) = (None, None);
        for (name, value) in header(data) {
            match name {
                b"object" => target = ObjectId::from_hex(value),
                b"tagger" => tagger = Signature::parse(value),
                _ => {}
            }
        }
        let target = target.ok_or_else(|| GitError::corrupt(format!("tag {id}"), "it names no object"))?;
        Ok(Tag { target, tagger })
    }
}

/// The lines before the message: a name and a value each.
fn header(data: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    data.split(|&byte| byte == b'\n').take_while(|line| !line.is_empty()).filter_map(|line| {
        let space = line.iter().position(|&byte| byte == b' ')?;
        Some((&line[..space], &line[space + 1..]))
    })
}

/// Who and when.
pub(super) struct Signature<'a> {
    /// Name and address, as `Name <address>`.
    pub who: &'a [u8],
    /// Seconds since 1970.
    pub time: i64,
}

impl<'a> Signature<'a> {
    fn parse(line: &'a [u8]) -> Option<Signature<'a>> {
        let end = line.iter().rposition(|&byte| byte == b'>')? + 1;
        let rest = std::str::from_utf8(&line[end..]).ok()?;
        let time = rest.split_ascii_whitespace().next().and_then(|time| time.parse().ok()).unwrap_or(0);
        Some(Signature { who: &line[..end], time })
    }
}

/// What an entry of a tree is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EntryKind {
    Tree,
    Blob,
    /// A commit of another repository.
    Submodule,
}

impl EntryKind {
    pub fn from_mode(mode: u32) -> EntryKind {
        match mode >> 12 {
            0o04 => EntryKind::Tree,
            0o16 => EntryKind::Submodule,
            _ => EntryKind::Blob,
        }
    }
}

pub(super) struct TreeEntry<'a> {
    pub kind: EntryKind,
    pub name: &'a [u8],
    pub id: ObjectId,
}

/// The entries of a tree; ends with an error where it is damaged.
pub(super) fn tree_entries(
    tree: ObjectId,
    mut data: &[u8],
    hash: HashKind,
) -> impl Iterator<Item = Result<TreeEntry<'_>, GitError>> {
    std::iter::from_fn(move || {
        if data.is_empty() {
            return None;
        }
        let entry = next_entry(&mut data, hash);
        if entry.is_none() {
            data = &[];
        }
        Some(entry.ok_or_else(|| GitError::corrupt(format!("tree {tree}"), "an entry is cut short")))
    })
}

fn next_entry<'a>(data: &mut &'a [u8], hash: HashKind) -> Option<TreeEntry<'a>> {
    let space = data.iter().position(|&byte| byte == b' ')?;
    let mode = data[..space].iter().try_fold(0u32, |mode, &byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 8)?;
        mode.checked_mul(8)?.checked_add(u32::from(digit))
    })?;
    let rest = &data[space + 1..];
    let nul = rest.iter().position(|&byte| byte == 0)?;
    let (id, after) = rest[nul + 1..].split_at_checked(hash.len())?;
    *data = after;
    Some(TreeEntry { kind: EntryKind::from_mode(mode), name: &rest[..nul], id: ObjectId::from_bytes(id)? })
}

/// A number in as many bytes as it needs, as the index, packs and tables of references have it.
pub(super) fn varint(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut next = || {
        let byte = *bytes.get(*at)?;
        *at += 1;
        Some(byte)
    };
    let mut byte = next()?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = next()?;
        value = (value + 1).checked_mul(128)? | usize::from(byte & 0x7f);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_told_apart_from_its_time() {
        let check = |line: &str, who: &str, time| {
            let signature = Signature::parse(line.as_bytes()).unwrap();
            assert_eq!((signature.who, signature.time), (who.as_bytes(), time), "{line}");
        };
        check("A U Thor <a@example.com> 1700000000 +0100", "A U Thor <a@example.com>", 1_700_000_000);
        check("odd > name <a> -5 +0000", "odd > name <a>", -5);
        check("no time <a>", "no time <a>", 0);
        assert!(Signature::parse(b"nobody").is_none());
    }

    #[test]
    fn a_tree_that_is_cut_short_is_an_error_and_not_a_shorter_tree() {
        let id = ObjectId::from_bytes(&[7; 20]).unwrap();
        let mut data = b"100644 a\0".to_vec();
        data.extend([1; 20]);
        data.extend(b"40000 b\0");
        data.extend([2; 19]);
        let entries: Vec<_> = tree_entries(id, &data, HashKind::Sha1).collect();
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].as_ref().unwrap().name, b"a");
        assert!(entries[1].is_err());
        assert!(next_entry(&mut &b"99999999999999999999 a\0"[..], HashKind::Sha1).is_none());
    }
}
