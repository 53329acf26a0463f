//! The content hash of a rule set: over the meaning of every rule and allow, each field length-prefixed, so that
//! two sets share a hash only if they find and say the same. The classification compiled in is left out: it changes
//! nothing that is found, and what was scanned need not be scanned again for a new one.

use std::sync::Arc;

use domesday_model::{RuleSetHash, Sensitivity};

use super::allow::{Allow, Target};
use super::classification::OwnClass;
use super::{Rule, Shape, Trigger, Validator};

struct Canonical(blake3::Hasher);

impl Canonical {
    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    fn number(&mut self, n: u64) {
        self.0.update(&n.to_le_bytes());
    }

    fn list<T: AsRef<[u8]>>(&mut self, items: &[T]) {
        self.number(items.len() as u64);
        for item in items {
            self.bytes(item.as_ref());
        }
    }
}

/// `rules` and `unselected` in order of their ids. What was not selected counts because ignore comments may name it.
pub fn of(rules: &[Rule], unselected: &[Arc<str>], allows: &[Allow]) -> RuleSetHash {
    let mut out = Canonical(blake3::Hasher::new());
    out.number(rules.len() as u64);
    rules.iter().for_each(|rule| add(&mut out, rule));
    out.list(&unselected.iter().map(|id| id.as_bytes()).collect::<Vec<_>>());
    let mut hashes: Vec<_> = allows.iter().map(of_allow).collect();
    hashes.sort_unstable();
    hashes.dedup();
    out.list(&hashes);
    let mut hash = [0; 16];
    hash.copy_from_slice(&out.0.finalize().as_bytes()[..16]);
    RuleSetHash(hash)
}

fn of_allow(allow: &Allow) -> [u8; 32] {
    let mut out = Canonical(blake3::Hasher::new());
    let sorted = |mut texts: Vec<String>| {
        texts.sort();
        texts
    };
    out.list(&sorted(allow.rules.list.iter().map(ToString::to_string).collect()));
    out.list(&allow.values.iter().collect::<Vec<_>>());
    out.list(&sorted(allow.regexes.texts().to_vec()));
    out.number(match allow.target {
        Target::Value => 0,
        Target::Match => 1,
        Target::Line => 2,
    });
    out.list(&sorted(allow.stopwords.texts().to_vec()));
    out.list(&sorted(allow.paths.texts().to_vec()));
    out.list(&allow.fingerprints.iter().collect::<Vec<_>>());
    out.number(allow.all.into());
    out.0.finalize().into()
}

fn add(out: &mut Canonical, rule: &Rule) {
    out.bytes(rule.id.as_bytes());
    out.bytes(rule.description.as_bytes());
    out.bytes(rule.category.as_str().as_bytes());
    out.bytes(rule.regex.as_bytes());
    out.number(rule.score.0.into());
    out.bytes(rule.min_level.as_str().as_bytes());
    out.number(rule.low_in_code.into());
    out.number(rule.value_groups.start as u64);
    out.number(rule.value_groups.end as u64);
    out.number(rule.lead.min as u64);
    out.number(rule.lead.max as u64);
    match &rule.trigger {
        Trigger::Literals(literals) => {
            out.number(literals.len() as u64);
            for literal in literals {
                out.number(literal.any_case.into());
                out.bytes(&literal.bytes);
            }
        }
        Trigger::Shape(shape) => {
            let (name, min) = match shape {
                Shape::Digits { min } => ("digits", *min),
                Shape::At => ("at", 0),
                Shape::DottedQuad => ("dotted_quad", 0),
                Shape::HexColon { min } => ("hex_colon", *min),
                // The length is told from the regex.
                Shape::WordDigits { min, .. } => ("word_digits", *min),
            };
            out.number(u64::MAX);
            out.bytes(name.as_bytes());
            out.number(min.into());
        }
    }
    out.number(rule.validators.len() as u64);
    for validator in &rule.validators {
        match validator {
            Validator::Named { name, .. } => out.bytes(name.as_bytes()),
            Validator::Entropy { min } => {
                out.bytes(b"entropy:");
                out.number(min.to_bits());
            }
            Validator::Stopwords { words, everyday } => {
                out.bytes(if *everyday { b"stopwords:" } else { b"placeholders:" });
                out.list(words);
            }
            Validator::Distinct { min } => {
                out.bytes(b"distinct:");
                out.number(*min as u64);
            }
        }
    }
    match &rule.context {
        None => out.number(0),
        Some(context) => {
            out.number(1);
            out.number(context.words.len() as u64);
            context.words.iter().for_each(|word| out.bytes(word.as_bytes()));
            out.number(context.boost.into());
            out.number(context.within as u64);
            out.number(context.required.into());
            out.number(context.anywhere.into());
        }
    }
    out.list(rule.path.texts());
    out.list(&rule.tags);
    out.list(&rule.regions);
    out.list(&rule.positive);
    out.list(&rule.negative);
    let OwnClass { sensitivity, regulations } = &rule.own_class;
    out.bytes(sensitivity.map_or("", Sensitivity::as_str).as_bytes());
    match regulations {
        None => out.number(u64::MAX),
        Some(names) => out.list(&names.iter().map(|name| name.as_str()).collect::<Vec<_>>()),
    }
}
