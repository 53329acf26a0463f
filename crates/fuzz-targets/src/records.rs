//! Inputs that are several things: records, each with a kind and its bytes.
//!
//! A fuzzer that changes a byte then still gives something of the same form: whatever the input, it has records.

/// A kind and its bytes.
pub struct Record<'a> {
    pub kind: u8,
    pub bytes: &'a [u8],
}

/// The records of an input: a byte for the kind, two for the length (little-endian), the bytes. One that is cut short has
/// what there is.
pub fn records(mut input: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let (&[kind, low, high], rest) = input.split_first_chunk::<3>()?;
        let len = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
        let (bytes, rest) = rest.split_at(len);
        input = rest;
        Some(Record { kind, bytes })
    })
}
