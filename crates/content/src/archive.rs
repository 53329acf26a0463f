//! Archives as the rest of the program sees them: entries, one after another, whatever the format.

use crate::error::ContentError;
use crate::input::Input;
use crate::tar::Tar;
use crate::unsupported::{OfficeEntries, UnsupportedFormat};
use crate::zip::Zip;

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

/// An open archive. Directories, links and special files are passed over, but take an ordinal.
pub struct Archive {
    kind: Kind,
    finished: bool,
    office: OfficeEntries,
}

enum Kind {
    Tar(Tar),
    Zip(Box<Zip>),
}

impl Archive {
    pub(crate) fn tar(tar: Tar) -> Self {
        Archive { kind: Kind::Tar(tar), finished: false, office: OfficeEntries::default() }
    }

    pub(crate) fn zip(zip: Zip) -> Self {
        Archive { kind: Kind::Zip(Box::new(zip)), finished: false, office: OfficeEntries::default() }
    }

    /// The next file. An error that is not [`ContentError::fatal`] concerns the one entry it names, and
    /// more may follow; after a fatal one there is nothing more.
    pub fn next_entry(&mut self) -> Option<Result<Entry, ContentError>> {
        if self.finished {
            return None;
        }
        let mut next = match &mut self.kind {
            Kind::Tar(tar) => tar.next_file().transpose(),
            Kind::Zip(zip) => zip.next_file().transpose(),
        };
        if let (Kind::Zip(_), Some(Ok(entry))) = (&self.kind, &mut next) {
            self.office.meet(entry);
        }
        self.finished = match &next {
            None => true,
            Some(Err(error)) => error.fatal(),
            Some(Ok(_)) => false,
        };
        next
    }

    /// The document that the archive is, once all its entries were met: they are read, and its text as such is not.
    pub fn document(&self) -> Option<UnsupportedFormat> {
        self.office.document()
    }

    /// Whether entries may be read in any order and on any thread. Otherwise an entry must be read or
    /// dropped before the next one is asked for.
    pub fn independent(&self) -> bool {
        match &self.kind {
            Kind::Tar(tar) => tar.independent(),
            Kind::Zip(zip) => zip.independent(),
        }
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
