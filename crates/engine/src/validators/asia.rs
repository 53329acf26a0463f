//! Identifiers of Asia, the Pacific and Africa that are more than one weighted sum.

use super::iso7064::luhn_36;
use super::text::{alnum, alnum_exact, base36, digits_exact, number, uniform};
use super::weighted::{KR_RRN, NZ_IRD_1, NZ_IRD_2, two_pass};
use super::{CHECK_DIGIT, Table, Verdict, dates};

pub(super) const TABLE: Table = &[
    ("in_pan", |v| Verdict::pass_if(alnum_exact::<10>(v).is_some_and(|s| in_pan(&s)))),
    ("in_gstin", |v| proof(alnum_exact::<15>(v).is_some_and(|s| in_gstin(&s)))),
    ("cn_uscc", |v| proof(alnum_exact::<18>(v).is_some_and(|s| cn_uscc(&s)))),
    ("hk_hkid", |v| proof(hk_hkid(v))),
    ("tw_id", |v| proof(alnum_exact::<10>(v).is_some_and(|s| tw_id(&s)))),
    ("kr_rrn", |v| digits_exact::<13>(v).map_or(Verdict::Fail, |d| kr_rrn(&d))),
    ("sg_nric", |v| proof(alnum_exact::<9>(v).is_some_and(|s| sg_nric(&s)))),
    ("kr_brn", |v| digits_exact::<10>(v).map_or(Verdict::Fail, |d| kr_brn(&d))),
    ("id_nik", |v| Verdict::pass_if(digits_exact::<16>(v).is_some_and(|d| id_nik(&d)))),
    ("pk_cnic", |v| {
        Verdict::pass_if(
            digits_exact::<13>(v)
                .is_some_and(|d| (1..=7).contains(&d[0]) && d[12] != 0 && !uniform(&d[5..12])),
        )
    }),
    ("my_nric", |v| Verdict::pass_if(digits_exact::<12>(v).is_some_and(|d| my_nric(&d)))),
    ("au_abn", |v| proof(digits_exact::<11>(v).is_some_and(|d| au_abn(&d)))),
    ("nz_nhi", |v| proof(alnum_exact::<7>(v).is_some_and(|s| nz_nhi(&s)))),
    ("nz_ird", |v| proof(alnum(v).is_some_and(|s| nz_ird(&s)))),
];

fn proof(ok: bool) -> Verdict {
    Verdict::proof_if(ok, CHECK_DIGIT)
}

/// Indian taxpayer: five letters of which the fourth names the kind of holder, four digits, a letter.
fn in_pan(s: &[u8; 10]) -> bool {
    let letters = s[..5].iter().chain(&s[9..]).all(u8::is_ascii_uppercase);
    let digits = &s[5..9];
    letters && b"ABCFGHJKLPT".contains(&s[3]) && digits.iter().all(u8::is_ascii_digit) && digits != b"0000"
}

/// Indian goods and services tax: state, taxpayer, entity, Z, and a Luhn symbol of base 36.
fn in_gstin(s: &[u8; 15]) -> bool {
    let Ok(pan) = <[u8; 10]>::try_from(&s[2..12]) else { return false };
    let state = digits_exact::<2>(&s[..2]).is_some_and(|d| matches!(number(&d), 1..=38 | 97 | 99));
    state && in_pan(&pan) && s[12] != b'0' && luhn_36(s)
}

/// Chinese organisation: 31 symbols without I, O, Z, S, V, weights of powers of 3, mod 31.
fn cn_uscc(s: &[u8; 18]) -> bool {
    const ALPHABET: &[u8] = b"0123456789ABCDEFGHJKLMNPQRTUWXY";
    let mut values = [0usize; 18];
    for (slot, symbol) in values.iter_mut().zip(s) {
        let Some(value) = ALPHABET.iter().position(|known| known == symbol) else { return false };
        *slot = value;
    }
    let (sum, _) = values[..17].iter().fold((0, 1), |(sum, w), v| ((sum + v * w) % 31, w * 3 % 31));
    let region = s[2..8].iter().all(u8::is_ascii_digit);
    region && !uniform(s) && (sum + values[17]).is_multiple_of(31)
}

/// Hong Kong: one or two letters, six digits, check symbol in parentheses; a missing letter counts 36.
fn hk_hkid(v: &[u8]) -> bool {
    let bare: Vec<u8> = v.iter().copied().filter(|b| !b"()".contains(b)).collect();
    let Some(s) = alnum(&bare) else { return false };
    let letters = match s.len() {
        8 => 1,
        9 => 2,
        _ => return false,
    };
    let (head, rest) = s.split_at(letters);
    let (body, check) = rest.split_at(6);
    if !head.iter().all(u8::is_ascii_uppercase) || !body.iter().all(u8::is_ascii_digit) || uniform(body) {
        return false;
    }
    let check = match check[0] {
        b'A' => 10,
        digit @ b'0'..=b'9' => u32::from(digit - b'0'),
        _ => return false,
    };
    let blank = if letters == 1 { 36 * 9 } else { 0 };
    let weights = (2..=if letters == 1 { 8 } else { 9 }).rev();
    let sum: u32 = head.iter().chain(body).zip(weights).map(|(&b, w)| base36(b).unwrap_or(0) * w).sum();
    (blank + sum + check).is_multiple_of(11)
}

/// Taiwan: a letter of the place, which counts as two digits, sex (or residence status), digits, mod 10.
fn tw_id(s: &[u8; 10]) -> bool {
    // The letters in the order of their codes, 10 upwards.
    let Some(code) = b"ABCDEFGHJKLMNPQRSTUVXYWZIO".iter().position(|&letter| letter == s[0]) else {
        return false;
    };
    let Some(d) = digits_exact::<9>(&s[1..]) else { return false };
    let code = code as u32 + 10;
    let body: u32 = d[..8].iter().zip((1..=8).rev()).map(|(&d, w)| u32::from(d) * w).sum();
    let sum = code / 10 + code % 10 * 9 + body + u32::from(d[8]);
    matches!(d[0], 1 | 2 | 8 | 9) && !uniform(&d[1..]) && sum.is_multiple_of(10)
}

/// Korean resident: date, a digit for century and sex, and a check digit. Numbers given out since October 2020
/// are random behind that digit, which only births since then are sure to have. Places of birth end at 96.
fn kr_rrn(d: &[u8; 13]) -> Verdict {
    let recent = matches!(d[6], 3 | 4 | 7 | 8) && (2010..4000).contains(&number(&d[..4]));
    let check = number(&d[7..9]) <= 96 && KR_RRN.ends(d);
    let dated = dates::yymmdd(d) && (1..=8).contains(&d[6]) && !uniform(&d[6..]);
    Verdict::proof_or_doubt(dated && (check || recent), check)
}

/// Singapore: S and T for citizens, F, G and M for foreigners; weights, an offset, and a letter mod 11.
fn sg_nric(s: &[u8; 9]) -> bool {
    let Some(d) = digits_exact::<7>(&s[1..8]) else { return false };
    let (offset, letters): (u32, &[u8; 11]) = match s[0] {
        b'S' => (0, b"JZIHGFEDCBA"),
        b'T' => (4, b"JZIHGFEDCBA"),
        b'F' => (0, b"XWUTRQPNMLK"),
        b'G' => (4, b"XWUTRQPNMLK"),
        b'M' => (3, b"XWUTRQPNJLK"),
        _ => return false,
    };
    let sum: u32 = d.iter().zip([2, 7, 6, 5, 4, 3, 2]).map(|(&d, w)| u32::from(d) * w).sum::<u32>() + offset;
    !uniform(&d) && s[8] == letters[(sum % 11) as usize]
}

/// Malaysian identity card: birth date, and a place of birth that is in use.
fn my_nric(d: &[u8; 12]) -> bool {
    let place = number(&d[6..8]);
    dates::yymmdd(d) && !matches!(place, 0 | 17..=20 | 69 | 70 | 73 | 80 | 81 | 94..=97)
}

/// Australian business: one less than the first digit, eleven weights, mod 89.
fn au_abn(d: &[u8; 11]) -> bool {
    let sum: u32 =
        d.iter().zip([10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19]).map(|(&d, w)| u32::from(d) * w).sum();
    d[0] != 0 && (sum - 10).is_multiple_of(89)
}

/// New Zealand tax: eight or nine digits in the issued range.
fn nz_ird(s: &[u8]) -> bool {
    let Some(d) = super::text::digits(s) else { return false };
    let mut padded = [0; 9];
    match d.len() {
        8 => padded[1..].copy_from_slice(&d),
        9 => padded.copy_from_slice(&d),
        _ => return false,
    }
    (10_000_000..150_000_000).contains(&number(&padded)) && two_pass(&NZ_IRD_1, &NZ_IRD_2, &padded)
}

/// Korean business: weights 1, 3, 7, of which the last is 5 and counts its tens as well. The check is not told in
/// public, so a wrong digit only speaks against the number.
fn kr_brn(d: &[u8; 10]) -> Verdict {
    let sum: u32 = d[..9].iter().zip([1, 3, 7, 1, 3, 7, 1, 3, 5]).map(|(&d, w)| u32::from(d) * w).sum();
    let sum = sum + u32::from(d[8]) * 5 / 10;
    let form = number(&d[..3]) >= 101 && d[3..5] != [0, 0] && d[5..9] != [0; 4] && !uniform(d);
    Verdict::proof_or_doubt(form, (10 - sum % 10) % 10 == u32::from(d[9]))
}

/// Indonesian identity: province, regency, district, birth date (women add 40 to the day), serial.
fn id_nik(d: &[u8; 16]) -> bool {
    let day = number(&d[6..8]);
    let day = if day > 40 { day - 40 } else { day };
    let dated = dates::exists(number(&d[10..12]), number(&d[8..10]), day);
    matches!(number(&d[..2]), 11..=19 | 21 | 31..=36 | 51..=53 | 61..=65 | 71..=76 | 81 | 82 | 91..=96)
        && dated
        && d[12..] != [0; 4]
}

/// New Zealand patient: three letters without I and O, three digits, and a check digit mod 11.
fn nz_nhi(s: &[u8; 7]) -> bool {
    const LETTERS: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZ";
    let Some(d) = digits_exact::<4>(&s[3..]) else { return false };
    let mut sum = d[..3].iter().zip([4, 3, 2]).map(|(&d, w)| usize::from(d) * w).sum::<usize>();
    for (symbol, weight) in s[..3].iter().zip([7, 6, 5]) {
        let Some(place) = LETTERS.iter().position(|letter| letter == symbol) else { return false };
        sum += (place + 1) * weight;
    }
    sum % 11 != 0 && (11 - sum % 11) % 10 == usize::from(d[3])
}
