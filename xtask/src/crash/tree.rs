//! The tree that is scanned: made once for a seed, and kept.
//!
//! It has what recovery could stumble over: a folder far too large for one batch, folders without
//! entries, names that are no text, archives in archives, archives that end too soon, links.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::content::Contents;

/// Changes with what is generated, so that an older tree is not taken for this one.
const VERSION: u64 = 2;
/// One in so many of the large folder's entries has something in it.
const MANY_PLANTED_EVERY: u64 = 40;
/// Files in one ordinary folder.
const FOLDER_FILES: u64 = 24;
/// One in so many ordinary files has no planted value.
const CLEAN_EVERY: u64 = 4;
/// Files of several chunks.
const LARGE_FILES: u64 = 3;
const LARGE_BLOCKS: u64 = 12;
const LARGE_BLOCK_LINES: u64 = 8_000;
/// Folders inside each other.
const DEPTH: u64 = 40;

/// How much of what is in a tree; the rest of it is always the same.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Ordinary files, in many small folders.
    pub files: u64,
    /// Entries of the one large folder, most of them empty files.
    pub many: u64,
    /// Small files full of values in one folder.
    pub dense: u64,
    /// Archives of each kind.
    pub archives: u64,
}

pub struct Tree {
    pub path: PathBuf,
    /// Values of the counted rule that every complete scan finds.
    pub planted: u64,
}

/// The tree of this seed below `folder`, made if it is not there yet.
pub fn prepare(folder: &Path, seed: u64, shape: Shape) -> Result<Tree> {
    let Shape { files, many, dense, archives } = shape;
    let folder = folder.join(format!("tree-{seed}-{files}-{many}-{dense}-{archives}"));
    let (path, marker) = (folder.join("tree"), folder.join("complete.json"));
    let known: Option<Value> = fs::read(&marker).ok().and_then(|text| serde_json::from_slice(&text).ok());
    if let Some(known) = known
        && known["version"] == VERSION
        && let Some(planted) = known["planted"].as_u64()
    {
        return Ok(Tree { path, planted });
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let mut maker = Maker { contents: Contents::new(seed) };
    maker.make(&path, shape).with_context(|| format!("cannot make the tree {}", path.display()))?;
    let planted = maker.contents.planted;
    // Last, so that a tree that was cut short is made again.
    fs::write(marker, json!({ "version": VERSION, "planted": planted }).to_string())?;
    Ok(Tree { path, planted })
}

struct Maker {
    contents: Contents,
}

impl Maker {
    fn make(&mut self, root: &Path, shape: Shape) -> Result<()> {
        self.ordinary(&root.join("ordinary"), shape.files)?;
        self.many(&root.join("many"), shape.many)?;
        self.dense(&root.join("dense"), shape.dense)?;
        self.archives(&root.join("archives"), shape.archives)?;
        self.odd(&root.join("odd"))?;
        self.large(&root.join("large"))?;
        self.deep(root.join("deep"))?;
        links(&root.join("links"))
    }

    fn ordinary(&mut self, folder: &Path, files: u64) -> Result<()> {
        for number in 0..files.div_ceil(FOLDER_FILES) {
            let leaf = folder.join(format!("{}/{}/{number}", number % 7, number % 31));
            fs::create_dir_all(&leaf)?;
            for file in 0..FOLDER_FILES.min(files - number * FOLDER_FILES) {
                let text = match self.contents.random().below(CLEAN_EVERY) {
                    0 => self.contents.prose(10),
                    _ => self.contents.planted(),
                };
                fs::write(leaf.join(format!("{file}.txt")), text)?;
            }
        }
        Ok(())
    }

    fn many(&mut self, folder: &Path, entries: u64) -> Result<()> {
        fs::create_dir_all(folder)?;
        for number in 0..entries {
            let text = if number % MANY_PLANTED_EVERY == 0 { self.contents.dense() } else { String::new() };
            fs::write(folder.join(format!("entry-{number}")), text)?;
        }
        Ok(())
    }

    fn dense(&mut self, folder: &Path, files: u64) -> Result<()> {
        fs::create_dir_all(folder)?;
        for number in 0..files {
            fs::write(folder.join(format!("{number}.env")), self.contents.dense())?;
        }
        Ok(())
    }

    fn archives(&mut self, folder: &Path, each: u64) -> Result<()> {
        fs::create_dir_all(folder)?;
        for number in 0..each {
            fs::write(folder.join(format!("{number}.zip")), self.contents.zip()?)?;
            fs::write(folder.join(format!("{number}.tar.gz")), self.contents.tar_gz(number % 2 == 0)?)?;
            fs::write(folder.join(format!("{number}.txt.gz")), self.contents.gzip()?)?;
            if number % 6 == 0 {
                fs::write(folder.join(format!("cut-{number}.zip")), self.contents.truncated_zip()?)?;
                fs::write(folder.join(format!("cut-{number}.gz")), self.contents.truncated_gzip()?)?;
            }
        }
        Ok(())
    }

    fn odd(&mut self, folder: &Path) -> Result<()> {
        let names: &[&[u8]] = &[
            b"with space",
            b"new\nline",
            b"\xff\xfe not text",
            b"-dash",
            b".hidden",
            "n\u{e4}me".as_bytes(),
            b"quote\"and\\back",
            b"\x1b[31mred",
            &[b'n'; 255],
        ];
        for name in names {
            let inner = folder.join(OsStr::from_bytes(name));
            fs::create_dir_all(&inner)?;
            fs::write(inner.join(OsStr::from_bytes(name)), self.contents.planted())?;
        }
        for number in 0..20 {
            fs::create_dir_all(folder.join(format!("empty/{number}")))?;
        }
        Ok(())
    }

    fn large(&mut self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        for number in 0..LARGE_FILES {
            let block = self.contents.prose(LARGE_BLOCK_LINES);
            let text: String = (0..LARGE_BLOCKS).map(|_| self.contents.planted() + &block).collect();
            fs::write(folder.join(format!("{number}.log")), text)?;
        }
        Ok(())
    }

    fn deep(&mut self, mut folder: PathBuf) -> Result<()> {
        for level in 0..DEPTH {
            folder.push(format!("level-{level}"));
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("file.txt"), self.contents.planted())?;
        }
        Ok(())
    }
}

fn links(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    symlink("../deep/level-0/file.txt", folder.join("to-file"))?;
    symlink("../ordinary", folder.join("to-folder"))?;
    symlink("nowhere", folder.join("dangling"))?;
    symlink("loop", folder.join("loop"))?;
    Ok(())
}
