//! Rules: what the engine looks for, as data. This module owns their form, their checks when loaded
//! and their content hash; it must not know how a chunk is searched.

pub(crate) mod allow;
mod allowed_texts;
mod budget;
mod classification;
mod compiled;
pub(crate) mod derive;
mod error;
pub(crate) mod gate;
mod gitleaks;
mod hash;
mod load;
pub(crate) mod opening;
mod packed;
pub(crate) mod pattern;
mod provider;
pub(crate) mod rarity;
pub(crate) mod run;
mod search;
mod select;
mod sources;
mod toml_reader;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use domesday_model::{Category, Level, RuleSetHash, Score, SuppressedBy};

pub use classification::{Class, Ground};
#[allow(unused_imports, reason = "only the build script packs")]
pub use compiled::pack_families;
pub use error::{RuleError, RuleErrors};
pub use search::Patterns;

use crate::builtin;
use crate::scoring::Starts;
use crate::validators::Check;
use allow::Allows;
use budget::{Budget, COST_MAX};
use classification::OwnClass;
use gate::Gate;
use opening::Opening;
use run::Run;
use sources::Loaded;

/// One file of rules, as text: what travels with a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleSource {
    /// The file's name, for error messages and as the family of its rules.
    pub name: String,
    /// TOML, in our format or that of Gitleaks.
    pub text: String,
}

impl RuleSource {
    /// The path of a file that it adds to, which is another source then, of that name.
    pub fn base(&self) -> Option<PathBuf> {
        gitleaks::base_of(self)
    }
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
    /// Any of these; every match contains one of them. None at all means that the path of an object is enough.
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
    /// No placeholder and none of `words`; nor everyday words alone, or else only not the name of its own field,
    /// so that a weak password passes.
    Stopwords { words: Vec<String>, everyday: bool },
    /// At least so many different bytes.
    Distinct { min: usize },
}

impl Validator {
    /// Whether a value that it refuses has the form all the same, and only looks made up: letters or digits
    /// alone are mostly a filler.
    pub(crate) fn tells_made_up(&self) -> bool {
        !matches!(self, Validator::Named { name, .. } if name != "mixed")
    }
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
    /// A word counts as a part of others, too, and within the value.
    pub anywhere: bool,
    /// Where its words may start, made when it is first asked for.
    pub(crate) starts: Starts,
}

/// One rule, checked.
#[derive(Clone, Debug)]
pub struct Rule {
    pub id: Arc<str>,
    pub description: String,
    pub category: Category,
    /// What it says itself of how sensitive its values are.
    pub(crate) own_class: OwnClass,
    /// The name of the file it came from.
    pub family: Arc<str>,
    pub regex: String,
    /// No match is longer, in bytes. A regex that says so itself is of a given rule; an imported one may be without an
    /// end if its trigger has one place, because nothing is searched beyond.
    pub max_len: usize,
    /// Capture groups of which the first that is not empty is the value; without any, the match is.
    pub value_groups: Range<usize>,
    pub trigger: Trigger,
    pub lead: Lead,
    /// What a shape's place must have besides.
    pub(crate) gate: Arc<Gate>,
    /// How every match begins.
    pub(crate) opening: Opening,
    /// What every match contains.
    pub(crate) run: Option<Run>,
    /// The base of the score.
    pub score: Score,
    pub validators: Vec<Validator>,
    pub context: Option<Context>,
    /// Where it applies: to objects whose path one of these matches, or to all if there are none.
    pub path: Patterns,
    pub tags: Vec<String>,
    pub regions: Vec<String>,
    pub positive: Vec<String>,
    pub negative: Vec<String>,
    /// In source code and its documentation the score stays low: there its matches are contacts of authors and
    /// constants, by the thousand.
    pub low_in_code: bool,
    /// The level that the positive examples reach.
    pub min_level: Level,
}

impl Rule {
    /// Whether it is about objects of certain paths, whatever is in them.
    pub fn is_of_path_only(&self) -> bool {
        matches!(&self.trigger, Trigger::Literals(literals) if literals.is_empty())
    }

    /// Where a context word of a match with its trigger at `at` may begin, in a text of `len` bytes.
    pub(crate) fn reach(&self, at: usize, len: usize) -> Range<usize> {
        let within = self.context.as_ref().map_or(0, |context| context.within);
        let end = at.saturating_sub(self.lead.min) + self.max_len + within;
        at.saturating_sub(self.lead.max + within)..end.min(len)
    }
}

/// Rules that passed every check, in order of their ids, so that the order of files never matters.
#[derive(Clone, Debug)]
pub struct RuleSet {
    rules: Vec<Rule>,
    /// Ids of rules that were not selected, in order.
    unselected: Vec<Arc<str>>,
    allows: Allows,
    notes: Vec<String>,
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
        let (known, known_hash, own) = match compiled::split(sources) {
            Some((rules, hash, own)) => (rules, Some(hash), own),
            None => (Vec::new(), None, sources),
        };
        let Loaded { rules, unselected, allows, notes } = sources::read(known, own, &Budget::new(COST_MAX))?;
        let known_hash = known_hash.filter(|_| own.is_empty());
        let hash = known_hash.unwrap_or_else(|| hash::of(&rules, &unselected, &allows));
        let allows = Allows::new(allows, &rules);
        Ok(RuleSet { rules, unselected, allows, notes, sources: sources.to_vec(), hash })
    }

    /// The same rules under the name of another set, which says the same in another form: as it is kept by others.
    #[must_use]
    pub fn kept_as(self, kept: &RuleSet) -> RuleSet {
        RuleSet { sources: kept.sources.clone(), hash: kept.hash, ..self }
    }

    /// Over what the rules and allows say, whatever the comments, the layout and the order of files.
    pub fn hash(&self) -> RuleSetHash {
        self.hash
    }

    /// The text it was loaded from.
    pub fn sources(&self) -> &[RuleSource] {
        &self.sources
    }

    /// Those that are selected.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether there is such a rule, be it selected or not.
    pub fn knows(&self, id: &str) -> bool {
        self.get(id).is_some() || self.unselected.binary_search_by(|known| (**known).cmp(id)).is_ok()
    }

    /// What the sources say that could not be honoured, each with its file, line and reason.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(crate) fn allows(&self) -> &Allows {
        &self.allows
    }

    /// Whether fingerprints are to be asked about at all.
    pub fn allows_by_fingerprint(&self) -> bool {
        self.allows.by_fingerprint()
    }

    /// What keeps a value with this fingerprint, found by the rule of index `rule` in an object of this path, out of
    /// reports.
    pub fn allows_fingerprint(&self, rule: u32, fingerprint: &[u8; 16], path: &[u8]) -> Option<SuppressedBy> {
        self.allows.fingerprint(rule, fingerprint, path)
    }

    /// What keeps everything that this rule finds in an object of this path out of reports. For whoever learns an
    /// object's path only after the scan: a scan that knows it has asked already.
    pub fn allows_path(&self, rule: &str, path: &[u8]) -> Option<SuppressedBy> {
        let at = self.rules.binary_search_by(|known| (*known.id).cmp(rule)).ok()?;
        self.allows.path_for(at as u32, path)
    }

    /// How many rules a selection leaves out.
    pub fn unselected(&self) -> usize {
        self.unselected.len()
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
