//! How sensitive a rule's findings are, and which regulations they concern: `classification.toml`, resolved for a
//! rule when someone asks, since a scan does not.
//!
//! Nothing here changes what is found, or how sure that is; so the classification compiled in is no part of the rule
//! set's hash, and what was scanned with another one is not scanned again: a report shows today's. What a rule says of
//! itself is part of the hash as all that it says, because reports read it from the text that is kept under the hash.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use domesday_model::{Category, Regulation, Sensitivity};
use serde::Deserialize;

use super::Rule;
use super::toml_reader::Fields;

/// What a disclosed value means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Class {
    pub sensitivity: Sensitivity,
    /// In order of their names, each once.
    pub regulations: Vec<Regulation>,
}

/// What a rule says of itself, which wins.
#[derive(Clone, Default, Debug)]
pub struct OwnClass {
    pub sensitivity: Option<Sensitivity>,
    pub regulations: Option<Vec<Regulation>>,
}

/// Why a regulation concerns a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ground {
    pub regulation: Regulation,
    /// Its title, if it is one of the built-in ones.
    pub title: Option<&'static str>,
    /// Articles and requirements.
    pub notes: Vec<&'static str>,
}

/// The sensitivity of what no entry speaks of.
const UNCLASSIFIED: Sensitivity = Sensitivity::Moderate;

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    toml::from_str(include_str!("../../classification.toml"))
        .expect("the classification compiled in is valid")
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    class: Vec<Entry>,
    /// Titles.
    regulations: BTreeMap<Regulation, String>,
}

/// The conditions are explained where the data is.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Entry {
    categories: Vec<Category>,
    tags: Vec<String>,
    regions: Vec<String>,
    anywhere: bool,
    rules: Vec<String>,
    except_tags: Vec<String>,
    except_rules: Vec<String>,
    sensitivity: Option<Sensitivity>,
    regulations: Vec<Regulation>,
    note: Option<String>,
}

/// What entries look at.
#[derive(Clone, Copy)]
struct Subject<'r> {
    id: &'r str,
    category: Category,
    tags: &'r [String],
    regions: &'r [String],
}

impl Class {
    fn resolve(subject: Subject<'_>, own: &OwnClass) -> Class {
        let sensitivity = own.sensitivity.or_else(|| subject.sensitivity()).unwrap_or(UNCLASSIFIED);
        let mut regulations = own.regulations.clone().unwrap_or_else(|| {
            subject.entries().flat_map(|entry| entry.regulations.iter().cloned()).collect()
        });
        regulations.sort();
        regulations.dedup();
        Class { sensitivity, regulations }
    }

    /// What is said of a rule of which only the category is known.
    pub fn of_category(category: Category) -> Class {
        Class::resolve(Subject { id: "", category, tags: &[], regions: &[] }, &OwnClass::default())
    }
}

impl Rule {
    /// What a disclosed value of it means.
    pub fn class(&self) -> Class {
        Class::resolve(self.subject(), &self.own_class)
    }

    fn subject(&self) -> Subject<'_> {
        Subject { id: &self.id, category: self.category, tags: &self.tags, regions: &self.regions }
    }

    /// Why each of its regulations concerns it.
    pub fn grounds(&self) -> Vec<Ground> {
        let subject = self.subject();
        let ground = |regulation| Ground {
            title: TABLE.regulations.get(&regulation).map(String::as_str),
            notes: subject
                .entries()
                .filter(|entry| entry.regulations.contains(&regulation))
                .filter_map(|entry| entry.note.as_deref())
                .collect(),
            regulation,
        };
        self.class().regulations.into_iter().map(ground).collect()
    }
}

impl<'r> Subject<'r> {
    fn entries(self) -> impl Iterator<Item = &'static Entry> + use<'r> {
        TABLE.class.iter().filter(move |entry| entry.holds_for(self))
    }

    fn sensitivity(self) -> Option<Sensitivity> {
        self.entries().filter_map(|entry| entry.sensitivity).last()
    }
}

impl Entry {
    fn holds_for(&self, subject: Subject<'_>) -> bool {
        let shared = |ours: &[String], theirs: &[String]| ours.iter().any(|ours| theirs.contains(ours));
        let named = |patterns: &[String]| patterns.iter().any(|pattern| names(pattern, subject.id));
        (self.categories.is_empty() || self.categories.contains(&subject.category))
            && (self.tags.is_empty() || shared(&self.tags, subject.tags))
            && (self.regions.is_empty() || shared(&self.regions, subject.regions))
            && (!self.anywhere || subject.regions.is_empty())
            && (self.rules.is_empty() || named(&self.rules))
            && !shared(&self.except_tags, subject.tags)
            && !named(&self.except_rules)
    }
}

fn names(pattern: &str, id: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => id.starts_with(beginning),
        None => id == pattern,
    }
}

/// The fields of a rule that say its class.
pub(super) fn read(fields: &mut Fields<'_, '_, '_>) -> OwnClass {
    let sensitivity = fields
        .text("sensitivity")
        .and_then(|(word, at)| word.parse().map_err(|error| fields.complain(at, format!("{error}"))).ok());
    let words = fields.texts("regulations");
    let regulations = fields.place("regulations").map(|at| {
        let mut read =
            |word: &String| word.parse().map_err(|error| fields.complain(at, format!("{error}"))).ok();
        words.iter().filter_map(&mut read).collect()
    });
    OwnClass { sensitivity, regulations }
}

#[cfg(test)]
mod tests;
