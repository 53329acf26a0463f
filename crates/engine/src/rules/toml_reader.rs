//! Reads fields out of a TOML table and gathers every problem with its line, instead of stopping at
//! the first as a deserializer would. It knows types and lines, not what a rule means.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::budget::Budget;
use super::error::RuleError;

/// The problems of one file so far.
pub struct Problems<'a> {
    file: &'a str,
    text: &'a str,
    /// What rules are charged to.
    budget: Option<&'a Budget>,
    pub found: Vec<RuleError>,
}

impl<'a> Problems<'a> {
    pub fn new(file: &'a str, text: &'a str) -> Self {
        Problems { file, text, budget: None, found: Vec::new() }
    }

    pub fn charging(self, budget: &'a Budget) -> Self {
        Problems { budget: Some(budget), ..self }
    }

    /// Charges what is written at `at`; false, with a complaint, if it is too much.
    pub fn charge(&mut self, rule: Option<&str>, cost: usize, at: usize) -> bool {
        if self.is_out_of_budget() {
            // That was told.
            return false;
        }
        let charged = self.budget.map_or(Ok(()), |budget| budget.charge(cost));
        charged.map_err(|reason| self.add(rule, at, reason)).is_ok()
    }

    /// Whether the rest need not be read.
    pub fn is_out_of_budget(&self) -> bool {
        self.budget.is_some_and(Budget::is_spent)
    }

    /// The file and line of an offset.
    pub fn place(&self, at: usize) -> String {
        format!("{}:{}", self.file, self.line(at))
    }

    fn line(&self, at: usize) -> usize {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        1 + before.iter().filter(|&&byte| byte == b'\n').count()
    }

    pub fn add(&mut self, rule: Option<&str>, at: usize, reason: impl Into<String>) {
        self.found.push(RuleError {
            file: self.file.to_owned(),
            line: self.line(at),
            rule: rule.map(str::to_owned),
            reason: reason.into(),
        });
    }
}

/// A table being read. Each known field is taken once; [`Fields::finish`] complains about the rest.
pub struct Fields<'t, 'p, 'a> {
    table: &'t DeTable<'t>,
    span: Range<usize>,
    known: Vec<&'static str>,
    pub rule: Option<String>,
    pub problems: &'p mut Problems<'a>,
}

impl<'t, 'p, 'a> Fields<'t, 'p, 'a> {
    pub fn new(
        table: &'t DeTable<'t>,
        span: Range<usize>,
        rule: Option<String>,
        problems: &'p mut Problems<'a>,
    ) -> Self {
        Fields { table, span, known: Vec::new(), rule, problems }
    }

    pub fn complain(&mut self, at: usize, reason: impl Into<String>) {
        self.problems.add(self.rule.as_deref(), at, reason);
    }

    /// As [`Problems::charge`], for the rule that this is.
    pub fn charge(&mut self, cost: usize, at: usize) -> bool {
        self.problems.charge(self.rule.as_deref(), cost, at)
    }

    /// Where the table begins.
    pub fn start(&self) -> usize {
        self.span.start
    }

    /// Where a field's value begins, if it is given.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.table.get(name).map(|value| value.span().start)
    }

    pub fn optional(&mut self, name: &'static str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.known.push(name);
        self.table.get(name)
    }

    fn typed<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        read: impl Fn(&'t DeValue<'t>) -> Option<T>,
    ) -> Option<(T, usize)> {
        let value = self.optional(name)?;
        let at = value.span().start;
        match read(value.get_ref()) {
            Some(read) => Some((read, at)),
            None => {
                self.complain(
                    at,
                    format!("`{name}` is a {}: make it {expected}", value.get_ref().type_str()),
                );
                None
            }
        }
    }

    pub fn text(&mut self, name: &'static str) -> Option<(&'t str, usize)> {
        self.typed(name, "a string", DeValue::as_str)
    }

    pub fn required_text(&mut self, name: &'static str) -> Option<(&'t str, usize)> {
        if !self.table.contains_key(name) {
            self.known.push(name);
            self.complain(self.span.start, format!("`{name}` is missing: add it"));
            return None;
        }
        self.text(name)
    }

    pub fn boolean(&mut self, name: &'static str) -> Option<bool> {
        self.typed(name, "true or false", DeValue::as_bool).map(|(value, _)| value)
    }

    /// A whole number within `allowed`.
    pub fn number(&mut self, name: &'static str, allowed: std::ops::RangeInclusive<i64>) -> Option<i64> {
        let expected = format!("a whole number from {} to {}", allowed.start(), allowed.end());
        let read = |value: &DeValue<'_>| {
            let integer = value.as_integer()?;
            let number = i64::from_str_radix(integer.as_str(), integer.radix()).ok()?;
            allowed.contains(&number).then_some(number)
        };
        self.typed(name, &expected, read).map(|(value, _)| value)
    }

    pub fn decimal(&mut self, name: &'static str) -> Option<f64> {
        let read = |value: &DeValue<'_>| match value {
            DeValue::Float(float) => float.as_str().parse().ok().filter(|number: &f64| number.is_finite()),
            DeValue::Integer(integer) => integer.as_str().parse().ok(),
            _ => None,
        };
        self.typed(name, "a number", read).map(|(value, _)| value)
    }

    /// A list of strings, empty when absent.
    pub fn texts(&mut self, name: &'static str) -> Vec<String> {
        self.texts_at(name).0
    }

    /// The same, and where it is written.
    pub fn texts_at(&mut self, name: &'static str) -> (Vec<String>, usize) {
        let read = |value: &DeValue<'_>| {
            let strings = value.as_array()?.iter().map(|item| item.get_ref().as_str().map(str::to_owned));
            strings.collect::<Option<Vec<_>>>()
        };
        self.typed(name, "a list of strings", read).unwrap_or_default()
    }

    /// Complains about every field that nobody asked for.
    pub fn finish(mut self) {
        for key in self.table.keys() {
            if !self.known.contains(&key.get_ref().as_ref()) {
                let known = self.known.join(", ");
                self.complain(
                    key.span().start,
                    format!("unknown field `{}`: use one of {known}", key.get_ref()),
                );
            }
        }
    }
}
