//! Findings: what was recognised, where, and how sure we are.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::fingerprint::Fingerprint;
use crate::key::{ObjectKey, write_escaped};
use crate::suppression::Suppressed;

/// What kind of sensitive data a rule recognises.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    Secret,
    Personal,
    Payment,
    Health,
    Network,
    Marking,
}

impl Category {
    pub const ALL: &'static [Category] = &[
        Category::Secret,
        Category::Personal,
        Category::Payment,
        Category::Health,
        Category::Network,
        Category::Marking,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Category::Secret => "secret",
            Category::Personal => "personal",
            Category::Payment => "payment",
            Category::Health => "health",
            Category::Network => "network",
            Category::Marking => "marking",
        }
    }
}

/// A stored or given word that names nothing of its kind.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{word}` is not a {kind}: use one of {choices}")]
pub struct UnknownWord {
    pub word: String,
    pub kind: &'static str,
    pub choices: String,
}

impl FromStr for Category {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        Category::ALL.iter().copied().find(|c| c.as_str() == word).ok_or_else(|| UnknownWord {
            word: word.to_owned(),
            kind: "category",
            choices: Category::ALL.iter().map(|c| c.as_str()).collect::<Vec<_>>().join(", "),
        })
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Confidence from 0 to 100.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Score(pub u8);

impl Score {
    pub const MAX: Score = Score(100);
    /// From here on a finding is of medium confidence.
    pub const MEDIUM: Score = Score(50);
    /// From here on a finding is of high confidence.
    pub const HIGH: Score = Score(80);

    pub fn level(self) -> Level {
        match self {
            s if s >= Score::HIGH => Level::High,
            s if s >= Score::MEDIUM => Level::Medium,
            _ => Level::Low,
        }
    }
}

/// A score in words; medium and above are reported by default.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Low,
    Medium,
    High,
}

impl Level {
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Low => "low",
            Level::Medium => "medium",
            Level::High => "high",
        }
    }

    /// The lowest score of this level.
    pub fn floor(self) -> Score {
        match self {
            Level::Low => Score(0),
            Level::Medium => Score::MEDIUM,
            Level::High => Score::HIGH,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Bytes of an object (of its unpacked, undecoded content): `start..end`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Span {
    pub start: u64,
    pub end: u64,
}

/// Where a span starts for a person: both 1-based, the column in Unicode code points.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Position {
    pub line: u64,
    pub column: u64,
}

/// One step into a container: the entry's name and its ordinal, so that two entries of one name are
/// two objects.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NestedStep {
    pub name: Vec<u8>,
    pub ordinal: u32,
}

/// Which object: its key in the data source, and the way into it through containers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Location {
    pub key: ObjectKey,
    pub nested: Vec<NestedStep>,
}

impl Location {
    /// The nested path as stored and hashed: per step its ordinal and its name, length-prefixed, so
    /// that no name can imitate a separator.
    pub fn nested_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for step in &self.nested {
            out.extend_from_slice(&step.ordinal.to_be_bytes());
            out.extend_from_slice(&(step.name.len() as u32).to_be_bytes());
            out.extend_from_slice(&step.name);
        }
        out
    }

    /// The reverse of [`Location::nested_bytes`]; `None` when the bytes are not of that form.
    pub fn parse_nested(mut bytes: &[u8]) -> Option<Vec<NestedStep>> {
        let mut steps = Vec::new();
        while !bytes.is_empty() {
            let (ordinal, rest) = bytes.split_first_chunk::<4>()?;
            let (len, rest) = rest.split_first_chunk::<4>()?;
            let (name, rest) = rest.split_at_checked(u32::from_be_bytes(*len) as usize)?;
            steps.push(NestedStep { name: name.to_vec(), ordinal: u32::from_be_bytes(*ordinal) });
            bytes = rest;
        }
        Some(steps)
    }
}

/// `backup.zip!/src/config.tar.gz!/app/.env`
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)?;
        for step in &self.nested {
            f.write_str("!/")?;
            write_escaped(f, &step.name)?;
        }
        Ok(())
    }
}

/// One occurrence, as the scan core hands it on: everything the book keeps of it, and never the value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FindingDraft {
    pub location: Arc<Location>,
    pub rule: Arc<str>,
    pub category: Category,
    pub score: Score,
    /// Why the score is what it is, in words, best reason first; separated by `; `.
    pub reasons: String,
    pub fingerprint: Fingerprint,
    pub preview: String,
    pub span: Span,
    pub position: Position,
    /// How the bytes of the span were decoded from the object, outermost first, such as `gzip`, `utf-16le`.
    pub decoding: Arc<[Cow<'static, str>]>,
    /// The row it is in, for a table: its primary key, or its number. Never a value that is itself a finding.
    pub row: Option<Box<str>>,
    /// Present exactly if a control keeps it out of reports.
    pub suppressed: Option<Suppressed>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_paths_survive_storage_and_show_the_whole_way_in() {
        let step = |name: &str, ordinal| NestedStep { name: name.into(), ordinal };
        let location = Location {
            key: ObjectKey::new(*b"backup.zip"),
            nested: vec![step("src/config.tar.gz", 3), step("app/.env", 0)],
        };
        assert_eq!(location.to_string(), "backup.zip!/src/config.tar.gz!/app/.env");
        assert_eq!(Location::parse_nested(&location.nested_bytes()), Some(location.nested.clone()));
        assert_eq!(Location::parse_nested(&[0, 0, 0]), None);
    }

    #[test]
    fn levels_divide_the_scores() {
        assert_eq!(Score(49).level(), Level::Low);
        assert_eq!(Score(50).level(), Level::Medium);
        assert_eq!(Score(80).level(), Level::High);
    }
}
