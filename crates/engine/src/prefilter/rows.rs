//! Rows of bit masks, one mask for each block of a text, and what is found by moving them. A row has the masks of the
//! blocks that are searched together, of the block before and of the block after.

use super::simd::{self, BLOCK, CLASSES, Level};

pub type Row<const R: usize> = [u64; R];

/// The classes of the bytes of a batch of blocks.
pub struct Masks<const R: usize>(pub [Row<R>; CLASSES]);

impl<const R: usize> Default for Masks<R> {
    fn default() -> Masks<R> {
        Masks([[0; R]; CLASSES])
    }
}

impl<const R: usize> Masks<R> {
    /// Reads the blocks from `from` on, the block before and the block after. Beyond the ends of the chunk
    /// there is nothing of any class.
    pub fn read(&mut self, level: Level, bytes: &[u8], from: usize) {
        let mut next = match from.checked_sub(BLOCK) {
            Some(_) => 0,
            None => {
                self.0.iter_mut().for_each(|row| row[0] = 0);
                1
            }
        };
        let rest = &bytes[from - (1 - next) * BLOCK..];
        let rest = &rest[..rest.len().min((R - next) * BLOCK)];
        let (whole, last) = rest.as_chunks();
        let mut padded = [0; BLOCK];
        padded[..last.len()].copy_from_slice(last);
        for blocks in [whole, if last.is_empty() { &[] } else { std::slice::from_ref(&padded) }] {
            simd::classify(level, blocks, |i, classes| {
                self.0.iter_mut().zip(classes).for_each(|(row, &class)| row[next + i] = class);
            });
            next += blocks.len();
        }
        self.0.iter_mut().for_each(|row| row[next..].fill(0));
    }
}

/// The bits of `row[i]`, each moved up by `by` places from the block before.
#[inline(always)]
pub fn up<const R: usize>(row: &Row<R>, i: usize, by: u32) -> u64 {
    row[i] << by | row[i - 1] >> (u64::BITS - by)
}

/// The bits of `row[i]`, each moved down by `by` places from the block after.
#[inline(always)]
pub fn down<const R: usize>(row: &Row<R>, i: usize, by: u32) -> u64 {
    row[i] >> by | row[i + 1] << (u64::BITS - by)
}

/// The bits of `row[i]` and those of the block after.
#[inline(always)]
pub fn pair<const R: usize>(row: &Row<R>, i: usize) -> u128 {
    u128::from(row[i]) | u128::from(row[i + 1]) << BLOCK
}

#[inline(always)]
pub fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
        bit
    })
}

/// Makes a row out of each block with its neighbours; behind the last there is nothing, and `last` is what is in the
/// block after. Written so that the compiler makes several blocks at once: no row is changed while it is read.
#[inline(always)]
pub fn make_row<const R: usize>(each: impl Fn(usize) -> u64, last: u64) -> Row<R> {
    let mut row = [0; R];
    for (i, mask) in row[..R - 1].iter_mut().enumerate().skip(1) {
        *mask = each(i);
    }
    row[R - 1] = last;
    row
}

/// From the bits that begin a run of `done`, leaves those that begin one of `len`; in the last block, those
/// whose run ends within it.
#[inline(always)]
pub fn runs<const R: usize>(row: &Row<R>, mut done: usize, len: usize) -> Row<R> {
    let mut run = *row;
    while done < len {
        let by = done.min(len - done) as u32;
        let last = run[R - 1];
        run = make_row(|i| run[i] & down(&run, i, by), last & last >> by);
        done += by as usize;
    }
    run
}
