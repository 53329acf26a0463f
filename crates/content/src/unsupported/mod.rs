//! Formats that are recognised by content and not read: documents, archives, data files, disk images, mail stores, and
//! pointers to what is kept elsewhere.
//!
//! Their bytes are scanned as they stand, which finds little in what is compressed or encrypted. So each is named in the
//! report. Pictures, audio, video, fonts and programs are deliberately absent: they hold no text to read, and a tree has
//! very many of them.
//!
//! Runs for every object that is no container: the first byte rules nearly all of them out.

mod cfb;
mod git_lfs;
mod office;
mod pdf;

use memchr::memmem;

use crate::input::{ReadAt, read_full_at};

pub use self::git_lfs::git_lfs_oid;
pub(crate) use self::office::OfficeEntries;

/// Offset of the first volume descriptor of a disc image, bytes.
const VOLUME_AT: usize = 0x8000;
/// Bytes of a 7z end header that are searched for the cipher.
const SEVEN_ZIP_HEADER_MAX: u64 = 64 << 10;
/// A control byte that texts do not have: signatures that are plain words count only before one of these.
const TEXT_MIN: u8 = 7;
/// Bytes after a signature of plain words within which a control byte is looked for.
const BINARY_WITHIN: usize = 512;

/// A format that was recognised and is not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnsupportedFormat {
    name: &'static str,
    is_encrypted: bool,
}

impl UnsupportedFormat {
    /// The stable name, as stored and reported.
    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    const fn open(name: &'static str) -> Self {
        UnsupportedFormat { name, is_encrypted: false }
    }

    /// The format, once more of its bytes were seen: a stream may say only at its end that it is encrypted.
    #[must_use]
    pub fn seen_with(self, bytes: &[u8]) -> Self {
        let is_encrypted = self.is_encrypted
            || match self.name {
                pdf::NAME => pdf::names_encryption(bytes),
                cfb::NAME => cfb::names_encryption(bytes),
                _ => false,
            };
        UnsupportedFormat { is_encrypted, ..self }
    }
}

/// What is known of an object's bytes: its beginning, and any other place if it is not a stream.
struct Bytes<'a> {
    begin: &'a [u8],
    any: Option<&'a dyn ReadAt>,
}

impl Bytes<'_> {
    /// Up to `len` bytes at `offset`. None where they cannot be read: whoever scans the object meets the error, too.
    fn at(&self, offset: u64, len: usize) -> Vec<u8> {
        let known =
            usize::try_from(offset).ok().and_then(|from| self.begin.get(from..from.checked_add(len)?));
        match (known, self.any) {
            (Some(known), _) => known.to_vec(),
            (None, Some(any)) => {
                let mut bytes = vec![0; len];
                let filled = read_full_at(any, &mut bytes, offset).unwrap_or(0);
                bytes.truncate(filled);
                bytes
            }
            (None, None) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.begin.len());
                self.begin[from..].to_vec()
            }
        }
    }

    /// The last `len` bytes, and where they begin.
    fn tail(&self, len: u64) -> Option<(u64, Vec<u8>)> {
        let size = self.any?.size().ok()?;
        let from = size.saturating_sub(len);
        Some((from, self.at(from, (size - from) as usize)))
    }
}

/// How a signature is confirmed, and what it is then.
#[derive(Clone, Copy)]
enum Check {
    /// The signature is enough.
    Certain,
    /// The signature could be the beginning of a text.
    IfBinary,
    /// The bytes after the signature decide.
    If(fn(&[u8]) -> bool),
    /// As they are, and encrypted by what the signature says.
    Encrypted,
    /// The format has parts that say which kind it is, or whether it is encrypted.
    Look(fn(&Bytes<'_>) -> UnsupportedFormat),
}

use Check::{Certain, Encrypted, If, IfBinary, Look};

/// Signatures at the beginning of an object. Who adds or removes one raises `domesday_engine::VERSION`: what was
/// scanned before is scanned again. Of two that begin alike the longer one comes first.
const SIGNATURES: &[(&[u8], &str, Check)] = &[
    (b"%PDF-", pdf::NAME, Look(pdf::format)),
    (b"{\\rtf", "rtf", If(|rest| rest.first().is_some_and(|&b| b.is_ascii_digit() || b == b'\\'))),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", cfb::NAME, Look(cfb::format)),
    (b"7z\xbc\xaf\x27\x1c", "7z", Look(seven_zip)),
    (b"Rar!\x1a\x07\x00", "rar", Look(rar)),
    (b"Rar!\x1a\x07\x01\x00", "rar", Look(rar)),
    (b"MSCF\0\0\0\0", "cab", Certain),
    (b"xar!\0\x1c", "xar", Certain),
    (b"!<arch>\ndebian-binary", "deb", Certain),
    (b"!<arch>\n", "ar", Certain),
    (b"070701", "cpio", If(is_cpio::<104>)),
    (b"070702", "cpio", If(is_cpio::<104>)),
    (b"070707", "cpio", If(is_cpio::<70>)),
    (b"\xed\xab\xee\xdb", "rpm", If(|rest| matches!(rest.first(), Some(3 | 4)))),
    (b"\x04\x22\x4d\x18", "lz4", If(|rest| rest.first().is_some_and(|flags| flags >> 6 == 1))),
    (b"\x02\x21\x4c\x18", "lz4", Certain),
    (b"LZIP\x01", "lzip", Certain),
    (b"\x89LZO\0\r\n\x1a\n", "lzop", Certain),
    (b"\x5d\0\0", "lzma", If(is_lzma)),
    (
        b"\x1f\x9d",
        "compress",
        If(|rest| rest.first().is_some_and(|b| b & 0x60 == 0 && (9..=16).contains(&(b & 0x1f)))),
    ),
    (b"\xff\x06\0\0sNaPpY", "snappy", Certain),
    (b"PAR1", "parquet", IfBinary),
    (b"PARE", "parquet", Encrypted),
    (b"Obj\x01", "avro", Certain),
    (b"ORC", "orc", IfBinary),
    (b"ARROW1\0\0", "arrow", Certain),
    (b"FEA1", "feather", IfBinary),
    (b"\x89HDF\r\n\x1a\n", "hdf5", Certain),
    (b"PGDMP", "pg_dump", IfBinary),
    (b"\0\x01\0\0Standard Jet DB\0", "access", Certain),
    (b"\0\x01\0\0Standard ACE DB\0", "access", Certain),
    (b"$FL2@(#)", "spss", Certain),
    (b"$FL3@(#)", "spss", Certain),
    (b"<stata_dta>", "stata", Certain),
    (SAS, "sas", Certain),
    (b"!BDN", "pst", If(|rest| rest.get(4..6) == Some(b"SM"))),
    (b"MSWIM\0\0\0", "wim", Certain),
    (b"hsqs", "squashfs", IfBinary),
    (b"QFI\xfb", "qcow2", Certain),
    (b"KDMV", "vmdk", IfBinary),
    (b"vhdxfile", "vhdx", IfBinary),
    (b"conectix", "vhd", IfBinary),
    (git_lfs::MAGIC, git_lfs::NAME, If(|rest| git_lfs::oid_after_magic(rest).is_some())),
];

const SAS: &[u8] = b"\0\0\0\0\0\0\0\0\0\0\0\0\xc2\xea\x81\x60\xb3\x14\x11\xcf\xbd\x92\x08\x00\x09\xc7\x31\x8c\x18\x1f\x10\x11";

/// Whether a signature begins with this byte.
const FIRST: [bool; 256] = {
    let mut first = [false; 256];
    let mut n = 0;
    while n < SIGNATURES.len() {
        first[SIGNATURES[n].0[0] as usize] = true;
        n += 1;
    }
    first
};

/// What the object is that begins with `begin`, if its format is one that is recognised and not read. `any` is the
/// object at any place, if it is not a stream.
pub fn recognise(begin: &[u8], any: Option<&dyn ReadAt>) -> Option<UnsupportedFormat> {
    let skipped = pdf::start(begin);
    let begin_of = |from: usize| signature(&begin[from..]);
    let found = match skipped {
        0 => begin_of(0),
        from => begin_of(from).filter(|(name, _)| *name == pdf::NAME),
    };
    match found {
        Some((name, Certain | IfBinary | If(_))) => Some(UnsupportedFormat::open(name)),
        Some((name, Encrypted)) => Some(UnsupportedFormat { name, is_encrypted: true }),
        Some((_, Look(look))) => Some(look(&Bytes { begin, any })),
        None => is_disc_image(begin).then_some(UnsupportedFormat::open("iso9660")),
    }
}

fn signature(head: &[u8]) -> Option<(&'static str, Check)> {
    if !FIRST[usize::from(*head.first()?)] {
        return None;
    }
    let (_, name, check) = SIGNATURES.iter().find(|(magic, _, check)| {
        head.strip_prefix(*magic).is_some_and(|rest| match check {
            If(confirms) => confirms(rest),
            IfBinary | Encrypted => rest.iter().take(BINARY_WITHIN).any(|&byte| byte < TEXT_MIN),
            Certain | Look(_) => true,
        })
    })?;
    Some((name, *check))
}

/// A header of so many hexadecimal digits.
fn is_cpio<const DIGITS: usize>(rest: &[u8]) -> bool {
    rest.get(..DIGITS).is_some_and(|header| header.iter().all(u8::is_ascii_hexdigit))
}

/// The rest of an LZMA header: a dictionary that encoders make, a size that can be, the zero that the data begins with.
fn is_lzma(rest: &[u8]) -> bool {
    const UNKNOWN: u64 = u64::MAX;
    const SIZE_MAX: u64 = 1 << 40;
    let Some((&[d2, d3, s0, s1, s2, s3, s4, s5, s6, s7, data], _)) = rest.split_first_chunk::<11>() else {
        return false;
    };
    let dictionary = u32::from_le_bytes([0, 0, d2, d3]);
    let size = u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]);
    let is_made =
        dictionary.is_power_of_two() || dictionary.count_ones() == 2 && dictionary & dictionary << 1 != 0;
    is_made && (size == UNKNOWN || size < SIZE_MAX) && data == 0
}

fn is_disc_image(begin: &[u8]) -> bool {
    begin.get(VOLUME_AT + 1..VOLUME_AT + 6).is_some_and(|id| matches!(id, b"CD001" | b"BEA01"))
}

/// The end header of a 7z archive names the cipher, unless only the entries are encrypted and it is compressed.
fn seven_zip(bytes: &Bytes<'_>) -> UnsupportedFormat {
    const START_LEN: u64 = 32;
    const CIPHER: &[u8] = &[0x06, 0xf1, 0x07, 0x01];
    let start = bytes.at(0, START_LEN as usize);
    let number =
        |at: usize| start.get(at..at + 8).and_then(|n| n.try_into().ok()).map_or(0, u64::from_le_bytes);
    let header = match number(12).checked_add(START_LEN) {
        Some(at) => bytes.at(at, number(20).min(SEVEN_ZIP_HEADER_MAX) as usize),
        None => Vec::new(),
    };
    UnsupportedFormat { name: "7z", is_encrypted: memmem::find(&header, CIPHER).is_some() }
}

/// The headers of a rar archive are encrypted, or the first entry is.
fn rar(bytes: &Bytes<'_>) -> UnsupportedFormat {
    const MAIN: u8 = 0x73;
    const FILE: u8 = 0x74;
    const ENCRYPTED_HEADERS: u8 = 0x80;
    const PASSWORD: u8 = 0x04;
    let is_encrypted = match bytes.at(0, 20).get(6..) {
        // Version 5: checksum, size of the header in one to three bytes, then its type; 4 is encryption.
        Some([1, 0, _, _, _, _, size @ ..]) => {
            let size_len = 1 + size.iter().take_while(|&&byte| byte >= 0x80).count();
            size.get(size_len) == Some(&4)
        }
        Some([0, _, _, MAIN, flags, _, len_low, len_high, ..]) => {
            let file = bytes.at(7 + u64::from(u16::from_le_bytes([*len_low, *len_high])), 5);
            flags & ENCRYPTED_HEADERS != 0
                || matches!(file[..], [_, _, FILE, flags, _] if flags & PASSWORD != 0)
        }
        _ => false,
    };
    UnsupportedFormat { name: "rar", is_encrypted }
}
