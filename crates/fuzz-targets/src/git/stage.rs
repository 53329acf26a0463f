//! A repository in a folder of its own, whose files are written by hand: no `git` is run for an input.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use domesday_git::GitConfig;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use sha1::{Digest, Sha1};
use tempfile::TempDir;

/// Where there is storage in memory; elsewhere the usual place for temporary files is taken.
const MEMORY: &str = "/dev/shm";

pub struct Stage {
    folder: TempDir,
    git_dir: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Commit = 1,
    Tree = 2,
    Blob = 3,
    Tag = 4,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Commit, Kind::Tree, Kind::Blob, Kind::Tag];

    fn name(self) -> &'static str {
        match self {
            Kind::Commit => "commit",
            Kind::Tree => "tree",
            Kind::Blob => "blob",
            Kind::Tag => "tag",
        }
    }
}

/// An entry of a pack.
pub struct Entry {
    kind: u8,
    content: Vec<u8>,
}

const OFFSET_DELTA: u8 = 6;
const ID_DELTA: u8 = 7;

impl Entry {
    pub fn new(kind: u8, content: &[u8]) -> Entry {
        Entry { kind, content: content.to_vec() }
    }

    /// Whether it stands in the pack as it is, head and all.
    fn is_raw(&self) -> bool {
        !matches!(self.kind, 1..=4 | OFFSET_DELTA | ID_DELTA)
    }
}

/// The entries of a small pack in which everything is right: a blob, two deltas of it, a tree, a commit.
pub fn sound_entries() -> Vec<Entry> {
    let delta = |base: u8| [&[base, 12, 12, 0x90, 12][..]].concat();
    vec![
        Entry::new(3, b"twelve bytes"),
        Entry::new(OFFSET_DELTA, &delta(0)),
        Entry::new(ID_DELTA, &delta(0)),
        Entry::new(2, b""),
        Entry::new(1, b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nm\n"),
    ]
}

impl Stage {
    /// A bare repository without objects.
    pub fn new() -> Stage {
        let folder = Stage::folder();
        Stage { git_dir: folder.path().to_owned(), folder }.set_up()
    }

    /// One with files beside it.
    pub fn worktree() -> Stage {
        let folder = Stage::folder();
        fs::write(folder.path().join("file"), "some text\n").unwrap();
        Stage { git_dir: folder.path().join(".git"), folder }.set_up()
    }

    fn folder() -> TempDir {
        let memory = Path::new(MEMORY);
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        tempfile::Builder::new().prefix("fuzz-git-").tempdir_in(parent).unwrap()
    }

    fn set_up(self) -> Stage {
        for folder in ["objects/pack", "objects/info", "refs/heads", "refs/tags", "reftable", "info"] {
            fs::create_dir_all(self.git_dir.join(folder)).unwrap();
        }
        self.write("HEAD", b"ref: refs/heads/main\n");
        self
    }

    pub fn config(&self) -> GitConfig {
        GitConfig::new(self.folder.path().to_owned())
    }

    /// Reading must not write: a file that is not ours would be somebody's.
    pub fn check(&self) {
        assert!(self.git_dir.join("objects").is_dir(), "a repository that was read is still there");
    }

    pub fn write(&self, name: &str, content: &[u8]) {
        fs::write(self.git_dir.join(name), content).unwrap();
    }

    /// A commit with a file, and a branch that leads to it.
    pub fn history(&self) {
        let blob = self.loose(Kind::Blob, b"some text\n");
        let tree = self.loose(Kind::Tree, &[b"100644 file\0", &blob[..]].concat());
        let commit = format!("tree {}\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nm\n", hex(&tree));
        let commit = self.loose(Kind::Commit, commit.as_bytes());
        self.write("refs/heads/main", hex(&commit).as_bytes());
    }

    /// Writes a loose object; its id.
    pub fn loose(&self, kind: Kind, content: &[u8]) -> [u8; 20] {
        let object = [format!("{} {}\0", kind.name(), content.len()).as_bytes(), content].concat();
        let id: [u8; 20] = Sha1::digest(&object).into();
        let name = hex(&id);
        let folder = self.git_dir.join("objects").join(&name[..2]);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(&name[2..]), deflate(&object)).unwrap();
        id
    }

    /// Writes a pack of these entries, and an index that says where they begin.
    pub fn pack(&self, entries: &[Entry]) {
        let mut pack = [&b"PACK\0\0\0\x02"[..], &(entries.len() as u32).to_be_bytes()].concat();
        let mut placed: Vec<([u8; 20], u32)> = Vec::new();
        for entry in entries {
            let at = pack.len();
            let id = id_of(entry);
            put(&mut pack, entry, &placed);
            placed.push((id, at as u32));
        }
        let sum: [u8; 20] = Sha1::digest(&pack).into();
        pack.extend_from_slice(&sum);
        self.write("objects/pack/pack-1.pack", &pack);
        placed.sort_unstable();
        placed.dedup_by_key(|(id, _)| *id);
        self.write("objects/pack/pack-1.idx", &index(&placed, &sum));
    }
}

/// The id of a whole object; of a delta, whose content is not known here, one that is its own.
fn id_of(entry: &Entry) -> [u8; 20] {
    let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == entry.kind);
    let name = kind.map_or("delta", Kind::name);
    let head = format!("{name} {}\0", entry.content.len());
    Sha1::new().chain_update(head).chain_update(&entry.content).finalize().into()
}

/// Appends an entry to a pack. A delta's first byte says which of those before is its base.
fn put(pack: &mut Vec<u8>, entry: &Entry, placed: &[([u8; 20], u32)]) {
    if entry.is_raw() {
        return pack.extend_from_slice(&entry.content);
    }
    let at = pack.len() as u32;
    let (base, content) = match (entry.kind, entry.content.split_first()) {
        (OFFSET_DELTA | ID_DELTA, Some((which, delta))) => {
            (placed.get(usize::from(*which) % placed.len().max(1)).copied(), delta)
        }
        _ => (None, entry.content.as_slice()),
    };
    let (id, offset) = base.unwrap_or(([0; 20], 0));
    let mut size = content.len();
    let mut byte = entry.kind << 4 | (size & 15) as u8;
    size >>= 4;
    while size > 0 {
        pack.push(byte | 0x80);
        byte = (size & 0x7f) as u8;
        size >>= 7;
    }
    pack.push(byte);
    match entry.kind {
        OFFSET_DELTA => pack.extend(back(at - offset)),
        ID_DELTA => pack.extend_from_slice(&id),
        _ => {}
    }
    pack.extend(deflate(content));
}

/// How far back a base begins, as packs write it.
fn back(mut distance: u32) -> Vec<u8> {
    let mut bytes = vec![(distance & 0x7f) as u8];
    distance >>= 7;
    while distance > 0 {
        distance -= 1;
        bytes.push(0x80 | (distance & 0x7f) as u8);
        distance >>= 7;
    }
    bytes.reverse();
    bytes
}

/// An index of the second version.
fn index(placed: &[([u8; 20], u32)], pack: &[u8; 20]) -> Vec<u8> {
    let mut index = b"\xfftOc\0\0\0\x02".to_vec();
    for first in 0..=u8::MAX {
        let count = placed.iter().filter(|(id, _)| id[0] <= first).count() as u32;
        index.extend(count.to_be_bytes());
    }
    index.extend(placed.iter().flat_map(|(id, _)| *id));
    index.extend(placed.iter().flat_map(|_| [0; 4]));
    index.extend(placed.iter().flat_map(|(_, offset)| offset.to_be_bytes()));
    index.extend_from_slice(pack);
    let sum: [u8; 20] = Sha1::digest(&index).into();
    index.extend_from_slice(&sum);
    index
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn hex(id: &[u8; 20]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text with ids in the places of `$0` to `$9`, and their bytes in those of `%0` to `%9`.
pub fn with_ids(text: &[u8], ids: &[[u8; 20]]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let digit = after.first().filter(|byte| byte.is_ascii_digit()).map(|byte| usize::from(byte - b'0'));
        match (first, digit.and_then(|digit| ids.get(digit))) {
            (b'$', Some(id)) => out.extend(hex(id).into_bytes()),
            (b'%', Some(id)) => out.extend_from_slice(id),
            _ => {
                out.push(first);
                rest = after;
                continue;
            }
        }
        rest = &after[1..];
    }
    out
}
