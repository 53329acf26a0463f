//! Data sources and templates as people define them: from flags or documents to the model's types, each
//! problem told by its field.

pub mod datasource;
pub mod template;

use anyhow::{Result, bail};

/// Bytes of a name, at most.
const NAME_LEN_MAX: usize = 200;

/// A name that can be typed, shown and told from a pattern.
fn check_name(what: &str, name: &str) -> Result<()> {
    let why = match name {
        "" => "is empty",
        name if name.len() > NAME_LEN_MAX => "is longer than 200 bytes",
        name if name.contains('*') => "has a `*`, which stands for any characters in templates",
        name if name.starts_with('-') => "begins with `-`, as options do",
        name if name.chars().any(|c| c.is_control() || c.is_whitespace()) => {
            "has a space or a control character"
        }
        _ => return Ok(()),
    };
    bail!("{what}: name: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_be_typed_and_told_from_patterns() {
        for name in ["shares", "share-eu.1", "filesystem:/srv", "café"] {
            check_name("x", name).unwrap();
        }
        for name in ["", "a*", "a b", "a\n", "-a", &"x".repeat(201)] {
            assert!(check_name("x", name).is_err(), "{name:?}");
        }
    }
}
