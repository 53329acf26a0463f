//! Kinds of data source are named by the connectors alone: everything else asks a factory. And no connector imports
//! another.
//!
//! The kinds are those of the generated reference in `docs/connectors.md`, which a test keeps up to date. The check
//! reads text: a string that is a kind is an offence wherever it stands, unless it is listed here with what else it
//! means.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::sources::{files, is_test_file, production_lines};

/// The document that lists the kinds, and how a line of it does.
const REFERENCE: &str = "docs/connectors.md";
const HEADING: &str = "### `";
/// The one file that registers connectors.
const REGISTRATION: &str = "crates/cli/src/connectors.rs";
/// The crates of the connectors, as code names them.
const CONNECTOR_CRATES: &[&str] = &[concat!("domesday_", "connectors"), concat!("domesday_", "git")];
/// One folder or file per connector.
const CONNECTORS: &str = "crates/connectors/src/";
/// Where kinds may be named: the connectors, and what only tests run. The engine knows no data sources: its words are
/// those of rules.
const FREE: &[&str] = &[
    CONNECTORS,
    "crates/git/",
    "crates/testkit/",
    "crates/fuzz-targets/",
    "crates/engine/",
    "crates/store/src/conformance/",
    "crates/store/src/testing.rs",
    "crates/connector/src/conformance/",
];
/// Words that are also kinds, with the file in which they mean something else.
const OTHER_MEANINGS: &[(&str, &[&str])] = &[
    // Names of login methods.
    ("crates/connector/src/credentials/method.rs", &["github", "s3", "gcs", "azure"]),
    // The name of a file format.
    ("crates/content/src/sqlite/mod.rs", &["sqlite"]),
    // A type of scan target.
    ("crates/model/src/target.rs", &["url"]),
];

pub fn check(root: &Path) -> Result<Vec<String>> {
    let reference =
        fs::read_to_string(root.join(REFERENCE)).with_context(|| format!("cannot read {REFERENCE}"))?;
    let kinds = kinds(&reference);
    if kinds.is_empty() {
        bail!("{REFERENCE}: names no kind in a line that begins with {HEADING}");
    }
    let mut offences = Vec::new();
    for path in files(&root.join("crates"))? {
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        if name.ends_with(".rs") {
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {name}"))?;
            offences.extend(offences_of(&name, &text, &kinds));
        }
    }
    Ok(offences)
}

fn kinds(reference: &str) -> Vec<&str> {
    reference.lines().filter_map(|line| line.strip_prefix(HEADING)?.split('`').next()).collect()
}

fn offences_of(name: &str, text: &str, kinds: &[&str]) -> Vec<String> {
    let is_free = name == REGISTRATION
        || FREE.iter().any(|folder| name.starts_with(folder))
        || is_test_file(name)
        || !name.contains("/src/");
    if let Some(place) = name.strip_prefix(CONNECTORS) {
        return imports_of_others(name, place, text);
    }
    if is_free {
        return Vec::new();
    }
    let meant = OTHER_MEANINGS.iter().find(|(file, _)| *file == name).map_or(&[][..], |(_, words)| words);
    let lines: Vec<&str> = text.lines().collect();
    let is_production = production_lines(&lines);
    let mut offences = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        if !is_production[index] || code.starts_with("//") {
            continue;
        }
        let at = format!("{name}:{}", index + 1);
        if CONNECTOR_CRATES.iter().any(|named| code.contains(named)) {
            offences.push(format!("{at}: a concrete connector; only {REGISTRATION} may name one"));
        }
        let named =
            kinds.iter().filter(|kind| !meant.contains(kind) && code.contains(&format!("\"{kind}\"")));
        offences.extend(
            named.map(|kind| format!("{at}: the kind `{kind}`: ask the connector's factory instead")),
        );
    }
    offences
}

/// Where a connector names a module of the crate that is not its own.
fn imports_of_others(name: &str, place: &str, text: &str) -> Vec<String> {
    let own = place.split(['/', '.']).next().unwrap_or_default();
    let is_of_other = |line: &str| {
        let mut named = line.split("crate::").skip(1).filter(|_| !line.trim_start().starts_with("//"));
        named.any(|path| path.split(|c: char| !c.is_alphanumeric() && c != '_').next() != Some(own))
    };
    let offences = text.lines().enumerate().filter(|(_, line)| is_of_other(line));
    offences.map(|(index, _)| format!("{name}:{}: `{own}` imports another connector", index + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, text: &str, expect: &[&str]) {
        let found = offences_of(name, text, &["git", "github"]);
        assert_eq!(found.len(), expect.len(), "{found:?}");
        for (found, expect) in found.iter().zip(expect) {
            assert!(found.contains(expect), "{found}");
        }
    }

    #[test]
    fn a_kind_is_named_by_connectors_only() {
        let text = "//! Owns.\nif kind == \"git\" {}\n";
        check("crates/cli/src/target/mod.rs", text, &["mod.rs:2: the kind `git`"]);
        check("crates/model/src/job.rs", text, &["job.rs:2: the kind `git`"]);
        check("crates/git/src/lib.rs", text, &[]);
        check("crates/connectors/src/github/mod.rs", text, &[]);
        check(REGISTRATION, text, &[]);
        check("crates/cli/src/target/tests.rs", text, &[]);
        check("crates/cli/tests/usage.rs", text, &[]);
        let tests = "#[cfg(test)]\nmod tests {\n    \"git\"\n}\n";
        check("crates/cli/src/a.rs", &format!("//! Owns.\n// \"git\"\n{tests}"), &[]);
        check("crates/cli/src/a.rs", &format!("//! Owns.\n{tests}\"git\"\n"), &["a.rs:6: the kind `git`"]);
        let two = "//! Owns.\n[\"git\", \"github\"]\n";
        check("crates/cli/src/a.rs", two, &["a.rs:2: the kind `git`", "a.rs:2: the kind `github`"]);
        check("crates/cli/src/a.rs", "//! Owns.\n\"--kind git\"\n", &[]);
    }

    #[test]
    fn a_word_may_mean_something_else_in_its_file() {
        let text = "//! Owns.\nMethod::Github => \"github\",\n\"git\"\n";
        check("crates/connector/src/credentials/method.rs", text, &["method.rs:3: the kind `git`"]);
    }

    #[test]
    fn a_concrete_connector_is_imported_by_the_registration_only() {
        for named in CONNECTOR_CRATES {
            let text = format!("//! Owns.\nuse {named}::GitConfig;\n");
            check("crates/cli/src/a.rs", &text, &["a.rs:2: a concrete connector"]);
            check(REGISTRATION, &text, &[]);
        }
    }

    #[test]
    fn no_connector_imports_another() {
        let text = "//! Of crate::url.\nuse crate::databases::name;\nuse super::config;\n";
        check("crates/connectors/src/databases/mysql/mod.rs", text, &[]);
        check("crates/connectors/src/stdin.rs", text, &["stdin.rs:2: `stdin` imports another connector"]);
    }

    #[test]
    fn kinds_are_read_from_the_reference() {
        assert_eq!(kinds("# A\n### `git`: a repository\n### other\n### `s3`: x\n"), ["git", "s3"]);
    }
}
