//! The container of older Office documents and of Outlook messages (CFB, also called OLE2): which kind it is, and
//! whether it is encrypted. Only the directory and the beginning of one stream are read, within limits.

use memchr::memmem;

use super::{Bytes, UnsupportedFormat};

/// The name where the directory does not say which kind it is.
pub(super) const NAME: &str = "ole2";

/// Length of the header, and of the sectors unless it says otherwise, bytes.
const HEADER_LEN: usize = 512;
/// Sectors of the table that the header itself lists.
const TABLES_IN_HEADER: usize = 109;
/// Sectors of the directory that are read.
const DIRECTORY_SECTORS_MAX: usize = 64;
/// Length of a directory entry, bytes; its name is in the first half, in UTF-16.
const ENTRY_LEN: usize = 128;
/// Bytes of a workbook's stream that are searched for the record of the encryption.
const WORKBOOK_BEGIN: usize = 256;

/// What a stream or storage of this name makes of the container. Of an encrypted package the kind is not known.
const KINDS: &[(&str, &str)] = &[
    ("EncryptedPackage", "ooxml"),
    ("WordDocument", "doc"),
    ("Workbook", "xls"),
    ("Book", "xls"),
    ("PowerPoint Document", "ppt"),
    ("VisioDocument", "vsd"),
    ("__properties_version1.0", "msg"),
];

struct Container<'a, 'b> {
    bytes: &'a Bytes<'b>,
    header: Vec<u8>,
}

pub(super) fn format(bytes: &Bytes<'_>) -> UnsupportedFormat {
    let container = Container { bytes, header: bytes.at(0, HEADER_LEN) };
    let entries = container.entries();
    let named = |name: &str| entries.iter().find(|(known, _)| known == name);
    for (stream, kind) in KINDS {
        let Some((_, sector)) = named(stream) else { continue };
        let is_encrypted = match *kind {
            "ooxml" => true,
            "doc" => container.is_encrypted_word(*sector),
            "xls" => container.is_encrypted_workbook(*sector),
            "ppt" => named("EncryptedSummary").is_some(),
            _ => false,
        };
        return UnsupportedFormat { name: kind, is_encrypted };
    }
    UnsupportedFormat { name: NAME, is_encrypted: names_encryption(bytes.begin) }
}

/// Whether a directory entry of an encrypted package is in these bytes.
pub(super) fn names_encryption(bytes: &[u8]) -> bool {
    let name: Vec<u8> = "EncryptedPackage\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    memmem::find(bytes, &name).is_some()
}

impl Container<'_, '_> {
    fn number(&self, at: usize) -> u32 {
        le32(&self.header, at)
    }

    /// 512 bytes, or 4,096 in newer files.
    fn sector_len(&self) -> usize {
        if self.header.get(30) == Some(&12) { 4096 } else { HEADER_LEN }
    }

    /// So many bytes of a sector.
    fn sector(&self, sector: u32, len: usize) -> Vec<u8> {
        self.bytes.at((u64::from(sector) + 1) * self.sector_len() as u64, len)
    }

    /// The sector after this one in its chain. The end, and what is in no table that the header lists, has none.
    fn next(&self, sector: u32) -> Option<u32> {
        let per_table = self.sector_len() / 4;
        let table = Some(sector as usize / per_table).filter(|&table| table < TABLES_IN_HEADER)?;
        let table_sector = self.number(76 + 4 * table);
        let at = (u64::from(table_sector) + 1) * self.sector_len() as u64
            + (sector as usize % per_table * 4) as u64;
        let next = self.bytes.at(at, 4);
        (next.len() == 4).then(|| le32(&next, 0)).filter(|&next| next < 0xffff_fffa)
    }

    /// The names in the directory, and the first sector of each.
    fn entries(&self) -> Vec<(String, u32)> {
        let mut entries = Vec::new();
        let mut sector = Some(self.number(48));
        for _ in 0..DIRECTORY_SECTORS_MAX {
            let Some(at) = sector else { break };
            entries.extend(self.sector(at, self.sector_len()).chunks_exact(ENTRY_LEN).filter_map(entry));
            sector = self.next(at);
        }
        entries
    }

    /// The header of a Word document has a flag for it.
    fn is_encrypted_word(&self, sector: u32) -> bool {
        const ENCRYPTED: u8 = 1;
        matches!(self.sector(sector, 12)[..], [0xec, 0xa5, .., flags] if flags & ENCRYPTED != 0)
    }

    /// Among the first records of a workbook is one with what it takes to open it.
    fn is_encrypted_workbook(&self, sector: u32) -> bool {
        const FILE_PASS: [u8; 2] = [0x2f, 0];
        let begin = self.sector(sector, WORKBOOK_BEGIN);
        let mut records = &begin[..];
        while let Some((&[a, b, low, high], rest)) = records.split_first_chunk::<4>() {
            if [a, b] == FILE_PASS {
                return true;
            }
            records = rest.get(usize::from(u16::from_le_bytes([low, high]))..).unwrap_or(&[]);
        }
        false
    }
}

fn entry(entry: &[u8]) -> Option<(String, u32)> {
    let len = usize::from(u16::from_le_bytes([entry[64], entry[65]])).checked_sub(2)?;
    let units = entry.get(..len.min(64))?.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
    let name: String =
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    Some((name, le32(entry, 116)))
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}
