//! Rule files in the format of Gitleaks, read as its users have them into the same rules and allow lists as ours.
//! What cannot be honoured is noted and never an error: a file that Gitleaks takes is taken.
//!
//! A file may add to another (`extend.path`), whose rules it overrides, and to the default rules (`useDefault`), for
//! which the built-in ones stand in. This module owns what that means; it reads no files.

mod read;
mod regex;
mod rule;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use toml::de::DeTable;

use super::allow::Allow;
use super::budget::{Budget, cost_of};
use super::error::RuleError;
use super::select::{Selector, Selectors};
use super::toml_reader::Problems;
use super::{Patterns, Rule, RuleSource, pattern};
use read::{RawAllow, RawRule};
use regex::Anchors;

pub use read::{File, is_gitleaks, read};

/// What stands before the id of a rule whose own is taken by a built-in one.
const PREFIX: &str = "gitleaks-";

/// Ids of default rules of Gitleaks that built-in rules of another name stand in for.
const STAND_INS: &[(&str, &str)] = &[
    ("aws-access-token", "aws-access-key-id"),
    ("generic-api-key", "generic-*"),
    ("github-app-token", "github-token"),
    ("github-oauth", "github-token"),
    ("github-pat", "github-token"),
    ("gitlab-pat", "gitlab-token"),
    ("jwt", "json-web-token"),
    ("private-key", "private-key-pem"),
    ("sendgrid-api-token", "sendgrid-api-key"),
    ("slack-bot-token", "slack-token"),
    ("slack-user-token", "slack-token"),
    ("slack-webhook-url", "slack-webhook"),
    ("stripe-access-token", "stripe-key"),
];

/// The path of the file that a source adds to, if it is of this format and names one.
pub fn base_of(source: &RuleSource) -> Option<PathBuf> {
    let document = DeTable::parse(&source.text).ok()?;
    let file = is_gitleaks(document.get_ref()).then(|| read(document.get_ref(), source))?;
    file.base.map(PathBuf::from)
}

/// What files of this format come to.
#[derive(Default)]
pub struct Imported {
    /// By the number of their source, with their places in it.
    pub rules: BTreeMap<usize, Vec<(Rule, usize)>>,
    pub allows: Vec<Allow>,
    /// Ids of rules that are not used.
    pub skipped: HashSet<Arc<str>>,
    /// Ids of built-in rules in whose place one of `rules` stands.
    pub replaced: HashSet<Arc<str>>,
    pub notes: Vec<String>,
    /// Rules that are too large.
    pub refused: Vec<RuleError>,
}

/// Files by the number of their source, and the rules that are there besides.
pub fn import(
    sources: &[RuleSource],
    mut files: BTreeMap<usize, File>,
    native: &[Rule],
    budget: &Budget,
) -> Imported {
    let (names, notes) = (BTreeMap::new(), BTreeMap::new());
    let mut import = Import { native, budget, names, notes, out: Imported::default() };
    for (&number, file) in &files {
        let source = &sources[number];
        let mut notes = Problems::new(&source.name, &source.text);
        notes.found.clone_from(&file.notes);
        import.notes.insert(number, notes);
        if let Some(base) = &file.base
            && bases(sources, &files, number).is_empty()
        {
            import.note(number, None, 0, format!("`extend.path`: there are no rules of `{base}` here"));
        }
    }
    let numbers: Vec<_> = files.keys().copied().collect();
    // A base may have one itself: what is deepest comes first.
    for &number in numbers.iter().rev() {
        import.extend(sources, &mut files, number);
    }
    for (&number, file) in &files {
        file.rules.iter().for_each(|raw| import.rule(number, file.use_default, raw));
    }
    for (&number, file) in &files {
        for raw in &file.rules {
            let names = import.names.get(&raw.id).cloned().unwrap_or_default();
            raw.allows.iter().for_each(|allow| import.allow(number, Some(raw), allow, names.clone()));
        }
        file.allows.iter().for_each(|allow| import.global_allow(number, allow));
    }
    import.finish()
}

/// The numbers of the files that a file adds to, nearest first.
fn bases(sources: &[RuleSource], files: &BTreeMap<usize, File>, number: usize) -> Vec<usize> {
    let mut all = Vec::new();
    let mut at = number;
    while let Some(base) = &files[&at].base {
        let named = |&&other: &&usize| sources[other].name == *base;
        match files.keys().find(named) {
            Some(&next) if next != number && !all.contains(&next) => all.push(next),
            _ => break,
        }
        at = all[all.len() - 1];
    }
    all
}

struct Import<'i> {
    native: &'i [Rule],
    budget: &'i Budget,
    /// What the ids of files came to: rules of theirs, and built-in ones.
    names: BTreeMap<String, Vec<Selector>>,
    notes: BTreeMap<usize, Problems<'i>>,
    out: Imported,
}

impl Import<'_> {
    fn note(&mut self, number: usize, rule: Option<&str>, at: usize, reason: impl Into<String>) {
        if let Some(notes) = self.notes.get_mut(&number) {
            notes.add(rule, at, reason);
        }
    }

    /// Charges regexes; one too many is an error, for less would be found without it.
    fn charge(&mut self, number: usize, rule: Option<&str>, at: usize, cost: usize) -> bool {
        if self.budget.is_spent() {
            // That was told.
            return false;
        }
        let charged = self.budget.charge(cost);
        if let (Err(reason), Some(notes)) = (&charged, self.notes.get_mut(&number)) {
            notes.add(rule, at, reason.as_str());
            self.out.refused.extend(notes.found.pop());
        }
        charged.is_ok()
    }

    /// Overrides and leaves out rules of a file's bases, and leaves out built-in ones.
    fn extend(&mut self, sources: &[RuleSource], files: &mut BTreeMap<usize, File>, number: usize) {
        let bases = bases(sources, files, number);
        let mut file = files.remove(&number).unwrap_or_default();
        let take = |files: &mut BTreeMap<usize, File>, id: &str| {
            bases.iter().find_map(|base| {
                let rules = &mut files.get_mut(base)?.rules;
                let at = rules.iter().position(|rule| rule.id == id)?;
                Some(rules.remove(at))
            })
        };
        for rule in &mut file.rules {
            if let Some(base) = take(files, &rule.id) {
                rule.fill_from(base);
            }
        }
        let mut unknown = Vec::new();
        for id in &file.disabled {
            if take(files, id).is_some() {
                continue;
            }
            let stand_ins = self.built_in(id);
            let named =
                self.native.iter().filter(|rule| stand_ins.iter().any(|selector| selector.names(rule)));
            self.out.skipped.extend(named.map(|rule| rule.id.clone()));
            if stand_ins.is_empty() {
                unknown.push(id.as_str());
            }
        }
        if !unknown.is_empty() {
            self.note(
                number,
                None,
                0,
                format!("`extend.disabledRules`: there is no rule {} here", list(&unknown)),
            );
        }
        files.insert(number, file);
    }

    /// The built-in rules that an id of Gitleaks means.
    fn built_in(&self, id: &str) -> Vec<Selector> {
        let other = STAND_INS.iter().find(|(theirs, _)| *theirs == id).map(|(_, ours)| *ours);
        let selectors = [Some(id), other].into_iter().flatten().filter_map(|name| Selector::parse(name).ok());
        selectors.filter(|selector| self.native.iter().any(|rule| selector.names(rule))).collect()
    }

    /// What a rule of a file is called: in our form, not as a built-in one unless it takes its place, and only it.
    fn id_of(&self, number: usize, theirs: &str, use_default: bool) -> String {
        let mut id = kebab(theirs);
        if id.is_empty() {
            id.push_str("rule");
        }
        if !use_default && self.native.iter().any(|rule| *rule.id == *id) {
            id.insert_str(0, PREFIX);
        }
        let others = self.out.rules.get(&number).map_or(&[][..], Vec::as_slice);
        let is_free = |id: &String| others.iter().all(|(rule, _)| *rule.id != **id);
        let numbered = (2..).map(|n| format!("{id}-{n}"));
        let mut free = std::iter::once(id.clone()).chain(numbered).filter(is_free);
        free.next().expect("there are more numbers than rules")
    }

    fn rule(&mut self, number: usize, use_default: bool, raw: &RawRule) {
        let mut names = self.built_in(&raw.id);
        if raw.regex.is_empty() && raw.path.is_empty() {
            if names.is_empty() {
                let reason = "it has neither `regex` nor `path`, and no rule here is the one it adds to";
                self.note(number, Some(&raw.id), raw.at, reason);
            }
            self.names.entry(raw.id.clone()).or_default().append(&mut names);
            return;
        }
        if raw.skip_report || self.budget.is_spent() {
            return;
        }
        let id = self.id_of(number, &raw.id, use_default);
        if id != raw.id {
            self.note(number, Some(&raw.id), raw.at, format!("it is called `{id}` here"));
        }
        let mut told = Vec::new();
        match rule::convert(raw, &id, |note| told.push(note)) {
            Ok(rule) if !self.charge(number, Some(&raw.id), raw.at, cost_of_rule(&rule)) => {}
            Ok(rule) => {
                let taken = self.native.iter().find(|native| native.id == rule.id);
                self.out.replaced.extend(taken.map(|native| native.id.clone()));
                names.push(Selector::Id(id));
                self.names.entry(raw.id.clone()).or_default().append(&mut names);
                self.out.rules.entry(number).or_default().push((rule, raw.at));
            }
            Err(reason) => told.push(format!("it is left out: {reason}")),
        }
        told.into_iter().for_each(|note| self.note(number, Some(&raw.id), raw.at, note));
    }

    fn global_allow(&mut self, number: usize, raw: &RawAllow) {
        let (mut names, mut unknown) = (Vec::new(), Vec::new());
        for id in &raw.target_rules {
            let mut named = self.names.get(id).cloned().unwrap_or_else(|| self.built_in(id));
            if named.is_empty() {
                unknown.push(id.as_str());
            }
            names.append(&mut named);
        }
        if !unknown.is_empty() {
            self.note(
                number,
                None,
                raw.at,
                format!("`targetRules`: there is no rule {} here", list(&unknown)),
            );
        }
        if raw.target_rules.is_empty() || !names.is_empty() {
            self.allow(number, None, raw, names);
        }
    }

    /// Adds an allow list for the named rules, or for all if none is named and it is of no rule.
    fn allow(&mut self, number: usize, rule: Option<&RawRule>, raw: &RawAllow, names: Vec<Selector>) {
        let id = rule.map(|rule| rule.id.as_str());
        if rule.is_some() && names.is_empty() {
            return;
        }
        if raw.has_commits {
            let without =
                if raw.all { "so the allow list, which asks for all, is left out" } else { "the rest is" };
            self.note(number, id, raw.at, format!("`commits` of an allow list are not honoured, {without}"));
            if raw.all {
                return;
            }
        }
        let mut patterns = |texts: &[String]| {
            let translated = texts.iter().map(|text| regex::translate(text, Anchors::Text));
            let (good, bad): (Vec<_>, Vec<_>) =
                translated.partition(|text| Patterns::new(vec![text.clone()]).is_ok());
            for text in bad {
                self.note(number, id, raw.at, format!("the allow list's regex `{text}` cannot be read"));
            }
            Patterns::new(good)
        };
        let made = (patterns(&raw.paths), patterns(&raw.regexes), Patterns::of_words(&raw.stopwords));
        let (paths, regexes, stopwords) = match made {
            (Ok(paths), Ok(regexes), Ok(stopwords)) => (paths, regexes, stopwords),
            (Err(reason), ..) | (_, Err(reason), _) | (.., Err(reason)) => {
                self.note(number, id, raw.at, format!("an allow list is left out: {reason}"));
                return;
            }
        };
        let cost = paths.cost() + regexes.cost() + stopwords.cost();
        if !self.charge(number, id, raw.at, cost) {
            return;
        }
        let lost = paths.texts().len() < raw.paths.len() || regexes.texts().len() < raw.regexes.len();
        let rules = Selectors::new(names);
        let place = self.notes.get(&number).map(|notes| notes.place(raw.at)).unwrap_or_default();
        let (name, target, all) = (place.into(), raw.target, raw.all);
        let allow = Allow { name, rules, regexes, target, stopwords, paths, all, ..Allow::default() };
        // One that asks for all of its criteria would allow more without one of them.
        let whole = !(lost && raw.all);
        if whole && !allow.is_empty() {
            self.out.allows.push(allow);
        }
    }

    fn finish(mut self) -> Imported {
        for notes in self.notes.values_mut() {
            notes.found.sort_by_key(|note| note.line);
            self.out.notes.extend(notes.found.iter().map(ToString::to_string));
        }
        self.out
    }
}

impl RawRule {
    /// Takes from the rule it overrides what it does not say itself.
    fn fill_from(&mut self, mut base: RawRule) {
        for (own, other) in [
            (&mut self.description, base.description),
            (&mut self.regex, base.regex),
            (&mut self.path, base.path),
        ] {
            if own.is_empty() {
                *own = other;
            }
        }
        if self.secret_group == 0 {
            self.secret_group = base.secret_group;
        }
        if self.entropy == 0.0 {
            self.entropy = base.entropy;
        }
        self.keywords.append(&mut base.keywords);
        self.tags.append(&mut base.tags);
        self.allows.append(&mut base.allows);
        self.has_required |= base.has_required;
        self.skip_report |= base.skip_report;
    }
}

/// What its regexes cost.
fn cost_of_rule(rule: &Rule) -> usize {
    rule.path.cost().saturating_add(pattern::read(&rule.regex).map_or(0, |hir| cost_of(&hir)))
}

/// An id in the form that ours have.
fn kebab(id: &str) -> String {
    let parts = id.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    parts.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::RuleSet;

    #[test]
    fn what_stands_in_is_there() {
        let rules = RuleSet::builtin().unwrap_or_else(|errors| panic!("{errors}"));
        for (theirs, ours) in STAND_INS {
            let selector = Selector::parse(ours).unwrap();
            assert!(rules.rules().iter().any(|rule| selector.names(rule)), "{ours}");
            assert!(rules.get(theirs).is_none(), "{theirs} needs no other");
        }
    }

    #[test]
    fn ids_take_our_form() {
        for (theirs, ours) in [("AWS_Key", "aws-key"), ("a--b c.", "a-b-c"), ("abc-1", "abc-1")] {
            assert_eq!(kebab(theirs), ours);
        }
    }
}
