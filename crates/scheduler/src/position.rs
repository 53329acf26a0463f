//! Where in an object a chunk, and within it a match, begins: line, column and raw byte offset.
//!
//! The place is carried from chunk to chunk while reading, so that the chunks of one object can be
//! scanned in any order. Each byte is looked at once on the way, so that a line of 100 MB costs no more
//! than any other 100 MB.

use domesday_model::Position;

/// How bytes of a chunk relate to the object's own bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Units {
    /// The chunk is the object's bytes.
    Bytes,
    /// The chunk is UTF-8, decoded from UTF-16.
    Utf16,
}

impl Units {
    /// The last place in `text` up to `at` at which it may be cut: reading goes on there. Decoded text is not cut inside of
    /// a character, for its other half has no offset in the object.
    pub(crate) fn boundary(self, text: &[u8], at: usize) -> usize {
        match self {
            Units::Bytes => at,
            Units::Utf16 => (0..=at).rev().find(|&at| text[at] & 0xc0 != 0x80).unwrap_or(at),
        }
    }
}

/// A place in an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// Offset in the object's bytes, before any text decoding.
    pub(crate) offset: u64,
    /// 1-based.
    pub(crate) line: u64,
    /// 1-based, in code points.
    pub(crate) column: u64,
}

impl Place {
    /// The first character, after a byte order mark of `bom_len` bytes.
    pub(crate) fn start(bom_len: usize) -> Place {
        Place { offset: bom_len as u64, line: 1, column: 1 }
    }

    /// The place after `text`, which begins here.
    pub(crate) fn advance(self, text: &[u8], units: Units) -> Place {
        let offset = self.offset + raw_len(text, units);
        match memchr::memrchr(b'\n', text) {
            None => Place { offset, line: self.line, column: self.column + code_points(text) },
            Some(last) => Place {
                offset,
                line: self.line + memchr::memchr_iter(b'\n', text).count() as u64,
                column: 1 + code_points(&text[last + 1..]),
            },
        }
    }

    /// The place that is at `further` when counted from this one on. Offsets are counted from the beginning.
    pub(crate) fn then(self, further: Place) -> Place {
        let column = if further.line == 1 { self.column + further.column - 1 } else { further.column };
        Place { offset: further.offset, line: self.line + further.line - 1, column }
    }

    pub(crate) fn position(self) -> Position {
        Position { line: self.line, column: self.column }
    }
}

/// Bytes of the object that became `text`. Additive over any cut of the text, even inside a character:
/// a character counts where its first byte is.
pub(crate) fn raw_len(text: &[u8], units: Units) -> u64 {
    match units {
        Units::Bytes => text.len() as u64,
        Units::Utf16 => 2 * domesday_content::utf16_units(text),
    }
}

/// Characters that begin in `text`: its bytes that are not UTF-8 continuation bytes.
pub(crate) fn code_points(text: &[u8]) -> u64 {
    text.iter().filter(|&&byte| byte & 0xc0 != 0x80).count() as u64
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_and_columns_are_those_an_editor_shows() {
        let start = Place::start(0);
        let check = |text: &str, line, column| {
            let place = start.advance(text.as_bytes(), Units::Bytes);
            assert_eq!((place.line, place.column), (line, column), "{text:?}");
        };
        check("", 1, 1);
        check("ab", 1, 3);
        check("ab\n", 2, 1);
        check("a\n\nb\u{20ac}", 3, 3);
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_place(text in "[a\u{e9}\u{20ac}\u{1f600}\n]{0,40}", cut in 0usize..200) {
            let bytes = text.as_bytes();
            let (a, b) = bytes.split_at(cut.min(bytes.len()));
            for units in [Units::Bytes, Units::Utf16] {
                let whole = Place::start(2).advance(bytes, units);
                let cut = Place::start(2).advance(a, units);
                prop_assert_eq!(cut.advance(b, units), whole);
                let further = Place { offset: cut.offset, ..Place::start(0) }.advance(b, units);
                prop_assert_eq!(cut.then(further), whole);
            }
            prop_assert_eq!(raw_len(bytes, Units::Utf16), 2 * text.encode_utf16().count() as u64);
        }
    }
}
