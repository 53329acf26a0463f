//! All rule files together: their rules under unique ids, what is allowed and what is selected. Files are of our
//! format (`load` knows a rule's fields) or of Gitleaks'; nothing is taken unless everything is right.

use std::collections::HashMap;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::allow::Allow;
use super::budget::Budget;
use super::error::{RuleError, RuleErrors};
use super::select::Selection;
use super::toml_reader::Problems;
use super::{Rule, RuleSource, gitleaks, load};

/// What all files say together.
pub struct Loaded {
    /// Those that are selected, in order of their ids.
    pub rules: Vec<Rule>,
    /// The ids of the others, in order.
    pub unselected: Vec<Arc<str>>,
    pub allows: Vec<Allow>,
    pub notes: Vec<String>,
}

/// What one file says, with the places of rules.
#[derive(Default)]
struct Read {
    rules: Vec<(Rule, usize)>,
    allows: Vec<Allow>,
    selection: Selection,
    /// If it is in that format: what it says, to be made rules of once all others are known.
    gitleaks: Option<gitleaks::File>,
    problems: Vec<RuleError>,
}

/// Everything in all files beside the rules that are `known` already, or every problem of every file.
pub fn read(known: Vec<Rule>, sources: &[RuleSource], budget: &Budget) -> Result<Loaded, RuleErrors> {
    // One after another, so that it does not depend on luck which rule is refused.
    let mut read: Vec<Read> = sources.iter().map(|source| read_source(source, budget)).collect();
    let mut all = Collected::of(known);
    for (source, read) in sources.iter().zip(&mut read) {
        all.add(source, read.rules.drain(..), std::mem::take(&mut read.problems));
    }
    let files =
        read.iter_mut().enumerate().filter_map(|(number, read)| Some((number, read.gitleaks.take()?)));
    let imported = gitleaks::import(sources, files.collect(), &all.rules, budget);
    all.errors.extend(imported.refused);
    all.rules.retain(|rule| !imported.replaced.contains(&rule.id));
    all.taken.retain(|id, _| !imported.replaced.contains(id));
    for (number, rules) in imported.rules {
        all.add(&sources[number], rules, Vec::new());
    }
    let rules = all.finish()?;
    check_names(sources, &read, &rules)?;
    let selected = |rule: &Rule| {
        !imported.skipped.contains(&rule.id) && read.iter().all(|read| read.selection.selects(rule))
    };
    let (rules, others): (Vec<_>, Vec<_>) = rules.into_iter().partition(selected);
    let unselected = others.into_iter().map(|rule| rule.id).collect();
    let allows = read.into_iter().flat_map(|read| read.allows).chain(imported.allows).collect();
    Ok(Loaded { rules, unselected, allows, notes: imported.notes })
}

/// Rules under unique ids, and what is wrong.
struct Collected {
    rules: Vec<Rule>,
    /// The file that each id is of.
    taken: HashMap<Arc<str>, Arc<str>>,
    errors: Vec<RuleError>,
}

impl Collected {
    fn of(rules: Vec<Rule>) -> Collected {
        let taken = rules.iter().map(|rule| (rule.id.clone(), rule.family.clone())).collect();
        Collected { rules, taken, errors: Vec::new() }
    }

    /// Adds the rules of a file with their places, and its problems.
    fn add(
        &mut self,
        source: &RuleSource,
        rules: impl IntoIterator<Item = (Rule, usize)>,
        found: Vec<RuleError>,
    ) {
        let mut problems = Problems::new(&source.name, &source.text);
        problems.found = found;
        let family: Arc<str> = source.name.as_str().into();
        for (rule, at) in rules {
            if let Some(first) = self.taken.get(&rule.id) {
                let reason = format!("the id is taken by a rule of {first}: choose another");
                problems.add(Some(&rule.id), at, reason);
                continue;
            }
            self.taken.insert(rule.id.clone(), family.clone());
            self.rules.push(Rule { family: family.clone(), ..rule });
        }
        problems.found.sort_by_key(|error| error.line);
        self.errors.append(&mut problems.found);
    }

    /// The rules in order of their ids, if nothing is wrong.
    fn finish(mut self) -> Result<Vec<Rule>, RuleErrors> {
        if !self.errors.is_empty() {
            return Err(RuleErrors(self.errors));
        }
        self.rules.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(self.rules)
    }
}

/// Checks what allows and selections call rules, once all rules are known.
fn check_names(sources: &[RuleSource], read: &[Read], rules: &[Rule]) -> Result<(), RuleErrors> {
    let mut errors = Vec::new();
    for (source, read) in sources.iter().zip(read) {
        let mut problems = Problems::new(&source.name, &source.text);
        read.allows.iter().for_each(|allow| allow.rules.check(rules, &mut problems));
        read.selection.check(rules, &mut problems);
        problems.found.sort_by_key(|error| error.line);
        errors.append(&mut problems.found);
    }
    let selected = |rule: &Rule| read.iter().all(|read| read.selection.selects(rule));
    if errors.is_empty() && !rules.iter().any(selected) {
        // Each alone may leave some; the last one that takes away tells where to look.
        let last = sources.iter().zip(read).rev().find(|(_, read)| !read.selection.is_empty());
        if let Some((source, _)) = last {
            let mut problems = Problems::new(&source.name, &source.text);
            problems.add(
                None,
                0,
                "no rule is left once all selections are combined: widen `only`, shorten `skip`",
            );
            errors.append(&mut problems.found);
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(RuleErrors(errors)) }
}

fn read_source(source: &RuleSource, budget: &Budget) -> Read {
    if budget.is_spent() {
        return Read::default();
    }
    let mut problems = Problems::new(&source.name, &source.text).charging(budget);
    // A byte of text costs one unit, before it is looked at.
    if !problems.charge(None, source.text.len(), 0) {
        return Read { problems: problems.found, ..Read::default() };
    }
    let (document, syntax_errors) = DeTable::parse_recoverable(&source.text);
    for error in &syntax_errors {
        let at = error.span().map_or(0, |span| span.start);
        problems.add(None, at, format!("not valid TOML: {}", error.message()));
    }
    let mut read = Read::default();
    if syntax_errors.is_empty() {
        match gitleaks::is_gitleaks(document.get_ref()) {
            true => read.gitleaks = Some(gitleaks::read(document.get_ref(), source)),
            false => read_file(document.get_ref(), &mut read, &mut problems),
        }
    }
    Read { problems: problems.found, ..read }
}

fn read_file(document: &DeTable<'_>, read: &mut Read, problems: &mut Problems<'_>) {
    for (key, value) in document {
        match key.get_ref().as_ref() {
            "rule" => each_table("rule", value, problems, |table, entry, problems| {
                read.rules
                    .extend(load::read_rule(table, entry, problems).map(|rule| (rule, entry.span().start)));
            }),
            "allow" => each_table("allow", value, problems, |table, entry, problems| {
                read.allows.extend(Allow::read(table, entry, problems));
            }),
            "select" => read.selection = Selection::read(value, problems),
            name => {
                let reason =
                    format!("unknown field `{name}`: a file holds `[[rule]]`, `[[allow]]` and `[select]`");
                problems.add(None, key.span().start, reason);
            }
        }
    }
}

/// The tables of a list.
fn each_table(
    name: &str,
    value: &Spanned<DeValue<'_>>,
    problems: &mut Problems<'_>,
    mut read: impl FnMut(&DeTable<'_>, &Spanned<DeValue<'_>>, &mut Problems<'_>),
) {
    let DeValue::Array(entries) = value.get_ref() else {
        problems.add(None, value.span().start, format!("`{name}` is not a list: write `[[{name}]]`"));
        return;
    };
    for entry in entries.iter() {
        if problems.is_out_of_budget() {
            return;
        }
        match entry.get_ref() {
            DeValue::Table(table) => read(table, entry, problems),
            _ => {
                problems.add(None, entry.span().start, format!("`{name}` is not a table: write `[[{name}]]`"))
            }
        }
    }
}
