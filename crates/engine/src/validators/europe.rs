//! European identifiers that are more than one weighted sum.

use super::luhn::luhn;
use super::text::{alnum, alnum_exact, ascii_number, base36, digits, digits_exact, number, uniform};
use super::weighted::{BALTIC_1, BALTIC_2, BG_EGN, NO_FNR_1, NO_FNR_2, two_pass};
use super::{CHECK_DIGIT, Table, Verdict, dates};

pub(super) const TABLE: Table = &[
    ("gb_nino", |v| Verdict::pass_if(alnum_exact::<9>(v).is_some_and(|s| gb_nino(&s)))),
    ("gb_utr", |v| proof(digits_exact::<10>(v).is_some_and(|d| gb_utr(&d)))),
    ("ie_pps", |v| proof(alnum(v).is_some_and(|s| ie_pps(&s)))),
    ("es_dni", |v| proof(alnum_exact::<9>(v).is_some_and(|s| es_dni(&s)))),
    ("es_cif", |v| proof(alnum_exact::<9>(v).is_some_and(|s| es_cif(&s)))),
    ("it_codice_fiscale", |v| proof(alnum_exact::<16>(v).is_some_and(|s| it_codice_fiscale(&s)))),
    ("at_vnr", |v| proof(digits_exact::<10>(v).is_some_and(|d| at_vnr(&d)))),
    ("fi_hetu", |v| proof(fi_hetu(v))),
    ("se_pnr", |v| proof(se_pnr(v))),
    ("no_fnr", |v| proof(digits_exact::<11>(v).is_some_and(|d| no_fnr(&d)))),
    // Since 2007 Denmark issues numbers that fail the old sum; the date is all that always holds.
    ("dk_cpr", |v| {
        Verdict::pass_if(digits_exact::<10>(v).is_some_and(|d| dates::ddmmyy(&d) && d[6..] != [0; 4]))
    }),
    ("ee_lt_id", |v| proof(digits_exact::<11>(v).is_some_and(|d| ee_lt_id(&d)))),
    ("bg_egn", |v| proof(digits_exact::<10>(v).is_some_and(|d| bg_egn(&d)))),
    ("cz_rc", |v| proof(digits_exact::<10>(v).is_some_and(|d| cz_rc(&d)))),
    ("ru_snils", |v| proof(digits_exact::<11>(v).is_some_and(|d| ru_snils(&d)))),
    ("tr_tckn", |v| proof(digits_exact::<11>(v).is_some_and(|d| tr_tckn(&d)))),
    ("de_id_card", |v| proof(alnum_exact::<10>(v).is_some_and(|s| de_id_card(&s)))),
    ("gb_driving_licence", |v| {
        Verdict::pass_if(alnum_exact::<16>(v).is_some_and(|s| gb_driving_licence(&s)))
    }),
    ("fr_nif", |v| {
        proof(
            digits_exact::<13>(v)
                .is_some_and(|d| d[0] <= 3 && !uniform(&d) && number(&d[..10]) % 511 == number(&d[10..])),
        )
    }),
    ("de_rvnr", |v| proof(alnum_exact::<12>(v).is_some_and(|s| de_rvnr(&s)))),
    ("pt_cc", |v| proof(alnum_exact::<12>(v).is_some_and(|s| pt_cc(&s)))),
    ("de_kvnr", |v| proof(alnum_exact::<10>(v).is_some_and(|s| de_kvnr(&s)))),
];

fn proof(ok: bool) -> Verdict {
    Verdict::proof_if(ok, CHECK_DIGIT)
}

/// UK national insurance: two letters with reserved ones left out, six digits, A to D.
fn gb_nino(s: &[u8; 9]) -> bool {
    let (first, second) = (s[0], s[1]);
    let prefix_free = !matches!(&s[..2], b"BG" | b"GB" | b"KN" | b"NK" | b"NT" | b"TN" | b"ZZ");
    let letters = first.is_ascii_uppercase()
        && second.is_ascii_uppercase()
        && !b"DFIQUV".contains(&first)
        && !b"DFIOQUV".contains(&second);
    let digits = &s[2..8];
    letters
        && prefix_free
        && digits.iter().all(u8::is_ascii_digit)
        && !uniform(digits)
        && digits != b"123456"
        && matches!(s[8], b'A'..=b'D')
}

/// UK tax reference: the first digit checks the other nine.
fn gb_utr(d: &[u8; 10]) -> bool {
    let sum: usize = d[1..].iter().zip([6, 7, 8, 9, 10, 5, 4, 3, 2]).map(|(&d, w)| usize::from(d) * w).sum();
    d[1..] != [0; 9] && d[0] == [2, 1, 9, 8, 7, 6, 5, 4, 3, 2, 1][sum % 11]
}

/// Irish public service number: seven digits weighted 8 to 2, a second letter weighted 9, mod 23.
fn ie_pps(s: &[u8]) -> bool {
    if !matches!(s.len(), 8 | 9) {
        return false;
    }
    let Some(d) = digits_exact::<7>(&s[..7]) else { return false };
    let extra = match s.get(8) {
        // Letters of the time before 2013, which the check does not count.
        None | Some(b'W' | b'T' | b'X') => 0,
        Some(letter @ b'A'..=b'I') => u32::from(letter - b'A' + 1),
        Some(_) => return false,
    };
    let sum: u32 =
        d.iter().zip([8, 7, 6, 5, 4, 3, 2]).map(|(&d, w)| u32::from(d) * w).sum::<u32>() + extra * 9;
    !uniform(&d) && s[7] == b"WABCDEFGHIJKLMNOPQRSTUV"[(sum % 23) as usize]
}

/// Spanish DNI (eight digits) and NIE (X, Y or Z for 0, 1, 2 and seven digits): a letter mod 23.
fn es_dni(s: &[u8; 9]) -> bool {
    let mut body = *s;
    if let letter @ b'X'..=b'Z' = s[0] {
        body[0] = letter - b'X' + b'0';
    }
    let Some(n) = ascii_number(&body[..8]) else { return false };
    !uniform(&body[..8]) && n != 12_345_678 && s[8] == b"TRWAGMYFPDXBNJZSQVHLCKE"[(n % 23) as usize]
}

/// Spanish company: a letter for its form, seven digits, and a Luhn digit or its letter.
fn es_cif(s: &[u8; 9]) -> bool {
    let Some(d) = digits_exact::<7>(&s[1..8]) else { return false };
    let Some(check) = (0..10).find(|&c| luhn(&[&d[..], &[c]].concat())) else { return false };
    let (digit, letter) = (s[8] == b'0' + check, s[8] == b"JABCDEFGHI"[usize::from(check)]);
    !uniform(&d)
        && match s[0] {
            b'K' => letter,
            b'A'..=b'H' | b'J' | b'N' | b'P'..=b'S' | b'U'..=b'W' => digit || letter,
            _ => false,
        }
}

/// Italian fiscal code: consonants of the name, birth date with a letter for the month and 40 added to a
/// woman's day, place, and a letter mod 26. In homonyms letters stand for digits ("omocodia").
fn it_codice_fiscale(s: &[u8; 16]) -> bool {
    const ODD_DIGIT: [u32; 10] = [1, 0, 5, 7, 9, 13, 15, 17, 19, 21];
    const ODD_LETTER: [u32; 26] =
        [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23];
    let digit = |symbol: u8| match symbol {
        b'0'..=b'9' => Some(symbol - b'0'),
        _ => b"LMNPQRSTUV".iter().position(|&letter| letter == symbol).map(|i| i as u8),
    };
    let places = [6, 7, 9, 10, 12, 13, 14];
    let letters = [0, 1, 2, 3, 4, 5, 8, 11, 15];
    if !places.iter().all(|&i| digit(s[i]).is_some()) || !letters.iter().all(|&i| s[i].is_ascii_uppercase()) {
        return false;
    }
    let at = |i: usize| u64::from(digit(s[i]).unwrap_or(0));
    let month = b"ABCDEHLMPRST".iter().position(|&letter| letter == s[8]).map_or(0, |i| i as u64 + 1);
    let day = at(9) * 10 + at(10);
    let dated = dates::exists(at(6) * 10 + at(7), month, if day > 40 { day - 40 } else { day });
    let sum: u32 = s[..15]
        .iter()
        .enumerate()
        .map(|(i, &symbol)| match (i % 2 == 0, symbol) {
            (true, b'0'..=b'9') => ODD_DIGIT[usize::from(symbol - b'0')],
            (true, _) => ODD_LETTER[usize::from(symbol - b'A')],
            (false, b'0'..=b'9') => u32::from(symbol - b'0'),
            (false, _) => u32::from(symbol - b'A'),
        })
        .sum();
    dated && u32::from(s[15] - b'A') == sum % 26
}

/// Austrian insurance: the fourth digit checks the three before it and the birth date behind it. Where
/// days ran out, months of 13 and more were given.
fn at_vnr(d: &[u8; 10]) -> bool {
    let sum: u32 = d.iter().zip([3, 7, 9, 0, 5, 8, 4, 2, 1, 6]).map(|(&d, w)| u32::from(d) * w).sum();
    let month = number(&d[6..8]);
    let dated = dates::exists(number(&d[8..]), month, number(&d[4..6])) || (13..=15).contains(&month);
    d[0] != 0 && dated && sum % 11 == u32::from(d[3])
}

/// Finnish person: date, a sign for the century, three digits, and a symbol mod 31.
fn fi_hetu(v: &[u8]) -> bool {
    let [date @ .., sign, a, b, c, check] = v else { return false };
    let (Some(date), Some(n)) = (digits_exact::<6>(date), digits_exact::<3>(&[*a, *b, *c])) else {
        return false;
    };
    let signed = matches!(sign.to_ascii_uppercase(), b'+' | b'-' | b'A'..=b'F' | b'U'..=b'Y');
    let rest = (number(&date) * 1000 + number(&n)) % 31;
    let expected = b"0123456789ABCDEFHJKLMNPRSTUVWXY"[rest as usize];
    v.len() == 11
        && signed
        && number(&n) >= 2
        && dates::ddmmyy(&date)
        && check.to_ascii_uppercase() == expected
}

/// Swedish person: two- or four-digit year, date (day + 60 for coordination numbers), and Luhn over the last
/// ten digits. A plus sign marks a hundredth birthday.
fn se_pnr(v: &[u8]) -> bool {
    let plain: Vec<u8> = v.iter().map(|&b| if b == b'+' { b'-' } else { b }).collect();
    let Some(d) = digits(&plain) else { return false };
    let Some(ten) = d.len().checked_sub(10).map(|skip| &d[skip..]) else { return false };
    let day = number(&ten[4..6]);
    let dated = dates::exists(number(&ten[..2]), number(&ten[2..4]), if day > 60 { day - 60 } else { day });
    let century = match d.len() {
        10 => true,
        12 => (18..=20).contains(&number(&d[..2])),
        _ => false,
    };
    century && dated && ten[6..9] != [0; 3] && luhn(ten)
}

/// Norwegian person: date (day + 40 for D-numbers, month + 40 for synthetic ones) and two check digits.
fn no_fnr(d: &[u8; 11]) -> bool {
    let (day, month) = (number(&d[..2]), number(&d[2..4]));
    let day = if day > 40 { day - 40 } else { day };
    let month = if month > 40 { month - 40 } else { month };
    dates::exists(number(&d[4..6]), month, day) && NO_FNR_1.ends(&d[..10]) && NO_FNR_2.ends(d)
}

/// Estonian and Lithuanian person: century and sex, date, order, check digit.
fn ee_lt_id(d: &[u8; 11]) -> bool {
    (1..=8).contains(&d[0]) && dates::yymmdd(&d[1..7]) && two_pass(&BALTIC_1, &BALTIC_2, d)
}

/// Bulgarian person: births before 1900 add 20 to the month, from 2000 on 40.
fn bg_egn(d: &[u8; 10]) -> bool {
    let month = number(&d[2..4]);
    let month = month
        - if month > 40 {
            40
        } else if month > 20 {
            20
        } else {
            0
        };
    dates::exists(number(&d[..2]), month, number(&d[4..6])) && BG_EGN.ends(d)
}

/// Czech and Slovak person: women add 50 to the month, days that ran out 20; the whole divides by 11, or the
/// first nine leave ten and a zero follows.
fn cz_rc(d: &[u8; 10]) -> bool {
    let month = number(&d[2..4]) % 50;
    let month = if month > 20 { month - 20 } else { month };
    let rest = number(&d[..9]) % 11;
    dates::exists(number(&d[..2]), month, number(&d[4..6])) && rest % 10 == u64::from(d[9])
}

/// Russian pension insurance: weights 9 to 1, mod 101, where 100 counts as 0.
fn ru_snils(d: &[u8; 11]) -> bool {
    let sum: u64 = d[..9].iter().zip((1..=9).rev()).map(|(&d, w)| u64::from(d) * w).sum();
    !uniform(&d[..9]) && number(&d[..9]) > 1_001_998 && sum % 101 % 100 == number(&d[9..])
}

/// Turkish person: two digits that check the nine before them in two ways.
fn tr_tckn(d: &[u8; 11]) -> bool {
    let (odd, even) = d[..9].iter().enumerate().fold((0i32, 0i32), |(odd, even), (i, &d)| {
        if i % 2 == 0 { (odd + i32::from(d), even) } else { (odd, even + i32::from(d)) }
    });
    let tenth = (odd * 7 - even).rem_euclid(10);
    d[0] != 0 && i32::from(d[9]) == tenth && i32::from(d[10]) == (odd + even + tenth) % 10
}

/// The sum of machine-readable documents: base 36 weighted 7, 3, 1.
fn mrz(symbols: &[u8]) -> Option<u32> {
    symbols.iter().zip([7, 3, 1].iter().cycle()).try_fold(0, |sum, (&s, w)| Some((sum + base36(s)? * w) % 10))
}

/// German identity card or passport: a letter of the issuing office, eight symbols without vowels, MRZ check.
fn de_id_card(s: &[u8; 10]) -> bool {
    let allowed = |&symbol: &u8| symbol.is_ascii_digit() || b"CFGHJKLMNPRTVWXYZ".contains(&symbol);
    b"CFGHJKLMNPRTVWXYZ".contains(&s[0])
        && s[..9].iter().all(allowed)
        && s[1..9].iter().any(u8::is_ascii_digit)
        && mrz(&s[..9]).is_some_and(|check| s[9] == b'0' + check as u8)
}

/// German health insurance: a letter as two digits, eight digits, weights 1 and 2 with cross sums, mod 10.
fn de_kvnr(s: &[u8; 10]) -> bool {
    let Some(d) = digits_exact::<9>(&s[1..]) else { return false };
    if !s[0].is_ascii_uppercase() || uniform(&d) {
        return false;
    }
    let letter = s[0] - b'A' + 1;
    let sum: u32 = [letter / 10, letter % 10]
        .iter()
        .chain(&d[..8])
        .zip([1, 2].iter().cycle())
        .map(|(&d, w)| u32::from(d) * w)
        .map(|n| n / 10 + n % 10)
        .sum();
    sum % 10 == u32::from(d[8])
}

/// UK driver: five letters of the surname, padded with 9, the birth date around its year's digits (women add 5
/// to the month's first), initials, and three symbols whose rule is not public.
fn gb_driving_licence(s: &[u8; 16]) -> bool {
    let Some(d) = digits_exact::<6>(&s[5..11]) else { return false };
    let month = number(&d[1..3]) % 50;
    let year = number(&[d[0], d[5]]);
    let padded = |symbols: &[u8]| {
        let letters = symbols.iter().take_while(|b| b.is_ascii_uppercase()).count();
        symbols[letters..].iter().all(|&b| b == b'9')
    };
    s[0].is_ascii_uppercase()
        && padded(&s[..5])
        && dates::exists(year, month, number(&d[3..5]))
        && padded(&s[11..13])
        && s[13].is_ascii_digit()
        && s[14..].iter().all(u8::is_ascii_uppercase)
}

/// German pension insurance: area, birth date, initial, serial, check digit. The initial counts as two digits;
/// products count by their cross sum.
fn de_rvnr(s: &[u8; 12]) -> bool {
    let (Some(head), Some(tail)) = (digits_exact::<8>(&s[..8]), digits_exact::<3>(&s[9..])) else {
        return false;
    };
    if !s[8].is_ascii_uppercase() {
        return false;
    }
    let letter = s[8] - b'A' + 1;
    let sum: u32 = head
        .iter()
        .chain(&[letter / 10, letter % 10])
        .chain(&tail[..2])
        .zip([2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1])
        .map(|(&d, w)| u32::from(d) * w)
        .map(|n| n / 10 + n % 10)
        .sum();
    head[..2] != [0, 0] && dates::ddmmyy(&head[2..]) && sum % 10 == u32::from(tail[2])
}

/// Portuguese citizen card: nine digits, two symbols of the version, and Luhn's digit over base 36 cut to one
/// digit.
fn pt_cc(s: &[u8; 12]) -> bool {
    let mut sum = 0;
    for (i, &symbol) in s.iter().rev().enumerate() {
        let Some(value) = base36(symbol) else { return false };
        let weighed = if i % 2 == 0 { value } else { value * 2 };
        sum += if i % 2 == 1 && weighed > 9 { weighed - 9 } else { weighed };
    }
    let digits = &s[..9];
    digits.iter().all(u8::is_ascii_digit) && !uniform(digits) && s[11].is_ascii_digit() && sum % 10 == 0
}
