//! What the engine says about a text, as the evaluation sees it: places, rules and scores, sorted into what people
//! expect of a finding. It must not know labels.

use std::ops::Range;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use domesday_engine::{Chunk, Rule, RuleSet, Scanner, Scratch, Validator};
use domesday_model::{Category, Score};

/// Checks that prove nothing about an identifier: dictionaries and shapes.
const NO_PROOF: &[&str] = &["mixed", "person_known", "person_name", "person_name_first"];
/// Rules with a level of their own in source code, where such addresses are by the thousand.
const ADDRESSES: &[&str] = &["email-address", "ipv4-address", "ipv6-address"];

/// What a finding claims.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Claim {
    Secret,
    /// A value whose check digit, range or plan was verified.
    Validated,
    /// An e-mail or IP address.
    Address,
    Other,
}

impl Claim {
    pub fn of(rule: &Rule) -> Claim {
        let proves = |validator: &Validator| match validator {
            Validator::Named { name, .. } => !NO_PROOF.contains(&name.as_str()),
            _ => false,
        };
        if rule.category == Category::Secret {
            Claim::Secret
        } else if ADDRESSES.contains(&&*rule.id) {
            Claim::Address
        } else if rule.validators.iter().any(proves) {
            Claim::Validated
        } else {
            Claim::Other
        }
    }
}

#[derive(Clone, Debug)]
pub struct Found {
    pub rule: Arc<str>,
    pub claim: Claim,
    pub span: Range<usize>,
    pub score: Score,
}

impl Found {
    /// Whether it is reported by default.
    pub fn is_shown(&self) -> bool {
        self.score >= Score::MEDIUM
    }
}

/// The built-in rules.
pub struct Engine {
    scanner: Scanner,
    scratch: Scratch,
}

impl Engine {
    pub fn new() -> Result<Engine> {
        let rules = RuleSet::builtin().map_err(|errors| anyhow!("{errors}"))?;
        Ok(Engine { scanner: Scanner::new(Arc::new(rules)), scratch: Scratch::new() })
    }

    pub fn rules(&self) -> &RuleSet {
        self.scanner.rules()
    }

    /// Everything found, whatever its score.
    pub fn scan(&mut self, text: &str, path: &str) -> Vec<Found> {
        let mut matches = Vec::new();
        let chunk = Chunk::whole(text.as_bytes(), path.as_bytes());
        self.scanner.scan(&chunk, &mut self.scratch, &mut matches);
        let rules = self.scanner.rules().rules();
        let found = matches.into_iter().map(|found| {
            let rule = &rules[found.rule as usize];
            Found { rule: rule.id.clone(), claim: Claim::of(rule), span: found.span, score: found.score }
        });
        found.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_sorted_by_what_they_claim() {
        let engine = Engine::new().unwrap();
        let check = |rule: &str, expect: Claim| {
            assert_eq!(Claim::of(engine.rules().get(rule).expect(rule)), expect, "{rule}");
        };
        check("aws-access-key-id", Claim::Secret);
        check("payment-card", Claim::Validated);
        check("phone-international", Claim::Validated);
        check("email-address", Claim::Address);
        check("ipv6-address", Claim::Address);
        check("person-age", Claim::Other);
        check("person-name-labelled", Claim::Other);
    }
}
