//! Zip and its family (jar, war, apk, office documents), read through the central directory.
//!
//! The directory is read record by record, so that a million entries need no more memory than one. Where
//! it is missing or damaged, the local headers in front of the entries are walked instead; and so are they
//! when the archive comes as a stream too large to hold.

mod entry;
mod recognise;
mod record;
mod walk;

use std::io::Read;
use std::sync::Arc;

use domesday_model::Reason;

use self::entry::ZipEntry;
use self::record::{CENTRAL, CENTRAL_LEN, Directory, Method, Record, find_end};
use self::walk::{Ending, Walk};
use crate::archive::{Entry, EntryReader, Ordinals};
use crate::budget::Budget;
use crate::error::ContentError;
use crate::format::{Definition, Inside};
use crate::input::{Broken, Cursor, Held, Input, ReadAt};
use crate::source::Source;
use crate::unsupported::{OfficeEntries, UnsupportedFormat};

pub(crate) static FORMAT: Definition = Definition {
    name: "zip",
    begins: b"P",
    recognise: recognise::is_zip,
    recognise_end: Some(recognise::is_carrier),
    inside: Inside::Entries(|input, budget, depth| Ok(Box::new(Zip::open(input, budget, depth)?))),
};

pub(crate) struct Zip {
    mode: Mode,
    budget: Arc<Budget>,
    depth: u32,
    ordinals: Ordinals,
    office: OfficeEntries,
}

enum Mode {
    Central(Central),
    Walk(Walk),
}

impl Zip {
    /// A zip is read through its directory, which is at its end: one that comes as a stream is held in memory
    /// as far as the budget allows, and beyond that read entry by entry as it comes.
    fn open(input: Input, budget: &Arc<Budget>, depth: u32) -> Result<Zip, ContentError> {
        let mut stream = match input {
            Input::Seekable(bytes) => return Zip::central(bytes, budget, depth),
            Input::Stream(stream) => stream,
        };
        let mut held = Held::new(budget);
        match held.fill(&mut *stream) {
            (true, None) => Zip::central(Arc::new(held), budget, depth),
            // A stream that broke off has no directory: what is there is read as it comes, then the error.
            (true, Some(error)) => Ok(Zip::stream(held.then(Broken::with(error)), budget, depth)),
            (false, _) => Ok(Zip::stream(held.then(stream), budget, depth)),
        }
    }

    /// Through the directory, or along the local headers if there is none.
    fn central(bytes: Arc<dyn ReadAt>, budget: &Arc<Budget>, depth: u32) -> Result<Zip, ContentError> {
        let found = match find_end(&*bytes).map_err(ContentError::from) {
            // The bytes end before they should: no directory, but maybe entries.
            Err(error) if error.reason() == Reason::DamagedArchive => None,
            other => other?,
        };
        let mode = match found {
            Some(directory) if directory.split => {
                return Err(ContentError::unsupported("one part of a split zip archive"));
            }
            Some(directory) => Mode::Central(Central::new(bytes, directory)),
            None => {
                Mode::Walk(walk_from(bytes, None, ContentError::damaged("the zip archive has no directory")))
            }
        };
        Ok(Zip::new(mode, budget, depth))
    }

    /// Along the local headers of a stream.
    fn stream(stream: Box<dyn Read + Send>, budget: &Arc<Budget>, depth: u32) -> Zip {
        let walk = Walk::new(Source::new(stream), Ending::Directory);
        Zip::new(Mode::Walk(walk), budget, depth)
    }

    fn new(mode: Mode, budget: &Arc<Budget>, depth: u32) -> Zip {
        let (ordinals, office) = (Ordinals::default(), OfficeEntries::default());
        Zip { mode, budget: Arc::clone(budget), depth, ordinals, office }
    }

    fn read_file(&mut self) -> Result<Option<Entry>, ContentError> {
        loop {
            let record = match &mut self.mode {
                Mode::Walk(walk) => match walk.next_record(&self.budget)? {
                    Some(record) => record,
                    None => return Ok(None),
                },
                Mode::Central(central) => match central.next_record() {
                    Ok(Some(record)) => record,
                    Ok(None) => return Ok(None),
                    Err(error) if error.reason() == Reason::DamagedArchive => {
                        self.mode = Mode::Walk(walk_from(Arc::clone(&central.bytes), central.last, error));
                        continue;
                    }
                    Err(error) => return Err(error),
                },
            };
            let ordinal = self.ordinals.next()?;
            self.budget.take_entry()?;
            if record.is_file() {
                return self.entry(record, ordinal).map(Some);
            }
        }
    }

    fn entry(&mut self, record: Record, ordinal: u32) -> Result<Entry, ContentError> {
        let refused = match record.method {
            Method::Encrypted => Some((Reason::Encrypted, "the entry is encrypted".to_owned())),
            Method::Unsupported(method) => Some((
                Reason::UnsupportedArchive,
                format!("zip compression method {method} is not supported"),
            )),
            Method::Stored | Method::Packed(_) => None,
        };
        if let Some((reason, detail)) = refused {
            return Err(ContentError::fatal_for(reason, detail).only(&record.name, ordinal));
        }
        let (name, size) = (record.name.clone(), record.size);
        Ok(match &mut self.mode {
            Mode::Central(central) => {
                let bytes = Arc::clone(&central.bytes);
                let reader = ZipEntry::new(record, ordinal, bytes, central.base, &self.budget);
                let input = Input::Stream(Box::new(reader));
                Entry { name, ordinal, size: Some(size), depth: self.depth, input }
            }
            Mode::Walk(walk) => {
                let size = (!record.described_after).then_some(size);
                let input = walk.open(&record, ordinal)?;
                Entry { name, ordinal, size, depth: self.depth, input }
            }
        })
    }
}

impl EntryReader for Zip {
    fn next_file(&mut self) -> Result<Option<Entry>, ContentError> {
        let mut file = self.read_file()?;
        if let Some(entry) = &mut file {
            self.office.meet(entry);
        }
        Ok(file)
    }

    fn independent(&self) -> bool {
        matches!(self.mode, Mode::Central(_))
    }

    fn document(&self) -> Option<UnsupportedFormat> {
        self.office.document()
    }
}

/// Walks the local headers after that of the last entry the directory still told of. Directories are in
/// the order of the entries as good as always, so that none comes twice.
fn walk_from(bytes: Arc<dyn ReadAt>, last: Option<u64>, damage: ContentError) -> Walk {
    let source = Source::new(Box::new(Cursor::new(bytes, last.unwrap_or(0))));
    Walk::new(source, Ending::Damaged { known: last.is_some(), damage })
}

/// The central directory as it streams by.
struct Central {
    bytes: Arc<dyn ReadAt>,
    source: Source,
    base: u64,
    left: u64,
    seen: u64,
    total: u64,
    /// Where the local header of the latest entry is in the bytes.
    last: Option<u64>,
}

impl Central {
    fn new(bytes: Arc<dyn ReadAt>, directory: Directory) -> Self {
        let Directory { start, end, base, total, .. } = directory;
        let left = end.saturating_sub(start);
        let source = Source::sized(Box::new(Cursor::new(Arc::clone(&bytes), start)), left);
        Central { bytes, source, base, left, seen: 0, total, last: None }
    }

    fn next_record(&mut self) -> Result<Option<Record>, ContentError> {
        // Directories of more than 65535 entries without zip64 have a count that wrapped around.
        let complete = self.seen == self.total || (self.seen & 0xffff) == self.total;
        if self.left < CENTRAL_LEN as u64 && complete {
            return Ok(None);
        }
        let Some(&fixed) = self.source.peek(CENTRAL_LEN).first_chunk::<CENTRAL_LEN>() else {
            return Err(self.source.shortfall("its directory"));
        };
        if !fixed.starts_with(&CENTRAL) {
            // Other records, such as a signature, may follow the last entry.
            return if complete {
                Ok(None)
            } else {
                Err(ContentError::damaged("the zip directory is damaged"))
            };
        }
        let (_, variable) = Record::central_lengths(&fixed);
        let whole = self.source.take_exact(CENTRAL_LEN + variable, "its directory")?;
        let record = Record::central(&fixed, &whole[CENTRAL_LEN..]);
        self.left = self.left.saturating_sub(whole.len() as u64);
        self.seen += 1;
        self.last = self.base.checked_add(record.offset).or(self.last);
        Ok(Some(record))
    }
}
