//! The texts of allow lists that may be values of people: rewritten where a rule file is kept by others than its owner.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::RuleSource;

/// Fields of an allow, in our format and in that of Gitleaks, that say what is allowed by its content.
const FIELDS: [&str; 3] = ["values", "regexes", "stopwords"];
/// How the sections that allow something begin: `allow`, `allowlist`, `allowlists`.
const SECTION: &str = "allow";

impl RuleSource {
    /// Whether it may have an allow list; a first look, which nearly all files end with.
    pub fn has_allowed(&self) -> bool {
        let begins =
            |line: &str| line.trim_start().starts_with(['[', '"', '\'', 'a']) && line.contains(SECTION);
        self.text.lines().any(begins)
    }

    /// The same file with other texts in its allow lists; those for which `change` gives nothing stay. A file that
    /// is no TOML has none.
    #[must_use]
    pub fn map_allowed(&self, mut change: impl FnMut(&str) -> Option<String>) -> RuleSource {
        let mut texts = Vec::new();
        if self.has_allowed()
            && let Ok(table) = DeTable::parse(&self.text)
        {
            find(table.get_ref(), false, &mut texts);
        }
        texts.sort_unstable_by_key(|(span, _)| span.start);
        let (mut text, mut from) = (String::with_capacity(self.text.len()), 0);
        for (span, value) in texts {
            let Some(changed) = change(&value) else { continue };
            text.push_str(&self.text[from..span.start]);
            text.push_str(&toml::Value::String(changed).to_string());
            from = span.end;
        }
        text.push_str(&self.text[from..]);
        RuleSource { name: self.name.clone(), text }
    }
}

/// The texts of allow lists below a table, and where they are.
fn find(table: &DeTable<'_>, is_allow: bool, texts: &mut Vec<(Range<usize>, String)>) {
    for (name, value) in table {
        let name = name.get_ref();
        if is_allow && FIELDS.contains(&&**name) {
            for value in value.get_ref().as_array().into_iter().flatten() {
                texts.extend(value.get_ref().as_str().map(|text| (value.span(), text.to_owned())));
            }
        }
        each_table(value, &mut |table| find(table, is_allow || name.starts_with(SECTION), texts));
    }
}

fn each_table(value: &Spanned<DeValue<'_>>, see: &mut impl FnMut(&DeTable<'_>)) {
    match value.get_ref() {
        DeValue::Table(table) => see(table),
        DeValue::Array(values) => values.iter().for_each(|value| each_table(value, see)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let source = RuleSource { name: "a.toml".into(), text: text.into() };
        let shouted = source.map_allowed(|text| (text != "stays").then(|| text.to_uppercase()));
        assert_eq!(shouted.text, expected);
    }

    #[test]
    fn only_texts_of_allow_lists_are_changed() {
        check(
            "[[allow]]\nvalues = ['a\\b', \"stays\", \"c\"] # why\npaths = [\"x\"]\n[[rule]]\nregexes = [\"r\"]\n",
            "[[allow]]\nvalues = [\"A\\\\B\", \"stays\", \"C\"] # why\npaths = [\"x\"]\n[[rule]]\nregexes = [\"r\"]\n"
                .replace("\"A\\\\B\"", "'A\\B'")
                .as_str(),
        );
        check(
            "[allowlist]\nregexes = ['''a''']\n[[rules]]\nid = \"b\"\n[[rules.allowlists]]\nstopwords = [\"c\"]\n",
            "[allowlist]\nregexes = [\"A\"]\n[[rules]]\nid = \"b\"\n[[rules.allowlists]]\nstopwords = [\"C\"]\n",
        );
        check("allow = [{ values = [\"a\"] }]", "allow = [{ values = [\"A\"] }]");
        check("no toml at all, allow", "no toml at all, allow");
    }
}
