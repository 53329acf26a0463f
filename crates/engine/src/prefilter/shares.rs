//! How common each byte and each gram is in text, by which grams are chosen and put into buckets. Measured: the
//! tables are what `examples/byte_shares.rs` and `examples/gram_shares.rs` print for large trees of source text.
//! Other tables change how many places are verified in vain, never a hit.

use std::sync::LazyLock;

use super::simd::{KINDS, kind};

/// In millionths, of bytes less their high bit.
const SHARES: [u32; 128] = [
    121, 24, 28, 17, 27, 17, 14, 14, 21, 27371, 27481, 15, 27, 13, 9, 20, 13, 7, 5, 7, 20, 13, 13, 10, 14,
    12, 27, 12, 25, 11, 8, 9, 185706, 452, 3689, 4607, 194, 537, 1542, 265, 7385, 7375, 7329, 699, 10324,
    6300, 3470, 4143, 24886, 7653, 6124, 3764, 3252, 2197, 2326, 1546, 2600, 1312, 1704, 7506, 1282, 5350,
    3959, 94, 313, 14237, 4683, 14243, 10473, 16596, 8512, 5474, 4023, 12933, 134, 2758, 10108, 9305, 9937,
    8427, 10660, 937, 13460, 14264, 14256, 5029, 3486, 1958, 3326, 1952, 581, 875, 776, 875, 33, 61565, 116,
    20365, 6018, 17598, 19453, 43677, 13906, 6533, 6985, 26752, 311, 3685, 13264, 10151, 23151, 17586, 11668,
    1424, 24187, 22183, 30573, 12171, 6023, 3107, 9090, 2987, 793, 2145, 606, 2145, 97, 0,
];

/// The share of a byte, in millionths; never nothing, so that a byte that was not seen is told from none.
pub fn share(byte: u8) -> f32 {
    (SHARES[usize::from(byte & 0x7f)] + 1) as f32
}

/// The share of all bytes of a kind.
static KIND_SHARES: LazyLock<[f32; KINDS]> = LazyLock::new(|| {
    let mut shares = [0.0; KINDS];
    (0..128).for_each(|byte| shares[kind(byte)] += share(byte));
    shares
});

/// The share of the bytes of some kinds, in millionths.
pub fn share_of_kinds(mut kinds: u64) -> f32 {
    let mut sum = 0.0;
    while kinds != 0 {
        sum += KIND_SHARES[kinds.trailing_zeros() as usize];
        kinds &= kinds - 1;
    }
    sum
}

/// The common grams in order, in lower case, with their share as a power of one half.
static GRAMS: LazyLock<Vec<([u8; 4], i32)>> = LazyLock::new(|| {
    let lines = include_str!("grams.txt").lines().filter_map(|line| line.split_once(' '));
    let grams = lines.flat_map(|(power, grams)| {
        let power = power.parse().unwrap_or(0);
        let space = |byte: u8| if byte == b'S' { b' ' } else { byte };
        grams.as_bytes().as_chunks().0.iter().map(move |gram: &[u8; 4]| (gram.map(space), power))
    });
    let mut grams: Vec<_> = grams.collect();
    grams.sort();
    grams
});

/// The share of a gram in any case, if it is a common one: from nothing to one.
pub fn gram_share(gram: [u8; 4]) -> Option<f32> {
    let gram = gram.map(|byte| byte.to_ascii_lowercase());
    let at = GRAMS.binary_search_by_key(&gram, |&(gram, _)| gram).ok()?;
    Some(0.5f32.powi(GRAMS[at].1))
}

/// How many of the commonest grams there are: as many as fit [`GramSet`].
pub const COMMONEST: usize = 4096;

/// A set of the commonest grams, by their number.
pub type GramSet = [u64; COMMONEST / 64];

pub const NO_GRAMS: GramSet = [0; COMMONEST / 64];

/// The commonest grams with their share.
static COMMON: LazyLock<Vec<([u8; 4], f32)>> = LazyLock::new(|| {
    let mut grams: Vec<_> = GRAMS.iter().collect();
    grams.sort_by_key(|&&(_, power)| power);
    grams.truncate(COMMONEST);
    grams.into_iter().map(|&(gram, power)| (gram, 0.5f32.powi(power))).collect()
});

/// By place and kind of byte, the commonest grams that have it there.
static COMMON_WITH: LazyLock<Box<[[GramSet; KINDS]; 4]>> = LazyLock::new(|| {
    let mut sets = Box::new([[NO_GRAMS; KINDS]; 4]);
    for (number, (gram, _)) in COMMON.iter().enumerate() {
        for (at, byte) in gram.iter().enumerate() {
            sets[at][kind(*byte)][number / 64] |= 1 << (number % 64);
        }
    }
    sets
});

/// The commonest grams that have a byte of the kind of `byte` at place `at`; all of them if it is left open.
pub fn common_with(byte: Option<u8>, at: usize) -> &'static GramSet {
    static ALL_GRAMS: GramSet = [u64::MAX; COMMONEST / 64];
    byte.map_or(&ALL_GRAMS, |byte| &COMMON_WITH[at][kind(byte)])
}

/// The share of some of the commonest grams: those of one word of a set.
pub fn common_share(word: usize, mut bits: u64) -> f32 {
    let mut sum = 0.0;
    while bits != 0 {
        sum += COMMON.get(64 * word + bits.trailing_zeros() as usize).map_or(0.0, |&(_, share)| share);
        bits &= bits - 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_grams_are_known_as_such() {
        assert!(gram_share(*b"tion") > gram_share(*b"user") && gram_share(*b"user").is_some());
        assert_eq!(gram_share(*b"Name"), gram_share(*b"name"));
        assert!(gram_share(*b" the").is_some());
        assert_eq!(gram_share(*b"qzxj"), None);
        assert!(GRAMS.windows(2).all(|pair| pair[0].0 < pair[1].0), "each once");
    }
}
