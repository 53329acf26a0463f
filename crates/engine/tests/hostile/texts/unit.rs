//! Texts as short descriptions: a unit that is repeated, of pieces that are the same each time or made up anew. What
//! is the same each time can be remembered by whoever scans it; what is not cannot. It must not know what is slow.

use std::fmt;

/// What begins the made-up pieces of every text, so that a description is the whole text.
const SEED: u64 = 0x2545_f491_4f6c_dd1d;

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const CAPITALS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &[u8] = b"0123456789";

/// Xorshift: enough for texts, and useless for anything secret.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        // A state of zeros would stay one.
        Random(seed.wrapping_mul(SEED) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    Digits,
    Hex,
    Letters,
    Base64,
    Bytes,
}

impl Class {
    fn byte(self, random: &mut Random) -> u8 {
        const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let alphabet: &[u8] = match self {
            Class::Digits => DIGITS,
            Class::Hex => b"0123456789abcdef",
            Class::Letters => LETTERS,
            Class::Base64 => BASE64,
            Class::Bytes => return random.next() as u8,
        };
        alphabet[random.below(alphabet.len())]
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    Fixed(Vec<u8>),
    /// So many bytes of a class, other ones each time.
    Any(Class, usize),
    /// Other letters for letters and other digits for digits each time, from this byte on.
    Varied(Vec<u8>, usize),
    /// Other digits each time.
    Numbered(Vec<u8>),
    /// One of these each time.
    OneOf(&'static [&'static str]),
}

impl Piece {
    pub fn text(text: impl AsRef<[u8]>) -> Piece {
        Piece::Fixed(text.as_ref().to_vec())
    }

    /// Bytes of it, at most.
    pub fn len(&self) -> usize {
        match self {
            Piece::Fixed(bytes) | Piece::Varied(bytes, _) | Piece::Numbered(bytes) => bytes.len(),
            Piece::Any(_, len) => *len,
            Piece::OneOf(texts) => texts.iter().map(|text| text.len()).max().unwrap_or(0),
        }
    }

    fn write(&self, random: &mut Random, out: &mut Vec<u8>) {
        match self {
            Piece::Fixed(bytes) => out.extend_from_slice(bytes),
            Piece::Any(class, len) => out.extend((0..*len).map(|_| class.byte(random))),
            Piece::Varied(bytes, from) => {
                let (same, other) = bytes.split_at((*from).min(bytes.len()));
                out.extend_from_slice(same);
                out.extend(other.iter().map(|byte| varied(*byte, random)));
            }
            Piece::Numbered(bytes) => {
                let other = |byte: &u8| if byte.is_ascii_digit() { varied(*byte, random) } else { *byte };
                out.extend(bytes.iter().map(other));
            }
            Piece::OneOf(texts) => out.extend_from_slice(texts[random.below(texts.len())].as_bytes()),
        }
    }
}

fn varied(byte: u8, random: &mut Random) -> u8 {
    let alphabet = match byte {
        b'0'..=b'9' => DIGITS,
        b'a'..=b'z' => LETTERS,
        b'A'..=b'Z' => CAPITALS,
        _ => return byte,
    };
    alphabet[random.below(alphabet.len())]
}

/// What a text repeats.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unit(pub Vec<Piece>);

impl Unit {
    pub fn len(&self) -> usize {
        self.0.iter().map(Piece::len).sum()
    }

    /// The text of this length. A unit of nothing makes no text.
    pub fn fill(&self, len: usize) -> Vec<u8> {
        let (mut random, mut text) = (Random::new(SEED), Vec::with_capacity(len + self.len()));
        while text.len() < len && self.len() > 0 {
            self.0.iter().for_each(|piece| piece.write(&mut random, &mut text));
        }
        text.truncate(len);
        text
    }
}

/// As `"fixed" digits*16 varied("abc12", 2)`.
impl fmt::Display for Unit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, piece) in self.0.iter().enumerate() {
            let between = if index > 0 { " " } else { "" };
            match piece {
                Piece::Fixed(bytes) => write!(out, "{between}\"{}\"", bytes.escape_ascii())?,
                Piece::Any(class, len) => {
                    write!(out, "{between}{}*{len}", format!("{class:?}").to_lowercase())?;
                }
                Piece::Varied(bytes, from) => {
                    write!(out, "{between}varied(\"{}\", {from})", bytes.escape_ascii())?
                }
                Piece::Numbered(bytes) => write!(out, "{between}numbered(\"{}\")", bytes.escape_ascii())?,
                Piece::OneOf(texts) => write!(out, "{between}one_of({texts:?})")?,
            }
        }
        Ok(())
    }
}
