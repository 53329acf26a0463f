//! Checks modulo 97: IBAN (ISO 7064 mod 97-10) and the national numbers that subtract from 97.

use super::text::{Symbols, alnum, alnum_exact, ascii_number, base36, digits_exact, number};
use super::{CHECK_DIGIT, Table, Verdict, dates};

pub(super) const TABLE: Table = &[
    ("iban", |v| {
        Verdict::proof_if(alnum(v).is_some_and(|s| iban(&s)), "mod-97 check and country length valid")
    }),
    ("fr_nir", |v| proof(alnum_exact::<15>(v).is_some_and(|s| fr_nir(&s)))),
    ("be_nn", |v| proof(digits_exact::<11>(v).is_some_and(|d| be_nn(&d)))),
    ("gb_vat", |v| proof(digits_exact::<9>(v).is_some_and(|d| gb_vat(&d)))),
];

fn proof(ok: bool) -> Verdict {
    Verdict::proof_if(ok, CHECK_DIGIT)
}

/// Country and length of an IBAN, as registered with SWIFT.
const IBAN_LENGTHS: &str = "\
    AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 \
    DE22 DJ27 DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 \
    GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 \
    LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 \
    PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 \
    SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30";

/// Bytes of each of them, with the space behind it.
const IBAN_ENTRY: usize = 5;

fn iban(s: &Symbols) -> bool {
    let mut entries = IBAN_LENGTHS.as_bytes().chunks(IBAN_ENTRY);
    let known = entries
        .find(|entry| s.starts_with(&entry[..2]))
        .is_some_and(|entry| ascii_number(&entry[2..4]) == Some(s.len() as u64));
    // Check digits 00, 01 and 99 satisfy the sum but are never produced by the rule that makes them.
    known && !matches!(&s[2..4], b"00" | b"01" | b"99") && mod97(s[4..].iter().chain(&s[..4])) == Some(1)
}

/// Letters count as two digits, A = 10 to Z = 35.
pub(super) fn mod97<'a>(symbols: impl Iterator<Item = &'a u8>) -> Option<u32> {
    symbols.copied().try_fold(0, |rest, symbol| {
        let value = base36(symbol)?;
        Some((rest * if value < 10 { 10 } else { 100 } + value) % 97)
    })
}

/// The French social security number: sex, birth year and month, department (2A and 2B are Corsica),
/// commune, order, and 97 less the remainder.
fn fr_nir(s: &[u8; 15]) -> bool {
    let mut body = *s;
    let corsica = match (body[5], body[6]) {
        (b'2', letter @ (b'A' | b'B')) => {
            body[6] = if letter == b'A' { b'9' } else { b'8' };
            body[5] = b'1';
            true
        }
        _ => false,
    };
    let (Some(n), Some(key), Some(month)) =
        (ascii_number(&body[..13]), ascii_number(&body[13..]), ascii_number(&body[3..5]))
    else {
        return false;
    };
    // Months over 12 stand for births whose month is not known.
    let month_known = matches!(month, 1..=12 | 20..=42 | 50..=99);
    let sex_known = matches!(s[0], b'1'..=b'4' | b'7' | b'8');
    let department_known = corsica || &s[5..7] != b"00";
    sex_known && month_known && department_known && key == 97 - n % 97
}

/// The Belgian national number: birth date, order, and 97 less the remainder; births from 2000 on put a 2
/// before the number. A month moved by 20 or 40 marks the register of those without residence.
fn be_nn(d: &[u8; 11]) -> bool {
    let (body, check) = (number(&d[..9]), number(&d[9..]));
    let month = number(&d[2..4]);
    let month = month
        - if month > 40 {
            40
        } else if month > 20 {
            20
        } else {
            0
        };
    // Month and day are zero where they are not known.
    let dated = dates::exists(number(&d[..2]), month, number(&d[4..6])) || month == 0 || d[4..6] == [0, 0];
    dated
        && month <= 12
        && body != 0
        && (check == 97 - body % 97 || check == 97 - (2_000_000_000 + body) % 97)
}

/// UK VAT: weights 8 to 2 and the last two digits make a multiple of 97; numbers from 100 on were continued
/// with remainders of 42 and 55.
fn gb_vat(d: &[u8; 9]) -> bool {
    let sum: u64 = d[..7].iter().zip([8, 7, 6, 5, 4, 3, 2]).map(|(&d, w)| u64::from(d) * w).sum();
    let total = sum + number(&d[7..]);
    d[..7] != [0; 7] && matches!((total % 97, d[0]), (0, _) | (42 | 55, 1..))
}
