//! Configuration as people write it: TOML or JSON, from a file or standard input, read field by field.
//!
//! Every problem is told by its field, and with the nearest name that is known where one is not. No message
//! quotes a value: what was put into a field by mistake may be a secret.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::args::values::Setting;

/// Bytes of a document, at most.
const DOCUMENT_BYTES_MAX: u64 = 16 << 20;
/// What a document may hold at its top; a command takes its own and leaves the others alone.
const SECTIONS: [&str; 2] = ["datasource", "template"];

/// A document that was read.
pub struct Document {
    /// What paths in it are relative to.
    pub folder: PathBuf,
    /// The definitions in it, in their order; at least one.
    pub entries: Vec<Value>,
}

/// Reads the definitions of one section: the whole document, a list, or `[[section]]`.
pub fn read(path: &Path, section: &'static str) -> Result<Document> {
    let is_stdin = path.as_os_str() == "-";
    let shown = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
    let text = text_of(path, is_stdin).with_context(|| format!("cannot read {shown}"))?;
    let value = parse(&text, path.extension().and_then(|extension| extension.to_str()))
        .map_err(|problem| anyhow::anyhow!("{shown}:{problem}"))?;
    let entries = entries(value, section).with_context(|| shown.clone())?;
    if entries.is_empty() {
        bail!("{shown}: there is no {section} in it");
    }
    let folder = if is_stdin { PathBuf::new() } else { path.parent().unwrap_or(Path::new("")).to_owned() };
    Ok(Document { folder, entries })
}

fn text_of(path: &Path, is_stdin: bool) -> Result<String> {
    let mut bytes = Vec::new();
    if is_stdin {
        std::io::stdin().lock().take(DOCUMENT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    } else {
        std::fs::File::open(path)?.take(DOCUMENT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > DOCUMENT_BYTES_MAX {
        bail!("it is longer than {DOCUMENT_BYTES_MAX} bytes");
    }
    String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("it is not UTF-8 text"))
}

/// The format is told by the extension, or else by how the text begins. The problem is `line:column: what`.
fn parse(text: &str, extension: Option<&str>) -> Result<Value, String> {
    let is_json = match extension {
        Some("json") => true,
        Some("toml") => false,
        _ => begins_as_json(text),
    };
    if is_json {
        return serde_json::from_str(text).map_err(|error| {
            let said = error.to_string();
            let what = said.rsplit_once(" at line ").map_or(said.as_str(), |(what, _)| what);
            format!("{}:{}: this is not JSON: {what}", error.line(), error.column())
        });
    }
    toml::from_str(text).map_err(|error| {
        let before = &text[..error.span().map_or(0, |span| span.start).min(text.len())];
        let line = 1 + before.matches('\n').count();
        let column = 1 + before.rsplit('\n').next().unwrap_or_default().chars().count();
        format!("{line}:{column}: this is not TOML: {}", error.message().replace('\n', ", "))
    })
}

/// A brace, or a list of braces: TOML has a name after its bracket.
fn begins_as_json(text: &str) -> bool {
    let text = text.trim_start();
    match text.strip_prefix('[') {
        Some(rest) => rest.trim_start().starts_with(['{', ']']),
        None => text.starts_with('{'),
    }
}

fn entries(value: Value, section: &'static str) -> Result<Vec<Value>> {
    let mut map = match value {
        Value::Array(entries) => return Ok(entries),
        Value::Object(map) => map,
        _ => bail!("expected a {section} or a list of them"),
    };
    if !SECTIONS.iter().any(|section| map.contains_key(*section)) {
        return Ok(vec![Value::Object(map)]);
    }
    let own = map.remove(section);
    if let Some(unknown) = map.keys().find(|key| !SECTIONS.contains(&key.as_str())) {
        bail!("{}", unknown_field(unknown, SECTIONS));
    }
    Ok(match own {
        Some(Value::Array(entries)) => entries,
        Some(one) => vec![one],
        None => Vec::new(),
    })
}

/// A table being read. Each known field is taken once; [`Fields::finish`] complains about the rest.
pub struct Fields {
    /// What it describes, for messages: `datasource shares`, and the way in.
    pub what: String,
    map: Map<String, Value>,
    known: Vec<&'static str>,
}

impl Fields {
    pub fn new(what: impl Into<String>, value: Value) -> Result<Fields> {
        let what = what.into();
        match value {
            Value::Object(map) => Ok(Fields { what, map, known: Vec::new() }),
            _ => bail!("{what}: expected a table of fields"),
        }
    }

    /// A field's value; `null` is as good as absent.
    pub fn value(&mut self, field: &'static str) -> Option<Value> {
        self.known.push(field);
        self.map.remove(field).filter(|value| !value.is_null())
    }

    /// A field of some type; `expected` says in words which.
    pub fn take<T: DeserializeOwned>(&mut self, field: &'static str, expected: &str) -> Result<Option<T>> {
        let Some(value) = self.value(field) else { return Ok(None) };
        match serde_json::from_value(value) {
            Ok(value) => Ok(Some(value)),
            Err(_) => bail!("{}: {field}: expected {expected}", self.what),
        }
    }

    pub fn text(&mut self, field: &'static str) -> Result<Option<String>> {
        self.take(field, "text")
    }

    pub fn needed_text(&mut self, field: &'static str) -> Result<String> {
        match self.text(field)? {
            Some(text) if !text.is_empty() => Ok(text),
            _ => bail!("{}: {field}: is missing", self.what),
        }
    }

    /// Fields that the book adds when it shows a definition.
    pub fn leave_out(&mut self, fields: &[&str]) {
        self.map.retain(|field, _| !fields.contains(&field.as_str()));
    }

    pub fn finish(self) -> Result<()> {
        match self.map.keys().next() {
            Some(unknown) => bail!("{}: {}", self.what, unknown_field(unknown, self.known)),
            None => Ok(()),
        }
    }
}

/// `unknown field `rooot`, did you mean `root`?`
pub fn unknown_field<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(unknown, known.clone()) {
        Some(near) => format!("unknown field `{unknown}`; did you mean `{near}`?"),
        None => {
            let known: Vec<String> = known.into_iter().map(|name| format!("`{name}`")).collect();
            format!("unknown field `{unknown}`; known: {}", known.join(", "))
        }
    }
}

/// The known name that takes the fewest changes to become `name`, if those are few.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = name.chars().count().div_ceil(3);
    let (changes, near) = known.into_iter().map(|known| (distance(name, known), known)).min()?;
    (changes <= most).then_some(near)
}

/// Insertions, deletions and replacements between two names.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// Puts each setting in its place, making the tables on the way.
pub fn apply(settings: &[Setting], to: &mut Value) -> Result<()> {
    for Setting { path, value } in settings {
        let mut place = &mut *to;
        for part in path {
            if place.is_null() {
                *place = Value::Object(Map::new());
            }
            let Value::Object(map) = place else {
                bail!("{}: what is before `{part}` is a value, not a table", path.join("."))
            };
            place = map.entry(part.clone()).or_insert(Value::Null);
        }
        *place = value.clone();
    }
    Ok(())
}

/// Takes a field away; whether it was there.
pub fn remove(path: &str, from: &mut Value) -> bool {
    match path.split_once('.') {
        Some((first, rest)) => from.get_mut(first).is_some_and(|inner| remove(rest, inner)),
        None => from.as_object_mut().is_some_and(|map| map.remove(path).is_some()),
    }
}

/// A field that differs between two definitions.
#[derive(serde::Serialize, PartialEq, Debug)]
pub struct Change {
    pub field: String,
    pub from: Option<Value>,
    pub to: Option<Value>,
}

/// What differs, field by field, in the order of their names; lists are compared whole.
pub fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    compare("", Some(before), Some(after), &mut found);
    found
}

fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Change>) {
    let table = |value: Option<&Value>| value.and_then(Value::as_object).cloned();
    if let (Some(old), Some(new)) = (table(before), table(after)) {
        let names: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            compare(&inner, old.get(name), new.get(name), found);
        }
        return;
    }
    let given = |value: Option<&Value>| value.filter(|value| !value.is_null()).cloned();
    let (from, to) = (given(before), given(after));
    if from != to {
        found.push(Change { field: path.to_owned(), from, to });
    }
}

#[cfg(test)]
mod tests;
