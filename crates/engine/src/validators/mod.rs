//! Validators: what a value must satisfy beyond its shape.
//!
//! A validator is a plain function of the matched bytes, so that a verdict is the same in every run, on
//! every worker. Each family of formats is one file with its own `TABLE`; a new
//! validator is one row there. Validators know nothing of rules, scores or context, and never panic:
//! their input is whatever a hostile file contained.

mod americas;
mod asia;
mod bank;
mod base64;
mod card;
mod crypto;
mod dates;
mod europe;
mod hash;
mod iso7064;
mod json;
mod jwt;
mod keys;
mod luhn;
mod mod97;
mod names;
mod network;
mod payload;
mod person;
mod phone;
mod phone_plans;
mod structure;
mod text;
mod token;
mod vat;
mod verhoeff;
mod weighted;

pub(crate) use structure::is_sentence;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// What a validator says of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The value is not of this kind.
    Fail,
    /// The value has the form, but was made up for documentation; the text says how it is known.
    MadeUp(&'static str),
    /// The value has the form, but something speaks against it; the text says what.
    Doubt(&'static str),
    /// The value may be of this kind.
    Pass,
    /// As `Pass`; the text says what was read in the value.
    Noted(Arc<str>),
    /// The value passed something that random values would not; the text says what.
    Proof(&'static str),
    /// As `Proof`; the text says what was read in the value.
    Read(Arc<str>),
}

impl Verdict {
    fn pass_if(ok: bool) -> Verdict {
        if ok { Verdict::Pass } else { Verdict::Fail }
    }

    fn doubt_unless(ok: bool, reason: &'static str) -> Verdict {
        if ok { Verdict::Pass } else { Verdict::Doubt(reason) }
    }

    fn proof_if(ok: bool, reason: &'static str) -> Verdict {
        if ok { Verdict::Proof(reason) } else { Verdict::Fail }
    }

    /// The check digit of a format that is known to be issued without a right one now and then.
    fn proof_or_doubt(form: bool, check: bool) -> Verdict {
        match (form, check) {
            (false, _) => Verdict::Fail,
            (true, true) => Verdict::Proof(CHECK_DIGIT),
            (true, false) => Verdict::Doubt("check digit wrong"),
        }
    }

    /// A right check digit proves a number of the ranges in use; outside of them it says less.
    fn proof_in_range(check: bool, in_range: bool) -> Verdict {
        match (check, in_range) {
            (false, _) => Verdict::Fail,
            (true, true) => Verdict::Proof(CHECK_DIGIT),
            (true, false) => Verdict::Pass,
        }
    }
}

pub type Check = fn(value: &[u8]) -> Verdict;

/// The reason most checks give: the format carries a check digit, and it is right.
const CHECK_DIGIT: &str = "check digit valid";

type Table = &'static [(&'static str, Check)];

const FAMILIES: &[Table] = &[
    americas::TABLE,
    asia::TABLE,
    bank::TABLE,
    card::TABLE,
    crypto::TABLE,
    europe::TABLE,
    iso7064::TABLE,
    jwt::TABLE,
    keys::TABLE,
    luhn::TABLE,
    mod97::TABLE,
    network::TABLE,
    payload::TABLE,
    person::TABLE,
    phone::TABLE,
    structure::TABLE,
    token::TABLE,
    vat::TABLE,
    verhoeff::TABLE,
    weighted::TABLE,
];

/// The validator a rule names, if there is one.
pub fn lookup(name: &str) -> Option<Check> {
    static BY_NAME: LazyLock<HashMap<&str, Check>> = LazyLock::new(|| rows().copied().collect());
    BY_NAME.get(name).copied()
}

/// The names of all validators, in a fixed order.
pub fn names() -> impl Iterator<Item = &'static str> {
    rows().map(|(name, _)| *name)
}

fn rows() -> impl Iterator<Item = &'static (&'static str, Check)> {
    FAMILIES.iter().copied().flatten()
}
