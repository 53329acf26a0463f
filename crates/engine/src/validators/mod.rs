//! Validators: what a value must satisfy beyond its shape.
//!
//! A validator is a plain function of the matched bytes, so that a verdict is the same in every run, on
//! every worker. Each family of formats is one file with its own `TABLE`; a new
//! validator is one row there. Validators know nothing of rules, scores or context, and never panic:
//! their input is whatever a hostile file contained.

mod americas;
mod asia;
mod card;
mod crypto;
mod dates;
mod europe;
mod hash;
mod iso7064;
mod luhn;
mod mod97;
mod network;
mod structure;
mod text;
mod token;
mod verhoeff;
mod weighted;

#[cfg(test)]
mod tests;

/// What a validator says of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The value is not of this kind.
    Fail,
    /// The value may be of this kind.
    Pass,
    /// The value passed something that random values would not; the text says what.
    Proof(&'static str),
}

impl Verdict {
    fn pass_if(ok: bool) -> Verdict {
        if ok { Verdict::Pass } else { Verdict::Fail }
    }

    fn proof_if(ok: bool, reason: &'static str) -> Verdict {
        if ok { Verdict::Proof(reason) } else { Verdict::Fail }
    }
}

pub type Check = fn(value: &[u8]) -> Verdict;

/// The reason most checks give: the format carries a check digit, and it is right.
const CHECK_DIGIT: &str = "check digit valid";

type Table = &'static [(&'static str, Check)];

const FAMILIES: &[Table] = &[
    americas::TABLE,
    asia::TABLE,
    card::TABLE,
    crypto::TABLE,
    europe::TABLE,
    iso7064::TABLE,
    luhn::TABLE,
    mod97::TABLE,
    network::TABLE,
    structure::TABLE,
    token::TABLE,
    verhoeff::TABLE,
    weighted::TABLE,
];

/// The validator a rule names, if there is one.
pub fn lookup(name: &str) -> Option<Check> {
    rows().find(|(known, _)| *known == name).map(|(_, check)| *check)
}

/// The names of all validators, in a fixed order.
pub fn names() -> impl Iterator<Item = &'static str> {
    rows().map(|(name, _)| *name)
}

fn rows() -> impl Iterator<Item = &'static (&'static str, Check)> {
    FAMILIES.iter().copied().flatten()
}
