//! What speaks for a type: the values of the sample, by rules that find the same thing; and the column's name.

use std::collections::BTreeMap;
use std::sync::Arc;

use domesday_engine::{Rule, RuleSet};
use domesday_model::{Category, ColumnShape};

use crate::header::Vocabulary;
use crate::sketch::{ColumnSketch, Facts, Value};

/// Rules that find the same thing in different forms.
pub struct Group<'r> {
    /// The one that took most values.
    pub rule: &'r Rule,
    /// All of them that were seen.
    pub rules: Vec<&'r Rule>,
    /// Values of the sample that are of the type, and those in which one stands among other things, too.
    pub matched: u64,
    pub anywhere: u64,
    /// Values that have the form alone: a validator refused them.
    pub refused: u64,
    /// Of those that matched or have one within, how many have each fact.
    pub sure: u64,
    pub checked: u64,
    pub proven: u64,
    pub bare: u64,
    pub alone: u64,
    /// Bytes of those that matched, on average.
    pub mean_len: f64,
}

impl Group<'_> {
    /// Whether a fact holds for most of the values.
    pub fn mostly(&self, count: u64) -> bool {
        const MOST: f64 = 0.6;
        self.anywhere > 0 && count as f64 >= MOST * self.anywhere as f64
    }

    pub fn has_tag(&self, tag: &str) -> bool {
        self.rule.tags.iter().any(|known| known == tag)
    }

    /// A secret that is known by its own form.
    pub fn has_own_form(&self) -> bool {
        self.rule.category == Category::Secret && !self.has_tag("generic")
    }

    pub fn requires_words(&self) -> bool {
        self.rule.context.as_ref().is_some_and(|context| context.required)
    }
}

/// What a rule finds, as the beginning of its id: `payment-card-unseparated` finds what `payment-card` does.
fn family(id: &str) -> &str {
    /// One word says it.
    const ONE_WORD: &[&str] = &["iban", "phone"];
    let words = if ONE_WORD.contains(&id.split('-').next().unwrap_or(id)) { 1 } else { 2 };
    id.match_indices('-').nth(words - 1).map_or(id, |(at, _)| &id[..at])
}

#[derive(Default)]
struct Counts<'r> {
    /// By rule: values it took.
    rules: BTreeMap<&'r Arc<str>, (u64, Option<&'r Rule>)>,
    matched: u64,
    anywhere: u64,
    refused: u64,
    facts: [u64; 8],
    len: u64,
}

/// The groups of which something was seen, in order of their names.
pub fn groups<'r>(sketch: &ColumnSketch, rules: &'r RuleSet) -> Vec<Group<'r>> {
    let mut families: BTreeMap<&'r str, Counts<'r>> = BTreeMap::new();
    for id in sketch.rules.keys() {
        if let Some(rule) = rules.get(id) {
            let counts = families.entry(family(&rule.id)).or_default();
            counts.rules.entry(&rule.id).or_default().1 = Some(rule);
        }
    }
    for value in sketch.sample.values() {
        add(value, rules, &mut families);
    }
    families.into_values().filter_map(Counts::group).collect()
}

fn add<'r>(value: &Value, rules: &'r RuleSet, families: &mut BTreeMap<&'r str, Counts<'r>>) {
    let mut of_value: BTreeMap<&'r str, Facts> = BTreeMap::new();
    for mark in value.marks.iter() {
        let Some(rule) = rules.get(&mark.rule) else { continue };
        let counts = families.entry(family(&rule.id)).or_default();
        let (took, place) = counts.rules.entry(&rule.id).or_default();
        *place = Some(rule);
        *took += u64::from(mark.facts.has(Facts::PASSED));
        let best = of_value.entry(family(&rule.id)).or_default();
        // The bits of a form that failed say nothing of one that passed.
        match (best.has(Facts::PASSED), mark.facts.has(Facts::PASSED)) {
            (true, true) => best.0 |= mark.facts.0,
            (false, _) => *best = mark.facts,
            (true, false) => {}
        }
    }
    for (family, facts) in of_value {
        let counts = families.get_mut(family).expect("it was made above");
        if !facts.has(Facts::PASSED) {
            counts.refused += 1;
            continue;
        }
        counts.anywhere += 1;
        if facts.has(Facts::COVERS) {
            counts.matched += 1;
            counts.len += u64::from(value.len);
        }
        (0..8).filter(|bit| facts.has(1 << bit)).for_each(|bit| counts.facts[bit as usize] += 1);
    }
}

impl<'r> Counts<'r> {
    fn group(self) -> Option<Group<'r>> {
        let best = self.rules.iter().max_by_key(|(id, (took, _))| (*took, std::cmp::Reverse(**id)));
        let rule = best.and_then(|(_, (_, rule))| *rule)?;
        let fact = |bit: u8| self.facts[bit.trailing_zeros() as usize];
        // A secret stands within an address or a line, too, and is no less of one.
        let matched = if rule.category == Category::Secret { self.anywhere } else { self.matched };
        Some(Group {
            rule,
            rules: self.rules.values().filter_map(|(_, rule)| *rule).collect(),
            matched,
            anywhere: self.anywhere,
            refused: self.refused,
            sure: fact(Facts::SURE),
            checked: fact(Facts::CHECKED),
            proven: fact(Facts::PROVEN),
            bare: fact(Facts::BARE),
            alone: fact(Facts::ALONE),
            mean_len: self.len as f64 / self.matched.max(1) as f64,
        })
    }
}

/// Names that say nothing.
const NAMELESS: &[&str] = &[
    "attr",
    "attribute",
    "campo",
    "champ",
    "col",
    "colonne",
    "column",
    "columna",
    "content",
    "custom",
    "data",
    "donnee",
    "entry",
    "extra",
    "feld",
    "field",
    "info",
    "item",
    "misc",
    "other",
    "param",
    "prop",
    "property",
    "raw",
    "spalte",
    "str",
    "string",
    "text",
    "txt",
    "unnamed",
    "val",
    "valeur",
    "valor",
    "value",
    "var",
    "wert",
];

/// Words that rules take for context, and that are in the names of columns of any kind.
const VAGUE: &[&str] = &[
    "account",
    "address",
    "charge",
    "client",
    "contact",
    "customer",
    "device",
    "from",
    "message",
    "messages",
    "number",
    "office",
    "registration",
    "request",
    "ring",
    "send",
    "serial",
    "session",
    "source",
    "text",
    "to",
    "user",
    "write",
];

/// The column's name and comment.
pub struct Header {
    words: String,
    comment: String,
    /// Whether the name says nothing at all.
    pub is_nameless: bool,
}

impl Header {
    pub fn of(column: &ColumnShape, known: &Vocabulary) -> Header {
        let words = known.words(&column.name);
        let nameless =
            |word: &str| (word.len() == 1) || word.chars().all(char::is_numeric) || NAMELESS.contains(&word);
        Header {
            is_nameless: words.split(' ').all(nameless),
            comment: column.comment.as_deref().map(|comment| known.words(comment)).unwrap_or_default(),
            words,
        }
    }

    /// What the name and the comment say for a type, in words.
    pub fn evidence(&self, group: &Group<'_>) -> Vec<String> {
        let of = |text: &str| (!text.is_empty()).then(|| word_for(group, text)).flatten();
        let name = of(&self.words).map(|word| format!("column name has `{word}`"));
        let comment = of(&self.comment).map(|word| format!("comment has `{word}`"));
        name.into_iter().chain(comment).collect()
    }
}

/// The word of a text that is one of the rules' own, or of what they are about.
fn word_for(group: &Group<'_>, text: &str) -> Option<String> {
    let said = group.rules.iter().flat_map(|rule| rule.words_in(text));
    let mut said = said.map(str::trim).filter(|word| !VAGUE.contains(word));
    if let Some(word) = said.next() {
        return Some(word.to_owned());
    }
    let spaced = format!(" {text} ");
    let about = group.rule.tags.iter().map(|tag| tag.replace('-', " "));
    about.into_iter().find(|tag| spaced.contains(&format!(" {tag} ")))
}
