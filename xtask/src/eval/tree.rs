//! A source tree, scanned by the release binary as a user does: every secret and every validated identifier by its
//! place, the rest as counts. A tree that is public source code has next to none of the former.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use domesday_engine::RuleSet;
use serde::{Deserialize, Serialize};

use super::engine::Claim;
use crate::workspace::{Build, Workspace};

/// What the binary answers with when it scanned: nothing found, something found, something left out.
const EXITS: [i32; 3] = [0, 1, 3];

#[derive(Serialize)]
pub struct Tree {
    path: PathBuf,
    pub listed: Vec<Listed>,
    /// Of e-mail and IP addresses, by rule.
    addresses: BTreeMap<String, u64>,
    /// Of everything else, by rule.
    others: BTreeMap<String, u64>,
}

/// A finding, of which the report shows no more than a preview.
#[derive(Serialize, Deserialize)]
pub struct Listed {
    path: String,
    line: u64,
    rule: String,
    score: u8,
    preview: String,
}

pub fn scan(tree: &Path, exclude: &[String], rules: &RuleSet) -> Result<Tree> {
    let workspace = Workspace::load()?;
    let folder = workspace.target.join("eval");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let binary = workspace.build(&folder, Build::Release)?;
    let (state, report) = (folder.join("state"), folder.join("tree.jsonl"));
    if state.exists() {
        std::fs::remove_dir_all(&state).with_context(|| format!("cannot remove {}", state.display()))?;
    }
    let mut command = Command::new(&binary);
    command.arg("scan").arg(tree).arg("--state").arg(&state).arg("--output").arg(&report);
    command.args(["--quiet", "--format", "jsonl", "--level", "medium"]);
    command.args(exclude.iter().flat_map(|pattern| ["--exclude", pattern]));
    let status = command.stdin(Stdio::null()).status().context("cannot run the binary")?;
    if !status.code().is_some_and(|code| EXITS.contains(&code)) {
        bail!("the scan of {} ended with {status}", tree.display());
    }
    let text = std::fs::read_to_string(&report).context("cannot read the report")?;
    sort_out(tree, &text, rules)
}

fn sort_out(tree: &Path, report: &str, rules: &RuleSet) -> Result<Tree> {
    let mut sorted = Tree {
        path: tree.to_owned(),
        listed: Vec::new(),
        addresses: BTreeMap::new(),
        others: BTreeMap::new(),
    };
    // A last line may say what marks in the tree and the exclusions left out.
    for line in report.lines().filter(|line| !line.starts_with(r#"{"summary":"#)) {
        let found: Listed = serde_json::from_str(line).context("a line of the report is no finding")?;
        let rule = rules.get(&found.rule).with_context(|| format!("no rule is called {}", found.rule))?;
        match Claim::of(rule) {
            Claim::Secret | Claim::Validated => sorted.listed.push(found),
            Claim::Address => *sorted.addresses.entry(found.rule).or_default() += 1,
            Claim::Other => *sorted.others.entry(found.rule).or_default() += 1,
        }
    }
    let place = |found: &Listed| (found.rule.clone(), found.path.clone(), found.line);
    sorted.listed.sort_by_key(place);
    Ok(sorted)
}

impl Display for Tree {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} secrets and validated identifiers", self.path.display(), self.listed.len())?;
        for Listed { path, line, rule, score, preview } in &self.listed {
            writeln!(f, "  {path}:{line}: {rule} {score} {preview}")?;
        }
        for (title, counts) in [("addresses", &self.addresses), ("others", &self.others)] {
            let counts: Vec<String> = counts.iter().map(|(rule, count)| format!("{rule} {count}")).collect();
            writeln!(
                f,
                "  {title}: {}",
                if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_sorted_by_what_they_claim() {
        let line = |rule: &str, line: u64| {
            format!(
                r#"{{"path": "a.c", "rule": "{rule}", "score": 60, "line": {line}, "preview": "x", "column": 1}}"#
            )
        };
        let report = [
            line("payment-card", 9),
            line("email-address", 2),
            line("aws-access-key-id", 3),
            line("payment-card", 4),
            line("person-age", 5),
            line("email-address", 6),
        ];
        let rules = RuleSet::builtin().unwrap();
        let tree = sort_out(Path::new("tree"), &report.join("\n"), &rules).unwrap();
        let listed: Vec<(&str, u64)> = tree.listed.iter().map(|found| (&*found.rule, found.line)).collect();
        assert_eq!(listed, [("aws-access-key-id", 3), ("payment-card", 4), ("payment-card", 9)]);
        assert_eq!(tree.addresses.get("email-address"), Some(&2));
        assert_eq!(tree.others.get("person-age"), Some(&1));
        assert!(sort_out(Path::new("tree"), &line("no-such-rule", 1), &rules).is_err());
    }
}
