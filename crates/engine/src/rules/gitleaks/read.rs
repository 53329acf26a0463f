//! The Gitleaks configuration format as it is written: names of fields in any case, single values where lists are
//! meant, numbers in quotes, older names beside newer ones. It knows the format, not what the engine makes of it;
//! what it cannot read is noted and left out.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::rules::allow::Target;
use crate::rules::toml_reader::Problems;
use crate::rules::{RuleError, RuleSource};

/// Fields at the top of a file that tell its format.
const MARKS: &[&str] = &["title", "rules", "allowlist", "allowlists", "extend", "minversion"];

/// One file.
#[derive(Default, Debug)]
pub struct File {
    pub rules: Vec<RawRule>,
    pub allows: Vec<RawAllow>,
    pub use_default: bool,
    /// The path of the file whose rules it adds to.
    pub base: Option<String>,
    pub disabled: Vec<String>,
    /// What of it could not be read.
    pub notes: Vec<RuleError>,
}

/// A rule as it is written.
#[derive(Default, Debug)]
pub struct RawRule {
    pub id: String,
    pub description: String,
    pub regex: String,
    pub path: String,
    pub secret_group: usize,
    pub entropy: f64,
    pub keywords: Vec<String>,
    pub tags: Vec<String>,
    pub allows: Vec<RawAllow>,
    pub has_required: bool,
    pub skip_report: bool,
    /// Where it is written.
    pub at: usize,
}

/// An allow list as it is written.
#[derive(Default, Debug)]
pub struct RawAllow {
    pub target_rules: Vec<String>,
    pub all: bool,
    pub has_commits: bool,
    pub paths: Vec<String>,
    pub regexes: Vec<String>,
    pub target: Target,
    pub stopwords: Vec<String>,
    pub at: usize,
}

/// Whether a file is of this format.
pub fn is_gitleaks(document: &DeTable<'_>) -> bool {
    let has = |names: &[&str]| {
        document.keys().any(|key| names.iter().any(|name| key.get_ref().eq_ignore_ascii_case(name)))
    };
    has(MARKS) && !has(&["rule", "allow", "select"])
}

/// Reads a file that [`is_gitleaks`].
pub fn read(document: &DeTable<'_>, source: &RuleSource) -> File {
    let mut notes = Problems::new(&source.name, &source.text);
    let mut file = File::default();
    let mut fields = Fields::new(document, None, &mut notes);
    ["title", "description", "minversion"].into_iter().for_each(|name| _ = fields.get(name));
    if let Some((extend, _)) = fields.table("extend") {
        let mut extend = Fields::new(extend, None, fields.notes);
        file.use_default = extend.flag("usedefault");
        file.base = Some(extend.text("path")).filter(|path| !path.is_empty());
        file.disabled = extend.texts("disabledrules");
        if let Some(url) = extend.get("url") {
            extend
                .note(url.span().start, "`extend.url` is not read: save the file and name it with `--rules`");
        }
        extend.finish();
    }
    for (number, (rule, at)) in fields.tables("rules").into_iter().enumerate() {
        let rule = read_rule(rule, at, number + 1, fields.notes);
        file.rules.extend(rule);
    }
    file.allows = read_allows(&mut fields);
    fields.finish();
    File { notes: notes.found, ..file }
}

fn read_rule(table: &DeTable<'_>, at: usize, number: usize, notes: &mut Problems<'_>) -> Option<RawRule> {
    let id = Fields::new(table, None, notes).text("id");
    if id.is_empty() {
        notes.add(None, at, format!("rule {number} has no id: it is left out"));
        return None;
    }
    let mut fields = Fields::new(table, Some(&id), notes);
    let mut rule = RawRule { at, id: fields.text("id"), ..RawRule::default() };
    rule.description = fields.text("description");
    rule.regex = fields.text("regex");
    rule.path = fields.text("path");
    rule.secret_group = fields.number("secretgroup").unwrap_or(0.0) as usize;
    rule.entropy = fields.number("entropy").unwrap_or(0.0);
    rule.keywords = fields.texts("keywords");
    rule.tags = fields.texts("tags");
    rule.allows = read_allows(&mut fields);
    rule.has_required = !fields.tables("required").is_empty();
    rule.skip_report = fields.flag("skipreport");
    fields.finish();
    Some(rule)
}

/// The allow lists of a rule or of the file, in the older form and the newer.
fn read_allows(fields: &mut Fields<'_, '_, '_>) -> Vec<RawAllow> {
    let tables = [fields.tables("allowlist"), fields.tables("allowlists")].concat();
    tables.into_iter().map(|(table, at)| read_allow(table, at, fields.rule, fields.notes)).collect()
}

fn read_allow(table: &DeTable<'_>, at: usize, rule: Option<&str>, notes: &mut Problems<'_>) -> RawAllow {
    let mut fields = Fields::new(table, rule, notes);
    fields.get("description");
    let mut allow = RawAllow { at, target_rules: fields.texts("targetrules"), ..RawAllow::default() };
    allow.all = match fields.text("condition").to_ascii_uppercase().as_str() {
        "AND" | "&&" => true,
        "OR" | "||" | "" => false,
        _ => {
            fields.note(at, "the allow list's `condition` is neither AND nor OR: it is read as OR");
            false
        }
    };
    allow.has_commits = !fields.texts("commits").is_empty();
    allow.paths = fields.texts("paths");
    allow.regexes = fields.texts("regexes");
    allow.target = match fields.text("regextarget").as_str() {
        "" | "secret" => Target::Value,
        "match" => Target::Match,
        "line" => Target::Line,
        _ => {
            fields.note(at, "the allow list's `regexTarget` is not known: it is read as `secret`");
            Target::Value
        }
    };
    allow.stopwords = fields.texts("stopwords");
    fields.finish();
    allow
}

/// A table being read.
struct Fields<'t, 'p, 'a> {
    table: &'t DeTable<'t>,
    rule: Option<&'p str>,
    known: Vec<&'static str>,
    notes: &'p mut Problems<'a>,
}

impl<'t, 'p, 'a> Fields<'t, 'p, 'a> {
    fn new(table: &'t DeTable<'t>, rule: Option<&'p str>, notes: &'p mut Problems<'a>) -> Self {
        Fields { table, rule, known: Vec::new(), notes }
    }

    fn note(&mut self, at: usize, reason: impl Into<String>) {
        self.notes.add(self.rule, at, reason);
    }

    /// The field of that name, which is in lower case, as it is written.
    fn find(&mut self, name: &'static str) -> Option<(&'t str, &'t Spanned<DeValue<'t>>)> {
        self.known.push(name);
        let mut fields = self.table.iter().map(|(key, value)| (key.get_ref().as_ref(), value));
        fields.find(|(key, _)| key.eq_ignore_ascii_case(name))
    }

    fn get(&mut self, name: &'static str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.find(name).map(|(_, value)| value)
    }

    fn typed<T>(&mut self, name: &'static str, read: impl Fn(&'t DeValue<'t>) -> Option<T>) -> Option<T> {
        let (key, value) = self.find(name)?;
        let read = read(value.get_ref());
        if read.is_none() {
            let reason = format!("`{key}` cannot be a {}: it is left out", value.get_ref().type_str());
            self.note(value.span().start, reason);
        }
        read
    }

    fn text(&mut self, name: &'static str) -> String {
        self.typed(name, |value| value.as_str().map(str::to_owned)).unwrap_or_default()
    }

    fn texts(&mut self, name: &'static str) -> Vec<String> {
        let read = |value: &DeValue<'_>| match value {
            DeValue::String(text) => Some(vec![text.to_string()]),
            DeValue::Array(items) => {
                items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
            }
            _ => None,
        };
        self.typed(name, read).unwrap_or_default()
    }

    fn number(&mut self, name: &'static str) -> Option<f64> {
        let read = |value: &DeValue<'_>| match value {
            DeValue::Integer(number) => number.as_str().parse().ok(),
            DeValue::Float(number) => number.as_str().parse().ok(),
            DeValue::String(number) => number.parse().ok(),
            _ => None,
        };
        self.typed(name, move |value| read(value).filter(|number: &f64| number.is_finite()))
    }

    fn flag(&mut self, name: &'static str) -> bool {
        let read = |value: &DeValue<'_>| value.as_bool().or_else(|| value.as_str()?.parse().ok());
        self.typed(name, read).unwrap_or_default()
    }

    fn table(&mut self, name: &'static str) -> Option<(&'t DeTable<'t>, usize)> {
        self.tables(name).into_iter().next()
    }

    /// A list of tables, or a single one.
    fn tables(&mut self, name: &'static str) -> Vec<(&'t DeTable<'t>, usize)> {
        let Some(at) = self.get(name).map(|value| value.span().start) else { return Vec::new() };
        let read = |value: &'t DeValue<'t>| match value {
            DeValue::Table(table) => Some(vec![(table, at)]),
            DeValue::Array(items) => items
                .iter()
                .map(|item| item.get_ref().as_table().map(|table| (table, item.span().start)))
                .collect(),
            _ => None,
        };
        self.typed(name, read).unwrap_or_default()
    }

    /// Notes every field that nobody asked for.
    fn finish(mut self) {
        for key in self.table.keys() {
            if !self.known.iter().any(|name| key.get_ref().eq_ignore_ascii_case(name)) {
                self.note(key.span().start, format!("`{}` is not known: it is left out", key.get_ref()));
            }
        }
    }
}
