//! How common each byte is in text, by which grams are chosen and put into buckets. Measured: the table is what
//! `examples/byte_shares.rs` prints for a large tree of source text. Another table changes how many places are
//! verified in vain, never a hit.

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
