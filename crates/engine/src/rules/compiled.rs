//! The families compiled in, as they are once loaded. Reading their text and deriving triggers from their regexes
//! takes ten times as long as unpacking the outcome, and longer than scanning a small file; so the outcome is kept
//! in `rules/compiled.bin`, made by the test below:
//!
//! ```text
//! UPDATE_SNAPSHOTS=1 cargo test -p domesday-engine compiled
//! ```
//!
//! The build script (`build.rs`) stamps what the outcome follows from, the rules and this folder's code. A file of
//! another stamp is not used, so that rules at work are never others than those that are written down; everything
//! is as before then, and only slower to start.

use domesday_model::{Category, Level, Regulation, RuleSetHash, Score, Sensitivity};

use super::classification::OwnClass;
use super::packed::{Packed, packed_fields, text};
use super::{Context, Lead, Literal, Rule, RuleSource, Shape, Trigger, Validator};
use crate::builtin;
use crate::scoring::Starts;
use crate::validators;

/// Behind the stamp of what it was made from: the hash of the set, and its rules in order of their ids.
static COMPILED: &[u8] = include_bytes!("../../rules/compiled.bin");

/// The stamp of what is compiled in.
const STAMP: &str = env!("RULES_STAMP");

/// The built-in rules and the hash of a set of them alone, if `sources` begin with their families; and the sources
/// that follow.
pub fn split(sources: &[RuleSource]) -> Option<(Vec<Rule>, RuleSetHash, &[RuleSource])> {
    let (families, own) = sources.split_at_checked(builtin::FAMILIES.len())?;
    let is_builtin = families
        .iter()
        .zip(builtin::FAMILIES)
        .all(|(source, &(name, text))| source.name == name && source.text == text);
    if !is_builtin {
        return None;
    }
    let mut packed = COMPILED.strip_prefix(STAMP.as_bytes())?;
    let hash = RuleSetHash(Packed::unpack(&mut packed)?);
    let rules = Vec::unpack(&mut packed)?;
    Some((rules, hash, own))
}

packed_fields!(Rule {
    id,
    description,
    category,
    own_class,
    family,
    regex,
    max_len,
    value_groups,
    trigger,
    lead,
    gate,
    opening,
    run,
    score,
    validators,
    context,
    path,
    tags,
    regions,
    positive,
    negative,
    low_in_code,
    min_level,
});
packed_fields!(Literal { bytes, any_case });
packed_fields!(Lead { min, max });
packed_fields!(Context { words, boost, within, required, anywhere, starts });
packed_fields!(OwnClass { sensitivity, regulations });

/// They follow from the words.
impl Packed for Starts {
    #[cfg(test)]
    fn pack(&self, _: &mut Vec<u8>) {}

    fn unpack(_: &mut &[u8]) -> Option<Starts> {
        Some(Starts::default())
    }
}

impl Packed for Score {
    #[cfg(test)]
    fn pack(&self, out: &mut Vec<u8>) {
        self.0.pack(out);
    }

    fn unpack(from: &mut &[u8]) -> Option<Score> {
        u8::unpack(from).map(Score)
    }
}

/// Types that are words.
macro_rules! packed_words {
    ($($type:ident),+) => {
        $(impl Packed for $type {
            #[cfg(test)]
            fn pack(&self, out: &mut Vec<u8>) {
                super::packed::pack_text(self.as_str(), out);
            }

            fn unpack(from: &mut &[u8]) -> Option<$type> {
                text(from)?.parse().ok()
            }
        })+
    };
}
packed_words!(Category, Regulation, Sensitivity);

impl Packed for Level {
    #[cfg(test)]
    fn pack(&self, out: &mut Vec<u8>) {
        let number: u8 = match self {
            Level::Low => 0,
            Level::Medium => 1,
            Level::High => 2,
        };
        number.pack(out);
    }

    fn unpack(from: &mut &[u8]) -> Option<Level> {
        [Level::Low, Level::Medium, Level::High].get(usize::from(u8::unpack(from)?)).copied()
    }
}

impl Packed for Trigger {
    #[cfg(test)]
    fn pack(&self, out: &mut Vec<u8>) {
        match self {
            Trigger::Literals(literals) => {
                0u8.pack(out);
                literals.pack(out);
            }
            Trigger::Shape(shape) => {
                1u8.pack(out);
                shape.pack(out);
            }
        }
    }

    fn unpack(from: &mut &[u8]) -> Option<Trigger> {
        match u8::unpack(from)? {
            0 => Packed::unpack(from).map(Trigger::Literals),
            1 => Packed::unpack(from).map(Trigger::Shape),
            _ => None,
        }
    }
}

impl Packed for Shape {
    #[cfg(test)]
    fn pack(&self, out: &mut Vec<u8>) {
        let numbers: [u8; 3] = match *self {
            Shape::Digits { min } => [0, min, 0],
            Shape::At => [1, 0, 0],
            Shape::DottedQuad => [2, 0, 0],
            Shape::HexColon { min } => [3, min, 0],
            Shape::WordDigits { min, len } => [4, min, len],
        };
        numbers.pack(out);
    }

    fn unpack(from: &mut &[u8]) -> Option<Shape> {
        let [kind, min, len] = Packed::unpack(from)?;
        match kind {
            0 => Some(Shape::Digits { min }),
            1 => Some(Shape::At),
            2 => Some(Shape::DottedQuad),
            3 => Some(Shape::HexColon { min }),
            4 => Some(Shape::WordDigits { min, len }),
            _ => None,
        }
    }
}

impl Packed for Validator {
    #[cfg(test)]
    fn pack(&self, out: &mut Vec<u8>) {
        match self {
            Validator::Named { name, .. } => {
                0u8.pack(out);
                name.pack(out);
            }
            Validator::Entropy { min } => {
                1u8.pack(out);
                min.pack(out);
            }
            Validator::Stopwords { words, everyday } => {
                2u8.pack(out);
                words.pack(out);
                everyday.pack(out);
            }
            Validator::Distinct { min } => {
                3u8.pack(out);
                min.pack(out);
            }
        }
    }

    fn unpack(from: &mut &[u8]) -> Option<Validator> {
        match u8::unpack(from)? {
            0 => {
                let name = String::unpack(from)?;
                Some(Validator::Named { check: validators::lookup(&name)?, name })
            }
            1 => Some(Validator::Entropy { min: Packed::unpack(from)? }),
            2 => Some(Validator::Stopwords { words: Packed::unpack(from)?, everyday: Packed::unpack(from)? }),
            3 => Some(Validator::Distinct { min: Packed::unpack(from)? }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{RuleSet, sources};

    /// What the file should hold: the outcome of reading the families' text.
    fn from_text() -> (Vec<Rule>, RuleSetHash, Vec<u8>) {
        let read = sources::read(Vec::new(), &RuleSet::builtin_sources()).unwrap();
        assert!(read.allows.is_empty() && read.unselected.is_empty() && read.notes.is_empty());
        let hash = crate::rules::hash::of(&read.rules, &[], &[]);
        let mut packed = STAMP.as_bytes().to_vec();
        hash.0.pack(&mut packed);
        read.rules.pack(&mut packed);
        (read.rules, hash, packed)
    }

    #[test]
    fn the_compiled_rules_are_those_of_the_text() {
        let (rules, hash, packed) = from_text();
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/rules/compiled.bin");
            std::fs::write(path, &packed).unwrap();
            return;
        }
        assert!(
            packed == COMPILED,
            "stale: run `UPDATE_SNAPSHOTS=1 cargo test -p domesday-engine compiled` and commit rules/compiled.bin"
        );
        let (mut sources, user) = (RuleSet::builtin_sources(), user());
        sources.push(user.clone());
        let (unpacked, stored, own) = split(&sources).expect("the file is whole");
        assert_eq!((stored, own), (hash, &[user][..]));
        assert_eq!(unpacked.len(), rules.len());
        for (unpacked, rule) in unpacked.iter().zip(&rules) {
            assert_eq!(format!("{unpacked:?}"), format!("{rule:?}"));
        }
    }

    fn user() -> RuleSource {
        RuleSource { name: "user.toml".into(), text: "[select]\nonly = [\"iban\"]".into() }
    }

    #[test]
    fn other_families_are_read_as_they_are() {
        let mut sources = RuleSet::builtin_sources();
        sources.push(user());
        let set = RuleSet::load(&sources).unwrap();
        assert_eq!(set.rules().len(), 1);
        assert!(set.knows("aws-access-key-id"));
        assert!(split(&sources[1..]).is_none(), "one is missing");
        sources[0].text.push('\n');
        assert!(split(&sources).is_none(), "one is changed");
        assert_eq!(RuleSet::load(&sources).unwrap().hash(), set.hash());
    }
}
