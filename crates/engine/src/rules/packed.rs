//! A compact form of values, one after another without names: numbers in as few bytes as they need, texts and lists
//! behind their lengths. The build script writes it and the engine built with it reads it, nobody else: there is nothing
//! in it to tell what it is, and whoever reads it must know. What is cut short or out of range reads as `None`.

use std::ops::Range;
use std::sync::Arc;

/// A value that has a packed form.
pub trait Packed: Sized {
    #[allow(dead_code, reason = "only the build script and tests pack")]
    fn pack(&self, out: &mut Vec<u8>);

    /// The value at the beginning of `from`, which is left at what follows.
    fn unpack(from: &mut &[u8]) -> Option<Self>;
}

/// A structure whose fields are packed in the order they are given in.
macro_rules! packed_fields {
    ($type:ident { $($field:ident),+ $(,)? }) => {
        impl $crate::rules::packed::Packed for $type {
            fn pack(&self, out: &mut Vec<u8>) {
                $($crate::rules::packed::Packed::pack(&self.$field, out);)+
            }

            fn unpack(from: &mut &[u8]) -> Option<Self> {
                Some($type { $($field: $crate::rules::packed::Packed::unpack(from)?),+ })
            }
        }
    };
}
pub(super) use packed_fields;

/// The next `len` bytes.
fn bytes<'f>(from: &mut &'f [u8], len: usize) -> Option<&'f [u8]> {
    let (bytes, rest) = from.split_at_checked(len)?;
    *from = rest;
    Some(bytes)
}

pub fn text<'f>(from: &mut &'f [u8]) -> Option<&'f str> {
    let len = Packed::unpack(from)?;
    std::str::from_utf8(bytes(from, len)?).ok()
}

#[allow(dead_code, reason = "only the build script and tests pack")]
pub fn pack_text(text: &str, out: &mut Vec<u8>) {
    text.len().pack(out);
    out.extend_from_slice(text.as_bytes());
}

impl Packed for u8 {
    fn pack(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn unpack(from: &mut &[u8]) -> Option<u8> {
        Some(bytes(from, 1)?[0])
    }
}

impl Packed for bool {
    fn pack(&self, out: &mut Vec<u8>) {
        out.push((*self).into());
    }

    fn unpack(from: &mut &[u8]) -> Option<bool> {
        Some(u8::unpack(from)? != 0)
    }
}

/// Seven bits to a byte, the lowest first; the eighth says that more follow.
impl Packed for u64 {
    fn pack(&self, out: &mut Vec<u8>) {
        let mut rest = *self;
        while rest > 0x7f {
            out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
    }

    fn unpack(from: &mut &[u8]) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = u8::unpack(from)?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

impl Packed for usize {
    fn pack(&self, out: &mut Vec<u8>) {
        (*self as u64).pack(out);
    }

    fn unpack(from: &mut &[u8]) -> Option<usize> {
        u64::unpack(from)?.try_into().ok()
    }
}

impl Packed for f64 {
    fn pack(&self, out: &mut Vec<u8>) {
        self.to_bits().pack(out);
    }

    fn unpack(from: &mut &[u8]) -> Option<f64> {
        u64::unpack(from).map(f64::from_bits)
    }
}

impl<T: Packed, const N: usize> Packed for [T; N] {
    fn pack(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|item| item.pack(out));
    }

    fn unpack(from: &mut &[u8]) -> Option<[T; N]> {
        let items: [Option<T>; N] = std::array::from_fn(|_| T::unpack(from));
        let whole = items.iter().all(Option::is_some);
        whole.then(|| items.map(|item| item.expect("all of them are there")))
    }
}

impl<T: Packed> Packed for Vec<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        self.len().pack(out);
        self.iter().for_each(|item| item.pack(out));
    }

    fn unpack(from: &mut &[u8]) -> Option<Vec<T>> {
        let len = usize::unpack(from)?;
        // No item takes less than a byte.
        let mut items = Vec::with_capacity(len.min(from.len()));
        for _ in 0..len {
            items.push(T::unpack(from)?);
        }
        Some(items)
    }
}

impl<T: Packed> Packed for Option<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        self.is_some().pack(out);
        self.iter().for_each(|item| item.pack(out));
    }

    fn unpack(from: &mut &[u8]) -> Option<Option<T>> {
        match bool::unpack(from)? {
            true => T::unpack(from).map(Some),
            false => Some(None),
        }
    }
}

impl Packed for Range<usize> {
    fn pack(&self, out: &mut Vec<u8>) {
        [self.start, self.end].pack(out);
    }

    fn unpack(from: &mut &[u8]) -> Option<Range<usize>> {
        Some(usize::unpack(from)?..usize::unpack(from)?)
    }
}

impl Packed for String {
    fn pack(&self, out: &mut Vec<u8>) {
        pack_text(self, out);
    }

    fn unpack(from: &mut &[u8]) -> Option<String> {
        text(from).map(str::to_owned)
    }
}

impl Packed for Arc<str> {
    fn pack(&self, out: &mut Vec<u8>) {
        pack_text(self, out);
    }

    fn unpack(from: &mut &[u8]) -> Option<Arc<str>> {
        text(from).map(Arc::from)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, PartialEq, Debug)]
    struct Sample {
        number: u64,
        decimal: f64,
        flag: Option<bool>,
        texts: Vec<String>,
        pair: [usize; 2],
        range: Range<usize>,
    }

    packed_fields!(Sample { number, decimal, flag, texts, pair, range });

    fn packed(sample: &Sample) -> Vec<u8> {
        let mut out = Vec::new();
        sample.pack(&mut out);
        out
    }

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(
            number: u64,
            decimal in -1e9..1e9,
            flag: Option<bool>,
            texts in prop::collection::vec(".{0,9}", 0..5),
            pair: [usize; 2],
            range: Range<usize>,
        ) {
            let sample = Sample { number, decimal, flag, texts, pair, range };
            let packed = packed(&sample);
            let mut from = &packed[..];
            prop_assert_eq!(Sample::unpack(&mut from), Some(sample));
            prop_assert!(from.is_empty());
            for cut in 0..packed.len() {
                prop_assert_eq!(Sample::unpack(&mut &packed[..cut]), None);
            }
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(sample) = Sample::unpack(&mut &bytes[..]) {
                let packed = packed(&sample);
                let again = Sample::unpack(&mut &packed[..]).map(|again| format!("{again:?}"));
                prop_assert_eq!(again, Some(format!("{sample:?}")));
            }
        }
    }
}
