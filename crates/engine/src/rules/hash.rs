//! The content hash of a rule set: over the meaning of every rule, each field length-prefixed, so that
//! two sets share a hash only if they find and say the same.

use domesday_model::RuleSetHash;

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

/// `rules` in order of their ids.
pub fn of(rules: &[Rule]) -> RuleSetHash {
    let mut out = Canonical(blake3::Hasher::new());
    rules.iter().for_each(|rule| add(&mut out, rule));
    let mut hash = [0; 16];
    hash.copy_from_slice(&out.0.finalize().as_bytes()[..16]);
    RuleSetHash(hash)
}

fn add(out: &mut Canonical, rule: &Rule) {
    out.bytes(rule.id.as_bytes());
    out.bytes(rule.description.as_bytes());
    out.bytes(rule.category.as_str().as_bytes());
    out.bytes(rule.regex.as_bytes());
    out.number(rule.score.0.into());
    out.bytes(rule.min_level.as_str().as_bytes());
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
            Validator::Stopwords { words } => {
                out.bytes(b"stopwords:");
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
        }
    }
    out.list(&rule.tags);
    out.list(&rule.regions);
    out.list(&rule.positive);
    out.list(&rule.negative);
}
