//! Identifiers of the Americas that are more than one weighted sum.

use super::text::{
    alnum, alnum_exact, ascii_number, base36, digits, digits_exact, number, sequential, uniform,
};
use super::{CHECK_DIGIT, Table, Verdict, dates};

pub(super) const TABLE: Table = &[
    ("us_ssn", |v| Verdict::pass_if(digits_exact::<9>(v).is_some_and(|d| us_ssn(&d)))),
    ("us_itin", |v| Verdict::pass_if(digits_exact::<9>(v).is_some_and(|d| us_itin(&d)))),
    ("us_ein", |v| Verdict::pass_if(digits_exact::<9>(v).is_some_and(|d| us_ein(&d)))),
    ("us_dea", |v| proof(alnum_exact::<9>(v).is_some_and(|s| us_dea(&s)))),
    ("us_mbi", |v| Verdict::pass_if(alnum_exact::<11>(v).is_some_and(|s| us_mbi(&s)))),
    ("mx_curp", |v| proof(alnum_exact::<18>(v).is_some_and(|s| mx_curp(&s)))),
    ("mx_rfc", |v| mx_rfc(v, 4)),
    ("cl_rut", |v| proof(alnum(v).is_some_and(|s| cl_rut(&s)))),
    ("mx_rfc_company", |v| mx_rfc(v, 3)),
    ("co_nit", |v| proof(digits(v).is_some_and(|d| co_nit(&d)))),
    ("pe_cui", |v| proof(alnum_exact::<9>(v).is_some_and(|s| pe_cui(&s)))),
    ("ve_rif", |v| proof(alnum_exact::<10>(v).is_some_and(|s| ve_rif(&s)))),
    ("ec_ci", |v| proof(digits_exact::<10>(v).is_some_and(|d| ec_ci(&d)))),
];

fn proof(ok: bool) -> Verdict {
    Verdict::proof_if(ok, CHECK_DIGIT)
}

/// Numbers printed in advertisements and forms until people used them as their own.
const SSN_PUBLISHED: &[u64] = &[78_051_120, 219_099_999, 457_555_462, 123_456_789, 987_654_321];

/// Area 000, 666 and 900 on, group 00 and serial 0000 are never issued.
fn us_ssn(d: &[u8; 9]) -> bool {
    let (area, group, serial) = (number(&d[..3]), number(&d[3..5]), number(&d[5..]));
    let issued = !matches!(area, 0 | 666 | 900..) && group != 0 && serial != 0;
    issued && !uniform(d) && !SSN_PUBLISHED.contains(&number(d))
}

/// A taxpayer without SSN: area 900 on, with the groups the tax office uses.
fn us_itin(d: &[u8; 9]) -> bool {
    d[0] == 9 && matches!(number(&d[3..5]), 50..=65 | 70..=88 | 90..=92 | 94..=99)
}

/// An employer: the first two digits name the campus that assigned it.
fn us_ein(d: &[u8; 9]) -> bool {
    let assigned = matches!(
        number(&d[..2]),
        1..=6 | 10..=16 | 20..=27 | 30..=48 | 50..=68 | 71..=77 | 80..=88 | 90..=95 | 98 | 99
    );
    assigned && !sequential(d) && !uniform(&d[2..])
}

/// A prescriber: a registrant letter, an initial or 9, and six digits whose weighted sum ends in the seventh.
fn us_dea(s: &[u8; 9]) -> bool {
    let Some(d) = digits_exact::<7>(&s[2..]) else { return false };
    let sum = u32::from(d[0] + d[2] + d[4]) + 2 * u32::from(d[1] + d[3] + d[5]);
    let letters = b"ABCDEFGHJKLMPRSTUX".contains(&s[0]) && (s[1].is_ascii_uppercase() || s[1] == b'9');
    letters && !uniform(&d) && sum % 10 == u32::from(d[6])
}

/// A Medicare beneficiary: fixed places for digits and letters, without the letters S, L, O, I, B, Z.
fn us_mbi(s: &[u8; 11]) -> bool {
    let letter = |byte: u8| byte.is_ascii_uppercase() && !b"SLOIBZ".contains(&byte);
    let digit = |byte: u8| byte.is_ascii_digit();
    let place = |(i, &byte): (usize, &u8)| match i {
        0 => (b'1'..=b'9').contains(&byte),
        1 | 4 | 7 | 8 => letter(byte),
        2 | 5 => letter(byte) || digit(byte),
        _ => digit(byte),
    };
    s.iter().enumerate().all(place)
}

/// The Mexican person code: initials, birth date, sex, state, consonants, homonym, check digit. Ñ stands
/// between N and O in its alphabet; it is written as X.
fn mx_curp(s: &[u8; 18]) -> bool {
    const STATES: &[u8] =
        b"AS BC BS CC CL CM CS CH DF DG GT GR HG JC MC MN MS NT NL OC PL QT QR SP SL SR TC TS TL VZ YN ZS NE";
    let value = |symbol: u8| base36(symbol).map(|v| if symbol > b'N' { v + 1 } else { v });
    let Some(date) = digits_exact::<6>(&s[4..10]) else { return false };
    let mut sum = 0;
    for (i, &symbol) in s[..17].iter().enumerate() {
        let Some(v) = value(symbol) else { return false };
        sum += v * (18 - i as u32);
    }
    let state_known = STATES.split(|&b| b == b' ').any(|state| state == &s[11..13]);
    let check = b'0' + ((10 - sum % 10) % 10) as u8;
    dates::yymmdd(&date) && matches!(s[10], b'H' | b'M' | b'X') && state_known && s[17] == check
}

/// The check symbol of a Mexican tax code, over what stands before it: weights count down to 2, mod 11.
fn mx_rfc_check(body: impl DoubleEndedIterator<Item = u8>) -> Option<u8> {
    let value = |symbol: u8| match symbol {
        b'&' => Some(24),
        b' ' => Some(37),
        _ => base36(symbol).map(|v| if symbol > b'N' { v + 1 } else { v }),
    };
    let sum = body.rev().zip(2..).try_fold(0, |sum, (symbol, weight)| Some(sum + value(symbol)? * weight))?;
    Some(match 11 - sum % 11 {
        11 => b'0',
        10 => b'A',
        n => b'0' + n as u8,
    })
}

/// The Mexican tax code: four letters of a person or three of a company, a date, homonym, check symbol. That of
/// companies is reckoned as if a blank stood before it. The tax office has given out codes with a wrong check
/// symbol, so a wrong one only speaks against it.
fn mx_rfc(value: &[u8], letters: usize) -> Verdict {
    let s: Vec<u8> = value.iter().filter(|b| !b" -".contains(b)).map(u8::to_ascii_uppercase).collect();
    let Some((&check, body)) = s.split_last() else { return Verdict::Fail };
    let Some((head, rest)) = body.split_at_checked(letters) else { return Verdict::Fail };
    let named = head.iter().all(|b| b.is_ascii_uppercase() || *b == b'&');
    let dated = rest.get(..6).and_then(digits_exact::<6>).is_some_and(|date| dates::yymmdd(&date));
    let blank = (letters == 3).then_some(b' ');
    let expected = mx_rfc_check(blank.into_iter().chain(body.iter().copied()));
    Verdict::proof_or_doubt(named && dated && rest.len() == 8, expected == Some(check))
}

/// The Colombian taxpayer: eight to ten digits and a check digit weighted with primes.
fn co_nit(d: &[u8]) -> bool {
    const PRIMES: [u32; 10] = [3, 7, 13, 17, 19, 23, 29, 37, 41, 43];
    let Some((&check, body)) = d.split_last() else { return false };
    let sum: u32 = body.iter().rev().zip(PRIMES).map(|(&d, w)| u32::from(d) * w).sum();
    let rest = sum % 11;
    let made = if rest < 2 { rest } else { 11 - rest };
    (8..=10).contains(&body.len()) && !uniform(body) && !sequential(body) && u32::from(check) == made
}

/// The Peruvian identity: eight digits and a check symbol that is a digit or its letter.
fn pe_cui(s: &[u8; 9]) -> bool {
    let Some(d) = digits_exact::<8>(&s[..8]) else { return false };
    let sum: u32 = d.iter().zip([3, 2, 7, 6, 5, 4, 3, 2]).map(|(&d, w)| u32::from(d) * w).sum();
    let rest = (sum % 11) as usize;
    !uniform(&d) && !sequential(&d) && (s[8] == b"65432110987"[rest] || s[8] == b"KJIHGFEDCBA"[rest])
}

/// The Venezuelan taxpayer: a letter that counts as 4 to 20, eight digits and a check digit.
fn ve_rif(s: &[u8; 10]) -> bool {
    let kind = match s[0] {
        b'V' => 4,
        b'E' => 8,
        b'J' => 12,
        b'P' => 16,
        b'G' => 20,
        _ => return false,
    };
    let Some(d) = digits_exact::<9>(&s[1..]) else { return false };
    let sum: u32 = d[..8].iter().zip([3, 2, 7, 6, 5, 4, 3, 2]).map(|(&d, w)| u32::from(d) * w).sum();
    !uniform(&d) && b'0' + d[8] == b"00987654321"[((kind + sum) % 11) as usize]
}

/// The Chilean number: seven or eight digits and a check symbol, K for ten; weights 2 to 7 from the right.
fn cl_rut(s: &[u8]) -> bool {
    let Some((&check, body)) = s.split_last() else { return false };
    let Some(n) = ascii_number(body) else { return false };
    let sum: u32 = body.iter().rev().zip((2..=7).cycle()).map(|(&b, w)| u32::from(b - b'0') * w).sum();
    let made = match 11 - sum % 11 {
        11 => b'0',
        10 => b'K',
        n => b'0' + n as u8,
    };
    matches!(body.len(), 7 | 8) && n >= 100_000 && !uniform(body) && check == made
}

/// The Ecuadorian number: province, third digit below six for persons, and a Luhn-like sum.
fn ec_ci(d: &[u8; 10]) -> bool {
    let province = number(&d[..2]);
    (matches!(province, 1..=24) || province == 30) && d[2] <= 6 && super::luhn::luhn(d)
}
