//! Listing one folder, one level deep, as the kernel streams it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use async_trait::async_trait;
use domesday_connector::{ConnectorError, Listing};
use domesday_model::{ObjectKey, Reason, RecordKind, UnitRecord, VersionMarks};
use rustix::fs::{AtFlags, Dir, FileType, Stat, fstat, statat};

use super::Tree;
use super::ignores::FolderIgnores;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

pub(super) fn begin(tree: &Arc<Tree>, container: &ObjectKey) -> Result<Box<dyn Listing>, ConnectorError> {
    let failed = |error: &io::Error| ConnectorError::io("list", error);
    let folder = tree.root.open_folder(container).map_err(|error| failed(&error))?;
    let entries = match &tree.config.only {
        Some(only) => Entries::One(Some(only.0.clone())),
        // The same open folder, not another opening of it: for that, its names being readable is too little.
        None => {
            let entries = folder.try_clone().map_err(|error| failed(&error))?;
            Entries::All(Dir::new(entries).map_err(|errno| failed(&errno.into()))?)
        }
    };
    Ok(Box::new(FolderListing { tree: Arc::clone(tree), key: container.clone(), folder, entries }))
}

enum Entries {
    All(Dir),
    /// The one file that was asked for.
    One(Option<Vec<u8>>),
}

impl Entries {
    fn next_name(&mut self) -> Option<rustix::io::Result<Vec<u8>>> {
        match self {
            Entries::All(dir) => loop {
                match dir.read()? {
                    Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
                    read => return Some(read.map(|entry| entry.file_name().to_bytes().to_vec())),
                }
            },
            Entries::One(name) => name.take().map(Ok),
        }
    }
}

struct FolderListing {
    tree: Arc<Tree>,
    key: ObjectKey,
    folder: OwnedFd,
    entries: Entries,
}

#[async_trait]
impl Listing for FolderListing {
    async fn next_batch(&mut self, max: usize) -> Result<Vec<UnitRecord>, ConnectorError> {
        let ignores = self.tree.ignores.for_folder(&self.tree.root, &self.key);
        let mut records = Vec::new();
        while records.len() < max {
            match self.entries.next_name() {
                None => break,
                Some(Ok(name)) => records.push(self.record(&ignores, name)),
                Some(Err(errno)) => return Err(ConnectorError::io("list", &errno.into())),
            }
        }
        Ok(records)
    }
}

impl FolderListing {
    fn record(&self, ignores: &FolderIgnores<'_>, name: Vec<u8>) -> UnitRecord {
        let stat = match statat(&self.folder, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            // Gone or out of reach between the listing and now: a file to be read, and reading it will
            // tell why it could not be.
            Err(_) => return record(RecordKind::File, name, None, None),
        };
        let key = self.key.join(&name);
        let kind = FileType::from_raw_mode(stat.st_mode);
        // A file named on the command line is scanned, whatever the patterns say.
        if self.tree.config.only.is_none() && ignores.excludes(&key, kind.is_dir()) {
            return skipped(name, &stat, Reason::Excluded);
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
            Ok(target) if self.tree.config.only.is_none() && ignores.excludes(&key, is_folder(&target)) => {
                skipped(name, &stat, Reason::Excluded)
            }
            Ok(target) => self.classify(name, &target),
            Err(rustix::io::Errno::LOOP) => skipped(name, &stat, Reason::SymlinkLoop),
            Err(_) => skipped(name, &stat, Reason::DanglingSymlink),
        }
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
