//! Rules about source files, line by line: module documentation, length, leftovers, SQL, `unsafe`.
//!
//! It reads text, not syntax. A rule that needs a parser belongs into clippy.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Lines of production code in one file, at most. Its tests are not counted.
const PRODUCTION_LINES_MAX: usize = 500;
/// Where source files are.
const FOLDERS: &[&str] = &["crates", "fuzz/src", "xtask"];
/// Where SQL may be: the book's in the store, that of scanned servers with their connectors and the servers of tests,
/// that of embedded databases with their reader, that of recorded sessions, and in the harness that checks the book independently of the store.
const SQL_FOLDERS: &[&str] = &[
    "crates/store/",
    "crates/connectors/src/databases/",
    "crates/content/src/sqlite/",
    "crates/testkit/",
    "crates/fuzz-targets/examples/",
    "xtask/",
];
/// How a statement begins in a string.
const SQL: &[&str] =
    &["\"SELECT ", "\"INSERT INTO ", "\"DELETE FROM ", "\"UPDATE ", "\"CREATE TABLE ", "\"PRAGMA "];

pub fn check(root: &Path) -> Result<Vec<String>> {
    let mut offences = Vec::new();
    for folder in FOLDERS {
        for path in files(&root.join(folder))? {
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            if name.ends_with(".sql") && !may_have_sql(&name) {
                offences.push(format!("{name}: SQL belongs into crates/store"));
            }
            if name.ends_with(".rs") {
                let text = fs::read_to_string(&path).with_context(|| format!("cannot read {name}"))?;
                offences.extend(offences_of(&name, &text));
            }
        }
    }
    Ok(offences)
}

/// All files below a folder, in order of their names.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut waiting) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = waiting.pop() {
        let entries = fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                waiting.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn may_have_sql(name: &str) -> bool {
    SQL_FOLDERS.iter().any(|folder| name.starts_with(folder))
}

pub(super) fn is_test_file(name: &str) -> bool {
    name.contains("/tests/") || name.ends_with("/tests.rs")
}

fn offences_of(name: &str, text: &str) -> Vec<String> {
    let mut offences = Vec::new();
    if !text.starts_with("//!") {
        offences.push(format!("{name}: does not begin with `//!` and what the module owns"));
    }
    let lines: Vec<&str> = text.lines().collect();
    let is_production = production_lines(&lines);
    let production = is_production.iter().filter(|is_production| **is_production).count();
    if production > PRODUCTION_LINES_MAX && !is_test_file(name) {
        offences
            .push(format!("{name}: {production} lines of production code, {PRODUCTION_LINES_MAX} at most"));
    }
    // Spelt apart, so that this file does not accuse itself.
    let leftovers = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:")];
    for (index, line) in lines.iter().enumerate() {
        let at = format!("{name}:{}", index + 1);
        if let Some(leftover) = leftovers.iter().find(|leftover| has_word(line, leftover)) {
            offences
                .push(format!("{at}: `{leftover}`: do it, or write down elsewhere that it is to be done"));
        }
        if is_production[index]
            && !may_have_sql(name)
            && !is_test_file(name)
            && SQL.iter().any(|sql| line.contains(sql))
        {
            offences.push(format!("{at}: SQL belongs into crates/store"));
        }
        if opens_unsafe(line) && !is_argued(&lines[..index]) {
            offences.push(format!("{at}: `unsafe` without a `SAFETY:` comment above it"));
        }
    }
    offences
}

/// For each line whether it is production code: all but the items under `#[cfg(test)]`, wherever in the file they stand.
/// An item ends with the first line of its own indentation that closes it, which `cargo fmt` guarantees.
pub(super) fn production_lines(lines: &[&str]) -> Vec<bool> {
    let mut is_production = vec![true; lines.len()];
    let mut index = 0;
    while index < lines.len() {
        let begin = index;
        index += 1;
        if lines[begin].trim() != "#[cfg(test)]" {
            continue;
        }
        while index < lines.len() && lines[index].trim_start().starts_with(['#', '/']) {
            index += 1;
        }
        let indentation = lines.get(index).map_or(0, |line| indentation(line));
        let closes = |line: &&str| indentation_is(line, indentation) && line.ends_with(['}', ';', ',']);
        let length = lines[index..].iter().position(closes).map_or(lines.len() - index, |end| end + 1);
        index += length;
        is_production[begin..index].fill(false);
    }
    is_production
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn indentation_is(line: &str, expected: usize) -> bool {
    !line.is_empty() && indentation(line) == expected
}

fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        !line[..at].ends_with(is_part) && !line[at + word.len()..].starts_with(is_part)
    })
}

fn opens_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let openings = [concat!("un", "safe {"), concat!("un", "safe impl"), concat!("un", "safe fn")];
    openings.iter().any(|opening| code.contains(opening))
}

/// Whether the comment right above says why it is sound; attributes may stand between.
fn is_argued(above: &[&str]) -> bool {
    let comment = above.iter().rev().map(|line| line.trim()).skip_while(|line| line.starts_with("#["));
    comment
        .take_while(|line| line.starts_with("//"))
        .any(|line| line.contains("SAFETY:") || line.contains("# Safety"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, text: &str, expect: &[&str]) {
        let found = offences_of(name, text);
        assert_eq!(found.len(), expect.len(), "{found:?}");
        for (found, expect) in found.iter().zip(expect) {
            assert!(found.contains(expect), "{found}");
        }
    }

    #[test]
    fn modules_begin_with_what_they_own() {
        check("crates/a/src/b.rs", "//! Owns.\nfn b() {}\n", &[]);
        check("crates/a/src/b.rs", "fn b() {}\n", &["does not begin"]);
        check("crates/a/src/tests.rs", "", &["does not begin"]);
    }

    #[test]
    fn only_production_code_counts() {
        let code = "fn f() {}\n".repeat(PRODUCTION_LINES_MAX - 1);
        let inner = "    fn f() {}\n".repeat(PRODUCTION_LINES_MAX);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{inner}}}\n");
        check("crates/a/src/b.rs", &format!("//! Owns.\n{code}{tests}"), &[]);
        // What comes after an item of tests counts, wherever that item stands.
        for item in [
            "#[cfg(test)]\nmod tests;\n",
            "#[cfg(test)]\nuse a::{\n    b,\n};\n",
            "#[cfg(test)]\n#[allow(x)]\npub fn f(\n    a: A,\n) -> B\nwhere\n    A: C,\n{\n    g();\n}\n",
            tests.as_str(),
        ] {
            check("crates/a/src/b.rs", &format!("//! Owns.\n{item}{code}"), &[]);
            check(
                "crates/a/src/b.rs",
                &format!("//! Owns.\n{item}{code}\n"),
                &["501 lines of production code"],
            );
        }
        let field = "struct S {\n    #[cfg(test)]\n    a: A,\n}\n";
        check("crates/a/src/b.rs", &format!("//! Owns.\n{field}{code}"), &["502 lines of production code"]);
        check("crates/a/src/b.rs", &format!("//! Owns.\n{code}\n"), &["501 lines of production code"]);
        check("crates/a/tests/b.rs", &format!("//! Tests.\n{code}{code}"), &[]);
    }

    #[test]
    fn leftovers_are_named() {
        let text = format!(
            "//! Owns.\n// {}: later\nlet METHOD_{} = 1;\n",
            concat!("TO", "DO"),
            concat!("TO", "DO")
        );
        check("crates/a/src/b.rs", &text, &["b.rs:2"]);
    }

    #[test]
    fn sql_is_the_stores() {
        let text = "//! Owns.\nquery(\"SELECT 1\");\n";
        check("crates/control/src/b.rs", text, &["b.rs:2: SQL belongs"]);
        check("crates/store/src/b.rs", text, &[]);
    }

    #[test]
    fn unsafe_is_argued() {
        let block = concat!("un", "safe { f() }");
        check("crates/a/src/b.rs", &format!("//! Owns.\n{block}\n"), &["b.rs:2: `unsafe` without"]);
        check("crates/a/src/b.rs", &format!("//! Owns.\n// SAFETY: it is.\n#[inline]\n{block}\n"), &[]);
        check("crates/a/src/b.rs", &format!("//! Owns.\n// says {block}\n"), &[]);
    }
}
