//! Recognises containers by their first bytes. Runs for every object, so it looks at a few bytes of the
//! head only; and it checks more than the magic number, because whatever is taken for a container is not
//! scanned as it stands.

use std::io;

use crate::input::ReadAt;
use crate::{tar, zip};

/// Bytes [`detect`] wants to see: a tar header is recognised by the checksum over all of it.
pub const HEAD_LEN: usize = 512;

/// A container or compressor, or a file that is a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    Zip,
    Tar,
    Gzip,
    Bzip2,
    Xz,
    Zstd,
    Sqlite,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Format::Zip => "zip",
            Format::Tar => "tar",
            Format::Gzip => "gzip",
            Format::Bzip2 => "bzip2",
            Format::Xz => "xz",
            Format::Zstd => "zstd",
            Format::Sqlite => "sqlite",
        }
    }
}

/// Zip methods by number that are in use, whether readable here or not.
fn zip_method_known(method: u16) -> bool {
    matches!(method, 0..=20 | 93..=99)
}

/// What the bytes that begin with `head` are, if they are a container.
pub fn detect(head: &[u8]) -> Option<Format> {
    let found = match *head.first()? {
        b'P' if is_zip(head) => Format::Zip,
        0x1f if is_gzip(head) => Format::Gzip,
        b'B' if is_bzip2(head) => Format::Bzip2,
        0xfd if is_xz(head) => Format::Xz,
        0x28 | 0x50..=0x5f if is_zstd(head) => Format::Zstd,
        b'S' if is_sqlite(head) => Format::Sqlite,
        _ if tar::is_header(head) => Format::Tar,
        _ => return None,
    };
    Some(found)
}

/// As [`detect`], and looks at the end of executables and scripts for the zip that self-extracting
/// archives carry there.
pub fn detect_seekable(head: &[u8], bytes: &dyn ReadAt) -> io::Result<Option<Format>> {
    if let Some(format) = detect(head) {
        return Ok(Some(format));
    }
    let carrier = [&b"MZ"[..], b"\x7fELF", b"#!"].iter().any(|magic| head.starts_with(magic));
    Ok(if carrier && zip::find_end(bytes)?.is_some() { Some(Format::Zip) } else { None })
}

fn is_zip(head: &[u8]) -> bool {
    let head = match head.first_chunk::<4>() {
        // Marks of a split archive that came to fit one part.
        Some(b"PK\x07\x08" | b"PK00") => &head[4..],
        _ => head,
    };
    match head.first_chunk::<10>() {
        Some(local) if local.starts_with(b"PK\x03\x04") => {
            local[4] < 100 && zip_method_known(u16::from_le_bytes([local[8], local[9]]))
        }
        // The end record of an empty archive: no entries, no directory.
        _ => head.starts_with(b"PK\x05\x06") && head.len() >= 22 && head[4..20].iter().all(|&b| b == 0),
    }
}

fn is_gzip(head: &[u8]) -> bool {
    const EXTRA_FIELDS: u8 = 0b0001_1110;
    let Some(&[0x1f, 0x8b, 8, flags, ..]) = head.first_chunk::<10>() else { return false };
    // Three flags are reserved; and where data follows at once, so is one of the four block types.
    let block_type = head.get(10).map_or(0, |byte| byte >> 1 & 3);
    flags & 0xe0 == 0 && (flags & EXTRA_FIELDS != 0 || block_type != 3)
}

fn is_bzip2(head: &[u8]) -> bool {
    const BLOCK: [u8; 6] = [0x31, 0x41, 0x59, 0x26, 0x53, 0x59];
    const END: [u8; 6] = [0x17, 0x72, 0x45, 0x38, 0x50, 0x90];
    head.starts_with(b"BZh")
        && head.len() >= 10
        && matches!(head[3], b'1'..=b'9')
        && (head[4..10] == BLOCK || head[4..10] == END)
}

fn is_xz(head: &[u8]) -> bool {
    // The stream flags after the magic number have 12 reserved bits.
    head.starts_with(b"\xfd7zXZ\0\0") && head.get(7).is_some_and(|check| check & 0xf0 == 0)
}

fn is_zstd(mut head: &[u8]) -> bool {
    // Skippable frames belong to other formats as well: a frame of zstd must be seen behind them.
    while let Some((&[0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d], rest)) = head.split_first_chunk::<8>() {
        let len = u32::from_le_bytes([a, b, c, d]) as usize;
        head = rest.get(len..).unwrap_or(&[]);
    }
    head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) && head.get(4).is_some_and(|descriptor| descriptor & 8 == 0)
}

fn is_sqlite(head: &[u8]) -> bool {
    let Some((magic, rest)) = head.split_first_chunk::<16>() else { return false };
    let Some(&[page_high, page_low, write, read, _, most, least, leaf]) = rest.first_chunk::<8>() else {
        return false;
    };
    let page_size = u16::from_be_bytes([page_high, page_low]);
    // The version for writing may be of the future, that for reading not; three fractions never vary.
    magic == b"SQLite format 3\0"
        && (page_size == 1 || page_size.is_power_of_two() && page_size >= 512)
        && write >= 1
        && matches!(read, 1 | 2)
        && (most, least, leaf) == (64, 32, 32)
}
