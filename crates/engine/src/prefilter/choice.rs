//! Which gram of a literal it is found by, and in which bucket. All choices find the same; a good one lets little text
//! pass that has no literal: grams are rare, and those of a bucket differ in few bytes. What is built in was chosen
//! once ([`plan`](super::plan)); literals of other rules are added to it when their index is built.

use std::ops::RangeInclusive;

use super::shares::{GramSet, WHOLE, all_grams, common_share, common_with, least_share, share_of_kinds};
use super::simd::{BUCKETS, GRAM, KINDS, kind};
use crate::rules::Literal;

/// The gram and the bucket of a literal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Where in the literal the gram begins.
    pub offset: usize,
    pub bucket: usize,
}

/// What it takes to verify a gram that a literal has, in places that pass a test in vain.
const VERIFY_COST: f32 = 2.0;

/// The byte at place `at` of the gram that starts `offset` bytes into the literal, unless it is left open.
pub fn byte_of(literal: &Literal, offset: i32, at: usize) -> Option<u8> {
    usize::try_from(offset + at as i32).ok().and_then(|at| literal.bytes.get(at)).copied()
}

/// Where the grams of a literal begin that it may be found by.
pub fn offsets(literal: &Literal) -> RangeInclusive<usize> {
    0..=literal.bytes.len().saturating_sub(GRAM)
}

/// Where positions are tested that are multiples of this, a literal is found by as many neighbouring grams.
pub const STRIDE: usize = 2;

/// Where the first of [`STRIDE`] neighbouring grams of a literal may start. A gram may reach one byte beyond a literal,
/// but its middle bytes may not.
pub fn firsts(literal: &Literal) -> RangeInclusive<i32> {
    match literal.bytes.len().checked_sub(GRAM + STRIDE - 1) {
        Some(last) => 0..=last as i32,
        None => 1 - STRIDE as i32..=1 - STRIDE as i32,
    }
}

/// Where the first of the rarest neighbouring grams starts, so that `-----BEGIN` is not looked for by its dashes.
pub fn rarest(literal: &Literal) -> i32 {
    let commonest = |first: i32| {
        let grams = first..first + STRIDE as i32;
        grams.map(|offset| commonness(&gram_of(literal, offset))).fold(0.0, f32::max)
    };
    let rarest = firsts(literal).min_by(|&a, &b| commonest(a).total_cmp(&commonest(b)));
    rarest.expect("there is at least one place")
}

/// The kind of byte at a place of a gram, its share of all text, and the common grams that have it there.
#[derive(Clone, Copy)]
struct GramPlace {
    kinds: u64,
    share: f32,
    common: &'static GramSet,
}

type Gram = [GramPlace; GRAM];

fn gram_of(literal: &Literal, offset: i32) -> Gram {
    std::array::from_fn(|at| {
        let byte = byte_of(literal, offset, at);
        let kinds = byte.map_or(u64::MAX, |byte| 1 << kind(byte));
        let common = byte.map_or(all_grams(), |byte| common_with(kind(byte), at));
        GramPlace { kinds, share: share_of_kinds(kinds) / WHOLE, common }
    })
}

/// How much text has a gram: by what was counted if it is a common one, or else as if its bytes came by chance, but less
/// than any that was counted.
fn commonness(gram: &Gram) -> f32 {
    let mut counted = 0.0;
    for (word, &first) in gram[0].common.iter().enumerate() {
        counted += common_share(word, gram[1..].iter().fold(first, |all, place| all & place.common[word]));
    }
    let by_chance = gram.iter().map(|place| place.share).product::<f32>();
    if counted > 0.0 { counted } else { by_chance.min(least_share()) }
}

/// What may stand at a place of the grams of a bucket.
#[derive(Clone)]
struct Place {
    /// How many of the grams have a byte of each kind.
    counts: [u32; KINDS],
    kinds: u64,
    /// How much text has one of the kinds.
    share: f32,
    /// The common grams that have one of them here.
    common: GramSet,
}

impl Place {
    fn new() -> Place {
        Place { counts: [0; KINDS], kinds: 0, share: 0.0, common: vec![0; all_grams().len()] }
    }

    /// The share with those of another.
    fn share_with(&self, other: &GramPlace) -> f32 {
        match other.kinds & !self.kinds {
            0 => self.share,
            new if new == other.kinds => self.share + other.share,
            new => self.share + share_of_kinds(new) / WHOLE,
        }
    }

    fn add(&mut self, other: &GramPlace) {
        self.share = self.share_with(other);
        self.kinds |= other.kinds;
        self.common.iter_mut().zip(other.common).for_each(|(ours, theirs)| *ours |= theirs);
        kinds_in(other.kinds).for_each(|kind| self.counts[kind] += 1);
    }

    fn remove(&mut self, at: usize, other: &GramPlace) {
        kinds_in(other.kinds).for_each(|kind| self.counts[kind] -= 1);
        let gone =
            kinds_in(other.kinds).filter(|&kind| self.counts[kind] == 0).fold(0, |all, kind| all | 1 << kind);
        if gone == 0 {
            return;
        }
        self.kinds &= !gone;
        self.share = share_of_kinds(self.kinds) / WHOLE;
        self.common.fill(0);
        for kind in kinds_in(self.kinds) {
            self.common.iter_mut().zip(common_with(kind, at)).for_each(|(ours, theirs)| *ours |= theirs);
        }
    }
}

fn kinds_in(kinds: u64) -> impl Iterator<Item = usize> {
    (0..KINDS).filter(move |kind| kinds >> kind & 1 != 0)
}

/// The places of the grams of a bucket.
#[derive(Clone)]
struct Bucket([Place; GRAM]);

impl Bucket {
    /// Those of a word of the common grams that pass.
    fn passing(&self, word: usize) -> u64 {
        self.0.iter().fold(u64::MAX, |all, place| all & place.common[word])
    }

    /// How much more text passes with one more gram: as much as if bytes came by chance, and the common grams that do
    /// not pass yet. `None` if it is not less than `limit`.
    fn cost_of(&self, gram: &Gram, passing: &GramSet, limit: f32) -> Option<f32> {
        let by_chance = self.0.iter().map(|place| place.share).product::<f32>();
        let with = self.0.iter().zip(gram).map(|(place, gram)| place.share_with(gram)).product::<f32>();
        let mut more = with - by_chance;
        for (word, passing) in passing.iter().enumerate() {
            if more >= limit {
                return None;
            }
            let either = |at: usize| self.0[at].common[word] | gram[at].common[word];
            more += common_share(word, (0..GRAM).fold(!passing, |all, at| all & either(at)));
        }
        (more < limit).then_some(more)
    }
}

/// What is in each bucket.
struct Room {
    buckets: Vec<Bucket>,
    /// The common grams that any of them lets pass.
    passing: GramSet,
}

impl Room {
    fn new() -> Room {
        let empty = Bucket([(); GRAM].map(|()| Place::new()));
        Room { buckets: vec![empty; BUCKETS], passing: vec![0; all_grams().len()] }
    }

    fn add(&mut self, bucket: usize, gram: &Gram) {
        let bucket = &mut self.buckets[bucket];
        bucket.0.iter_mut().zip(gram).for_each(|(place, gram)| place.add(gram));
        self.passing.iter_mut().enumerate().for_each(|(word, passing)| *passing |= bucket.passing(word));
    }

    fn remove(&mut self, bucket: usize, gram: &Gram) {
        let narrowed = &mut self.buckets[bucket];
        let before: GramSet = (0..self.passing.len()).map(|word| narrowed.passing(word)).collect();
        let places = narrowed.0.iter_mut().zip(gram).enumerate();
        places.for_each(|(at, (place, gram))| place.remove(at, gram));
        for (word, passing) in self.passing.iter_mut().enumerate() {
            // What the bucket lets pass as before, it does not take away from the whole.
            if self.buckets[bucket].passing(word) != before[word] {
                *passing = self.buckets.iter().fold(0, |all, bucket| all | bucket.passing(word));
            }
        }
    }

    /// The gram and bucket with which the least text is looked at, of grams in the order of how common they are.
    fn best(&self, grams: &[(f32, usize, Gram)]) -> Option<(Placed, Gram)> {
        let (mut least, mut best) = (f32::INFINITY, None);
        for (commonness, offset, gram) in grams {
            let verifying = VERIFY_COST * commonness;
            if verifying >= least {
                break;
            }
            for (number, bucket) in self.buckets.iter().enumerate() {
                if let Some(more) = bucket.cost_of(gram, &self.passing, least - verifying) {
                    least = more + verifying;
                    best = Some((Placed { offset: *offset, bucket: number }, *gram));
                }
            }
        }
        best
    }
}

/// The places of all literals: those that are known already, and a choice for the others. In each further round each of
/// those is chosen anew, as the others are by then.
pub fn choose(literals: &[&Literal], known: Vec<Option<Placed>>, rounds: usize) -> Vec<Placed> {
    if let Some(all) = known.iter().copied().collect() {
        return all;
    }
    let (mut room, mut chosen, mut order) = (Room::new(), known, Vec::new());
    for (number, literal) in literals.iter().enumerate() {
        if let Some(Placed { offset, bucket }) = chosen[number] {
            room.add(bucket, &gram_of(literal, offset as i32));
            continue;
        }
        let gram = |offset: usize| {
            let gram = gram_of(literal, offset as i32);
            (commonness(&gram), offset, gram)
        };
        let mut grams: Vec<_> = offsets(literal).map(gram).collect();
        grams.sort_by(|a, b| a.0.total_cmp(&b.0));
        order.push((number, grams));
    }
    // The commonest first: those that matter most find the most room.
    order.sort_by(|a, b| b.1[0].0.total_cmp(&a.1[0].0));
    for _ in 0..rounds {
        for (number, grams) in &order {
            if let Some(Placed { offset, bucket }) = chosen[*number] {
                room.remove(bucket, &gram_of(literals[*number], offset as i32));
            }
            let (best, gram) = room.best(grams).expect("a bucket has room for any gram");
            room.add(best.bucket, &gram);
            chosen[*number] = Some(best);
        }
    }
    chosen.into_iter().map(|placed| placed.expect("each was known or chosen")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(bytes: &str) -> Literal {
        Literal { bytes: bytes.as_bytes().to_vec(), any_case: true }
    }

    #[test]
    fn a_literal_is_found_by_its_rare_bytes() {
        let begin = literal("-----begin");
        assert!(choose(&[&begin], vec![None], 1)[0].offset > 1);
        assert!(rarest(&begin) > 1);
        assert_eq!(rarest(&literal("pwd")), -1);
    }

    #[test]
    fn what_is_known_stays() {
        let (known, other) = (literal("password"), literal("passwort"));
        let placed = Placed { offset: 1, bucket: 7 };
        let chosen = choose(&[&known, &other], vec![Some(placed), None], 2);
        assert_eq!(chosen[0], placed);
        assert_ne!(chosen[1].bucket, 7, "there is room elsewhere");
    }

    #[test]
    fn a_gram_that_is_removed_leaves_nothing() {
        let (mut room, grams) = (Room::new(), ["cons", "port", "con"].map(|gram| gram_of(&literal(gram), 0)));
        room.add(3, &grams[0]);
        let before = (room.passing.clone(), room.buckets[3].0[0].share);
        room.add(3, &grams[1]);
        room.add(3, &grams[2]);
        assert_ne!(room.passing, before.0);
        room.remove(3, &grams[2]);
        room.remove(3, &grams[1]);
        assert_eq!((room.passing, room.buckets[3].0[0].share), before);
    }
}
