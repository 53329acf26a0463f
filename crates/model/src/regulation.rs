//! The name of a law or standard that a finding concerns, such as `GDPR`.
//!
//! A name and no more: which rules it concerns, and what its full title is, is data of the engine. The set is open,
//! so that rules of one's own can name a policy of one's own; only the form is checked.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Bytes of a name, at most: it is a tag, not a title.
pub const REGULATION_LEN_MAX: usize = 32;

/// A word of upper-case letters and digits, with single `-` between.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Regulation(Arc<str>);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "`{0}` cannot name a regulation: use letters, digits and single `-`, at most {REGULATION_LEN_MAX} of them, as in PCI-DSS"
)]
pub struct BadRegulation(String);

impl Regulation {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Case does not matter in what is given; a name is kept in upper case.
impl FromStr for Regulation {
    type Err = BadRegulation;

    fn from_str(word: &str) -> Result<Self, BadRegulation> {
        let part = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if word.len() > REGULATION_LEN_MAX || !word.split('-').all(part) {
            return Err(BadRegulation(word.to_owned()));
        }
        Ok(Regulation(word.to_ascii_uppercase().into()))
    }
}

impl TryFrom<String> for Regulation {
    type Error = BadRegulation;

    fn try_from(word: String) -> Result<Self, BadRegulation> {
        word.parse()
    }
}

impl From<Regulation> for String {
    fn from(regulation: Regulation) -> String {
        regulation.as_str().to_owned()
    }
}

impl fmt::Display for Regulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_in_upper_case() {
        for (given, name) in [("GDPR", "GDPR"), ("pci-dss", "PCI-DSS"), ("152-fz", "152-FZ")] {
            assert_eq!(given.parse::<Regulation>().unwrap().as_str(), name);
        }
        for bad in ["", "-", "PCI--DSS", "PCI DSS", "a;b", "ÄÖ", &"A".repeat(REGULATION_LEN_MAX + 1)] {
            assert_eq!(bad.parse::<Regulation>(), Err(BadRegulation(bad.to_owned())), "{bad}");
        }
    }
}
