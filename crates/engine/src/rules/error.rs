//! What is wrong with a set of rules: every problem at once, each with its file, line and remedy.

use std::fmt;

/// One problem of one rule file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleError {
    pub file: String,
    /// 1-based.
    pub line: usize,
    /// The rule concerned, when its id could be read.
    pub rule: Option<String>,
    pub reason: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if let Some(rule) = &self.rule {
            write!(f, "rule `{rule}`: ")?;
        }
        f.write_str(&self.reason)
    }
}

/// Every problem found while loading, in the order of files and lines.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct RuleErrors(pub Vec<RuleError>);

impl fmt::Display for RuleErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}
