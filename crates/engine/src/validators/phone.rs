//! Telephone numbers: by numbering plan with a country code, by length and form without.
//!
//! A number as dialled within a country cannot be told from other numbers by its digits alone; so only what it
//! surely is not is refused here (dates, addresses, counting), and rules ask for a word near it.

use super::dates;
use super::phone_plans::{CODE_MAX, has};
use super::text::{Symbols, digits, digits_among, number, sequential, uniform};
use super::{Table, Verdict};

pub(super) const TABLE: Table = &[
    ("phone_international", international),
    ("phone_us", |v| digits_of(v).map_or(Verdict::Fail, |d| nanp(d.strip_prefix(&[1]).unwrap_or(&d)))),
    ("phone_local", local),
];

/// Why a number with a country code is taken for one.
const PLAN: &str = "number of its country's plan";

/// The number without the extension that may follow it (`x12`, `ext. 12`, `#12`).
fn without_extension(value: &[u8]) -> &[u8] {
    let at = value.iter().position(|b| matches!(b.to_ascii_lowercase(), b'x' | b'e' | b'#' | b','));
    value[..at.unwrap_or(value.len())].trim_ascii_end()
}

/// Digits without the `(0)` that some write after the country code, and without parentheses.
fn digits_of(value: &[u8]) -> Option<Symbols> {
    let value = without_extension(value);
    let at = memchr::memchr_iter(b'(', value).find(|&at| value[at..].starts_with(b"(0)"));
    let (before, after) = at.map_or((value, &[][..]), |at| (&value[..at], &value[at + 3..]));
    // The spaces of typesetters are more than one byte, none of them ASCII.
    digits_among(before.iter().chain(after).filter(|b| b.is_ascii() && !b"()+".contains(b)))
}

/// A number with its country code, behind `+`, `00` or `011`.
fn international(value: &[u8]) -> Verdict {
    let Some(d) = digits_of(value) else { return Verdict::Fail };
    let d: &[u8] = match (value.first(), &*d) {
        (Some(b'+' | b'('), d) => d,
        (_, [0, 0, rest @ ..] | [0, 1, 1, rest @ ..]) => rest,
        (_, d) => d,
    };
    if d.len() < 8 || uniform(&d[2..]) || sequential(d) || counts(&d[1..]) {
        return Verdict::Fail;
    }
    if let [1, national @ ..] = d {
        return match nanp(national) {
            Verdict::Pass => Verdict::Proof(PLAN),
            other => other,
        };
    }
    let planned = (1..=CODE_MAX).any(|len| {
        let (code, national) = d.split_at(len);
        // Some write the trunk prefix behind the country code, where nobody dials it.
        let bare = national.strip_prefix(&[0]).unwrap_or(national);
        has(code, national) || has(code, bare)
    });
    Verdict::proof_if(planned, PLAN)
}

/// Whether most of the digits count up or down, as typed examples do.
fn counts(d: &[u8]) -> bool {
    const RUN: usize = 8;
    d.windows(RUN).any(sequential)
}

/// North America: area and exchange begin with 2 to 9, the area is no service code, and 555-01xx is fiction.
fn nanp(d: &[u8]) -> Verdict {
    let assigned = d.len() == 10 && d[0] >= 2 && d[3] >= 2 && d[1..3] != [1, 1] && !uniform(&d[3..]);
    if !assigned {
        return Verdict::Fail;
    }
    Verdict::doubt_unless(d[3..8] != [5, 5, 5, 0, 1], "set aside for fiction")
}

/// A number written as within one country.
fn local(value: &[u8]) -> Verdict {
    let Some(d) = digits_of(value) else { return Verdict::Fail };
    let odd =
        uniform(&d[1.min(d.len())..]) || sequential(&d) || is_date(without_extension(value)) || is_zip(value);
    match nanp(&d) {
        _ if odd || !(7..=13).contains(&d.len()) => Verdict::Fail,
        doubt @ Verdict::Doubt(_) => doubt,
        _ => Verdict::Pass,
    }
}

/// A postcode of the United States with its four further digits.
fn is_zip(value: &[u8]) -> bool {
    value.len() == 10 && value[5] == b'-'
}

/// Whether the groups of digits are a day, a month and a year, in any usual order.
fn is_date(value: &[u8]) -> bool {
    let groups: Vec<&[u8]> = value.split(|b| !b.is_ascii_digit()).filter(|group| !group.is_empty()).collect();
    let [a, b, c] = groups[..] else { return false };
    let value = |group: &[u8]| digits(group).map_or(0, |d| number(&d));
    let year = |group: &[u8]| group.len() == 4 && (1900..2100).contains(&value(group));
    let (small_a, small_b, small_c) = (a.len() <= 2, b.len() <= 2, c.len() <= 2);
    if small_a && small_b && year(c) {
        return dates::exists(value(c), value(b), value(a)) || dates::exists(value(c), value(a), value(b));
    }
    small_b && small_c && year(a) && dates::exists(value(a), value(b), value(c))
}
