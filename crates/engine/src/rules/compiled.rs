//! The built-in rules in packed form. The build script (`build.rs`) reads `rules/*.toml` with the code of this folder and
//! packs the outcome; the engine unpacks it at start-up. Unpacking takes a tenth of the time that it takes to read the
//! text and to derive triggers from the regexes, which is longer than the scan of a small file.

use domesday_model::{Category, Level, Regulation, RuleSetHash, Score, Sensitivity};

use super::budget::Budget;
use super::classification::OwnClass;
use super::packed::{Packed, packed_fields, text};
use super::sources::{self, Loaded};
use super::{Context, Lead, Literal, Rule, RuleErrors, RuleSource, Shape, Trigger, Validator, hash};
use crate::builtin;
use crate::scoring::Starts;
use crate::validators;

/// The rules of built-in families, and their packed form: the hash of a set of them alone, and the rules in order of
/// their ids.
#[allow(dead_code, reason = "only the build script and tests pack")]
pub fn pack_families(families: &[RuleSource]) -> Result<(Vec<Rule>, Vec<u8>), RuleErrors> {
    let Loaded { rules, unselected, allows, notes } =
        sources::read(Vec::new(), families, &Budget::new(usize::MAX))?;
    assert!(
        unselected.is_empty() && allows.is_empty() && notes.is_empty(),
        "built-in families hold `[[rule]]` only, neither `[[allow]]` nor `[select]`"
    );
    let mut packed = Vec::new();
    hash::of(&rules, &[], &[]).0.pack(&mut packed);
    rules.pack(&mut packed);
    Ok((rules, packed))
}

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
    let mut packed = builtin::RULES;
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
    fn pack(&self, _: &mut Vec<u8>) {}

    fn unpack(_: &mut &[u8]) -> Option<Starts> {
        Some(Starts::default())
    }
}

impl Packed for Score {
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
    use crate::rules::RuleSet;

    #[test]
    fn the_compiled_rules_are_those_of_the_text() {
        let mut sources = RuleSet::builtin_sources();
        let (rules, packed) = pack_families(&sources).unwrap();
        assert!(packed == builtin::RULES, "the build script packs what the text says");
        let hash = hash::of(&rules, &[], &[]);
        let user = user();
        sources.push(user.clone());
        let (unpacked, stored, own) = split(&sources).expect("the packed form is whole");
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
