//! Verhoeff's check digit over the dihedral group D5, used by India's Aadhaar.

use super::text::{digits_exact, uniform};
use super::{CHECK_DIGIT, Table, Verdict};

pub(super) const TABLE: Table = &[("in_aadhaar", |v| {
    // Numbers that start with 0 or 1 are reserved and were never issued.
    let ok = digits_exact::<12>(v).is_some_and(|d| d[0] >= 2 && !uniform(&d) && verhoeff(&d));
    Verdict::proof_if(ok, CHECK_DIGIT)
})];

/// One step of the position permutation; applied once more for each place to the left.
const PERMUTATION: [u8; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];

/// The product in D5: rotations are 0..=4, reflections 5..=9.
fn product(a: u8, b: u8) -> u8 {
    match (a < 5, b < 5) {
        (true, true) => (a + b) % 5,
        (true, false) => (a + b - 5) % 5 + 5,
        (false, true) => (a - b) % 5 + 5,
        (false, false) => (a + 5 - b) % 5,
    }
}

fn verhoeff(digits: &[u8]) -> bool {
    let place = |digit: u8, i: usize| (0..i % 8).fold(digit, |d, _| PERMUTATION[usize::from(d)]);
    digits.iter().rev().enumerate().fold(0, |c, (i, &d)| product(c, place(d, i))) == 0
}
