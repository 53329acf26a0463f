//! Luhn's check digit and the identifiers that use it and little else.

use super::text::{digits, digits_exact, number, sequential, uniform};
use super::{CHECK_DIGIT, Table, Verdict, dates};

pub(super) const TABLE: Table = &[
    ("luhn", |v| proof(digits(v).is_some_and(|d| d.len() >= 8 && !uniform(&d) && luhn(&d)))),
    ("imei", |v| proof(digits_exact::<15>(v).is_some_and(|d| plausible(&d) && luhn(&d)))),
    ("iccid", |v| proof(digits(v).is_some_and(|d| iccid(&d)))),
    ("us_npi", |v| proof(digits_exact::<10>(v).is_some_and(|d| npi(&d)))),
    ("ca_sin", |v| {
        proof(digits_exact::<9>(v).is_some_and(|d| !matches!(d[0], 0 | 8) && plausible(&d) && luhn(&d)))
    }),
    ("fr_siren", |v| proof(digits_exact::<9>(v).is_some_and(|d| plausible(&d) && luhn(&d)))),
    ("fr_siret", |v| {
        proof(digits_exact::<14>(v).is_some_and(|d| plausible(&d[..9]) && luhn(&d[..9]) && luhn(&d)))
    }),
    ("it_iva", |v| proof(digits_exact::<11>(v).is_some_and(|d| iva_office(&d) && plausible(&d) && luhn(&d)))),
    ("gr_amka", |v| proof(digits_exact::<11>(v).is_some_and(|d| dates::ddmmyy(&d) && luhn(&d)))),
    ("il_id", |v| proof(digits_exact::<9>(v).is_some_and(|d| plausible(&d) && luhn(&d)))),
    ("sa_id", |v| {
        proof(digits_exact::<10>(v).is_some_and(|d| matches!(d[0], 1 | 2) && plausible(&d) && luhn(&d)))
    }),
    ("ae_id", |v| proof(digits_exact::<15>(v).is_some_and(|d| d[..3] == [7, 8, 4] && luhn(&d)))),
    ("za_id", |v| proof(digits_exact::<13>(v).is_some_and(|d| dates::yymmdd(&d) && d[10] <= 2 && luhn(&d)))),
    ("ca_bn", |v| proof(v.get(..9).and_then(digits_exact::<9>).is_some_and(|d| plausible(&d) && luhn(&d)))),
    ("in_epic", |v| proof(v.get(3..).and_then(digits_exact::<7>).is_some_and(|d| plausible(&d) && luhn(&d)))),
    ("ca_ohip", |v| {
        proof(
            v.get(..12)
                .and_then(digits)
                .is_some_and(|d| d.len() == 10 && d[0] != 0 && plausible(&d) && luhn(&d)),
        )
    }),
    ("meid", |v| proof(meid(v))),
    ("do_cedula", |v| proof(digits_exact::<11>(v).is_some_and(|d| plausible(&d) && luhn(&d)))),
];

fn proof(ok: bool) -> Verdict {
    Verdict::proof_if(ok, CHECK_DIGIT)
}

fn plausible(d: &[u8]) -> bool {
    !uniform(d) && !sequential(d)
}

/// Whether the last of these digit values is the Luhn check digit of the others.
pub(super) fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(i, &d)| match u32::from(d) {
            d if i % 2 == 0 => d,
            d => d * 2 / 10 + d * 2 % 10,
        })
        .sum();
    sum.is_multiple_of(10)
}

/// A SIM card: telecom prefix 89, 19 digits of which the last checks, or 20 with one more digit behind it
/// that some issuers count in.
fn iccid(d: &[u8]) -> bool {
    d.starts_with(&[8, 9]) && plausible(&d[2..]) && matches!(d.len(), 19 | 20) && luhn(d)
}

/// A mobile equipment of 14 hexadecimal digits, the first at least A, and Luhn's digit in base 16.
fn meid(value: &[u8]) -> bool {
    let nibble = |b: &u8| char::from(*b).to_digit(16);
    let Some(d) =
        value.iter().filter(|b| **b != b' ' && **b != b'-').map(nibble).collect::<Option<Vec<u32>>>()
    else {
        return false;
    };
    let sum: u32 =
        d.iter().rev().enumerate().map(|(i, &d)| if i % 2 == 0 { d } else { d * 2 / 16 + d * 2 % 16 }).sum();
    d.len() == 15 && d[0] >= 10 && sum.is_multiple_of(16)
}

/// Italian VAT: digits eight to ten name the office that gave the number out.
fn iva_office(d: &[u8; 11]) -> bool {
    d[..7] != [0; 7] && matches!(number(&d[7..10]), 1..=100 | 120 | 121 | 888 | 999)
}

/// US providers number themselves inside the card scheme 80840, whose digits add 24 to the sum.
fn npi(d: &[u8; 10]) -> bool {
    let mut full = [8, 0, 8, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    full[5..].copy_from_slice(d);
    matches!(d[0], 1 | 2) && luhn(&full)
}
