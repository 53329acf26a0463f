//! The encodings themselves: bytes in, text out with the place of each byte, or nothing if there is no text in it.

/// Symbols of base64 that are worth decoding, and bytes that they must at least say.
const TEXT_MIN: usize = 8;
/// Escapes of a run that are worth decoding: one alone is a sign that somebody had to write so.
const ESCAPES_MIN: usize = 2;

/// A text, with the bytes that each of its own came from.
#[derive(Default)]
pub struct Decoded {
    pub text: Vec<u8>,
    pub places: Vec<(u32, u32)>,
    pub chain: &'static [&'static str],
}

impl Decoded {
    fn push(&mut self, byte: u8, from: usize, to: usize) {
        self.text.push(byte);
        self.places.push((from as u32, to as u32));
    }

    /// If it reads as text; wide characters are made narrow.
    fn into_text(self, chain: &'static [&'static str], wide: &'static [&'static str]) -> Option<Decoded> {
        if self.text.len() < TEXT_MIN {
            return None;
        }
        if is_text(&self.text) {
            return Some(Decoded { chain, ..self });
        }
        let narrow = |all: Vec<u8>| all.into_iter().step_by(2).collect::<Vec<_>>();
        let text = if is_wide(&self.text) { narrow(self.text) } else { return None };
        let places = self.places.chunks(2).map(|pair| (pair[0].0, pair[pair.len() - 1].1)).collect();
        (text.len() >= TEXT_MIN && is_text(&text)).then_some(Decoded { text, places, chain: wide })
    }
}

fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| is_plain(byte) || !byte.is_ascii())
        && (bytes.is_ascii() || std::str::from_utf8(bytes).is_ok())
}

/// In place of the value of a symbol, for what is none.
const NO_SYMBOL: u8 = u8::MAX;

/// By byte: its value as a symbol of base64, of either alphabet. A table, because every long word is looked at.
static SYMBOLS: [u8; 256] = {
    let mut symbols = [NO_SYMBOL; 256];
    let mut byte = 0;
    while byte < symbols.len() {
        let symbol = byte as u8;
        symbols[byte] = match symbol {
            b'A'..=b'Z' => symbol - b'A',
            b'a'..=b'z' => symbol - b'a' + 26,
            b'0'..=b'9' => symbol - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => NO_SYMBOL,
        };
        byte += 1;
    }
    symbols
};

pub fn is_base64_symbol(byte: u8) -> bool {
    SYMBOLS[usize::from(byte)] != NO_SYMBOL
}

/// Hexadecimal if it can be, or else base64; line ends and blanks are passed over.
pub fn word(run: &[u8], padded: bool) -> Option<Decoded> {
    if !padded && run.len().is_multiple_of(2) && run.iter().all(u8::is_ascii_hexdigit) {
        return hex(run);
    }
    // Most long words end here, before memory is asked for.
    if !begins_text(said(run).map(|(byte, ..)| byte)) || symbols(run).count() % 4 == 1 {
        return None;
    }
    let mut decoded = Decoded::default();
    said(run).for_each(|(byte, from, to)| decoded.push(byte, from, to));
    decoded.into_text(&["base64"], &["base64", "utf-16le"])
}

/// Bytes by which most of what is no text is told.
const BEGINNING: usize = 24;

/// Whether what begins so may be text, narrow or wide.
fn begins_text(said: impl Iterator<Item = u8>) -> bool {
    let (mut beginning, mut len) = ([0; BEGINNING], 0);
    for (place, byte) in beginning.iter_mut().zip(said) {
        // The high byte of a wide character is none.
        if !is_plain(byte) && byte.is_ascii() && !(byte == 0 && len % 2 == 1) {
            return false;
        }
        *place = byte;
        len += 1;
    }
    let beginning = &beginning[..len];
    // A character may be cut at the end.
    let is_utf8 =
        || std::str::from_utf8(beginning).map_or_else(|error| error.error_len().is_none(), |_| true);
    !beginning.contains(&0) && is_utf8() || is_wide(beginning)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() || b" \t\r\n".contains(&byte)
}

/// Whether every second byte is zero.
fn is_wide(bytes: &[u8]) -> bool {
    bytes.as_chunks::<2>().0.iter().all(|pair| pair[1] == 0)
}

/// The values of the symbols of base64 in a run, and where they stand.
fn symbols(run: &[u8]) -> impl Iterator<Item = (u8, usize)> {
    let values = run.iter().map(|&byte| SYMBOLS[usize::from(byte)]).zip(0..);
    values.filter(|(symbol, _)| *symbol != NO_SYMBOL)
}

/// What they say: each byte, and from where to where it is written.
fn said(run: &[u8]) -> impl Iterator<Item = (u8, usize, usize)> {
    let mut last = (0, 0);
    symbols(run).enumerate().filter_map(move |(number, (low, to))| {
        let (high, from) = std::mem::replace(&mut last, (low, to));
        let shift = 2 * (number % 4) as u32;
        let byte = (u16::from(high) << 6 | u16::from(low)) >> (6 - shift);
        (shift > 0).then_some((byte as u8, from, to + 1))
    })
}

/// Of an even number of digits.
fn hex(run: &[u8]) -> Option<Decoded> {
    let said = || run.as_chunks::<2>().0.iter().filter_map(|pair| hex_byte(pair));
    if !begins_text(said()) {
        return None;
    }
    let mut decoded = Decoded::default();
    said().enumerate().for_each(|(at, byte)| decoded.push(byte, 2 * at, 2 * at + 2));
    decoded.into_text(&["hex"], &["hex", "utf-16le"])
}

/// The byte of two digits.
fn hex_byte(digits: &[u8]) -> Option<u8> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    let [high, low] = digits else { return None };
    Some((value(*high)? << 4 | value(*low)?) as u8)
}

/// Decodes the escapes of a run and leaves the rest: `escape` tells what stands at the beginning of its argument,
/// if it is one, as a character or nothing, and how long it is.
fn escapes(
    run: &[u8],
    chain: &'static [&'static str],
    escape: impl Fn(&[u8]) -> Option<(Escaped, usize)>,
) -> Option<Decoded> {
    let mut decoded = Decoded { chain, ..Decoded::default() };
    let (mut at, mut count) = (0, 0);
    while at < run.len() {
        let Some((escaped, len)) = escape(&run[at..]) else {
            decoded.push(run[at], at, at + 1);
            at += 1;
            continue;
        };
        match escaped {
            Escaped::Byte(byte) => decoded.push(byte, at, at + len),
            Escaped::Char(char) => {
                let mut buffer = [0; 4];
                char.encode_utf8(&mut buffer).bytes().for_each(|byte| decoded.push(byte, at, at + len));
            }
            Escaped::Nothing => {}
        }
        count += 1;
        at += len;
    }
    (count >= ESCAPES_MIN && is_text(&decoded.text)).then_some(decoded)
}

enum Escaped {
    Byte(u8),
    Char(char),
    Nothing,
}

pub fn percent(run: &[u8]) -> Option<Decoded> {
    // In the authority of a URL, escapes keep the signs of a password from being read as such.
    if let Some(at) = run.windows(3).position(|window| window == b"://") {
        let mut authority = run[at + 3..].iter().take_while(|byte| !b"/?#".contains(byte));
        if authority.any(|&byte| byte == b'%') {
            return None;
        }
    }
    escapes(run, &["percent"], |rest| match rest {
        [b'%', digits @ ..] => Some((Escaped::Byte(hex_byte(digits.get(..2)?)?), 3)),
        _ => None,
    })
}

pub fn backslash(run: &[u8]) -> Option<Decoded> {
    escapes(run, &["escapes"], |rest| match rest {
        [b'\\', b'x', digits @ ..] => Some((Escaped::Byte(hex_byte(digits.get(..2)?)?), 4)),
        [b'\\', b'u', digits @ ..] => {
            let [high, low] = [digits.get(..2)?, digits.get(2..4)?].map(hex_byte);
            let char = char::from_u32(u32::from(high?) << 8 | u32::from(low?))?;
            Some((Escaped::Char(char), 6))
        }
        _ => None,
    })
}

/// Bytes of an entity, at most.
const ENTITY_MAX: usize = 10;

pub fn entities(run: &[u8]) -> Option<Decoded> {
    escapes(run, &["html"], |rest| {
        let [b'&', inside @ ..] = rest else { return None };
        let len = inside.iter().take(ENTITY_MAX).position(|&byte| byte == b';')?;
        let inside = std::str::from_utf8(&inside[..len]).ok()?;
        let char = match inside {
            "quot" => '"',
            "apos" => '\'',
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            number => {
                let number = number.strip_prefix('#')?;
                let value = match number.strip_prefix(['x', 'X']) {
                    Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                    None => number.parse().ok()?,
                };
                char::from_u32(value)?
            }
        };
        Some((Escaped::Char(char), len + 2))
    })
}

pub fn quoted_printable(run: &[u8]) -> Option<Decoded> {
    escapes(run, &["quoted-printable"], |rest| match rest {
        [b'=', b'\n', ..] => Some((Escaped::Nothing, 2)),
        [b'=', b'\r', b'\n', ..] => Some((Escaped::Nothing, 3)),
        [b'=', digits @ ..] => Some((Escaped::Byte(hex_byte(digits.get(..2)?)?), 3)),
        _ => None,
    })
}
