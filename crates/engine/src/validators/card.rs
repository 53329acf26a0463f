//! Payment cards: who issues which numbers, how long they are, and the magnetic track they are written on.

use super::luhn::luhn;
use super::text::{digits, number, uniform};
use super::{Table, Verdict};

pub(super) const TABLE: Table = &[
    ("card_issuer", |v| Verdict::pass_if(digits(v).is_some_and(|d| issued(&d)))),
    ("card", |v| match digits(v).is_some_and(|d| card(&d)) {
        false => Verdict::Fail,
        true if is_table_row(v) => Verdict::Doubt("groups repeat as numbers of a table do"),
        true => Verdict::Proof("card number of a known issuer, check digit valid"),
    }),
    ("card_track", |v| Verdict::proof_if(track(v), "track data with a valid card number")),
];

fn card(d: &[u8]) -> bool {
    issued(d) && luhn(d)
}

/// Lengths as a set of bits, bit n for n digits.
const fn lengths(from: u32, to: u32) -> u32 {
    let mut set = 0;
    let mut n = from;
    while n <= to {
        set |= 1 << n;
        n += 1;
    }
    set
}

/// Digits that an issuer range compares.
const RANGE_DIGITS: usize = 6;

/// First and last leading six digits of a range, and the lengths its numbers have.
const RANGES: &[(u64, u64, u32)] = &[
    // Visa: old 13, usual 16, newer 19.
    (400_000, 499_999, 1 << 13 | 1 << 16 | 1 << 19),
    // Mastercard, 2-series included.
    (222_100, 272_099, 1 << 16),
    (510_000, 559_999, 1 << 16),
    // American Express.
    (340_000, 349_999, 1 << 15),
    (370_000, 379_999, 1 << 15),
    // Diners Club.
    (300_000, 305_999, 1 << 14 | lengths(16, 19)),
    (309_500, 309_599, 1 << 14 | lengths(16, 19)),
    (360_000, 369_999, lengths(14, 19)),
    (380_000, 399_999, 1 << 14 | lengths(16, 19)),
    // JCB: 3528 to 3589 in 16 to 19 digits, the rest of the block that is its own in the usual 16, and its older
    // numbers of 15.
    (352_800, 358_999, lengths(16, 19)),
    (350_000, 359_999, 1 << 16),
    (180_000, 180_099, 1 << 15),
    (213_100, 213_199, 1 << 15),
    // Discover, and the UnionPay range it shares.
    (601_100, 601_199, lengths(16, 19)),
    (622_126, 622_925, lengths(16, 19)),
    (644_000, 659_999, lengths(16, 19)),
    // UnionPay.
    (620_000, 629_999, lengths(16, 19)),
    (810_000, 817_199, lengths(16, 19)),
    // Maestro.
    (60_400, 60_499, lengths(12, 19)),
    (500_000, 509_999, lengths(12, 19)),
    (560_000, 589_999, lengths(12, 19)),
    (600_000, 601_099, lengths(12, 19)),
    (601_200, 619_999, lengths(12, 19)),
    (630_000, 643_999, lengths(12, 19)),
    (660_000, 699_999, lengths(12, 19)),
    // Mir, RuPay, Troy, Verve.
    (220_000, 220_499, lengths(16, 19)),
    (979_200, 979_289, 1 << 16),
];

/// Whether some issuer gives out numbers of this beginning and length.
fn issued(d: &[u8]) -> bool {
    let Some(head) = d.get(..RANGE_DIGITS) else { return false };
    let head = number(head);
    let fits = |&(first, last, lengths): &(u64, u64, u32)| {
        (first..=last).contains(&head) && lengths.checked_shr(d.len() as u32).unwrap_or(0) & 1 == 1
    };
    RANGES.iter().any(fits) && !uniform(d)
}

/// Whether groups of four come again or end in `00` more than once, as coordinates and sizes in a row do.
fn is_table_row(value: &[u8]) -> bool {
    let mut groups: Vec<&[u8]> =
        value.split(|b| !b.is_ascii_digit()).filter(|group| group.len() == 4).collect();
    let round = groups.iter().filter(|group| group.ends_with(b"00")).count();
    groups.sort_unstable();
    round > 1 || groups.windows(2).any(|pair| pair[0] == pair[1])
}

/// Track 1 (`%B<number>^<name>^<expiry>…`) or track 2 (`;<number>=<expiry>…`): a card number, then an
/// expiry whose month exists.
fn track(value: &[u8]) -> bool {
    let (body, separator) = match value {
        [b'%', b'B' | b'b', body @ ..] => (body, b'^'),
        [b';', body @ ..] => (body, b'='),
        _ => return false,
    };
    let mut fields = body.split(|&byte| byte == separator);
    let number_ok = fields.next().and_then(digits).is_some_and(|d| card(&d));
    let expiry = if separator == b'^' { fields.nth(1) } else { fields.next() };
    number_ok && expiry.and_then(|e| e.get(2..4)).is_some_and(|m| (*b"01"..=*b"12").contains(&[m[0], m[1]]))
}
