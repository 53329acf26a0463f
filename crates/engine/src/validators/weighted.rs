//! Check digits made of a weighted sum: the families differ in weights, modulus and in what becomes of a
//! remainder that is no digit, so each is a row of data.

use super::text::{alnum_exact, digits, digits_exact, sequential, uniform};
use super::{CHECK_DIGIT, Table, Verdict, dates};

pub(super) const TABLE: Table = &[
    ("us_aba", |v| {
        digits_exact::<9>(v).map_or(Verdict::Fail, |d| {
            Verdict::proof_in_range(varied(&d) && US_ABA.ends(&d), aba_district(&d))
        })
    }),
    ("mx_clabe", |v| proof(digits_exact::<18>(v).is_some_and(|d| varied(&d) && MX_CLABE.ends(&d)))),
    ("ar_cbu", |v| proof(digits_exact::<22>(v).is_some_and(|d| varied(&d) && ar_cbu(&d)))),
    ("ean13", |v| proof(digits_exact::<13>(v).is_some_and(|d| varied(&d) && EAN13.ends(&d)))),
    ("gb_nhs", |v| proof(digits_exact::<10>(v).is_some_and(|d| varied(&d) && GB_NHS.ends(&d)))),
    ("uk_chi", |v| {
        proof(digits_exact::<10>(v).is_some_and(|d| dates::ddmmyy(&d) && varied(&d) && GB_NHS.ends(&d)))
    }),
    ("nl_bsn", |v| proof(digits_exact::<9>(v).is_some_and(|d| varied(&d) && NL_BSN.ends(&d)))),
    ("pt_nif", |v| {
        digits_exact::<9>(v).map_or(Verdict::Fail, |d| {
            let in_use = !matches!(d[0], 0 | 4) || d[..2] == [4, 5];
            Verdict::proof_in_range(d[0] != 0 && varied(&d) && PT_NIF.ends(&d), in_use)
        })
    }),
    ("pl_pesel", |v| proof(digits_exact::<11>(v).is_some_and(|d| pesel_date(&d) && PL_PESEL.ends(&d)))),
    ("pl_nip", |v| {
        digits_exact::<10>(v)
            .map_or(Verdict::Fail, |d| Verdict::proof_in_range(varied(&d) && PL_NIP.ends(&d), d[0] != 0))
    }),
    ("ch_ahv", |v| proof(digits_exact::<13>(v).is_some_and(|d| d.starts_with(&[7, 5, 6]) && EAN13.ends(&d)))),
    ("gr_afm", |v| proof(digits_exact::<9>(v).is_some_and(|d| varied(&d) && GR_AFM.ends(&d)))),
    ("ro_cnp", |v| {
        proof(
            digits_exact::<13>(v)
                .is_some_and(|d| (1..=9).contains(&d[0]) && dates::yymmdd(&d[1..]) && RO_CNP.ends(&d)),
        )
    }),
    ("au_tfn", |v| proof(digits_exact::<9>(v).is_some_and(|d| varied(&d) && AU_TFN.ends(&d)))),
    ("au_medicare", |v| proof(digits(v).is_some_and(|d| au_medicare(&d)))),
    ("jp_my_number", |v| proof(digits_exact::<12>(v).is_some_and(|d| varied(&d) && JP_MY_NUMBER.ends(&d)))),
    ("th_id", |v| {
        proof(digits_exact::<13>(v).is_some_and(|d| !matches!(d[0], 0 | 9) && varied(&d) && TH_ID.ends(&d)))
    }),
    ("ar_cuit", |v| {
        proof(
            digits_exact::<11>(v)
                .is_some_and(|d| matches!(d[0], 2 | 3 | 5) && varied(&d) && AR_CUIT.ends(&d)),
        )
    }),
    ("br_cpf", |v| {
        proof(
            digits_exact::<11>(v).is_some_and(|d| {
                varied(&d) && varied(&d[..9]) && BR_CPF_1.ends(&d[..10]) && BR_CPF_2.ends(&d)
            }),
        )
    }),
    ("br_cnpj", |v| {
        proof(
            digits_exact::<14>(v)
                .is_some_and(|d| varied(&d) && BR_CNPJ_1.ends(&d[..13]) && BR_CNPJ_2.ends(&d)),
        )
    }),
    ("ru_inn", |v| proof(digits(v).is_some_and(|d| ru_inn(&d)))),
    ("es_ccc", |v| proof(digits_exact::<20>(v).is_some_and(|d| varied(&d) && es_ccc(&d)))),
    ("ca_bc_phn", |v| {
        proof(digits_exact::<10>(v).is_some_and(|d| d[0] == 9 && varied(&d) && CA_BC_PHN.ends(&d[1..])))
    }),
    ("pe_ruc", |v| {
        proof(digits_exact::<11>(v).is_some_and(|d| {
            matches!(d[..2], [1, 0 | 5 | 6 | 7] | [2, 0]) && varied(&d[2..]) && PE_RUC.ends(&d)
        }))
    }),
    ("uy_rut", |v| {
        proof(digits_exact::<12>(v).is_some_and(|d| {
            matches!(d[0] * 10 + d[1], 1..=22)
                && d[2..8] != [0; 6]
                && d[8..11] == [0, 0, 1]
                && UY_RUT.ends(&d)
        }))
    }),
    ("si_emso", |v| proof(digits_exact::<13>(v).is_some_and(|d| dates::ddmmyyy(&d) && EMSO.ends(&d)))),
    ("lv_pk", |v| {
        proof(digits_exact::<11>(v).is_some_and(|d| {
            // Since 2017 numbers tell no date and begin with 32.
            let dated = dates::ddmmyy(&d) && d[6] <= 2;
            (dated || d[..2] == [3, 2]) && varied(&d) && LV_PK.ends(&d)
        }))
    }),
    ("is_kt", |v| {
        proof(digits_exact::<10>(v).is_some_and(|d| {
            // Companies add 40 to the day; the last digit is the century.
            let day = if d[0] >= 4 { [d[0] - 4, d[1]] } else { [d[0], d[1]] };
            let date = [day[0], day[1], d[2], d[3], d[4], d[5]];
            dates::ddmmyy(&date) && matches!(d[9], 0 | 8 | 9) && IS_KT.ends(&d[..9])
        }))
    }),
    ("hu_tax", |v| {
        proof(digits(v).is_some_and(|d| match d.len() {
            8 => varied(&d) && HU_COMPANY.ends(&d),
            10 => d[0] == 8 && varied(&d) && HU_PERSON.ends(&d),
            11 => varied(&d[..8]) && (1..=5).contains(&d[8]) && HU_COMPANY.ends(&d[..8]),
            _ => false,
        }))
    }),
    ("ua_rnokpp", |v| proof(digits_exact::<10>(v).is_some_and(|d| varied(&d) && UA_RNOKPP.ends(&d)))),
    ("by_unp", |v| proof(digits_exact::<9>(v).is_some_and(|d| d[0] != 0 && varied(&d) && BY_UNP.ends(&d)))),
    ("vn_mst", |v| {
        proof(digits(v).is_some_and(|d| {
            matches!(d.len(), 10 | 13) && varied(&d[..10]) && d[2..9] != [0; 7] && VN_MST.ends(&d[..10])
        }))
    }),
    ("pl_regon", |v| {
        proof(digits(v).is_some_and(|d| match d.len() {
            9 => varied(&d) && PL_REGON.ends(&d),
            14 => PL_REGON.ends(&d[..9]) && PL_REGON_LONG.ends(&d),
            _ => false,
        }))
    }),
    ("ch_uid", |v| proof(ch_uid(v))),
    ("vin", |v| proof(alnum_exact::<17>(v).is_some_and(|s| vin(&s)))),
];

fn proof(ok: bool) -> Verdict {
    Verdict::proof_if(ok, CHECK_DIGIT)
}

/// One repeated or counting run satisfies some check digits; nobody was issued one.
fn varied(d: &[u8]) -> bool {
    !uniform(d) && !sequential(d)
}

/// What the check digit is of a weighted sum.
#[derive(Clone, Copy)]
enum Make {
    /// The remainder.
    Remainder,
    /// What is missing to the next multiple of the modulus.
    Complement,
    /// The last digit of modulus less remainder.
    ComplementUnits,
}

/// A check digit over the digits before it. `ten` is what stands for a result of ten; `None` where such
/// numbers are not issued.
pub(super) struct Weighted {
    weights: &'static [i32],
    modulus: i32,
    /// Added to the sum.
    offset: i32,
    make: Make,
    ten: Option<i32>,
}

impl Weighted {
    const fn new(weights: &'static [i32], modulus: i32, make: Make, ten: Option<i32>) -> Weighted {
        Weighted { weights, modulus, offset: 0, make, ten }
    }

    /// The remainder of the sum and a constant.
    const fn offset(weights: &'static [i32], modulus: i32, offset: i32, ten: Option<i32>) -> Weighted {
        Weighted { weights, modulus, offset, make: Make::Remainder, ten }
    }

    /// The check digit of `body`; `None` when the format has none for it.
    fn of(&self, body: &[u8]) -> Option<i32> {
        let sum: i32 = body.iter().zip(self.weights).map(|(&d, w)| i32::from(d) * w).sum();
        let rest = (sum + self.offset).rem_euclid(self.modulus);
        let made = match self.make {
            Make::Remainder => rest,
            Make::Complement => (self.modulus - rest) % self.modulus,
            Make::ComplementUnits => (self.modulus - rest) % 10,
        };
        if made == 10 { self.ten } else { Some(made) }
    }

    /// Whether the last digit is the check digit of the others.
    pub(super) fn ends(&self, digits: &[u8]) -> bool {
        let Some((&check, body)) = digits.split_last() else { return false };
        body.len() == self.weights.len() && self.of(body) == Some(i32::from(check))
    }
}

use Make::{Complement, ComplementUnits, Remainder};

const US_ABA: Weighted = Weighted::new(&[3, 7, 1, 3, 7, 1, 3, 7], 10, Complement, None);
const MX_CLABE: Weighted =
    Weighted::new(&[3, 7, 1, 3, 7, 1, 3, 7, 1, 3, 7, 1, 3, 7, 1, 3, 7], 10, Complement, None);
const AR_CBU_BANK: Weighted = Weighted::new(&[7, 1, 3, 9, 7, 1, 3], 10, Complement, None);
const AR_CBU_ACCOUNT: Weighted =
    Weighted::new(&[3, 9, 7, 1, 3, 9, 7, 1, 3, 9, 7, 1, 3], 10, Complement, None);
const EAN13: Weighted = Weighted::new(&[1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3], 10, Complement, None);
const GB_NHS: Weighted = Weighted::new(&[10, 9, 8, 7, 6, 5, 4, 3, 2], 11, Complement, None);
const NL_BSN: Weighted = Weighted::new(&[9, 8, 7, 6, 5, 4, 3, 2], 11, Remainder, None);
const PT_NIF: Weighted = Weighted::new(&[9, 8, 7, 6, 5, 4, 3, 2], 11, Complement, Some(0));
const PL_PESEL: Weighted = Weighted::new(&[1, 3, 7, 9, 1, 3, 7, 9, 1, 3], 10, Complement, None);
const PL_NIP: Weighted = Weighted::new(&[6, 5, 7, 2, 3, 4, 5, 6, 7], 11, Remainder, None);
const GR_AFM: Weighted = Weighted::new(&[256, 128, 64, 32, 16, 8, 4, 2], 11, Remainder, Some(0));
const RO_CNP: Weighted = Weighted::new(&[2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9], 11, Remainder, Some(1));
const AU_TFN: Weighted = Weighted::new(&[1, 4, 3, 7, 5, 8, 6, 9], 11, Remainder, None);
const AU_MEDICARE: Weighted = Weighted::new(&[1, 3, 7, 9, 1, 3, 7, 9], 10, Remainder, None);
const JP_MY_NUMBER: Weighted = Weighted::new(&[6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2], 11, Complement, Some(0));
const TH_ID: Weighted = Weighted::new(&[13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2], 11, ComplementUnits, None);
const AR_CUIT: Weighted = Weighted::new(&[5, 4, 3, 2, 7, 6, 5, 4, 3, 2], 11, Complement, Some(9));
const BR_CPF_1: Weighted = Weighted::new(&[10, 9, 8, 7, 6, 5, 4, 3, 2], 11, Complement, Some(0));
const BR_CPF_2: Weighted = Weighted::new(&[11, 10, 9, 8, 7, 6, 5, 4, 3, 2], 11, Complement, Some(0));
const BR_CNPJ_1: Weighted = Weighted::new(&[5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2], 11, Complement, Some(0));
const BR_CNPJ_2: Weighted = Weighted::new(&[6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2], 11, Complement, Some(0));
const PL_REGON: Weighted = Weighted::new(&[8, 9, 2, 3, 4, 5, 6, 7], 11, Remainder, Some(0));
const PL_REGON_LONG: Weighted =
    Weighted::new(&[2, 4, 8, 5, 0, 9, 7, 3, 6, 1, 2, 4, 8], 11, Remainder, Some(0));
const ES_CCC_BANK: Weighted = Weighted::new(&[4, 8, 5, 10, 9, 7, 3, 6], 11, Complement, Some(1));
const ES_CCC_ACCOUNT: Weighted = Weighted::new(&[1, 2, 4, 8, 5, 10, 9, 7, 3, 6], 11, Complement, Some(1));
const CA_BC_PHN: Weighted = Weighted::new(&[2, 4, 8, 5, 10, 9, 7, 3], 11, Complement, None);
const PE_RUC: Weighted = Weighted::new(&[5, 4, 3, 2, 7, 6, 5, 4, 3, 2], 11, ComplementUnits, None);
const UY_RUT: Weighted = Weighted::new(&[4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2], 11, Complement, None);
/// The numbers of the states that were Yugoslavia.
const EMSO: Weighted = Weighted::new(&[7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2], 11, Complement, Some(0));
const LV_PK: Weighted = Weighted::offset(&[10, 5, 8, 4, 2, 1, 6, 3, 7, 9], 11, 1, Some(0));
const IS_KT: Weighted = Weighted::new(&[3, 2, 7, 6, 5, 4, 3, 2], 11, Complement, None);
const HU_PERSON: Weighted = Weighted::new(&[1, 2, 3, 4, 5, 6, 7, 8, 9], 11, Remainder, None);
pub(super) const HU_COMPANY: Weighted = Weighted::new(&[9, 7, 3, 1, 9, 7, 3], 10, Complement, None);
const UA_RNOKPP: Weighted = Weighted::new(&[-1, 5, 7, 9, 4, 6, 10, 5, 7], 11, Remainder, Some(0));
const BY_UNP: Weighted = Weighted::new(&[29, 23, 19, 17, 13, 7, 5, 3], 11, Remainder, None);
const VN_MST: Weighted = Weighted::offset(&[-31, -29, -23, -19, -17, -13, -7, -5, -3], 11, 10, None);
const CH_UID: Weighted = Weighted::new(&[5, 4, 3, 2, 7, 6, 5, 4], 11, Complement, None);
const RU_INN_10: Weighted = Weighted::new(&[2, 4, 10, 3, 5, 9, 4, 6, 8], 11, Remainder, Some(0));
const RU_INN_11: Weighted = Weighted::new(&[7, 2, 4, 10, 3, 5, 9, 4, 6, 8], 11, Remainder, Some(0));
const RU_INN_12: Weighted = Weighted::new(&[3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8], 11, Remainder, Some(0));
pub(super) const KR_RRN: Weighted =
    Weighted::new(&[2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5], 11, ComplementUnits, None);
pub(super) const NO_FNR_1: Weighted = Weighted::new(&[3, 7, 6, 1, 8, 9, 4, 5, 2], 11, Complement, None);
pub(super) const NO_FNR_2: Weighted = Weighted::new(&[5, 4, 3, 2, 7, 6, 5, 4, 3, 2], 11, Complement, None);
pub(super) const BG_EGN: Weighted = Weighted::new(&[2, 4, 8, 5, 10, 9, 7, 3, 6], 11, Remainder, Some(0));
/// Estonia and Lithuania weigh a second time, shifted, when the first result is ten.
pub(super) const BALTIC_1: Weighted = Weighted::new(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 1], 11, Remainder, None);
pub(super) const BALTIC_2: Weighted = Weighted::new(&[3, 4, 5, 6, 7, 8, 9, 1, 2, 3], 11, Remainder, Some(0));
/// New Zealand does the same with weights of its own.
pub(super) const NZ_IRD_1: Weighted = Weighted::new(&[3, 2, 7, 6, 5, 4, 3, 2], 11, Complement, None);
pub(super) const NZ_IRD_2: Weighted = Weighted::new(&[7, 4, 3, 2, 5, 2, 7, 6], 11, Complement, None);

/// Whether `digits` end in the check digit of `first`, or of `second` where `first` has none.
pub(super) fn two_pass(first: &Weighted, second: &Weighted, digits: &[u8]) -> bool {
    match digits.split_last() {
        Some((_, body)) if first.of(body).is_none() => second.ends(digits),
        _ => first.ends(digits),
    }
}

/// The first two digits name a Federal Reserve district, or what uses one in its stead.
fn aba_district(d: &[u8; 9]) -> bool {
    matches!(d[0] * 10 + d[1], 0..=12 | 21..=32 | 61..=72 | 80)
}

/// Bank and branch, a check digit for them and one for the account, the account.
fn es_ccc(d: &[u8; 20]) -> bool {
    let with_check = |body: &[u8], check: u8| [body, &[check]].concat();
    ES_CCC_BANK.ends(&with_check(&d[..8], d[8])) && ES_CCC_ACCOUNT.ends(&with_check(&d[10..], d[9]))
}

/// A Swiss company: `CHE` and nine digits.
fn ch_uid(value: &[u8]) -> bool {
    let body = value.strip_prefix(b"CHE").or_else(|| value.strip_prefix(b"che"));
    body.and_then(digits_exact::<9>).is_some_and(|d| varied(&d) && CH_UID.ends(&d))
}

fn ar_cbu(d: &[u8; 22]) -> bool {
    AR_CBU_BANK.ends(&d[..8]) && AR_CBU_ACCOUNT.ends(&d[8..])
}

/// Births of 1800 to 2299 add 80, 0, 20, 40 or 60 to the month.
fn pesel_date(d: &[u8; 11]) -> bool {
    let month = d[2] * 10 + d[3];
    dates::exists(u64::from(d[0] * 10 + d[1]), u64::from(month % 20), u64::from(d[4] * 10 + d[5]))
}

/// Eight digits, their check digit, the issue number; a card of a family adds the person's number.
fn au_medicare(d: &[u8]) -> bool {
    matches!(d.len(), 10 | 11) && (2..=6).contains(&d[0]) && varied(&d[..9]) && AU_MEDICARE.ends(&d[..9])
}

fn ru_inn(d: &[u8]) -> bool {
    let checks = match d.len() {
        10 => RU_INN_10.ends(d),
        12 => RU_INN_11.ends(&d[..11]) && RU_INN_12.ends(d),
        _ => false,
    };
    checks && varied(d) && d[..2] != [0, 0]
}

/// A vehicle: letters count by their place in the keyboard-like table of ISO 3779, and the ninth symbol
/// checks. Only North America and China require the check, so a rule should ask for context as well.
fn vin(s: &[u8; 17]) -> bool {
    const WEIGHTS: [u32; 17] = [8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2];
    let mut sum = 0;
    for (&symbol, weight) in s.iter().zip(WEIGHTS) {
        let value = match symbol {
            b'0'..=b'9' => symbol - b'0',
            b'I' | b'O' | b'Q' => return false,
            b'A'..=b'H' => symbol - b'A' + 1,
            b'J'..=b'R' => symbol - b'J' + 1,
            b'S'..=b'Z' => symbol - b'S' + 2,
            _ => return false,
        };
        sum += u32::from(value) * weight;
    }
    let check = match sum % 11 {
        10 => b'X',
        rest => b'0' + rest as u8,
    };
    s[8] == check && !uniform(s)
}
