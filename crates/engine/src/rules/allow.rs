//! Allow lists: which matches are not reported. An allow looks at the value, its match, its line and the object's
//! path, all of them near the match, so that it says the same in every chunk. Fingerprints are made elsewhere, with
//! a key that the engine does not have; whoever makes them asks [`Allows::fingerprint`].

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use domesday_model::SuppressedBy;
use memchr::{memchr, memrchr};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Rule;
use super::search::Patterns;
use super::select::Selectors;
use super::toml_reader::{Fields, Problems};

/// Bytes before a value's start and after its end that count as its line, at most.
pub const LINE_LOOK: usize = 1024;

/// Hexadecimal digits of a fingerprint.
const FINGERPRINT_DIGITS: usize = 32;

/// What the regexes of an allow look at.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Target {
    #[default]
    Value,
    /// All that the rule's regex matched.
    Match,
    Line,
}

/// One `[[allow]]`.
#[derive(Clone, Default, Debug)]
pub struct Allow {
    /// For people: its file and line, and its description if it has one.
    pub name: Arc<str>,
    /// The rules concerned; empty for all.
    pub rules: Selectors,
    pub values: BTreeSet<Vec<u8>>,
    pub regexes: Patterns,
    pub target: Target,
    pub stopwords: Patterns,
    pub paths: Patterns,
    pub fingerprints: BTreeSet<[u8; 16]>,
    /// Each kind of criterion that is given must hold, and not just one.
    pub all: bool,
}

/// A match as an allow sees it.
pub struct Seen<'s> {
    /// The value, decoded if it was encoded.
    pub value: &'s [u8],
    pub whole: &'s [u8],
    /// The text that the value stands in, and where.
    pub bytes: &'s [u8],
    pub span: Range<usize>,
    pub path: &'s [u8],
}

impl<'s> Seen<'s> {
    fn line(&self) -> &'s [u8] {
        let from = self.span.start.saturating_sub(LINE_LOOK);
        let to = (self.span.end + LINE_LOOK).min(self.bytes.len());
        let start = memrchr(b'\n', &self.bytes[from..self.span.start]).map_or(from, |at| from + at + 1);
        let end = memchr(b'\n', &self.bytes[self.span.end..to]).map_or(to, |at| self.span.end + at);
        &self.bytes[start..end]
    }
}

impl Allow {
    /// Whether it says anything.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
            && self.regexes.is_empty()
            && self.stopwords.is_empty()
            && self.paths.is_empty()
            && self.fingerprints.is_empty()
    }

    fn covers(&self, seen: &Seen<'_>) -> bool {
        let regexes = || {
            self.regexes.is_match(match self.target {
                Target::Value => seen.value,
                Target::Match => seen.whole,
                Target::Line => seen.line(),
            })
        };
        let criteria: [(bool, &dyn Fn() -> bool); 4] = [
            (!self.values.is_empty(), &|| self.values.contains(seen.value)),
            (!self.stopwords.is_empty(), &|| self.stopwords.is_match(seen.value)),
            (!self.paths.is_empty(), &|| self.paths.is_match(seen.path)),
            (!self.regexes.is_empty(), &regexes),
        ];
        let mut given = criteria.iter().filter(|(given, _)| *given).map(|(_, holds)| holds());
        match self.all {
            true => self.fingerprints.is_empty() && given.all(|holds| holds),
            false => given.any(|holds| holds),
        }
    }

    fn covers_fingerprint(&self, fingerprint: &[u8; 16], path: &[u8]) -> bool {
        self.fingerprints.contains(fingerprint)
            && (!self.all || self.paths.is_empty() || self.paths.is_match(path))
    }

    pub fn read(
        table: &DeTable<'_>,
        entry: &Spanned<DeValue<'_>>,
        problems: &mut Problems<'_>,
    ) -> Option<Allow> {
        let before = problems.found.len();
        let mut fields = Fields::new(table, entry.span(), None, problems);
        let description = fields.text("description").map(|(text, _)| text);
        let name = name(&fields.problems.place(entry.span().start), description);
        let rules = Selectors::read(&mut fields, "rules");
        let values = fields.texts("values").into_iter().map(String::into_bytes).collect();
        let regexes = read_patterns(&mut fields, "regexes", Patterns::new);
        let target = match fields.text("target") {
            None | Some(("value", _)) => Target::Value,
            Some(("match", _)) => Target::Match,
            Some(("line", _)) => Target::Line,
            Some((other, at)) => {
                fields.complain(at, format!("`{other}` is no target: use one of value, match, line"));
                Target::Value
            }
        };
        let stopwords = read_patterns(&mut fields, "stopwords", |words| Patterns::of_words(&words));
        let paths = read_patterns(&mut fields, "paths", Patterns::new);
        let fingerprints = read_fingerprints(&mut fields);
        let all = match fields.text("condition") {
            None | Some(("any", _)) => false,
            Some(("all", _)) => true,
            Some((other, at)) => {
                fields.complain(at, format!("`{other}` is no condition: use one of any, all"));
                false
            }
        };
        let allow = Allow { name, rules, values, regexes, target, stopwords, paths, fingerprints, all };
        let start = fields.start();
        fields.finish();
        if problems.found.len() > before {
            return None;
        }
        if allow.is_empty() {
            let reason = "`allow` says nothing: add `values`, `regexes`, `stopwords`, `paths` or `fingerprints`; to \
                          leave rules out, use `[select]`";
            problems.add(None, start, reason);
        }
        let by_value = !allow.values.is_empty() || !allow.regexes.is_empty() || !allow.stopwords.is_empty();
        if allow.all && !allow.fingerprints.is_empty() && by_value {
            let reason =
                "a fingerprint tells the value: with `condition = \"all\"` only `paths` may stand beside it";
            problems.add(None, start, reason);
        }
        Some(allow)
    }
}

/// How an allow is named in reports, by its place.
pub fn name(place: &str, description: Option<&str>) -> Arc<str> {
    match description {
        Some(description) => format!("{place} ({description})").into(),
        None => place.into(),
    }
}

fn read_patterns(
    fields: &mut Fields<'_, '_, '_>,
    name: &'static str,
    make: impl Fn(Vec<String>) -> Result<Patterns, String>,
) -> Patterns {
    let (texts, at) = fields.texts_at(name);
    match make(texts) {
        Ok(patterns) => {
            fields.charge(patterns.cost(), at);
            patterns
        }
        Err(reason) => {
            fields.complain(at, reason);
            Patterns::default()
        }
    }
}

fn read_fingerprints(fields: &mut Fields<'_, '_, '_>) -> BTreeSet<[u8; 16]> {
    let (texts, at) = fields.texts_at("fingerprints");
    let mut all = BTreeSet::new();
    for text in texts {
        match u128::from_str_radix(&text, 16).ok().filter(|_| text.len() == FINGERPRINT_DIGITS && !text.starts_with('+')) {
            Some(fingerprint) => _ = all.insert(fingerprint.to_be_bytes()),
            None => fields.complain(
                at,
                format!("`{text}` is no fingerprint: it has {FINGERPRINT_DIGITS} hexadecimal digits, as reports show it"),
            ),
        }
    }
    all
}

/// An allow that covers a match, and what that means for others on the same bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Covered {
    pub by: SuppressedBy,
    /// It is for every rule, and about the value: nobody wants to hear of it under the name of a less specific rule, or as
    /// a part of something longer that is not quite what was allowed. One that is for certain rules is about these: what
    /// other rules see there is told.
    pub is_for_all: bool,
}

/// All allows of a rule set.
#[derive(Clone, Default, Debug)]
pub struct Allows {
    list: Vec<Allow>,
    /// Those for every rule.
    for_all: Vec<usize>,
    /// By the rule's index: those for certain rules. Empty if there are none.
    for_rule: Vec<Vec<usize>>,
    by_fingerprint: bool,
}

impl Allows {
    /// For `rules` in their order.
    pub fn new(list: Vec<Allow>, rules: &[Rule]) -> Allows {
        let (for_all, limited): (Vec<_>, Vec<_>) = (0..list.len()).partition(|&at| list[at].rules.is_empty());
        let of_rule = |rule: &Rule| limited.iter().copied().filter(|&at| list[at].rules.name(rule)).collect();
        let for_rule = if limited.is_empty() { Vec::new() } else { rules.iter().map(of_rule).collect() };
        let by_fingerprint = list.iter().any(|allow| !allow.fingerprints.is_empty());
        Allows { list, for_all, for_rule, by_fingerprint }
    }

    fn of_rule(&self, rule: u32) -> &[usize] {
        self.for_rule.get(rule as usize).map_or(&[], Vec::as_slice)
    }

    /// Whether a match of the rule is allowed, and for whom.
    pub fn covers(&self, rule: u32, seen: &Seen<'_>) -> Option<Covered> {
        let covers = |&&at: &&usize| self.list[at].covers(seen);
        let covered = |is_for_all| move |&at: &usize| Covered { by: self.by(at), is_for_all };
        let for_all = self.for_all.iter().find(covers).map(covered(true));
        for_all.or_else(|| self.of_rule(rule).iter().find(covers).map(covered(false)))
    }

    fn by(&self, at: usize) -> SuppressedBy {
        SuppressedBy::Allow(Arc::clone(&self.list[at].name))
    }

    /// Whether an allow of this name is for every rule. Two of one name are of one place: they are for the same.
    pub fn is_for_all(&self, name: &Arc<str>) -> bool {
        self.for_all.iter().any(|&at| Arc::ptr_eq(&self.list[at].name, name))
    }

    /// What allows everything that a rule finds in an object of that path.
    pub fn path_for(&self, rule: u32, path: &[u8]) -> Option<SuppressedBy> {
        let alone = |&&at: &&usize| !self.list[at].all && self.list[at].paths.is_match(path);
        self.for_all.iter().chain(self.of_rule(rule)).find(alone).map(|&at| self.by(at))
    }

    /// Whether there are any by fingerprint.
    pub fn by_fingerprint(&self) -> bool {
        self.by_fingerprint
    }

    pub fn fingerprint(&self, rule: u32, fingerprint: &[u8; 16], path: &[u8]) -> Option<SuppressedBy> {
        let mut all = self.for_all.iter().chain(self.of_rule(rule)).filter(|_| self.by_fingerprint);
        all.find(|&&at| self.list[at].covers_fingerprint(fingerprint, path)).map(|&at| self.by(at))
    }
}
