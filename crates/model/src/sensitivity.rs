//! How much harm a disclosed value does, whoever found it and however sure that is.
//!
//! Confidence ([`Level`](crate::Level)) tells whether a value is what a rule says; sensitivity tells what it would
//! mean if it is. The two are never mixed into one number.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::finding::UnknownWord;

/// The harm of a disclosure, least first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sensitivity {
    /// Public by nature, or of use only with something else.
    Low,
    /// Tells something of a person, or opens little.
    Moderate,
    /// Does harm on its own.
    High,
    /// Opens everything behind it, or must not be kept at all.
    Critical,
}

impl Sensitivity {
    pub const ALL: &'static [Sensitivity] =
        &[Sensitivity::Low, Sensitivity::Moderate, Sensitivity::High, Sensitivity::Critical];

    pub fn as_str(self) -> &'static str {
        match self {
            Sensitivity::Low => "low",
            Sensitivity::Moderate => "moderate",
            Sensitivity::High => "high",
            Sensitivity::Critical => "critical",
        }
    }
}

impl FromStr for Sensitivity {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        Sensitivity::ALL.iter().copied().find(|level| level.as_str() == word).ok_or_else(|| UnknownWord {
            word: word.to_owned(),
            kind: "sensitivity",
            choices: Sensitivity::ALL.iter().map(|level| level.as_str()).collect::<Vec<_>>().join(", "),
        })
    }
}

impl fmt::Display for Sensitivity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_in_order_and_read_back() {
        assert!(Sensitivity::ALL.is_sorted());
        for level in Sensitivity::ALL {
            assert_eq!(level.as_str().parse(), Ok(*level));
        }
        let error = "secret".parse::<Sensitivity>().unwrap_err().to_string();
        assert_eq!(error, "`secret` is not a sensitivity: use one of low, moderate, high, critical");
    }
}
