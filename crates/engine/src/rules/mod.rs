//! Rules: what the engine looks for, as data. This module owns their form, their checks when loaded
//! and their content hash; it must not know how a chunk is searched.

mod derive;
mod error;
pub(crate) mod gate;
mod hash;
mod load;
mod pattern;
pub(crate) mod rarity;
mod toml_reader;

use std::sync::Arc;

use domesday_model::{Category, Level, RuleSetHash, Score};

pub use error::{RuleError, RuleErrors};

use crate::builtin;
use crate::validators::Check;
use gate::Gate;

/// One file of rules, as text: what travels with a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleSource {
    /// The file's name, for error messages and as the family of its rules.
    pub name: String,
    /// TOML.
    pub text: String,
}

/// A literal whose occurrence makes a rule worth a look.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Literal {
    /// In lower case when `any_case`.
    pub bytes: Vec<u8>,
    pub any_case: bool,
}

/// A form that makes a rule without a literal worth a look. See `prefilter::shapes` for what each
/// means exactly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Shape {
    /// At least `min` digits, with single separators (space, `-`, `.`, `/`) allowed between them.
    Digits { min: u8 },
    /// `@` between two bytes that a mail address can have there.
    At,
    /// Four groups of one to three digits with dots between.
    DottedQuad,
    /// Hexadecimal groups with at least `min` colons.
    HexColon { min: u8 },
    /// One word of at least `len` letters and digits, with at least `min` digits and at least one letter.
    WordDigits { min: u8, len: u8 },
}

/// What the prefilter looks for on behalf of a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trigger {
    /// Any of these; every match contains one of them.
    Literals(Vec<Literal>),
    Shape(Shape),
}

/// How far before its trigger a match may start, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lead {
    pub min: usize,
    pub max: usize,
}

/// A check of a matched value. All of a rule's validators must pass.
#[derive(Clone, Debug)]
pub enum Validator {
    /// A check from `validators`, by its name there.
    Named { name: String, check: Check },
    /// Shannon entropy of at least so many bits per byte.
    Entropy { min: f64 },
    /// None of the words of placeholders, besides those that every secret is checked for.
    Stopwords { words: Vec<String> },
    /// At least so many different bytes.
    Distinct { min: usize },
}

/// Words that make a match more likely when they stand near it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Context {
    /// In lower case; a space stands for any one separator.
    pub words: Vec<Arc<str>>,
    pub boost: u8,
    /// Bytes before the value's start and after its end in which a word counts.
    pub within: usize,
    /// Without a word near, the score stays low.
    pub required: bool,
}

/// One rule, checked.
#[derive(Clone, Debug)]
pub struct Rule {
    pub id: Arc<str>,
    pub description: String,
    pub category: Category,
    /// The name of the file it came from.
    pub family: Arc<str>,
    pub regex: String,
    /// No match is longer, in bytes.
    pub max_len: usize,
    /// Index of the capture group `value`, if there is one.
    pub value_group: Option<usize>,
    pub trigger: Trigger,
    pub lead: Lead,
    /// What a shape's place must have besides.
    pub(crate) gate: Gate,
    /// The base of the score.
    pub score: Score,
    pub validators: Vec<Validator>,
    pub context: Option<Context>,
    pub tags: Vec<String>,
    pub regions: Vec<String>,
    pub positive: Vec<String>,
    pub negative: Vec<String>,
    /// The level that the positive examples reach.
    pub min_level: Level,
}

/// Rules that passed every check, in order of their ids, so that the order of files never matters.
#[derive(Clone, Debug)]
pub struct RuleSet {
    rules: Vec<Rule>,
    sources: Vec<RuleSource>,
    hash: RuleSetHash,
}

impl RuleSet {
    /// The families compiled in.
    pub fn builtin() -> Result<RuleSet, RuleErrors> {
        RuleSet::load(&RuleSet::builtin_sources())
    }

    pub fn builtin_sources() -> Vec<RuleSource> {
        let source =
            |&(name, text): &(&str, &str)| RuleSource { name: name.to_owned(), text: text.to_owned() };
        builtin::FAMILIES.iter().map(source).collect()
    }

    /// Reads and checks every rule. Nothing is loaded unless everything is right; the error lists all
    /// that is not.
    pub fn load(sources: &[RuleSource]) -> Result<RuleSet, RuleErrors> {
        let rules = load::load(sources)?;
        let hash = hash::of(&rules);
        Ok(RuleSet { rules, sources: sources.to_vec(), hash })
    }

    /// Over what the rules say, whatever the comments, the layout and the order of files.
    pub fn hash(&self) -> RuleSetHash {
        self.hash
    }

    /// The text it was loaded from.
    pub fn sources(&self) -> &[RuleSource] {
        &self.sources
    }

    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The same rules, each changed.
    #[cfg(test)]
    pub(crate) fn map(mut self, change: impl FnMut(&mut Rule)) -> RuleSet {
        self.rules.iter_mut().for_each(change);
        self
    }

    pub fn get(&self, id: &str) -> Option<&Rule> {
        let at = self.rules.binary_search_by(|rule| (*rule.id).cmp(id)).ok()?;
        Some(&self.rules[at])
    }
}

/// The syntax tree of a loaded rule's regex, to compile.
pub(crate) fn compile_hir(rule: &Rule) -> regex_syntax::hir::Hir {
    pattern::read(&rule.regex).expect("a loaded rule's regex parses")
}

#[cfg(test)]
mod tests;
