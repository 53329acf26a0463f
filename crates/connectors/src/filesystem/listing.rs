//! Listing one folder, one level deep, as the kernel streams it.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use async_trait::async_trait;
use domesday_connector::{ConnectorError, Listing};
use domesday_model::{ObjectKey, Reason, RecordKind, UnitRecord, VersionMarks};
use domesday_scheduler::Moved;
use rustix::fs::{AtFlags, FileType, RawDir, Stat, fstat, statat};

use super::Tree;
use super::ignores::FolderIgnores;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Entries that the kernel is asked for at once, in bytes of its buffer: 32 KiB.
const ENTRIES_LEN: usize = 32 << 10;

pub(super) fn begin(tree: &Arc<Tree>, container: &ObjectKey) -> Result<Box<dyn Listing>, ConnectorError> {
    let folder = tree.root.open_folder(container).map_err(|error| ConnectorError::io("list", &error))?;
    let ignores = tree.ignores.for_folder(&tree.root, container, folder.as_fd());
    Ok(Box::new(FolderListing {
        tree: Arc::clone(tree),
        key: container.clone(),
        folder,
        ignores,
        waiting: VecDeque::new(),
        ended: false,
        moved: Moved::default(),
    }))
}

struct FolderListing {
    tree: Arc<Tree>,
    key: ObjectKey,
    folder: OwnedFd,
    ignores: FolderIgnores,
    /// Of what the kernel gave last, what did not fit a batch.
    waiting: VecDeque<UnitRecord>,
    ended: bool,
    moved: Moved,
}

#[async_trait]
impl Listing for FolderListing {
    async fn next_batch(&mut self, max: usize) -> Result<Vec<UnitRecord>, ConnectorError> {
        while self.waiting.len() < max && !self.ended {
            self.read_on().map_err(|errno| ConnectorError::io("list", &errno.into()))?;
        }
        let len = self.waiting.len().min(max);
        Ok(self.waiting.drain(..len).collect())
    }

    fn watch(&mut self, moved: &Moved) {
        self.moved = moved.clone();
    }
}

impl FolderListing {
    /// Asks the kernel once, and looks at each entry it gave.
    fn read_on(&mut self) -> rustix::io::Result<()> {
        // The one file that was asked for.
        if let Some(only) = &self.tree.config.only {
            self.ended = true;
            self.waiting.push_back(self.record(only.as_bytes().to_vec()));
            return Ok(());
        }
        // On the stack: folders are many, and a block of this size is dear to get and to give back.
        let mut buffer = [MaybeUninit::uninit(); ENTRIES_LEN];
        let mut entries = RawDir::new(&self.folder, &mut buffer);
        loop {
            let Some(entry) = entries.next() else {
                self.ended = true;
                break;
            };
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                self.waiting.push_back(self.record(name.to_vec()));
            }
            if entries.is_buffer_empty() {
                break;
            }
        }
        Ok(())
    }

    fn record(&self, name: Vec<u8>) -> UnitRecord {
        // Each costs a question to a file system that may be far away.
        self.moved.add(1);
        let stat = match statat(&self.folder, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            // Gone or out of reach between the listing and now: a file to be read, and reading it will
            // tell why it could not be.
            Err(_) => return record(RecordKind::File, name, None, None),
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        if let Some(reason) = self.excludes(&name, kind.is_dir()) {
            return skipped(name, &stat, reason);
        }
        if !kind.is_symlink() {
            return self.classify(name, &stat);
        }
        if !self.tree.config.follow_symlinks && self.tree.config.only.is_none() {
            return skipped(name, &stat, Reason::Symlink);
        }
        match statat(&self.folder, name.as_slice(), AtFlags::empty()) {
            Ok(target) if is_folder(&target) && self.is_above(&target) => {
                skipped(name, &stat, Reason::SymlinkLoop)
            }
            // A pattern for folders means what a link leads to, once it is followed.
            Ok(target) => match self.excludes(&name, is_folder(&target)) {
                Some(reason) => skipped(name, &stat, reason),
                None => self.classify(name, &target),
            },
            Err(rustix::io::Errno::LOOP) => skipped(name, &stat, Reason::SymlinkLoop),
            Err(_) => skipped(name, &stat, Reason::DanglingSymlink),
        }
    }

    /// A file named on the command line is scanned, whatever the patterns say.
    fn excludes(&self, name: &[u8], is_folder: bool) -> Option<Reason> {
        let is_whole = self.tree.config.only.is_none();
        is_whole.then(|| self.ignores.excludes(&self.key, name, is_folder)).flatten()
    }

    fn classify(&self, name: Vec<u8>, stat: &Stat) -> UnitRecord {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if self.tree.own_state == Some((stat.st_dev, stat.st_ino)) => {
                skipped(name, stat, Reason::OwnState)
            }
            FileType::Directory => record(RecordKind::Directory, name, Some(stat), None),
            FileType::RegularFile => match self.tree.config.max_file_size {
                Some(max) if stat.st_size.cast_unsigned() > max => skipped(name, stat, Reason::TooLarge),
                _ => record(RecordKind::File, name, Some(stat), None),
            },
            _ => skipped(name, stat, Reason::SpecialFile),
        }
    }

    /// Whether a link's target is this folder or one above it on the way from the root: following it
    /// would never end. Every endless way passes such a link, so looking at these is enough.
    fn is_above(&self, target: &Stat) -> bool {
        let mut above = Some(self.key.clone());
        while let Some(key) = above {
            let found = self.tree.root.open_folder(&key).and_then(|folder| Ok(fstat(folder)?));
            if found.is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (target.st_dev, target.st_ino)) {
                return true;
            }
            above = key.parent();
        }
        false
    }
}

fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode).is_dir()
}

fn skipped(name: Vec<u8>, stat: &Stat, reason: Reason) -> UnitRecord {
    record(RecordKind::Skipped, name, Some(stat), Some(reason))
}

fn record(kind: RecordKind, name: Vec<u8>, stat: Option<&Stat>, reason: Option<Reason>) -> UnitRecord {
    let size = stat.map_or(0, |stat| stat.st_size.cast_unsigned());
    let marks = stat.map_or_else(VersionMarks::default, |stat| VersionMarks {
        mtime_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
        ctime_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
        inode: stat.st_ino,
        tag: None,
    });
    UnitRecord { kind, name, size, marks, reason, metadata: None }
}

fn nanoseconds(seconds: i64, nanos: u64) -> i64 {
    seconds.saturating_mul(NANOS_PER_SECOND).saturating_add(nanos.cast_signed())
}
