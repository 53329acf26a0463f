//! A reader of DER for values that may be cut short.
//!
//! A match holds the head of a long key, so an item may claim bytes that are not there. They are counted instead:
//! an item must fit into the one around it by what both claim, and only what is there is read. A reader goes
//! forward only, and never nests by itself, so hostile lengths and depths cost nothing.

pub(super) const INTEGER: u8 = 0x02;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OID: u8 = 0x06;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;
/// The first tag of the context.
pub(super) const CONTEXT_0: u8 = 0xA0;

/// Bytes that an outermost item may claim.
const CLAIM_MAX: usize = 1 << 16;

/// What is left to read.
#[derive(Clone, Copy)]
pub(super) struct Der<'a> {
    pub bytes: &'a [u8],
    /// Bytes that are claimed behind them.
    pub beyond: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Item<'a> {
    pub tag: u8,
    pub body: Der<'a>,
}

impl<'a> Der<'a> {
    pub fn outermost(bytes: &'a [u8]) -> Der<'a> {
        Der { bytes, beyond: CLAIM_MAX }
    }

    pub fn len(&self) -> usize {
        self.bytes.len() + self.beyond
    }

    /// Whether the next item is not there, though claimed.
    pub fn is_cut(&self) -> bool {
        self.bytes.is_empty() && self.beyond > 0
    }

    pub fn next(&mut self) -> Option<Item<'a>> {
        let (&tag, rest) = self.bytes.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (len, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x83 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                let len = digits.iter().fold(0, |len, &byte| len << 8 | usize::from(byte));
                // The shortest form is the only one.
                let shortest = len >= 0x80 && digits.first() != Some(&0);
                (shortest.then_some(len)?, rest)
            }
            _ => return None,
        };
        let many_bytes_of_tag = tag & 0x1f == 0x1f;
        if many_bytes_of_tag || len > rest.len() + self.beyond {
            return None;
        }
        let (bytes, rest) = rest.split_at(len.min(rest.len()));
        let missing = len - bytes.len();
        *self = Der { bytes: rest, beyond: self.beyond - missing };
        Some(Item { tag, body: Der { bytes, beyond: missing } })
    }

    /// The body of the next item, which has this tag.
    pub fn expect(&mut self, tag: u8) -> Option<Der<'a>> {
        self.next().filter(|item| item.tag == tag).map(|item| item.body)
    }

    /// The next integer, if it is not negative and in its shortest form.
    pub fn integer(&mut self) -> Option<Integer<'a>> {
        let body = self.expect(INTEGER)?;
        let sign = match body.bytes {
            [0] if body.beyond == 0 => return Some(Integer { bits: 0, body }),
            [0, 0x80..=0xff, ..] => 8,
            [1..=0x7f, ..] => body.bytes[0].leading_zeros() as usize,
            _ => return None,
        };
        Some(Integer { bits: body.len() * 8 - sign, body })
    }

    /// A version or another number of one byte.
    pub fn small(&mut self) -> Option<u8> {
        match self.expect(INTEGER)?.bytes {
            [number] => Some(*number),
            _ => None,
        }
    }
}

/// A positive integer, of which the end may be missing.
#[derive(Clone, Copy)]
pub(super) struct Integer<'a> {
    pub bits: usize,
    body: Der<'a>,
}

/// A prime by which integers are divided, to compare products of them: 2⁶¹ − 1.
const DIVISOR: u64 = (1 << 61) - 1;

/// The remainder of a product.
pub(super) fn product(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(DIVISOR)) as u64
}

impl Integer<'_> {
    /// The remainder by [`DIVISOR`], if the integer is there to its end.
    pub fn remainder(&self) -> Option<u64> {
        let step = |rest: u64, &byte: &u8| product(rest, 256) + u64::from(byte);
        (self.body.beyond == 0).then(|| self.body.bytes.iter().fold(0, step) % DIVISOR)
    }
}
