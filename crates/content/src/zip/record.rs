//! The records of a zip: end of central directory, directory entries, local headers. Pure parsing, but for
//! finding the end.

use std::io;

use crate::codec::Compressor;
use crate::codec::bzip2::BZIP2;
use crate::codec::deflate::DEFLATE;
use crate::codec::xz::XZ;
use crate::codec::zstd::ZSTD;
use crate::input::{ReadAt, read_full_at};

pub(super) const LOCAL: [u8; 4] = *b"PK\x03\x04";
pub(super) const CENTRAL: [u8; 4] = *b"PK\x01\x02";
pub(super) const DESCRIPTOR: [u8; 4] = *b"PK\x07\x08";
pub(super) const END: [u8; 4] = *b"PK\x05\x06";
pub(super) const END64: [u8; 4] = *b"PK\x06\x06";
const END64_LOCATOR: [u8; 4] = *b"PK\x06\x07";
/// Length of a local header before its name, bytes.
pub(super) const LOCAL_LEN: usize = 30;
/// Length of a directory record before its name, bytes.
pub(super) const CENTRAL_LEN: usize = 46;
const END_LEN: usize = 22;
const END64_LEN: usize = 56;
const LOCATOR_LEN: u64 = 20;
/// Longest comment after the end record, bytes.
const COMMENT_MAX: usize = u16::MAX as usize;
/// Places that are tried as the end record; more than one only where a comment imitates it.
const END_CANDIDATES_MAX: usize = 64;
/// Stands for a number that is in the zip64 extra field.
const IN_ZIP64: u64 = u32::MAX as u64;

/// Little-endian numbers at fixed places; the callers' slices are long enough by construction.
pub(super) fn le16(record: &[u8], at: usize) -> u16 {
    record.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_le_bytes)
}

pub(super) fn le32(record: &[u8], at: usize) -> u32 {
    record.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

pub(super) fn le64(record: &[u8], at: usize) -> u64 {
    record.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// Where the central directory is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Directory {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Where the archive starts in the bytes: other data may come before it.
    pub(super) base: u64,
    pub(super) total: u64,
    pub(super) split: bool,
}

/// Finds the end record, and through it the directory. `None` when there is none that holds water.
pub(crate) fn find_end(bytes: &dyn ReadAt) -> io::Result<Option<Directory>> {
    let size = bytes.size()?;
    let mut tail = vec![0; size.min((END_LEN + COMMENT_MAX) as u64) as usize];
    let tail_start = size - tail.len() as u64;
    let len = read_full_at(bytes, &mut tail, tail_start)?;
    let records =
        tail[..len].windows(END_LEN).enumerate().rev().filter(|(_, end)| end.first_chunk() == Some(&END));
    for (at, end) in records.take(END_CANDIDATES_MAX) {
        // The comment may hold the bytes of an end record, so each candidate must lead to a directory.
        if let Some(found) = directory(bytes, tail_start + at as u64, end)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn directory(bytes: &dyn ReadAt, end_at: u64, end: &[u8]) -> io::Result<Option<Directory>> {
    let (mut total, mut len, mut offset) =
        (u64::from(le16(end, 10)), u64::from(le32(end, 12)), u64::from(le32(end, 16)));
    let disk = le16(end, 4);
    let mut end_at = end_at;
    if let Some((at, end64)) = find_end64(bytes, end_at)? {
        (total, len, offset) = (le64(&end64, 32), le64(&end64, 40), le64(&end64, 48));
        end_at = at;
    }
    let split = disk != 0 && disk != u16::MAX;
    // The directory ends where the end record starts, so its length tells its place even when other data
    // before the archive makes its offset wrong. An archive with a gap in between has a right offset.
    let places = [end_at.checked_sub(len), Some(offset)];
    for start in places.into_iter().flatten().filter(|&start| start <= end_at) {
        let mut signature = [0; 4];
        read_full_at(bytes, &mut signature, start)?;
        if let Some(base) = start.checked_sub(offset)
            && (signature == CENTRAL || (total == 0 && len == 0) || split)
        {
            return Ok(Some(Directory { start, end: end_at, base, total, split }));
        }
    }
    Ok(None)
}

fn find_end64(bytes: &dyn ReadAt, end_at: u64) -> io::Result<Option<(u64, [u8; END64_LEN])>> {
    let Some(locator_at) = end_at.checked_sub(LOCATOR_LEN) else { return Ok(None) };
    let mut locator = [0; LOCATOR_LEN as usize];
    read_full_at(bytes, &mut locator, locator_at)?;
    if !locator.starts_with(&END64_LOCATOR) {
        return Ok(None);
    }
    // As the locator says; or right before it, where it is when data before the archive shifts all.
    for at in [Some(le64(&locator, 8)), locator_at.checked_sub(END64_LEN as u64)].into_iter().flatten() {
        let mut end64 = [0; END64_LEN];
        if read_full_at(bytes, &mut end64, at)? == END64_LEN && end64.starts_with(&END64) {
            return Ok(Some((at, end64)));
        }
    }
    Ok(None)
}

/// How an entry is packed.
#[derive(Clone, Copy)]
pub(super) enum Method {
    Stored,
    Packed(&'static Compressor),
    Encrypted,
    Unsupported(u16),
}

impl Method {
    fn new(method: u16, flags: u16) -> Method {
        const ENCRYPTED: u16 = 1;
        const METHOD_AES: u16 = 99;
        if flags & ENCRYPTED != 0 || method == METHOD_AES {
            return Method::Encrypted;
        }
        match method {
            0 => Method::Stored,
            8 => Method::Packed(&DEFLATE),
            12 => Method::Packed(&BZIP2),
            93 => Method::Packed(&ZSTD),
            95 => Method::Packed(&XZ),
            other => Method::Unsupported(other),
        }
    }
}

/// What a directory record or a local header says of an entry.
#[derive(Clone)]
pub(super) struct Record {
    pub(super) name: Vec<u8>,
    pub(super) method: Method,
    pub(super) crc: u32,
    pub(super) packed: u64,
    pub(super) size: u64,
    /// Of the local header, from the archive's start. Zero in a local header itself.
    pub(super) offset: u64,
    /// Size and checksum come after the data.
    pub(super) described_after: bool,
    link_or_special: bool,
}

impl Record {
    /// Lengths of the name and of all that follows the fixed part of a directory record.
    pub(super) fn central_lengths(fixed: &[u8; CENTRAL_LEN]) -> (usize, usize) {
        let name = usize::from(le16(fixed, 28));
        (name, name + usize::from(le16(fixed, 30)) + usize::from(le16(fixed, 32)))
    }

    pub(super) fn central(fixed: &[u8; CENTRAL_LEN], variable: &[u8]) -> Record {
        const HOST_UNIX: u8 = 3;
        const HOST_MAC: u8 = 19;
        let (name, extra) = variable.split_at(usize::from(le16(fixed, 28)).min(variable.len()));
        let extra = &extra[..usize::from(le16(fixed, 30)).min(extra.len())];
        let mut numbers = [24, 20, 42].map(|at| u64::from(le32(fixed, at)));
        fill_from_zip64(extra, &mut numbers);
        let [size, packed, offset] = numbers;
        let unix = matches!(fixed[5], HOST_UNIX | HOST_MAC);
        // The kind of file in a Unix mode: 8 is a regular file, 0 none given.
        let kind = le32(fixed, 38) >> 28;
        Record {
            name: name.to_vec(),
            method: Method::new(le16(fixed, 10), le16(fixed, 8)),
            crc: le32(fixed, 16),
            packed,
            size,
            offset,
            described_after: false,
            link_or_special: unix && !matches!(kind, 0 | 4 | 8),
        }
    }

    /// Lengths of the name and of all that follows the fixed part of a local header.
    pub(super) fn local_lengths(fixed: &[u8]) -> (usize, usize) {
        let name = usize::from(le16(fixed, 26));
        (name, name + usize::from(le16(fixed, 28)))
    }

    pub(super) fn local(fixed: &[u8], variable: &[u8]) -> Record {
        const DESCRIBED_AFTER: u16 = 8;
        let (name, extra) = variable.split_at(usize::from(le16(fixed, 26)).min(variable.len()));
        let mut numbers = [22, 18].map(|at| u64::from(le32(fixed, at)));
        fill_from_zip64(extra, &mut numbers);
        let flags = le16(fixed, 6);
        Record {
            name: name.to_vec(),
            method: Method::new(le16(fixed, 8), flags),
            crc: le32(fixed, 14),
            packed: numbers[1],
            size: numbers[0],
            offset: 0,
            described_after: flags & DESCRIBED_AFTER != 0,
            link_or_special: false,
        }
    }

    /// Whether there is content to read. A directory that has some is not passed over.
    pub(super) fn is_file(&self) -> bool {
        let directory = self.name.ends_with(b"/") && self.size == 0 && self.packed == 0;
        !directory && !self.link_or_special
    }
}

/// Replaces the numbers that did not fit 32 bits, in the order the zip64 field has them.
fn fill_from_zip64(mut extra: &[u8], numbers: &mut [u64]) {
    const ZIP64: u16 = 1;
    while extra.len() >= 4 {
        let (kind, len) = (le16(extra, 0), usize::from(le16(extra, 2)));
        let Some(mut field) = extra.get(4..4 + len) else { return };
        if kind == ZIP64 {
            for number in numbers.iter_mut().filter(|number| **number == IN_ZIP64) {
                if field.len() < 8 {
                    return;
                }
                *number = le64(field, 0);
                field = &field[8..];
            }
            return;
        }
        extra = &extra[4 + len..];
    }
}
