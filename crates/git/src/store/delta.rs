//! Deltas: instructions that make an object from another one.

use domesday_scheduler::CopiedRange;

/// A delta's own head: the sizes of what it is applied to and of what it makes. `None` when it is cut short.
pub(super) fn sizes(delta: &mut &[u8]) -> Option<(u64, u64)> {
    Some((size(delta)?, size(delta)?))
}

/// Bytes that a delta's head has, at most.
pub(super) const HEAD_MAX: usize = 20;

/// Bytes that a copy and what is inserted after it mostly have, or more.
const INSTRUCTION_LEN: usize = 8;

fn size(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part {
            return None;
        }
        value |= part << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Bytes that one instruction copies, at most.
const COPY_MAX: usize = 0xff_ffff;

/// More than this no `instructions` make from a base of `base` bytes: a copy takes a byte at least, and so does each byte
/// that is inserted. A size beyond it is a lie that must not cost memory.
pub(super) fn made_max(base: usize, instructions: usize) -> u64 {
    (instructions as u64).saturating_mul(base.clamp(1, COPY_MAX) as u64)
}

/// Puts what the instructions make from `base` into `made`, which must be `len` bytes; into `copied` what is copied, if
/// that is asked for.
pub(super) fn apply(
    base: &[u8],
    mut instructions: &[u8],
    len: usize,
    made: &mut Vec<u8>,
    mut copied: Option<&mut Vec<CopiedRange>>,
) -> Result<(), &'static str> {
    if let Some(copied) = &mut copied {
        copied.reserve(instructions.len() / INSTRUCTION_LEN);
    }
    while let Some((&instruction, rest)) = instructions.split_first() {
        instructions = rest;
        let piece = if instruction & 0x80 != 0 {
            let from = number(&mut instructions, instruction, 4).ok_or(CUT)?;
            let count = number(&mut instructions, instruction >> 4, 3).ok_or(CUT)?;
            let count = if count == 0 { 0x1_0000 } else { count };
            if let Some(copied) = &mut copied {
                add_range(copied, CopiedRange { at: made.len(), from, len: count });
            }
            from.checked_add(count)
                .and_then(|to| base.get(from..to))
                .ok_or("a delta copies beyond its base")?
        } else if instruction != 0 {
            let (piece, rest) = instructions.split_at_checked(usize::from(instruction)).ok_or(CUT)?;
            instructions = rest;
            piece
        } else {
            return Err("a delta has an instruction that means nothing");
        };
        if piece.len() > len - made.len() {
            return Err("a delta makes more than it says");
        }
        made.extend_from_slice(piece);
    }
    if made.len() != len {
        return Err("a delta makes less than it says");
    }
    Ok(())
}

/// Adds a copied range, or makes the last one longer: long copies are made of short ones.
fn add_range(copied: &mut Vec<CopiedRange>, range: CopiedRange) {
    match copied.last_mut() {
        Some(last) if (last.at + last.len, last.from + last.len) == (range.at, range.from) => {
            last.len += range.len;
        }
        _ => copied.push(range),
    }
}

const CUT: &str = "a delta ends in the middle of an instruction";

/// A little-endian number of which only the bytes are there whose bit is set.
fn number(bytes: &mut &[u8], present: u8, count: u32) -> Option<usize> {
    let mut value = 0;
    for i in (0..count).filter(|i| present >> i & 1 != 0) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= usize::from(byte) << (8 * i);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(base: &[u8], delta: &[u8], len: usize) -> Result<(Vec<u8>, Vec<CopiedRange>), &'static str> {
        let (mut made, mut copied) = (Vec::new(), Vec::new());
        apply(base, delta, len, &mut made, Some(&mut copied)).map(|()| (made, copied))
    }

    #[test]
    fn copies_and_inserts() {
        // Copy 3 from 1, insert "xy", copy 1 from 0, and the one after that.
        let delta = [0b1001_0001, 1, 3, 2, b'x', b'y', 0b1001_0000, 1, 0b1001_0001, 1, 1];
        let (made, copied) = made(b"abcdef", &delta, 7).unwrap();
        assert_eq!(made, b"bcdxyab");
        let range = |at, from, len| CopiedRange { at, from, len };
        assert_eq!(copied, [range(0, 1, 3), range(5, 0, 2)]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let check = |delta: &[u8], len| made(b"abc", delta, len).unwrap_err();
        assert_eq!(check(&[0b1001_0001, 2, 2], 2), "a delta copies beyond its base");
        assert_eq!(check(&[0b1000_0000], 2), "a delta copies beyond its base");
        assert_eq!(check(&[3, b'a'], 3), CUT);
        assert_eq!(check(&[0b1001_0001, 2], 3), CUT);
        assert_eq!(check(&[0], 0), "a delta has an instruction that means nothing");
        assert_eq!(check(&[2, b'a', b'b'], 1), "a delta makes more than it says");
        assert_eq!(check(&[1, b'a'], 2), "a delta makes less than it says");
    }

    #[test]
    fn more_is_never_made_than_the_instructions_can() {
        for (base, delta, len) in
            [(3, &[0b1001_0000, 3][..], 3), (3, &[2, b'a', b'b'], 2), (0, &[1, b'a'], 1)]
        {
            made(&b"abc"[..base], delta, len).unwrap();
            assert!(len as u64 <= made_max(base, delta.len()));
        }
        assert_eq!((made_max(3, 2), made_max(0, 5), made_max(3, 0)), (6, 5, 0));
        assert_eq!(made_max(1 << 30, 2), 2 * COPY_MAX as u64);
    }

    #[test]
    fn sizes_beyond_64_bits_are_refused() {
        assert_eq!(sizes(&mut &[0x80, 1, 5][..]), Some((128, 5)));
        assert_eq!(sizes(&mut &[0xff; 12][..]), None);
        assert_eq!(sizes(&mut &[0x80][..]), None);
    }
}
