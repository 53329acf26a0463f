//! Value added tax numbers of the European Union and its neighbours: a country, then a number with the check
//! of that country.

use super::luhn::luhn;
use super::text::{Symbols, alnum, digits, digits_exact, number, uniform};
use super::{CHECK_DIGIT, Check, Table, Verdict, lookup};

pub(super) const TABLE: Table =
    &[("eu_vat", |v| Verdict::proof_if(alnum(v).is_some_and(|s| vat(&s)), CHECK_DIGIT))];

fn vat(s: &Symbols) -> bool {
    let Some((country, body)) = s.split_at_checked(2) else { return false };
    let by = |name: &str| lookup(name).is_some_and(|check: Check| check(body) != Verdict::Fail);
    match country {
        b"AT" => body.strip_prefix(b"U").and_then(digits_exact::<8>).is_some_and(|d| austria(&d)),
        b"BE" => digits_exact::<10>(body).is_some_and(|d| {
            d[0] <= 1 && !uniform(&d) && (number(&d[..8]) + number(&d[8..])).is_multiple_of(97)
        }),
        b"BG" => digits(body).is_some_and(|d| bulgaria(&d)) || by("bg_egn"),
        b"CY" => cyprus(body),
        b"CZ" => digits_exact::<8>(body).is_some_and(|d| czechia(&d)) || by("cz_rc"),
        b"DE" => by("de_ust"),
        b"DK" => weighted::<8>(body, [2, 7, 6, 5, 4, 3, 2, 1], 11, 0),
        b"EE" => weighted::<9>(body, [3, 7, 1, 3, 7, 1, 3, 7, 1], 10, 0),
        b"EL" | b"GR" => by("gr_afm"),
        b"ES" => by("es_cif") || by("es_dni"),
        b"FI" => weighted::<8>(body, [7, 9, 10, 5, 8, 4, 2, 1], 11, 0),
        b"FR" => france(body),
        b"GB" => by("gb_vat"),
        b"HR" => by("hr_oib"),
        b"HU" => weighted::<8>(body, [9, 7, 3, 1, 9, 7, 3, 1], 10, 0),
        b"IE" => by("ie_pps"),
        b"IT" => by("it_iva"),
        b"LT" => digits(body).is_some_and(|d| lithuania(&d)),
        b"LU" => {
            digits_exact::<8>(body).is_some_and(|d| !uniform(&d) && number(&d[..6]) % 89 == number(&d[6..]))
        }
        b"LV" => weighted::<11>(body, [9, 1, 4, 8, 3, 10, 2, 5, 7, 6, 1], 11, 3),
        b"MT" => digits_exact::<8>(body).is_some_and(|d| malta(&d)),
        b"NL" => netherlands(s),
        b"PL" => by("pl_nip"),
        b"PT" => by("pt_nif"),
        b"RO" => digits(body).is_some_and(|d| romania(&d)),
        b"SE" => {
            body.strip_suffix(b"01").and_then(digits_exact::<10>).is_some_and(|d| !uniform(&d) && luhn(&d))
        }
        b"SI" => digits_exact::<8>(body).is_some_and(|d| slovenia(&d)),
        b"SK" => digits_exact::<10>(body)
            .is_some_and(|d| d[0] != 0 && matches!(d[2], 2..=4 | 7..=9) && number(&d).is_multiple_of(11)),
        _ => false,
    }
}

/// A weighted sum over all digits, the check digit among them, that leaves `rest`.
fn weighted<const N: usize>(body: &[u8], weights: [u32; N], modulus: u32, rest: u32) -> bool {
    digits_exact::<N>(body).is_some_and(|d| {
        let sum: u32 = d.iter().zip(weights).map(|(&d, w)| u32::from(d) * w).sum();
        !uniform(&d) && sum % modulus == rest
    })
}

/// Cross sums of doubled digits, and four more.
fn austria(d: &[u8; 8]) -> bool {
    let sum: u32 = d[..7]
        .iter()
        .enumerate()
        .map(|(i, &d)| u32::from(d) * (1 + i as u32 % 2))
        .map(|n| n / 10 + n % 10)
        .sum();
    !uniform(d) && (10 - (sum + 4) % 10) % 10 == u32::from(d[7])
}

/// Companies of nine digits weigh 1 to 8, and 3 to 10 where that leaves ten; others weigh ten digits once.
fn bulgaria(d: &[u8]) -> bool {
    let Some((&check, body)) = d.split_last() else { return false };
    let rest = |weights: &[u32]| body.iter().zip(weights).map(|(&d, w)| u32::from(d) * w).sum::<u32>() % 11;
    let made = match d.len() {
        9 => match rest(&[1, 2, 3, 4, 5, 6, 7, 8]) {
            10 => rest(&[3, 4, 5, 6, 7, 8, 9, 10]) % 10,
            rest => rest,
        },
        10 => (11 - rest(&[4, 3, 2, 7, 6, 5, 4, 3, 2])) % 11,
        _ => return false,
    };
    !uniform(d) && made == u32::from(check)
}

/// Companies: weights 8 to 2, and a check digit that turns 10 and 11 into 0 and 1.
fn czechia(d: &[u8; 8]) -> bool {
    let sum: u32 = d[..7].iter().zip((2..=8).rev()).map(|(&d, w)| u32::from(d) * w).sum();
    d[0] != 9 && !uniform(d) && (11 - sum % 11) % 10 == u32::from(d[7])
}

/// Nine digits of companies or twelve of others, the last but one a 1; weights count on, from 1 and else from 3.
fn lithuania(d: &[u8]) -> bool {
    let Some((&check, body)) = d.split_last() else { return false };
    let rest =
        |from: u32| body.iter().zip(from..).map(|(&d, w)| u32::from(d) * (1 + (w - 1) % 9)).sum::<u32>() % 11;
    let made = if rest(1) == 10 { rest(3) % 10 } else { rest(1) };
    matches!(d.len(), 9 | 12) && body.last() == Some(&1) && !uniform(d) && made == u32::from(check)
}

/// Digits at odd places count by a table of their own; the letter is the sum mod 26.
fn cyprus(body: &[u8]) -> bool {
    const ODD: [u32; 10] = [1, 0, 5, 7, 9, 13, 15, 17, 19, 21];
    let Some((&letter, rest)) = body.split_last() else { return false };
    let Some(d) = digits_exact::<8>(rest) else { return false };
    let place = |(i, &d): (usize, &u8)| if i % 2 == 0 { ODD[usize::from(d)] } else { u32::from(d) };
    let sum: u32 = d.iter().enumerate().map(place).sum();
    !uniform(&d) && letter == b'A' + (sum % 26) as u8
}

/// Two digits made of the company's number (SIREN) behind them.
fn france(body: &[u8]) -> bool {
    let Some(d) = digits_exact::<11>(body) else { return false };
    let siren = number(&d[2..]);
    luhn(&d[2..]) && !uniform(&d[2..]) && (12 + 3 * (siren % 97)) % 97 == number(&d[..2])
}

fn malta(d: &[u8; 8]) -> bool {
    let sum: u32 = d[..6].iter().zip([3, 4, 6, 7, 8, 9]).map(|(&d, w)| u32::from(d) * w).sum();
    d[0] != 0 && (sum + number(&d[6..]) as u32).is_multiple_of(37)
}

/// Companies end in B and two digits over their citizen number; others pass mod 97 with the country.
fn netherlands(s: &Symbols) -> bool {
    let Some((body, tail)) = s[2..].split_at_checked(9) else { return false };
    let [b'B', suffix @ ..] = tail else { return false };
    let bsn = lookup("nl_bsn").is_some_and(|check: Check| check(body) != Verdict::Fail);
    suffix.len() == 2
        && suffix != b"00"
        && suffix.iter().all(u8::is_ascii_digit)
        && body.iter().all(u8::is_ascii_digit)
        && (bsn || super::mod97::mod97(s.iter()) == Some(1))
}

/// Two to ten digits, weighted from the right, times ten, mod 11.
fn romania(d: &[u8]) -> bool {
    let Some((&check, body)) = d.split_last() else { return false };
    let sum: u32 = body.iter().rev().zip([2, 3, 5, 7, 1, 2, 3, 5, 7]).map(|(&d, w)| u32::from(d) * w).sum();
    (5..=9).contains(&body.len()) && d[0] != 0 && !uniform(d) && sum * 10 % 11 % 10 == u32::from(check)
}

fn slovenia(d: &[u8; 8]) -> bool {
    let sum: u32 = d[..7].iter().zip((2..=8).rev()).map(|(&d, w)| u32::from(d) * w).sum();
    let made = match 11 - sum % 11 {
        10 => 0,
        11 => return false,
        made => made,
    };
    d[0] != 0 && !uniform(d) && made == u32::from(d[7])
}
