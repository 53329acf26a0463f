//! What keeps an occurrence out of reports although it was found: a control that somebody set up. It is kept in the
//! book with the occurrence, so that every report can say how much each control hides, and show it to whoever asks.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A control that hides occurrences while they are scanned.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SuppressedBy {
    /// An ignore mark in the line of the value.
    Mark,
    /// An `[[allow]]` of a rule file or of the configuration, by its file, its line and its description.
    Allow(Arc<str>),
}

/// What stands before the name of an `[[allow]]` in the stored form.
const ALLOW: &str = "allow:";
const MARK: &str = "mark";

/// The stored form.
impl fmt::Display for SuppressedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SuppressedBy::Mark => f.write_str(MARK),
            SuppressedBy::Allow(name) => write!(f, "{ALLOW}{name}"),
        }
    }
}

/// A stored control that this version does not know.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a control this version knows")]
pub struct UnknownControl(String);

impl FromStr for SuppressedBy {
    type Err = UnknownControl;

    fn from_str(text: &str) -> Result<Self, UnknownControl> {
        match text.strip_prefix(ALLOW) {
            Some(name) => Ok(SuppressedBy::Allow(name.into())),
            None if text == MARK => Ok(SuppressedBy::Mark),
            None => Err(UnknownControl(text.to_owned())),
        }
    }
}

/// That an occurrence is suppressed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Suppressed {
    pub by: SuppressedBy,
    /// Occurrences of the same rule in the same object that the same control suppresses and this one stands for, itself
    /// included: only the first ones are kept one by one.
    pub count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_survive_their_stored_form() {
        for by in [SuppressedBy::Mark, SuppressedBy::Allow("a b.toml:12 (keys: of tests)".into())] {
            assert_eq!(by.to_string().parse::<SuppressedBy>().unwrap(), by);
        }
        assert!("nonsense".parse::<SuppressedBy>().is_err());
    }
}
