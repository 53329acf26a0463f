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

/// The bits of a block, and those of the block after it.
#[derive(Clone, Copy)]
pub struct Two(pub u64, pub u64);

impl Two {
    #[inline(always)]
    pub fn and(self, other: Two) -> Two {
        Two(self.0 & other.0, self.1 & other.1)
    }

    #[inline(always)]
    pub fn or(self, other: Two) -> Two {
        Two(self.0 | other.0, self.1 | other.1)
    }

    /// Each bit moved up by one place, the last of the block `before` to the first.
    #[inline(always)]
    pub fn up(self, before: u64) -> Two {
        Two(self.0 << 1 | before >> 63, self.1 << 1 | self.0 >> 63)
    }

    /// Each bit moved down by `by` places; behind the second block there is nothing.
    #[inline(always)]
    pub fn down(self, by: u32) -> Two {
        Two(self.0 >> by | self.1 << (u64::BITS - by), self.1 >> by)
    }

    /// Where another bit is two to four places on.
    #[inline(always)]
    pub fn close(self) -> Two {
        self.down(2).or(self.down(3)).or(self.down(4))
    }

    /// From the bits that begin a run of `done`, those that begin one of `len`; in the second block, those whose run
    /// ends within it.
    #[inline(always)]
    pub fn runs(mut self, mut done: usize, len: usize) -> Two {
        while done < len {
            let by = done.min(len - done);
            self = self.and(self.down(by as u32));
            done += by;
        }
        self
    }
}

/// The bits from a place on, counted from the first block that is searched: as many as a mask has.
#[inline(always)]
pub fn from_place<const R: usize>(row: &Row<R>, place: usize) -> u64 {
    let (i, bit) = (1 + place / BLOCK, place % BLOCK);
    row[i] >> bit | row[i + 1] << 1 << (BLOCK - 1 - bit)
}

#[inline(always)]
pub fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
        bit
    })
}
