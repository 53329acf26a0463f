//! The wide instructions of the first pass, and the only `unsafe` code of the engine: which bytes of a block
//! belong to which class, and where in a block a gram of a literal may stand, as bit masks. Each function
//! gives the same answer whatever the machine can do; the plain one is the definition, and a property test
//! holds the others to it. It must not know rules.
//!
//! What needs a wide instruction is computed for many blocks at once into a buffer, so that the code that
//! reads the masks is plain, and the check of what the machine can do costs nothing.

/// Bytes that one mask covers.
pub const BLOCK: usize = 64;

/// Classes of bytes: an index into masks.
pub const DIGIT: usize = 0;
pub const ALNUM: usize = 1;
pub const UNDERSCORE: usize = 2;
/// The space, `-`, `.` and `/`: what may separate groups of digits.
pub const JOINT: usize = 3;
pub const AT: usize = 4;
pub const COLON: usize = 5;
pub const CLASSES: usize = COLON + 1;

/// For each class, which bytes of a block belong to it.
pub type Classes = [u64; CLASSES];

const fn is_in_class(byte: u8, class: usize) -> bool {
    match class {
        DIGIT => byte.is_ascii_digit(),
        ALNUM => byte.is_ascii_alphanumeric(),
        UNDERSCORE => byte == b'_',
        JOINT => matches!(byte, b' ' | b'-' | b'.' | b'/'),
        AT => byte == b'@',
        _ => byte == b':',
    }
}

/// What the machine can do. Only made where it can.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level(Kind);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// With the byte permutations of VBMI and VBMI2, and GFNI.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    pub fn of_machine() -> Level {
        Level::all().last().copied().unwrap_or(Level(Kind::Plain))
    }

    /// Every level that this machine can run, the widest last.
    pub fn all() -> &'static [Level] {
        #[cfg(target_arch = "x86_64")]
        {
            const ALL: &[Level] = &[Level(Kind::Plain), Level(Kind::Avx2), Level(Kind::Avx512)];
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt")
                && is_x86_feature_detected!("lzcnt");
            let avx512 = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vbmi")
                && is_x86_feature_detected!("avx512vbmi2")
                && is_x86_feature_detected!("gfni");
            &ALL[..1 + usize::from(avx2) + usize::from(avx512)]
        }
        #[cfg(not(target_arch = "x86_64"))]
        &[Level(Kind::Plain)]
    }

    /// Whether [`Buckets`] are the quickest test for literals.
    pub fn permutes_bytes(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return self.0 == Kind::Avx512;
        #[cfg(not(target_arch = "x86_64"))]
        false
    }
}

/// Calls `each` with the number and the classes of every block.
pub fn classify(level: Level, blocks: &[[u8; BLOCK]], mut each: impl FnMut(usize, &Classes)) {
    match level.0 {
        Kind::Plain => {
            for (i, block) in blocks.iter().enumerate() {
                each(i, &plain::classes(block));
            }
        }
        // SAFETY: this level is only made where `Level::all` has found its instructions.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => unsafe { x86::classify_avx2(blocks, each) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => unsafe { x86::classify_avx512(blocks, each) },
    }
}

/// Plain code that the compiler translates for what the machine can do. Only what is inlined into `run`
/// gains, and `run` itself must be.
pub trait Work {
    fn run(self);
}

pub fn run(level: Level, work: impl Work) {
    match level.0 {
        Kind::Plain => work.run(),
        // SAFETY: this level is only made where `Level::all` has found its instructions.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => unsafe { x86::run_avx2(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => unsafe { x86::run_avx512(work) },
    }
}

mod plain {
    use super::{BLOCK, CLASSES, Classes, is_in_class};

    /// The classes of a byte, as bits.
    const FLAGS: [u8; 256] = {
        let mut flags = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let mut class = 0;
            while class < CLASSES {
                flags[byte] |= (is_in_class(byte as u8, class) as u8) << class;
                class += 1;
            }
            byte += 1;
        }
        flags
    };

    pub fn classes(block: &[u8; BLOCK]) -> Classes {
        let mut classes = [0; CLASSES];
        for (part, bytes) in block.as_chunks::<8>().0.iter().enumerate() {
            let rows = transpose(u64::from_le_bytes(bytes.map(|byte| FLAGS[usize::from(byte)])));
            for (class, row) in classes.iter_mut().zip(rows.to_le_bytes()) {
                *class |= u64::from(row) << (8 * part);
            }
        }
        classes
    }

    /// Bit `i` of byte `j` becomes bit `j` of byte `i`: blocks of one, two and four are swapped in turn.
    fn transpose(mut x: u64) -> u64 {
        for (shift, mask) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0xf0f0_f0f0)] {
            let swapped = (x ^ (x >> shift)) & mask;
            x ^= swapped ^ (swapped << shift);
        }
        x
    }
}

/// Literals in buckets, told apart by the bytes of a gram one by one: a gram may be one of bucket `b` if each
/// of its bytes may stand at its place in one. Bytes count by their [`kind`].
pub struct Buckets {
    /// For each kind of byte, the buckets of eight that allow it at a place of the gram.
    tables: Box<[[[u8; KINDS]; GRAM]; BUCKETS / 8]>,
}

/// Bytes of a gram.
pub const GRAM: usize = 4;
/// All tables of so many fit the registers of the machine.
pub const BUCKETS: usize = 40;
/// Kinds of bytes: as many as one permutation tells apart.
pub const KINDS: usize = 64;

/// What of a byte counts in [`Buckets`]: all but the bit that tells small letters from capitals, and digits and marks
/// from control characters, and all but the highest.
pub const fn kind(byte: u8) -> usize {
    (byte & 0x1f | byte >> 1 & 0x20) as usize
}

/// The bit that tells small letters from capitals.
pub const CASE: u8 = 0x20;

impl Default for Buckets {
    fn default() -> Buckets {
        Buckets { tables: Box::new([[[0; KINDS]; GRAM]; BUCKETS / 8]) }
    }
}

impl Buckets {
    /// Allows bytes of `kind` at place `at` of the grams of `bucket`.
    pub fn allow(&mut self, bucket: usize, at: usize, kind: usize) {
        self.tables[bucket / 8][at][kind] |= 1 << (bucket % 8);
    }

    /// Sets bit `i` of `masks[b]` if the gram at byte `i` of block `b` of `bytes` may be in a bucket. After the
    /// blocks there are [`GRAM`]` - 1` bytes more.
    pub fn test(&self, level: Level, bytes: &[u8], masks: &mut [u64]) {
        assert!(bytes.len() >= masks.len() * BLOCK + GRAM - 1, "every gram is whole");
        match level.0 {
            // SAFETY: the level's instructions were found, and the length was checked just above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { x86::test_avx512(&self.tables, bytes, masks) },
            _ => {
                for (block, mask) in masks.iter_mut().enumerate() {
                    let may = |i: usize| self.may_be(&bytes[block * BLOCK + i..]);
                    *mask = (0..BLOCK).fold(0, |mask, i| mask | u64::from(may(i)) << i);
                }
            }
        }
    }

    fn may_be(&self, gram: &[u8]) -> bool {
        self.tables.iter().any(|places| {
            let allowed = places.iter().zip(gram).map(|(place, byte)| place[kind(*byte)]);
            allowed.fold(u8::MAX, |buckets, allowed| buckets & allowed) != 0
        })
    }
}

/// The same bit of every byte of a gram.
pub const CASES: u32 = u32::from_le_bytes([CASE; GRAM]);

/// Blocks whose masks are sifted together, at most.
pub const SIFT_MAX: usize = 64;

/// The places of bits in the masks of a batch of blocks, in order.
pub struct SetPlaces {
    all: Box<[u32; SIFT_MAX * BLOCK]>,
    count: usize,
}

impl Default for SetPlaces {
    fn default() -> SetPlaces {
        SetPlaces { all: Box::new([0; SIFT_MAX * BLOCK]), count: 0 }
    }
}

impl SetPlaces {
    /// Those of the bits of `masks`, in place of those before.
    pub fn set(&mut self, level: Level, masks: &[u64]) {
        self.count = match level.0 {
            // SAFETY: this level is only made where `Level::all` has found its instructions.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { x86::set_places_avx512(masks, &mut self.all) },
            _ => {
                let mut count = 0;
                for (block, &mask) in masks.iter().enumerate() {
                    let mut mask = mask;
                    while mask != 0 {
                        self.all[count] = (block * BLOCK) as u32 + mask.trailing_zeros();
                        count += 1;
                        mask &= mask - 1;
                    }
                }
                count
            }
        };
    }

    pub fn len(&self) -> usize {
        self.count
    }

    #[inline(always)]
    pub fn get(&self, number: usize) -> usize {
        self.all[number] as usize
    }

    /// Puts one in place of an earlier one.
    #[inline(always)]
    pub fn put(&mut self, number: usize, later: usize) {
        self.all[number] = self.all[later];
    }

    /// Leaves those that are `wanted`, without a branch that could be foreseen wrongly.
    #[inline(always)]
    pub fn retain(&mut self, wanted: impl Fn(usize) -> bool) {
        let mut kept = 0;
        for next in 0..self.count {
            let place = self.all[next];
            self.all[kept] = place;
            kept += usize::from(wanted(place as usize));
        }
        self.count = kept;
    }

    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.all[..self.count].iter().map(|&place| place as usize)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{BLOCK, BUCKETS, CLASSES, Classes, GRAM, KINDS, SIFT_MAX, Work};

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
    pub fn run_avx2(work: impl Work) {
        work.run();
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt,avx512f,avx512bw,avx512vl,avx512dq")]
    pub fn run_avx512(work: impl Work) {
        work.run();
    }

    #[target_feature(enable = "avx2")]
    pub fn classify_avx2(blocks: &[[u8; BLOCK]], mut each: impl FnMut(usize, &Classes)) {
        for (i, block) in blocks.iter().enumerate() {
            let mut classes = [0; CLASSES];
            for (half, bytes) in block.as_chunks::<32>().0.iter().enumerate() {
                // SAFETY: the array has the 32 bytes that are read; the load may be unaligned.
                let text = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
                for (class, mask) in classes.iter_mut().zip(half_classes(text)) {
                    *class |= u64::from(mask) << (32 * half);
                }
            }
            each(i, &classes);
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn half_classes(text: __m256i) -> [u32; CLASSES] {
        let mask = |hits: __m256i| _mm256_movemask_epi8(hits) as u32;
        let is = |byte: u8| _mm256_cmpeq_epi8(text, _mm256_set1_epi8(byte as i8));
        // A byte less the first of a range is at most its length, counted from zero without a sign.
        let in_range = |text: __m256i, first: u8, last: u8| {
            let from_first = _mm256_sub_epi8(text, _mm256_set1_epi8(first as i8));
            let most = _mm256_set1_epi8((last - first) as i8);
            _mm256_cmpeq_epi8(_mm256_min_epu8(from_first, most), from_first)
        };
        let lower = _mm256_or_si256(text, _mm256_set1_epi8(0x20));
        let digit = in_range(text, b'0', b'9');
        let letter = in_range(lower, b'a', b'z');
        [
            mask(digit),
            mask(_mm256_or_si256(digit, letter)),
            mask(is(b'_')),
            mask(_mm256_or_si256(is(b' '), in_range(text, b'-', b'/'))),
            mask(is(b'@')),
            mask(is(b':')),
        ]
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    pub fn classify_avx512(blocks: &[[u8; BLOCK]], mut each: impl FnMut(usize, &Classes)) {
        for (i, block) in blocks.iter().enumerate() {
            // SAFETY: the array has the 64 bytes that are read; the load may be unaligned.
            let text = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
            let is = |byte: u8| _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8(byte as i8));
            let in_range = |text: __m512i, first: u8, last: u8| {
                let from_first = _mm512_sub_epi8(text, _mm512_set1_epi8(first as i8));
                _mm512_cmple_epu8_mask(from_first, _mm512_set1_epi8((last - first) as i8))
            };
            let lower = _mm512_or_si512(text, _mm512_set1_epi8(0x20));
            let digit = in_range(text, b'0', b'9');
            let classes = [
                digit,
                digit | in_range(lower, b'a', b'z'),
                is(b'_'),
                is(b' ') | in_range(text, b'-', b'/'),
                is(b'@'),
                is(b':'),
            ];
            each(i, &classes);
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load<const N: usize>(from: &[u8; N]) -> __m512i {
        const { assert!(N >= BLOCK) };
        // SAFETY: the array has the 64 bytes that are read; the load may be unaligned.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }

    /// The caller has checked that `bytes` has a block for each mask and `GRAM - 1` bytes more.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
    pub fn test_avx512(tables: &[[[u8; KINDS]; GRAM]; BUCKETS / 8], bytes: &[u8], masks: &mut [u64]) {
        // One permutation looks at the low six bits of a byte, to which a matrix brings its kind.
        const KIND: i64 = 0x0102_0408_1040_0000;
        let mut loaded = [[_mm512_setzero_si512(); GRAM]; BUCKETS / 8];
        for (loaded, table) in loaded.iter_mut().flatten().zip(tables.iter().flatten()) {
            *loaded = load(table);
        }
        let kind = _mm512_set1_epi64(KIND);
        for (block, mask) in masks.iter_mut().enumerate() {
            let text = &bytes[block * BLOCK..];
            let place = |place: usize| {
                let text = text[place..].first_chunk::<BLOCK>().expect("the caller checked the length");
                _mm512_gf2p8affine_epi64_epi8::<0>(load(text), kind)
            };
            let places = [place(0), place(1), place(2), place(3)];
            let mut hits = _mm512_setzero_si512();
            for table in &loaded {
                let allowed = |place: usize| _mm512_permutexvar_epi8(places[place], table[place]);
                let first = _mm512_and_si512(allowed(0), allowed(1));
                // Both, with the first two, or what was there before.
                hits =
                    _mm512_or_si512(hits, _mm512_ternarylogic_epi32::<0x80>(first, allowed(2), allowed(3)));
            }
            *mask = _mm512_test_epi8_mask(hits, hits);
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
    pub fn set_places_avx512(masks: &[u64], places: &mut [u32; SIFT_MAX * BLOCK]) -> usize {
        const LANES: usize = 16;
        let numbers = load(&std::array::from_fn::<u8, BLOCK, _>(|i| i as u8));
        let mut count = 0;
        let mut rows = [0u64; SIFT_MAX + 8];
        let set_rows = set_rows(masks, &mut rows);
        for &block in &rows[..set_rows] {
            let mask = masks[block as usize];
            let set = mask.count_ones() as usize;
            let packed = _mm512_maskz_compress_epi8(mask, numbers);
            let from = _mm512_set1_epi32((block as usize * BLOCK) as i32);
            let mut put = |part: usize, numbers: __m128i| {
                let room = places[count + part * LANES..].first_chunk_mut::<LANES>();
                let room = room.expect("there is room for all places of every block");
                let all = _mm512_add_epi32(_mm512_cvtepu8_epi32(numbers), from);
                // SAFETY: there is room for the 16 numbers that are written; the store may be unaligned.
                unsafe { _mm512_storeu_si512(room.as_mut_ptr().cast(), all) };
            };
            put(0, _mm512_castsi512_si128(packed));
            if set > LANES {
                put(1, _mm512_extracti32x4_epi32::<1>(packed));
                put(2, _mm512_extracti32x4_epi32::<2>(packed));
                put(3, _mm512_extracti32x4_epi32::<3>(packed));
            }
            count += set;
        }
        count
    }

    /// Puts the numbers of the masks that have a bit first into `rows`; how many those are.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
    fn set_rows(masks: &[u64], rows: &mut [u64; SIFT_MAX + 8]) -> usize {
        let mut count = 0;
        for (part, masks) in masks.chunks(8).enumerate() {
            let have = (1u32 << masks.len()) - 1;
            // SAFETY: only the masks that are there are read.
            let masks = unsafe { _mm512_maskz_loadu_epi64(have as u8, masks.as_ptr().cast()) };
            let set = _mm512_test_epi64_mask(masks, masks);
            let numbers = _mm512_add_epi64(
                _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0),
                _mm512_set1_epi64(part as i64 * 8),
            );
            let room =
                rows[count..].first_chunk_mut::<8>().expect("there is room for a part beyond all rows");
            // SAFETY: there is room for the 8 numbers that are written; the store may be unaligned.
            unsafe {
                _mm512_storeu_si512(room.as_mut_ptr().cast(), _mm512_maskz_compress_epi64(set, numbers))
            };
            count += set.count_ones() as usize;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check_classes(blocks: &[[u8; BLOCK]]) {
        for &level in Level::all() {
            let mut seen = 0;
            classify(level, blocks, |number, classes| {
                seen += 1;
                for (class, &mask) in classes.iter().enumerate() {
                    let wanted = (0..BLOCK).filter(|&i| is_in_class(blocks[number][i], class));
                    assert_eq!(mask, wanted.fold(0, |mask, i| mask | 1 << i), "{level:?}, class {class}");
                }
            });
            assert_eq!(seen, blocks.len(), "{level:?}");
        }
    }

    #[test]
    fn every_byte_has_its_classes_at_every_place() {
        for shift in 0..=u8::MAX {
            check_classes(&[std::array::from_fn(|i| (i as u8).wrapping_mul(5).wrapping_add(shift))]);
        }
    }

    proptest! {
        #[test]
        fn every_level_gives_the_same_classes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            check_classes(bytes.as_chunks::<BLOCK>().0);
        }

        #[test]
        fn every_level_gives_the_places_of_all_bits(
            masks in proptest::collection::vec(prop_oneof![Just(0), Just(u64::MAX), any::<u64>()], 0..=SIFT_MAX),
        ) {
            let set = |(block, mask): (usize, &u64)| {
                let mask = *mask;
                (0..BLOCK).filter(move |bit| mask >> bit & 1 != 0).map(move |bit| block * BLOCK + bit)
            };
            let wanted: Vec<usize> = masks.iter().enumerate().flat_map(set).collect();
            for &level in Level::all() {
                let mut places = SetPlaces::default();
                places.set(level, &masks);
                prop_assert_eq!(&places.iter().collect::<Vec<_>>(), &wanted, "{:?}", level);
            }
        }

        #[test]
        fn every_level_gives_the_same_places_of_grams(
            bytes in proptest::collection::vec(prop_oneof![Just(b'a'), b'a'..b'h', any::<u8>()], GRAM - 1..400),
            grams in proptest::collection::vec((0..BUCKETS, prop::array::uniform4(prop_oneof![b'a'..b'h', any::<u8>()])), 1..60),
        ) {
            let mut buckets = Buckets::default();
            for (bucket, gram) in &grams {
                gram.iter().enumerate().for_each(|(at, &byte)| buckets.allow(*bucket, at, kind(byte)));
            }
            let blocks = (bytes.len() - (GRAM - 1)) / BLOCK;
            let mut plain = vec![0; blocks];
            buckets.test(Level(Kind::Plain), &bytes, &mut plain);
            for (at, window) in bytes.windows(GRAM).enumerate().take(blocks * BLOCK) {
                let there = grams.iter().any(|(_, gram)| gram[..] == *window);
                prop_assert!(!there || plain[at / BLOCK] >> (at % BLOCK) & 1 == 1, "a gram is missed at {}", at);
            }
            for &level in Level::all() {
                let mut masks = vec![u64::MAX; blocks];
                buckets.test(level, &bytes, &mut masks);
                prop_assert_eq!(&masks, &plain, "{:?}", level);
            }
        }
    }
}
