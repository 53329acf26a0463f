//! The files an evaluation reads: one JSON object a line, in one of three forms that are told apart by their fields
//! and never by the file's name. It must not know what any type or kind means.

use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

/// One line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub text: String,
    /// Where the text would stand, for what depends on it; empty for nowhere.
    pub path: String,
    pub form: Form,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Form {
    /// `kind`, `match`, `text`: a secret of that kind is inside, or only a look-alike.
    Secret { kind: String, is_one: bool },
    /// `text`, `spans`: everything of the labelled types is labelled.
    Spans(Vec<Label>),
    /// `kind`, `text`: nothing is inside.
    Nothing { kind: String },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    pub name: String,
    /// In bytes, whatever the file counts in.
    pub span: Range<usize>,
}

/// One file that holds entries.
pub struct Set {
    pub path: PathBuf,
    pub entries: Vec<Entry>,
}

/// Every set of a folder, in the order of their names; folders inside are not looked into.
pub fn read_folder(folder: &Path) -> Result<Vec<Set>> {
    let listed = std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths = listed.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    let mut sets = Vec::new();
    for path in paths.into_iter().filter(|path| path.is_file()) {
        let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        // Whatever else lies in the folder, a description of the sets for instance, has no object in its first line.
        let Ok(text) = String::from_utf8(bytes) else { continue };
        if first_line(&text).is_some_and(|line| serde_json::from_str::<Map<String, Value>>(line).is_ok()) {
            let entries = read(&text).with_context(|| format!("in {}", path.display()))?;
            sets.push(Set { path, entries });
        }
    }
    if sets.is_empty() {
        bail!("{} has no file with one JSON object a line; see docs/evaluation.md", folder.display());
    }
    Ok(sets)
}

fn first_line(text: &str) -> Option<&str> {
    text.lines().find(|line| !line.trim().is_empty())
}

/// Reads lines; what is in none of the forms is an error.
pub fn read(text: &str) -> Result<Vec<Entry>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(index, line)| entry(line).with_context(|| format!("line {}", index + 1))).collect()
}

fn entry(line: &str) -> Result<Entry> {
    let fields: Map<String, Value> = serde_json::from_str(line).context("not a JSON object")?;
    let text = text_of(&fields, "text")?.context("has no `text`")?.to_owned();
    let path = text_of(&fields, "path")?.unwrap_or_default().to_owned();
    let kind = text_of(&fields, "kind")?.map(str::to_owned);
    let form = match (fields.get("match"), fields.get("spans"), kind) {
        (Some(Value::Bool(is_one)), None, kind) => {
            Form::Secret { kind: kind.unwrap_or_default(), is_one: *is_one }
        }
        (None, Some(Value::Array(spans)), _) => {
            Form::Spans(spans.iter().map(|span| label(span, &text)).collect::<Result<_>>()?)
        }
        (None, None, Some(kind)) => Form::Nothing { kind },
        _ => bail!("has neither `match` (true or false), nor `spans` (a list), nor a `kind` alone"),
    };
    Ok(Entry { text, path, form })
}

fn text_of<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => bail!("`{name}` is not a text"),
    }
}

fn label(span: &Value, text: &str) -> Result<Label> {
    let name = span["type"].as_str().context("a span has no `type`")?.to_owned();
    let offset = |field: &str| -> Result<usize> {
        let characters = span[field].as_u64().with_context(|| format!("a span has no `{field}`"))?;
        byte_of(text, characters).with_context(|| format!("a span's `{field}` is beyond the text"))
    };
    let (start, end) = (offset("start")?, offset("end")?);
    if start >= end {
        bail!("a span of {name} ends where it starts, or before");
    }
    Ok(Label { name, span: start..end })
}

/// Where a character begins; the one after the last is the text's end.
fn byte_of(text: &str, characters: u64) -> Option<usize> {
    let starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts.into_iter().nth(usize::try_from(characters).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_told_apart_by_their_fields() {
        let read = |line: &str| read(line).unwrap().remove(0);
        let secret = read(r#"{"kind": "a", "match": true, "text": "t"}"#);
        assert_eq!(secret.form, Form::Secret { kind: "a".to_owned(), is_one: true });
        let nothing = read(r#"{"kind": "a", "text": "t", "path": "b.c"}"#);
        assert_eq!(nothing.form, Form::Nothing { kind: "a".to_owned() });
        assert_eq!(nothing.path, "b.c");
        let spans = read(
            r#"{"text": "ab", "spans": [{"type": "X", "start": 1, "end": 2, "value": "b"}], "template": 7}"#,
        );
        assert_eq!(spans.form, Form::Spans(vec![Label { name: "X".to_owned(), span: 1..2 }]));
        assert_eq!(read(r#"{"text": "ab", "spans": []}"#).form, Form::Spans(Vec::new()));
    }

    #[test]
    fn offsets_are_characters() {
        let line = r#"{"text": "é 漢字 x", "spans": [{"type": "X", "start": 2, "end": 6}]}"#;
        let entry = read(line).unwrap().remove(0);
        let Form::Spans(labels) = &entry.form else { panic!("{entry:?}") };
        assert_eq!(&entry.text[labels[0].span.clone()], "漢字 x");
    }

    #[test]
    fn what_is_wrong_names_its_line() {
        for wrong in [
            "[]",
            "{",
            r#"{"kind": "a", "match": true}"#,
            r#"{"text": "t"}"#,
            r#"{"text": 1, "spans": []}"#,
            r#"{"text": "t", "match": "yes"}"#,
            r#"{"text": "t", "spans": [{"type": "X", "start": 0, "end": 2}]}"#,
            r#"{"text": "t", "spans": [{"type": "X", "start": 1, "end": 1}]}"#,
            r#"{"text": "t", "spans": [{"start": 0, "end": 1}]}"#,
        ] {
            let lines = format!("{{\"text\": \"t\", \"spans\": []}}\n\n{wrong}\n");
            let error = read(&lines).expect_err(wrong);
            assert!(format!("{error:#}").starts_with("line 3: "), "{error:#}");
        }
    }

    #[test]
    fn other_files_of_a_folder_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read_folder(folder.path()).is_err());
        std::fs::write(folder.path().join("README.md"), "# Sets\n").unwrap();
        std::fs::write(folder.path().join("image.bin"), [0xff, 0xfe]).unwrap();
        std::fs::write(folder.path().join("any-name"), "\n{\"text\": \"t\", \"spans\": []}\n").unwrap();
        let sets = read_folder(folder.path()).unwrap();
        assert_eq!(sets.len(), 1);
        assert_eq!(sets[0].entries.len(), 1);
        std::fs::write(folder.path().join("broken.jsonl"), "{\"a\": 1}\n").unwrap();
        assert!(read_folder(folder.path()).is_err());
    }
}
