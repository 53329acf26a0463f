//! The formats whose inside is read: what [`FORMATS`] lists, a [`Definition`] each beside its reader.
//!
//! A format is recognised by its first bytes, for every object; so nearly all are ruled out by the first byte. A
//! definition checks more than the magic number, because whatever is taken for a container is not scanned as it stands.
//! Of formats that are recognised and not read, `unsupported` knows the names.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::archive::EntryReader;
use crate::budget::Budget;
use crate::codec::{Compressor, bzip2, deflate, xz, zstd};
use crate::error::ContentError;
use crate::input::{Input, ReadAt};
use crate::table::OpenTables;
use crate::{sqlite, tar, zip};

/// Bytes [`detect`] wants to see: a tar header is recognised by the checksum over all of it.
pub const HEAD_LEN: usize = 512;

/// Every format that is read. Of two that an object may be, the first one counts. Who adds or removes one raises
/// `domesday_engine::VERSION`: what was scanned before is scanned again.
static FORMATS: [&Definition; 7] = [
    &zip::FORMAT,
    &deflate::GZIP_FORMAT,
    &bzip2::FORMAT,
    &xz::FORMAT,
    &zstd::FORMAT,
    &sqlite::FORMAT,
    &tar::FORMAT,
];

/// What a format is, and how its inside is read.
pub(crate) struct Definition {
    /// Stable: reports show it.
    pub name: &'static str,
    /// The first bytes that there may be; none given where any byte may be the first.
    pub begins: &'static [u8],
    /// By up to [`HEAD_LEN`] bytes from the beginning.
    pub recognise: fn(&[u8]) -> bool,
    /// By the head and any other place, for what the head alone does not show.
    pub recognise_end: Option<RecogniseEnd>,
    pub inside: Inside,
}

/// Recognises a format by its head and by any other place.
pub(crate) type RecogniseEnd = fn(&[u8], &dyn ReadAt) -> io::Result<bool>;

/// Opens the entries of an object that is at the given depth.
pub(crate) type OpenEntries = fn(Input, &Arc<Budget>, u32) -> Result<Box<dyn EntryReader>, ContentError>;

/// What is inside.
pub(crate) enum Inside {
    /// One stream of bytes.
    Stream(&'static Compressor),
    /// Entries, one after another.
    Entries(OpenEntries),
    /// Tables, read at any place.
    Tables(OpenTables),
}

/// A format whose inside is read.
#[derive(Clone, Copy)]
pub struct Format(pub(crate) &'static Definition);

impl Format {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Format> {
        FORMATS.iter().map(|&definition| Format(definition))
    }

    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Whether there is one stream of bytes inside, and not objects or tables.
    pub fn is_stream(self) -> bool {
        matches!(self.0.inside, Inside::Stream(_))
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Format {}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// By the first byte of an object, whether a format that says how it begins may begin so.
static MAY_BEGIN: [bool; 256] = {
    let mut may_begin = [false; 256];
    let mut format = 0;
    while format < FORMATS.len() {
        let begins = FORMATS[format].begins;
        let mut at = 0;
        while at < begins.len() {
            may_begin[begins[at] as usize] = true;
            at += 1;
        }
        format += 1;
    }
    may_begin
};

/// What the bytes that begin with `head` are, if their inside is read.
pub fn detect(head: &[u8]) -> Option<Format> {
    let first = head.first()?;
    let may_begin = MAY_BEGIN[usize::from(*first)];
    Format::all().find(|format| {
        let Definition { begins, recognise, .. } = format.0;
        (begins.is_empty() || may_begin && begins.contains(first)) && recognise(head)
    })
}

/// As [`detect`], and looks at other places where the head alone does not tell.
pub fn detect_seekable(head: &[u8], bytes: &dyn ReadAt) -> io::Result<Option<Format>> {
    if let Some(format) = detect(head) {
        return Ok(Some(format));
    }
    for format in Format::all() {
        if let Some(recognise_end) = format.0.recognise_end
            && recognise_end(head, bytes)?
        {
            return Ok(Some(format));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats_apart() {
        let mut names: Vec<_> = Format::all().map(Format::name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FORMATS.len());
    }
}
