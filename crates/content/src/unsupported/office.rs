//! Office documents that are zip archives: OOXML, OpenDocument, iWork and XPS.
//!
//! Their entries are scanned like those of any archive. The text is not read as text, for markup divides it: a number of
//! which one half is bold is not found. So the document is named once all its entries were met, by their names.

use super::UnsupportedFormat;
use crate::archive::Entry;
use crate::input::Input;
use crate::source::Source;

/// Bytes of an OpenDocument manifest that are searched: of an encrypted document each entry says so.
const MANIFEST_BEGIN: usize = 32 << 10;
/// Bytes of the entry that names the type of an OpenDocument file.
const TYPE_MAX: usize = 128;

/// What the entries of an archive that were met so far make of it.
#[derive(Default)]
pub(crate) struct OfficeEntries {
    has_content_types: bool,
    ooxml: Option<&'static str>,
    other: Option<&'static str>,
    is_encrypted: bool,
}

impl OfficeEntries {
    /// Notes an entry; looks into the two that say what an OpenDocument file is.
    pub(crate) fn meet(&mut self, entry: &mut Entry) {
        match &entry.name[..] {
            b"[Content_Types].xml" => self.has_content_types = true,
            b"mimetype" => self.other = peek(entry, TYPE_MAX, open_document),
            b"META-INF/manifest.xml" if self.other.is_some() => {
                let says = |begin: &[u8]| memchr::memmem::find(begin, b"encryption-data").is_some();
                self.is_encrypted = peek(entry, MANIFEST_BEGIN, says);
            }
            name if name.starts_with(b"word/") => self.ooxml = Some("docx"),
            name if name.starts_with(b"xl/") => self.ooxml = Some("xlsx"),
            name if name.starts_with(b"ppt/") => self.ooxml = Some("pptx"),
            name if name.starts_with(b"visio/") => self.ooxml = Some("vsdx"),
            name if name.ends_with(b".fdseq") => self.other = Some("xps"),
            name if name.starts_with(b"Index/") && name.ends_with(b".iwa") => self.other = Some("iwork"),
            _ => {}
        }
    }

    /// The document that the archive is, if it is one.
    pub(crate) fn document(&self) -> Option<UnsupportedFormat> {
        let name = self.ooxml.filter(|_| self.has_content_types).or(self.other)?;
        Some(UnsupportedFormat { name, is_encrypted: self.is_encrypted })
    }
}

fn open_document(mimetype: &[u8]) -> Option<&'static str> {
    let kind = mimetype.strip_prefix(b"application/vnd.oasis.opendocument.")?;
    Some(match kind {
        kind if kind.starts_with(b"text") => "odt",
        kind if kind.starts_with(b"spreadsheet") => "ods",
        kind if kind.starts_with(b"presentation") => "odp",
        kind if kind.starts_with(b"graphics") => "odg",
        _ => "odf",
    })
}

/// Looks at the beginning of an entry, which is read whole all the same.
fn peek<T>(entry: &mut Entry, len: usize, look: impl FnOnce(&[u8]) -> T) -> T {
    let input = std::mem::replace(&mut entry.input, Input::Stream(Box::new(std::io::empty())));
    let mut source = Source::new(input.into_read());
    let seen = look(source.peek(len));
    entry.input = Input::Stream(Box::new(source));
    seen
}
