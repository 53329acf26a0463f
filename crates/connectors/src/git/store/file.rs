//! Files of the object store, read at places with `pread` and never mapped: a pack that is cut short
//! under the scan is a read error, where a mapping would end the process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::git::error::GitError;
use crate::git::files::open_regular;

/// A file that stays open, or, where there are too many, one that is opened for each use.
pub(in crate::git) struct StoreFile {
    path: PathBuf,
    held: Option<File>,
    len: u64,
    /// What tells it from every other file this process opened.
    number: u64,
}

static NUMBERS: AtomicU64 = AtomicU64::new(0);

impl StoreFile {
    pub fn open(path: PathBuf, hold: bool) -> Result<StoreFile, GitError> {
        let opened = open_regular(&path).and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|error| GitError::io(&path, error))?;
        Ok(StoreFile {
            path,
            held: hold.then_some(file),
            len: metadata.len(),
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// Reads some bytes at `offset`: as many as fit `buf` and are there.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, GitError> {
        let outcome = match &self.held {
            Some(file) => fill_at(file, buf, offset),
            None => open_regular(&self.path).and_then(|file| fill_at(&file, buf, offset)),
        };
        outcome.map_err(|error| GitError::io(&self.path, error))
    }

    /// Fills `buf` from `offset`, or the file is damaged.
    pub fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<(), GitError> {
        match self.read_at(buf, offset)? {
            got if got == buf.len() => Ok(()),
            _ => Err(self.corrupt("it ends too early")),
        }
    }

    pub fn corrupt(&self, detail: impl Into<String>) -> GitError {
        GitError::corrupt(self.path.display(), detail)
    }
}

fn fill_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buf.len() {
        match file.read_at(&mut buf[filled..], offset.saturating_add(filled as u64)) {
            Ok(0) => break,
            Ok(got) => filled += got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
