//! Files of the object store, read at places with `pread` and never mapped: a pack that is cut short
//! under the scan is a read error, where a mapping would end the process. A small one may be read whole, which
//! spares all further reads.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::GitError;
use crate::files::open_regular;

/// A file that stays open, or, where there are too many, one that is opened for each use.
pub(crate) struct StoreFile {
    path: PathBuf,
    held: Option<File>,
    len: u64,
    /// All of it, if it may be held in memory and could be read.
    whole: OnceLock<Option<Vec<u8>>>,
    /// After how many questions for its bytes it is read whole; `None`: never.
    held_after: Option<u64>,
    asked: AtomicU64,
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
            whole: OnceLock::new(),
            held_after: None,
            asked: AtomicU64::new(0),
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

    /// Lets it be held in memory, once its bytes were asked for so often.
    pub fn hold(&mut self, after: u64) {
        self.held_after = Some(after);
    }

    /// The bytes from `offset` on, if they are in memory. Others need not wait for the thread that reads them.
    pub fn held_from(&self, offset: u64) -> Option<&[u8]> {
        let after = self.held_after?;
        if self.whole.get().is_none() && self.asked.fetch_add(1, Ordering::Relaxed) == after {
            self.whole.get_or_init(|| {
                let mut whole = vec![0; self.len as usize];
                self.read_exact_at(&mut whole, 0).ok().map(|()| whole)
            });
        }
        self.whole.get()?.as_ref()?.get(usize::try_from(offset).ok()?..)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_held_once_it_was_asked_for_often_enough() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "0123456789").unwrap();
        let mut file = StoreFile::open(path.clone(), true).unwrap();
        assert!((0..9).all(|_| file.held_from(0).is_none()), "it may not be held");
        file.hold(2);
        let held: Vec<_> = (0..4).map(|offset| file.held_from(offset)).collect();
        assert_eq!(held, [None, None, Some(&b"23456789"[..]), Some(b"3456789")]);
        assert_eq!((file.held_from(10), file.held_from(11)), (Some(&b""[..]), None));
        let mut short = StoreFile::open(path.clone(), true).unwrap();
        short.hold(0);
        std::fs::write(path, "0").unwrap();
        assert_eq!(short.held_from(0), None, "cut short: reading it tells");
    }
}
