//! ISO 7064: the hybrid system mod 11,10 and the pure system mod 11-2.

use super::text::{alnum_exact, base36, digits_exact, sequential, uniform};
use super::{CHECK_DIGIT, Table, Verdict, dates};

pub(super) const TABLE: Table = &[
    ("de_idnr", |v| proof(digits_exact::<11>(v).is_some_and(|d| de_idnr(&d)))),
    ("de_ust", |v| {
        proof(digits_exact::<9>(v).is_some_and(|d| d[0] != 0 && !sequential(&d) && mod_11_10(&d)))
    }),
    ("hr_oib", |v| {
        proof(digits_exact::<11>(v).is_some_and(|d| !uniform(&d) && !sequential(&d) && mod_11_10(&d)))
    }),
    ("cn_ric", |v| proof(alnum_exact::<18>(v).is_some_and(|s| cn_ric(&s)))),
];

fn proof(ok: bool) -> Verdict {
    Verdict::proof_if(ok, CHECK_DIGIT)
}

/// Mod 11,10 over digit values, check digit last.
pub(super) fn mod_11_10(digits: &[u8]) -> bool {
    let Some((&check, body)) = digits.split_last() else { return false };
    let product = body.iter().fold(10, |p, &d| {
        let sum = (p + u32::from(d)) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    (product + u32::from(check)) % 10 == 1
}

/// The German tax number: of its first ten digits exactly one occurs twice or three times, so that a
/// number typed at random rarely fits even before the check digit.
fn de_idnr(d: &[u8; 11]) -> bool {
    let mut counts = [0u8; 10];
    d[..10].iter().for_each(|&digit| counts[usize::from(digit)] += 1);
    let repeated = counts.iter().filter(|&&n| n > 1).count();
    let most = counts.iter().copied().max().unwrap_or(0);
    d[0] != 0 && repeated == 1 && (2..=3).contains(&most) && mod_11_10(d)
}

/// The Chinese resident number: province, date of birth, and mod 11-2 with X for ten.
fn cn_ric(s: &[u8; 18]) -> bool {
    let mut d = [0u8; 18];
    for (i, (slot, &symbol)) in d.iter_mut().zip(s).enumerate() {
        *slot = match symbol {
            b'0'..=b'9' => symbol - b'0',
            b'X' if i == 17 => 10,
            _ => return false,
        };
    }
    let sum = d.iter().fold(0, |sum, &digit| (sum * 2 + u32::from(digit)) % 11);
    let province =
        matches!(d[0] * 10 + d[1], 11..=15 | 21..=23 | 31..=37 | 41..=46 | 50..=54 | 61..=65 | 71 | 81..=83);
    province && dates::yyyymmdd(&d[6..14]) && sum == 1
}

/// Luhn's rule in base 36, which stands beside ISO 7064 for identifiers of letters and digits.
pub(super) fn luhn_36(symbols: &[u8]) -> bool {
    let mut sum = 0;
    for (i, &symbol) in symbols.iter().rev().enumerate() {
        let Some(value) = base36(symbol) else { return false };
        let weighed = if i % 2 == 0 { value } else { value * 2 };
        sum += weighed / 36 + weighed % 36;
    }
    sum % 36 == 0
}
