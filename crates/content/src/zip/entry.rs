//! An entry found through the directory: reads its local header when first read, then unpacks its range
//! of the archive and checks size and checksum at the end. Independent of all other entries.

use std::io::{self, Read};
use std::sync::Arc;

use domesday_model::Reason;
use flate2::Crc;

use super::record::{LOCAL, LOCAL_LEN, Method, Record};
use crate::budget::{Budget, Metered};
use crate::codec::Unpacked;
use crate::error::ContentError;
use crate::input::{Cursor, ReadAt, Section, read_full_at};
use crate::source::Source;

pub(super) struct ZipEntry {
    record: Record,
    ordinal: u32,
    budget: Arc<Budget>,
    body: Body,
}

enum Body {
    /// The local header, to be read, is at `offset`.
    Closed {
        bytes: Arc<dyn ReadAt>,
        offset: u64,
    },
    Open(Box<dyn Read + Send>),
    Failed(ContentError),
}

impl ZipEntry {
    pub(super) fn new(
        record: Record,
        ordinal: u32,
        bytes: Arc<dyn ReadAt>,
        base: u64,
        budget: &Arc<Budget>,
    ) -> Self {
        let body = match base.checked_add(record.offset) {
            Some(offset) => Body::Closed { bytes, offset },
            None => Body::Failed(ContentError::damaged("the entry lies outside the archive")),
        };
        ZipEntry { record, ordinal, budget: Arc::clone(budget), body }
    }

    fn open(&self, bytes: &Arc<dyn ReadAt>, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let mut fixed = [0; LOCAL_LEN];
        if read_full_at(&**bytes, &mut fixed, offset)? < LOCAL_LEN || !fixed.starts_with(&LOCAL) {
            return Err(ContentError::damaged("the entry has no local header where the directory says"));
        }
        let (_, variable) = Record::local_lengths(&fixed);
        let start = offset.saturating_add((LOCAL_LEN + variable) as u64);
        let section = Section::new(Arc::clone(bytes), start, self.record.packed);
        let fetched = Fetched { inner: Cursor::new(Arc::new(section), 0), budget: Arc::clone(&self.budget) };
        let inner: Box<dyn Read + Send> = match self.record.method {
            Method::Packed(compressor) => {
                Box::new(Unpacked::new(Source::sized(Box::new(fetched), self.record.packed), compressor))
            }
            _ => Box::new(fetched),
        };
        let verified = Verified { inner, check: Check::new(Some((self.record.crc, self.record.size))) };
        Ok(Box::new(Metered::new(verified, &self.budget)))
    }

    /// Damage inside an entry leaves its neighbours readable; a limit stops them all.
    fn name_entry(&self, error: ContentError) -> ContentError {
        match error.reason() {
            Reason::DamagedArchive | Reason::UnsupportedArchive => {
                error.only(&self.record.name, self.ordinal)
            }
            _ => error,
        }
    }
}

impl Read for ZipEntry {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Body::Closed { bytes, offset } = &self.body {
            self.body = match self.open(bytes, *offset) {
                Ok(open) => Body::Open(open),
                Err(error) => Body::Failed(self.name_entry(error)),
            };
        }
        match &mut self.body {
            Body::Open(open) => open.read(out).map_err(|error| match ContentError::from_io(&error) {
                Some(known) => self.name_entry(known.clone()).into_io(),
                None => error,
            }),
            Body::Failed(error) => Err(error.clone().into_io()),
            Body::Closed { .. } => Ok(0),
        }
    }
}

/// Counts packed bytes as they are fetched, as the ranges of entries may overlap.
struct Fetched {
    inner: Cursor,
    budget: Arc<Budget>,
}

impl Read for Fetched {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(out)?;
        self.budget.take_fetched(got as u64).map_err(ContentError::into_io)?;
        Ok(got)
    }
}

/// Size and checksum of what was unpacked, against what was promised.
pub(super) struct Check {
    actual: Crc,
    size: u64,
    promised: Option<(u32, u64)>,
}

impl Check {
    /// Promises may come after the data.
    pub(super) fn new(promised: Option<(u32, u64)>) -> Self {
        Check { actual: Crc::new(), size: 0, promised }
    }

    pub(super) fn promise(&mut self, crc: u32, size: u64) {
        self.promised = Some((crc, size));
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.actual.update(bytes);
        self.size += bytes.len() as u64;
    }

    /// Bytes seen so far.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn verify(&self) -> Result<(), ContentError> {
        match self.promised {
            Some((_, size)) if size != self.size => {
                Err(ContentError::damaged(format!("the entry has {} bytes instead of {size}", self.size)))
            }
            Some((crc, _)) if crc != self.actual.sum() => {
                Err(ContentError::damaged("the checksum of the entry is wrong"))
            }
            _ => Ok(()),
        }
    }
}

/// Checks at the end of the data, after all of it was handed out.
struct Verified {
    inner: Box<dyn Read + Send>,
    check: Check,
}

impl Read for Verified {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(out)?;
        if got == 0 && !out.is_empty() {
            self.check.verify().map_err(ContentError::into_io)?;
        }
        self.check.update(&out[..got]);
        Ok(got)
    }
}
