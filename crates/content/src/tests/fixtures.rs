//! Makes archives, byte by byte where a library would refuse to write what is tested.

use std::io::{Read, Write};

use flate2::{Compression, Crc};

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    bzip2::read::BzEncoder::new(bytes, bzip2::Compression::best()).read_to_end(&mut out).unwrap();
    out
}

pub(super) fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    liblzma::read::XzEncoder::new(bytes, 1).read_to_end(&mut out).unwrap();
    out
}

pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 3).unwrap()
}

pub(super) fn crc(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Bytes that do not compress and are always the same.
pub(super) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}

/// A tar header and its data, padded.
pub(super) fn tar_member(name: &[u8], typeflag: u8, size_field: &[u8], data: &[u8]) -> Vec<u8> {
    let mut block = [0u8; 512];
    block[..name.len()].copy_from_slice(name);
    block[100..108].copy_from_slice(b"0000644\0");
    block[108..116].copy_from_slice(b"0001750\0");
    block[116..124].copy_from_slice(b"0001750\0");
    block[124..124 + size_field.len()].copy_from_slice(size_field);
    block[136..148].copy_from_slice(b"14000000000\0");
    block[148..156].copy_from_slice(b"        ");
    block[156] = typeflag;
    block[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut out = block.to_vec();
    out.extend_from_slice(data);
    out.resize(out.len().next_multiple_of(512), 0);
    out
}

pub(super) fn tar_file(name: &str, data: &[u8]) -> Vec<u8> {
    tar_member(name.as_bytes(), b'0', format!("{:011o}\0", data.len()).as_bytes(), data)
}

pub(super) fn tar_meta(typeflag: u8, data: &[u8]) -> Vec<u8> {
    tar_member(b"meta", typeflag, format!("{:011o}\0", data.len()).as_bytes(), data)
}

pub(super) const TAR_END: [u8; 1024] = [0; 1024];

pub(super) fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out: Vec<u8> = files.iter().flat_map(|(name, data)| tar_file(name, data)).collect();
    out.extend(TAR_END);
    out
}

/// One entry of a hand-made zip.
#[derive(Clone)]
pub(super) struct Member {
    pub name: Vec<u8>,
    pub method: u16,
    pub flags: u16,
    pub crc: u32,
    pub packed: Vec<u8>,
    pub size: u64,
    /// Sizes in the zip64 extra field.
    pub zip64: bool,
    /// Unix mode, shifted into the external attributes.
    pub mode: u32,
}

pub(super) const DESCRIBED_AFTER: u16 = 8;

impl Member {
    pub fn new(name: &str, method: u16, data: &[u8]) -> Member {
        let packed = match method {
            8 => deflate(data),
            12 => bzip2(data),
            93 => zstd(data),
            95 => xz(data),
            _ => data.to_vec(),
        };
        let name = name.as_bytes().to_vec();
        Member {
            name,
            method,
            flags: 0,
            crc: crc(data),
            packed,
            size: data.len() as u64,
            zip64: false,
            mode: 0o100644,
        }
    }

    fn common(&self, sizes_known: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let (crc, packed, size) = match (sizes_known, self.zip64) {
            (false, _) => (0, 0, 0),
            (true, true) => (self.crc, u32::MAX, u32::MAX),
            (true, false) => (self.crc, self.packed.len() as u32, self.size as u32),
        };
        out.extend(45u16.to_le_bytes());
        out.extend(self.flags.to_le_bytes());
        out.extend(self.method.to_le_bytes());
        out.extend([0; 4]);
        out.extend(crc.to_le_bytes());
        out.extend(packed.to_le_bytes());
        out.extend(size.to_le_bytes());
        out.extend((self.name.len() as u16).to_le_bytes());
        out
    }

    fn zip64_extra(&self, offset: Option<u64>) -> Vec<u8> {
        if !self.zip64 {
            return Vec::new();
        }
        let mut numbers = vec![self.size, self.packed.len() as u64];
        numbers.extend(offset);
        // Behind a field of another kind, to be passed over.
        let mut out = vec![0x99, 0x99, 2, 0, 7, 7, 1, 0, numbers.len() as u8 * 8, 0];
        numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
        out
    }

    pub fn local(&self) -> Vec<u8> {
        let described_after = self.flags & DESCRIBED_AFTER != 0;
        let extra = if described_after { Vec::new() } else { self.zip64_extra(None) };
        let mut out = b"PK\x03\x04".to_vec();
        out.extend(self.common(!described_after));
        out.extend((extra.len() as u16).to_le_bytes());
        out.extend(&self.name);
        out.extend(extra);
        out.extend(&self.packed);
        if described_after {
            out.extend(b"PK\x07\x08");
            out.extend(self.crc.to_le_bytes());
            out.extend((self.packed.len() as u32).to_le_bytes());
            out.extend((self.size as u32).to_le_bytes());
        }
        out
    }

    pub fn central(&self, offset: u64) -> Vec<u8> {
        let extra = self.zip64_extra(Some(offset));
        let mut out = b"PK\x01\x02\x2d\x03".to_vec();
        out.extend(self.common(true));
        out.extend((extra.len() as u16).to_le_bytes());
        out.extend([0; 6]);
        out.extend((self.mode << 16).to_le_bytes());
        out.extend((if self.zip64 { u32::MAX } else { offset as u32 }).to_le_bytes());
        out.extend(&self.name);
        out.extend(extra);
        out
    }
}

/// The end of a zip whose directory is `len` bytes at `offset`.
pub(super) fn zip_end(entries: u64, len: u64, offset: u64, zip64: bool) -> Vec<u8> {
    let mut out = Vec::new();
    if zip64 {
        let at = offset + len;
        out.extend(b"PK\x06\x06");
        out.extend(44u64.to_le_bytes());
        out.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        [entries, entries, len, offset].iter().for_each(|number| out.extend(number.to_le_bytes()));
        out.extend(b"PK\x06\x07\0\0\0\0");
        out.extend(at.to_le_bytes());
        out.extend(1u32.to_le_bytes());
    }
    out.extend(b"PK\x05\x06\0\0\0\0");
    let (entries, len, offset) =
        if zip64 { (u16::MAX, u32::MAX, u32::MAX) } else { (entries as u16, len as u32, offset as u32) };
    out.extend(entries.to_le_bytes());
    out.extend(entries.to_le_bytes());
    out.extend(len.to_le_bytes());
    out.extend(offset.to_le_bytes());
    out.extend([0, 0]);
    out
}

pub(super) fn zip_of(members: &[Member]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for member in members {
        directory.extend(member.central(out.len() as u64));
        out.extend(member.local());
    }
    let zip64 = members.iter().any(|member| member.zip64);
    let end = zip_end(members.len() as u64, directory.len() as u64, out.len() as u64, zip64);
    out.extend(directory);
    out.extend(end);
    out
}

pub(super) fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    zip_of(&files.iter().map(|(name, data)| Member::new(name, 8, data)).collect::<Vec<_>>())
}
