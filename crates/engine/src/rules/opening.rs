//! How every match of a rule begins: what may stand before it, and which bytes may be first, second and so on. A trigger
//! may allow hundreds of starts, and most of them are passed over by a look at a few bytes. The regex is asked at those
//! that are left; if there are none, it is not even compiled. An opening may let too much through, never too little.

use std::ops::Range;
use std::sync::OnceLock;

use regex_syntax::hir::Hir;

use super::gate::{AROUND, ByteSet, Gate, Start};
use super::packed::{Packed, packed_fields};
use super::{Lead, Trigger};
use crate::prefilter::{WHOLE, share};

/// Places that are looked at.
const PLACES_MAX: usize = 4;
/// A set of bytes that make up more of a text is not worth a look.
const SHARE_MAX: f32 = 0.5;
/// Nor are all of them if they leave more starts than this.
const LEFT_MAX: f32 = 0.1;
/// How much more common digits are where a shape is, and how much less all others.
const DIGITS_NEAR_SHAPE: f32 = 10.0;
const OTHERS_NEAR_SHAPE: f32 = 0.5;

/// Conditions on the start of a match, the one that leaves least first.
#[derive(Clone, Debug, Default)]
pub struct Opening {
    places: Vec<Place>,
    /// By byte, in which of the places it may stand, as bits; made when it is first asked for.
    allowed: OnceLock<Box<[u8; 256]>>,
}

#[derive(Clone, Debug)]
struct Place {
    /// Bytes behind the one before the match.
    at: usize,
    bytes: ByteSet,
}

packed_fields!(Place { at, bytes });

impl Packed for Opening {
    fn pack(&self, out: &mut Vec<u8>) {
        self.places.pack(out);
    }

    fn unpack(from: &mut &[u8]) -> Option<Opening> {
        Some(Opening { places: Packed::unpack(from)?, allowed: OnceLock::new() })
    }
}

impl Opening {
    /// Of a regex, or of the first part of one.
    pub fn of(hir: &Hir, trigger: &Trigger, lead: Lead) -> Opening {
        if hir.properties().minimum_len().unwrap_or(0) == 0 {
            return Opening::default();
        }
        let start = Lead { min: 0, max: 0 };
        let around = Gate::of(hir, start, Start::of_any(), false).around;
        let told = told_by(trigger, lead);
        let places = around.into_iter().enumerate().map(|(at, bytes)| Place { at, bytes });
        let mut places: Vec<(f32, Place)> = places
            .filter(|place| !told.contains(&place.at))
            .map(|place| (share_of(&place.bytes, trigger), place))
            .filter(|(share, _)| *share <= SHARE_MAX)
            .collect();
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        places.truncate(PLACES_MAX);
        let left: f32 = places.iter().map(|(share, _)| share).product();
        let places = if left > LEFT_MAX { Vec::new() } else { places };
        Opening { places: places.into_iter().map(|(_, place)| place).collect(), allowed: OnceLock::new() }
    }

    /// The first of some starts in `bytes` where a match may begin.
    #[inline]
    pub fn first(&self, bytes: &[u8], mut starts: Range<usize>) -> Option<usize> {
        // Many rules of numbers have no such places, and are asked most often.
        match self.places.split_first() {
            Some((place, others)) => self.first_left(place, others, bytes, starts),
            None => starts.next(),
        }
    }

    fn first_left(
        &self,
        place: &Place,
        others: &[Place],
        bytes: &[u8],
        mut starts: Range<usize>,
    ) -> Option<usize> {
        if starts.start == 0 || starts.end + AROUND > bytes.len() {
            return starts.find(|&start| self.places.iter().all(|place| place.is_in(bytes, start)));
        }
        let allowed = self.allowed.get_or_init(|| self.allowed());
        let is_left = |start: usize| {
            let mut others = (1..).zip(others);
            others.all(|(bit, place)| allowed[usize::from(bytes[start + place.at - 1])] >> bit & 1 != 0)
        };
        // Nearly all starts are passed over by the first place, so that one is looked at in a row.
        let mut row = bytes[starts.start + place.at - 1..starts.end + place.at - 1].iter();
        while let Some(passed) = row.position(|byte| allowed[usize::from(*byte)] & 1 != 0) {
            let start = starts.start + passed;
            if is_left(start) {
                return Some(start);
            }
            starts.start = start + 1;
        }
        None
    }

    fn allowed(&self) -> Box<[u8; 256]> {
        let mut allowed = Box::new([0; 256]);
        for (byte, allowed) in (0..=u8::MAX).zip(allowed.iter_mut()) {
            let is_in = self.places.iter().map(|place| u8::from(place.bytes.contains(byte)));
            *allowed = is_in.zip(0..).fold(0, |all, (is_in, bit)| all | is_in << bit);
        }
        allowed
    }
}

impl Place {
    /// Whether a match may begin at `start`. Neither end of a text says anything.
    fn is_in(&self, bytes: &[u8], start: usize) -> bool {
        let byte = (start + self.at).checked_sub(1).and_then(|at| bytes.get(at));
        byte.is_none_or(|byte| self.bytes.contains(*byte))
    }
}

/// The places of which a trigger says all there is to say.
fn told_by(trigger: &Trigger, lead: Lead) -> Range<usize> {
    match trigger {
        Trigger::Literals(literals) if lead.min == lead.max => {
            let shortest = literals.iter().map(|literal| literal.bytes.len()).min().unwrap_or(0);
            1 + lead.min..1 + lead.min + shortest
        }
        _ => 0..0,
    }
}

/// How much of a text near a trigger such bytes make up.
fn share_of(bytes: &ByteSet, trigger: &Trigger) -> f32 {
    let weight = |byte: u8| match trigger {
        Trigger::Literals(_) => 1.0,
        Trigger::Shape(_) if byte.is_ascii_digit() => DIGITS_NEAR_SHAPE,
        Trigger::Shape(_) => OTHERS_NEAR_SHAPE,
    };
    (0..=u8::MAX).filter(|byte| bytes.contains(*byte)).map(|byte| weight(byte) * share(byte) / WHOLE).sum()
}

/// Asks for starts within ranges of a text that follow each other, so that where they overlap the text is read once.
pub struct Starts<'r> {
    opening: &'r Opening,
    /// No match begins here,
    without: Range<usize>,
    /// and one may begin at the end of it.
    begins: bool,
}

impl<'r> Starts<'r> {
    pub fn new(opening: &'r Opening) -> Starts<'r> {
        Starts { opening, without: 0..0, begins: false }
    }

    /// Whether a match may begin within `range`. None begins before the last one did.
    pub fn are_in(&mut self, bytes: &[u8], range: Range<usize>) -> bool {
        if !(self.without.start..=self.without.end).contains(&range.start) {
            (self.without, self.begins) = (range.start..range.start, false);
        }
        if !self.begins && self.without.end < range.end {
            let found = self.opening.first(bytes, self.without.end..range.end);
            self.begins = found.is_some();
            self.without.end = found.unwrap_or(range.end);
        }
        self.begins && self.without.end < range.end
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex_automata::meta::Regex;
    use regex_automata::{Anchored, Input};

    use super::*;
    use crate::rules::{Literal, pattern};

    fn opening_of(regex: &str) -> Opening {
        Opening::of(&pattern::read(regex).unwrap(), &Trigger::Literals(Vec::new()), Lead { min: 0, max: 9 })
    }

    fn check(regex: &str, text: &str, starts: &[usize]) {
        let (opening, text) = (opening_of(regex), format!("{text}\n{:20}", ""));
        let is_left = |start: &usize| opening.first(text.as_bytes(), *start..start + 1).is_some();
        assert_eq!((0..text.len() - 20).filter(is_left).collect::<Vec<_>>(), starts, "{regex} in {text}");
    }

    #[test]
    fn a_match_begins_where_its_first_bytes_are() {
        check(r"\b[A-Z]{2}[0-9]{2} x", "AB12 xy, AB1 xy, AB1", &[0]);
        check(r"(?m)^(?:user|login)=", "a user=\nuser=", &[8]);
        check(r"(?i)\b(?:licence|number) plate", "template plate, no plate, number plate", &[26]);
        check(r"[a-z]{1,9}@", "ab", &[0, 1, 2]);
    }

    #[test]
    fn what_a_trigger_tells_is_not_looked_at() {
        let trigger = Trigger::Literals(vec![Literal { bytes: b"member".to_vec(), any_case: true }]);
        let hir = pattern::read(r"(?i)\bmember[ _](?:id|no)[:=]").unwrap();
        let opening = Opening::of(&hir, &trigger, Lead { min: 0, max: 0 });
        assert_eq!(opening.places.iter().map(|place| place.at).collect::<Vec<_>>(), [10, 9, 8, 7]);
    }

    proptest! {
        #[test]
        fn every_match_begins_with_it(
            regex in r"(?:\\b|\(\?m:\^\)|\(\?:\(\?m:\^\)\|\[\^ab\]\))?(?:ab|\[ab\]\{0,3\}|\(\?:ba\|c\)|[ab]\?|c\{2,9\}| |\\b|\(\?m:\$\)|\(\?:\\bc\|ab\{2\}\)){1,5}",
            text in "[abc \n_]{0,30}",
        ) {
            let hir = pattern::read(&regex).unwrap();
            let opening = opening_of(&regex);
            let regex = Regex::builder().build_from_hir(&hir).unwrap();
            for start in 0..text.len() {
                if regex.search(&Input::new(&text).range(start..).anchored(Anchored::Yes)).is_some() {
                    prop_assert_eq!(opening.first(text.as_bytes(), start..start + 1), Some(start));
                }
            }
        }

        #[test]
        fn ranges_that_overlap_are_told_apart(
            text in "[ab ]{60}",
            mut ranges in proptest::collection::vec((0usize..60, 0usize..30), 0..20),
        ) {
            let opening = opening_of(r"\bab[ab]{4}");
            let mut starts = Starts::new(&opening);
            ranges.sort_unstable();
            for (start, len) in ranges {
                let range = start..start + len;
                let naive = opening.first(text.as_bytes(), range.clone()).is_some();
                prop_assert_eq!(starts.are_in(text.as_bytes(), range), naive);
            }
        }
    }
}
