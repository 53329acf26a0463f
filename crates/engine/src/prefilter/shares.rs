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

/// The share of all bytes, in millionths.
pub const WHOLE: f32 = 1e6;

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

/// The common grams in lower case with their share, from nothing to one; the commonest first.
static GRAMS: LazyLock<Vec<([u8; 4], f32)>> = LazyLock::new(|| {
    let lines = include_str!("grams.txt").lines().filter_map(|line| line.split_once(' '));
    let grams = lines.flat_map(|(power, grams)| {
        let share = 0.5f32.powf(power.parse().unwrap_or(f32::INFINITY) / 2.0);
        let byte = |byte: u8| match byte {
            b'S' => b' ',
            b'T' => b'\t',
            b'N' => b'\n',
            byte => byte,
        };
        grams.as_bytes().as_chunks().0.iter().map(move |gram: &[u8; 4]| (gram.map(byte), share))
    });
    grams.collect()
});

/// A set of common grams, by their number.
pub type GramSet = Vec<u64>;

/// The common grams by place and kind of byte, and all of them.
struct CommonWith {
    kinds: [Vec<GramSet>; 4],
    all: GramSet,
}

static COMMON_WITH: LazyLock<CommonWith> = LazyLock::new(|| {
    let none = vec![0; GRAMS.len().div_ceil(64)];
    let (mut kinds, mut all) = ([(); 4].map(|()| vec![none.clone(); KINDS]), none);
    for (number, (gram, _)) in GRAMS.iter().enumerate() {
        let (word, bit) = (number / 64, 1 << (number % 64));
        gram.iter().zip(&mut kinds).for_each(|(&byte, place)| place[kind(byte)][word] |= bit);
        all[word] |= bit;
    }
    CommonWith { kinds, all }
});

pub fn all_grams() -> &'static GramSet {
    &COMMON_WITH.all
}

/// The common grams that have a byte of this kind at place `at`.
pub fn common_with(kind: usize, at: usize) -> &'static GramSet {
    &COMMON_WITH.kinds[at][kind]
}

/// The share of some of the common grams: those of one word of a set.
pub fn common_share(word: usize, mut bits: u64) -> f32 {
    let mut sum = 0.0;
    while bits != 0 {
        sum += GRAMS.get(64 * word + bits.trailing_zeros() as usize).map_or(0.0, |&(_, share)| share);
        bits &= bits - 1;
    }
    sum
}

/// The share of the rarest of the common grams.
pub fn least_share() -> f32 {
    GRAMS.last().map_or(0.0, |&(_, share)| share)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn common_grams_are_known_as_such() {
        let grams: HashMap<_, _> = GRAMS.iter().copied().collect();
        assert_eq!(grams.len(), GRAMS.len(), "each once");
        assert!(grams[b"tion"] > grams[b"user"]);
        assert!(
            grams.contains_key(b" the") && grams.contains_key(b"\t\t\t\t") && grams.contains_key(b";\n\n\t")
        );
        assert!(!grams.contains_key(b"qzxj"));
        assert!(GRAMS.is_sorted_by(|a, b| a.1 >= b.1) && least_share() > 0.0);
    }
}
