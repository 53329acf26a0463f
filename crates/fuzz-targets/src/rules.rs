//! Rule files.

use domesday_engine::{RuleSet, RuleSource};

pub fn load(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let source = RuleSource { name: "fuzz.toml".to_owned(), text: text.to_owned() };
    match RuleSet::load(&[source]) {
        Ok(rules) => assert!(rules.sources().len() == 1),
        Err(errors) => assert!(!errors.to_string().is_empty(), "a refusal says why"),
    }
}
