//! Text encodings that hide ASCII from a byte scanner: UTF-16. Everything else is scanned as it is.

/// How the bytes of a text are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// As they are: UTF-8, Latin-1, or no text at all.
    Bytes,
    Utf16Le,
    Utf16Be,
}

/// Bytes that the guess without a byte order mark looks at.
const SAMPLE_LEN: usize = 512;
/// Fewest code units that a guess without a byte order mark is made from.
const SAMPLE_UNITS_MIN: usize = 8;

impl Encoding {
    /// The encoding of what begins with `head`, and the length of the byte order mark to skip.
    pub fn detect(head: &[u8]) -> (Encoding, usize) {
        match head {
            [0xef, 0xbb, 0xbf, ..] => (Encoding::Bytes, 3),
            // FF FE 00 00 is the mark of UTF-32, which is left alone.
            [0xff, 0xfe, 0, 0, ..] => (Encoding::Bytes, 0),
            [0xff, 0xfe, ..] => (Encoding::Utf16Le, 2),
            [0xfe, 0xff, ..] => (Encoding::Utf16Be, 2),
            _ => (guess(head), 0),
        }
    }

    /// Its name in a decoding chain; `None` where nothing is decoded.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Encoding::Bytes => None,
            Encoding::Utf16Le => Some("utf-16le"),
            Encoding::Utf16Be => Some("utf-16be"),
        }
    }
}

/// Text of Western scripts in UTF-16 has a zero in every other byte and printable ASCII beside it.
/// Binaries have zeros too, but in runs, on both sides, and beside control bytes: one zero unit or one
/// unprintable byte beside a zero is enough for them to be left alone.
fn guess(head: &[u8]) -> Encoding {
    let units = head[..head.len().min(SAMPLE_LEN)].chunks_exact(2);
    let total = units.len();
    if total < SAMPLE_UNITS_MIN {
        return Encoding::Bytes;
    }
    let printable = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0xa0..);
    // Nine in ten have a zero, and none the other way round. Nearly everything has too few after a few units.
    let others_max = total / 10;
    let most = total - others_max;
    let (mut little, mut big, mut others) = (0, 0, 0);
    for unit in units {
        match *unit {
            [low, 0] if printable(low) => little += 1,
            [0, low] if printable(low) => big += 1,
            [_, 0] | [0, _] => return Encoding::Bytes,
            _ if others == others_max => return Encoding::Bytes,
            _ => others += 1,
        }
    }
    match (little, big) {
        (little, 0) if little >= most => Encoding::Utf16Le,
        (0, big) if big >= most => Encoding::Utf16Be,
        _ => Encoding::Bytes,
    }
}

/// Turns UTF-16 into UTF-8 as it streams by. What is not valid becomes U+FFFD.
#[derive(Clone, Debug)]
pub struct Utf16Decoder {
    big: bool,
    /// First byte of a unit whose second is not there yet.
    odd: Option<u8>,
    /// First half of a pair whose second is not there yet.
    high: Option<u16>,
}

impl Utf16Decoder {
    /// `None` for [`Encoding::Bytes`], which needs no decoder.
    pub fn new(encoding: Encoding) -> Option<Utf16Decoder> {
        let big = match encoding {
            Encoding::Bytes => return None,
            Encoding::Utf16Le => false,
            Encoding::Utf16Be => true,
        };
        Some(Utf16Decoder { big, odd: None, high: None })
    }

    /// Appends the text of `raw` to `out` and returns how many bytes of `raw` were taken, which is all of
    /// them. A unit or pair cut in two waits for the next call, or is replaced when this is the last.
    pub fn decode(&mut self, raw: &[u8], last: bool, out: &mut Vec<u8>) -> usize {
        out.reserve(raw.len() / 2 + raw.len() / 4);
        let mut rest = raw;
        if let (Some(first), Some((&second, after))) = (self.odd, rest.split_first()) {
            self.odd = None;
            self.unit([first, second], out);
            rest = after;
        }
        let units = rest.chunks_exact(2);
        if let [odd] = units.remainder() {
            self.odd = Some(*odd);
        }
        for unit in units {
            self.unit([unit[0], unit[1]], out);
        }
        if last {
            let pending = usize::from(self.high.take().is_some()) + usize::from(self.odd.take().is_some());
            (0..pending).for_each(|_| push(char::REPLACEMENT_CHARACTER, out));
        }
        raw.len()
    }

    fn unit(&mut self, bytes: [u8; 2], out: &mut Vec<u8>) {
        let unit = if self.big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) };
        if let Some(high) = self.high.take() {
            if let Some(Ok(paired)) = char::decode_utf16([high, unit]).next() {
                return push(paired, out);
            }
            push(char::REPLACEMENT_CHARACTER, out);
        }
        match unit {
            0..0x80 => out.push(unit as u8),
            0xd800..0xdc00 => self.high = Some(unit),
            _ => push(char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER), out),
        }
    }
}

fn push(character: char, out: &mut Vec<u8>) {
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// How many UTF-16 code units this decoded text took: maps an offset in decoded text back to raw bytes.
/// One per character, two for those that four bytes of UTF-8 encode. Replacements count as one, which is
/// what they replace (but for a single byte at the very end).
pub fn utf16_units(utf8: &[u8]) -> u64 {
    utf8.iter().map(|&byte| u64::from(byte & 0xc0 != 0x80) + u64::from(byte >= 0xf0)).sum()
}
