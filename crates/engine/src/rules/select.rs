//! Which rules are used: `[select]` of rule files, and the words by which rules are named there and in allow lists.
//! A name that fits no rule is an error: it is a slip of the pen, and what it was meant for would be missed silently.

use std::fmt;

use domesday_model::Category;
use toml::Spanned;
use toml::de::DeValue;

use super::Rule;
use super::toml_reader::{Fields, Problems};

/// Changes of a letter that a name may be away from another to be offered in its place.
const NEAR: usize = 3;

/// Names one rule or several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selector {
    Id(String),
    /// The beginning of ids, written with a `*` behind it.
    Prefix(String),
    Category(Category),
    Region(String),
    Tag(String),
}

impl Selector {
    pub fn parse(text: &str) -> Result<Selector, String> {
        if let Some((kind, word)) = text.split_once(':') {
            return match kind {
                "category" => word.parse().map(Selector::Category).map_err(|error| format!("{error}")),
                "region" => Ok(Selector::Region(word.to_owned())),
                "tag" => Ok(Selector::Tag(word.to_owned())),
                _ => Err(format!(
                    "`{text}` does not name rules: use an id, `prefix-*`, `category:…`, `region:…` or `tag:…`"
                )),
            };
        }
        match text.split_once('*') {
            Some((prefix, "")) => Ok(Selector::Prefix(prefix.to_owned())),
            Some(_) => Err(format!("`{text}` has a `*` that is not at its end: move it there")),
            None if text.is_empty() => Err("a rule's name is empty: remove it".to_owned()),
            None => Ok(Selector::Id(text.to_owned())),
        }
    }

    pub fn names(&self, rule: &Rule) -> bool {
        match self {
            Selector::Id(id) => *rule.id == **id,
            Selector::Prefix(prefix) => rule.id.starts_with(prefix.as_str()),
            Selector::Category(category) => rule.category == *category,
            Selector::Region(region) => rule.regions.iter().any(|known| known.eq_ignore_ascii_case(region)),
            Selector::Tag(tag) => rule.tags.contains(tag),
        }
    }

    /// What to say if it names none of `rules`.
    fn names_nothing(&self, rules: &[Rule]) -> String {
        let (said, word, known): (_, _, Vec<&str>) = match self {
            Selector::Id(id) => ("no rule has the id", id, rules.iter().map(|rule| &*rule.id).collect()),
            Selector::Prefix(prefix) => {
                return format!("no rule's id begins with `{prefix}`: `domesday rules list` shows all");
            }
            Selector::Category(category) => {
                return format!("no rule is of the category `{category}`: remove it");
            }
            Selector::Region(region) => {
                ("no rule is of the region", region, words(rules, |rule| &rule.regions))
            }
            Selector::Tag(tag) => ("no rule has the tag", tag, words(rules, |rule| &rule.tags)),
        };
        match nearest(word, &known) {
            Some(near) => format!("{said} `{word}`: did you mean `{near}`?"),
            None => format!("{said} `{word}`: `domesday rules list` shows all"),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selector::Id(id) => f.write_str(id),
            Selector::Prefix(prefix) => write!(f, "{prefix}*"),
            Selector::Category(category) => write!(f, "category:{category}"),
            Selector::Region(region) => write!(f, "region:{region}"),
            Selector::Tag(tag) => write!(f, "tag:{tag}"),
        }
    }
}

fn words(rules: &[Rule], of: impl Fn(&Rule) -> &Vec<String>) -> Vec<&str> {
    let of = |rule| of(rule).iter().map(String::as_str);
    rules.iter().flat_map(of).collect()
}

/// The known word that is written almost like `word`.
fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known.iter().map(|known| (distance(word.as_bytes(), known.as_bytes()), *known));
    near.filter(|(distance, known)| *distance <= NEAR && *distance < known.len().div_ceil(2))
        .min()
        .map(|(_, known)| known)
}

/// How many bytes to add, remove or change to make `b` out of `a`.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut before = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let change = before + usize::from(x != y);
            before = row[j + 1];
            row[j + 1] = change.min(before + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Selectors of one field, and where it is written.
#[derive(Clone, Default, Debug)]
pub struct Selectors {
    pub list: Vec<Selector>,
    at: usize,
}

impl Selectors {
    pub fn new(list: Vec<Selector>) -> Selectors {
        Selectors { list, at: 0 }
    }

    pub fn read(fields: &mut Fields<'_, '_, '_>, name: &'static str) -> Selectors {
        let (texts, at) = fields.texts_at(name);
        let parse = |text: String| Selector::parse(&text).map_err(|reason| fields.complain(at, reason)).ok();
        Selectors { list: texts.into_iter().filter_map(parse).collect(), at }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn name(&self, rule: &Rule) -> bool {
        self.list.iter().any(|selector| selector.names(rule))
    }

    /// Complains about each that names none of `rules`.
    pub fn check(&self, rules: &[Rule], problems: &mut Problems<'_>) {
        for selector in &self.list {
            if !rules.iter().any(|rule| selector.names(rule)) {
                problems.add(None, self.at, selector.names_nothing(rules));
            }
        }
    }
}

/// One file's `[select]`.
#[derive(Clone, Default, Debug)]
pub struct Selection {
    only: Selectors,
    skip: Selectors,
}

impl Selection {
    pub fn read(value: &Spanned<DeValue<'_>>, problems: &mut Problems<'_>) -> Selection {
        let DeValue::Table(table) = value.get_ref() else {
            problems.add(None, value.span().start, "`select` is not a table: write `[select]`");
            return Selection::default();
        };
        let mut fields = Fields::new(table, value.span(), None, problems);
        let only = Selectors::read(&mut fields, "only");
        let skip = Selectors::read(&mut fields, "skip");
        fields.finish();
        Selection { only, skip }
    }

    pub fn check(&self, rules: &[Rule], problems: &mut Problems<'_>) {
        self.only.check(rules, problems);
        self.skip.check(rules, problems);
    }

    /// Whether it takes anything away.
    pub fn is_empty(&self) -> bool {
        self.only.is_empty() && self.skip.is_empty()
    }

    pub fn selects(&self, rule: &Rule) -> bool {
        (self.only.is_empty() || self.only.name(rule)) && !self.skip.name(rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for text in ["aws-access-key-id", "aws-*", "*", "category:secret", "region:fr", "tag:generic"] {
            assert_eq!(Selector::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "a-*-key", "**", "category:secrets", "level:high"] {
            assert!(Selector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_distance_counts_changes() {
        assert_eq!(distance(b"kitten", b"sitting"), 3);
        assert_eq!(distance(b"", b"abc"), 3);
        assert_eq!(distance(b"iban", b"iban"), 0);
    }
}
