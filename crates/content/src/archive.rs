//! Archives as the rest of the program sees them: entries, one after another, whatever the format.

use crate::error::ContentError;
use crate::input::Input;
use crate::unsupported::UnsupportedFormat;

/// One file in an archive. Owned, so that it can be handed to another thread.
pub struct Entry {
    /// As the archive has it; need not be UTF-8, and must not be used as a path.
    pub name: Vec<u8>,
    /// Position among all entries of the archive, those that are not files included.
    pub ordinal: u32,
    /// Size as declared. The archive may be lying.
    pub size: Option<u64>,
    /// Containers around this entry: hand it to [`crate::unwrap()`] with the entry's input.
    pub depth: u32,
    pub input: Input,
}

/// A format of archives: gives its files one after another.
pub(crate) trait EntryReader: Send {
    /// As [`Archive::next_entry`]; not asked after the end, nor after a fatal error.
    fn next_file(&mut self) -> Result<Option<Entry>, ContentError>;

    /// As [`Archive::independent`].
    fn independent(&self) -> bool;

    /// As [`Archive::document`].
    fn document(&self) -> Option<UnsupportedFormat> {
        None
    }
}

/// An open archive. Directories, links and special files are passed over, but take an ordinal.
pub struct Archive {
    entries: Box<dyn EntryReader>,
    finished: bool,
}

impl Archive {
    pub(crate) fn new(entries: Box<dyn EntryReader>) -> Self {
        Archive { entries, finished: false }
    }

    /// The next file. An error that is not [`ContentError::fatal`] concerns the one entry it names, and
    /// more may follow; after a fatal one there is nothing more.
    pub fn next_entry(&mut self) -> Option<Result<Entry, ContentError>> {
        if self.finished {
            return None;
        }
        let next = self.entries.next_file().transpose();
        self.finished = match &next {
            None => true,
            Some(Err(error)) => error.fatal(),
            Some(Ok(_)) => false,
        };
        next
    }

    /// The document that the archive is, once all its entries were met: they are read, and its text as such is not.
    pub fn document(&self) -> Option<UnsupportedFormat> {
        self.entries.document()
    }

    /// Whether entries may be read in any order and on any thread. Otherwise an entry must be read or
    /// dropped before the next one is asked for.
    pub fn independent(&self) -> bool {
        self.entries.independent()
    }
}

/// Numbers the entries of one archive.
#[derive(Default)]
pub(crate) struct Ordinals(u32);

impl Ordinals {
    pub(crate) fn next(&mut self) -> Result<u32, ContentError> {
        let ordinal = self.0;
        self.0 = ordinal.checked_add(1).ok_or_else(|| {
            let detail = format!("more than {} entries in one archive", u32::MAX);
            ContentError::fatal_for(domesday_model::Reason::EntryLimit, detail)
        })?;
        Ok(ordinal)
    }
}
