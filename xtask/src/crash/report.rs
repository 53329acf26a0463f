//! Reports, and what differs between two of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

/// Differences shown of each kind; all are counted.
const SHOWN_MAX: usize = 10;

/// How a job that is not to be gone on with stands.
const FINAL: &[&str] = &["COMPLETED", "PARTIALLY_COMPLETED", "FAILED", "CANCELLED"];

pub struct Report {
    /// Every finding with all of its fields, and how often it is there.
    findings: BTreeMap<String, u64>,
    /// Counts, reasons and named problems, without the time it took.
    summary: Value,
    pub code: i32,
}

#[derive(Default)]
pub struct Difference {
    pub lost: u64,
    pub duplicated: u64,
    pub foreign: u64,
    pub lines: Vec<String>,
}

impl Difference {
    pub fn is_none(&self) -> bool {
        self.lines.is_empty()
    }

    /// With what differs in another comparison of the same round.
    pub fn and(mut self, about: &str, other: Difference) -> Difference {
        self.lost += other.lost;
        self.duplicated += other.duplicated;
        self.foreign += other.foreign;
        self.lines.extend(other.lines.into_iter().map(|line| format!("{about}: {line}")));
        self
    }
}

impl Report {
    pub fn read(path: &Path, code: i32) -> Result<Report> {
        let text = fs::read(path).with_context(|| format!("cannot read the report {}", path.display()))?;
        let mut report: Value = serde_json::from_slice(&text).context("the report is not JSON")?;
        let mut summary = report["summary"].take();
        summary.as_object_mut().context("the report has no summary")?.remove("elapsed_ms");
        let mut findings = BTreeMap::new();
        for finding in report["findings"].as_array().context("the report has no findings")? {
            *findings.entry(finding.to_string()).or_default() += 1;
        }
        Ok(Report { findings, summary, code })
    }

    pub fn count(&self) -> u64 {
        self.findings.values().sum()
    }

    pub fn count_of_rule(&self, rule: &str) -> u64 {
        let named = format!("\"rule\":\"{rule}\"");
        self.findings.iter().filter(|(finding, _)| finding.contains(&named)).map(|(_, count)| count).sum()
    }

    /// Whether the job had come to its end; one that was interrupted goes on with the next start.
    pub fn is_final(&self) -> bool {
        self.summary["status"].as_str().is_some_and(|status| FINAL.contains(&status))
    }

    pub fn objects(&self) -> &Value {
        &self.summary["objects"]
    }

    /// The same without how much was read, which is less when most of it was known before.
    pub fn without_amounts(&self) -> Report {
        let mut summary = self.summary.clone();
        if let Some(fields) = summary.as_object_mut() {
            fields.retain(|name, _| !["bytes", "objects"].contains(&name.as_str()));
        }
        Report { findings: self.findings.clone(), summary, code: self.code }
    }

    pub fn difference(&self, expected: &Report) -> Difference {
        let mut difference = Difference::default();
        let mut shown = Vec::new();
        for (finding, &count) in &self.findings {
            match expected.findings.get(finding) {
                None => {
                    difference.foreign += count;
                    shown.push(format!("not in the reference: {finding}"));
                }
                Some(&expected) if count > expected => {
                    difference.duplicated += count - expected;
                    shown.push(format!("{count} instead of {expected} times: {finding}"));
                }
                Some(_) => {}
            }
        }
        for (finding, &expected) in &expected.findings {
            let count = self.findings.get(finding).copied().unwrap_or(0);
            if count < expected {
                difference.lost += expected - count;
                shown.push(format!("lost: {finding}"));
            }
        }
        if self.code != expected.code {
            difference.lines.push(format!("exit code {} instead of {}", self.code, expected.code));
        }
        compare("summary", &self.summary, &expected.summary, &mut difference.lines);
        let beyond = shown.len().saturating_sub(SHOWN_MAX);
        difference.lines.extend(shown.into_iter().take(SHOWN_MAX));
        if beyond > 0 {
            difference.lines.push(format!("and {beyond} more findings that differ"));
        }
        difference
    }
}

/// Names every part of two values that differs.
pub fn compare(path: &str, found: &Value, expected: &Value, lines: &mut Vec<String>) {
    match (found, expected) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            for (key, found) in a {
                compare(&format!("{path}.{key}"), found, &b[key], lines);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (found, expected)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{index}]"), found, expected, lines);
            }
        }
        _ if found != expected => lines.push(format!("{path}: {found} instead of {expected}")),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(findings: &[&str], done: u64) -> Report {
        let mut counted = BTreeMap::new();
        for finding in findings {
            *counted.entry((*finding).to_owned()).or_default() += 1;
        }
        Report { findings: counted, summary: json!({ "objects": { "done": done } }), code: 1 }
    }

    #[test]
    fn equal_reports_do_not_differ() {
        assert!(report(&["a", "b"], 2).difference(&report(&["b", "a"], 2)).is_none());
    }

    #[test]
    fn lost_duplicated_and_foreign_findings_are_counted_apart() {
        let difference = report(&["a", "a", "c"], 2).difference(&report(&["a", "b"], 2));
        assert_eq!((difference.lost, difference.duplicated, difference.foreign), (1, 1, 1));
        assert_eq!(difference.lines.len(), 3);
    }

    #[test]
    fn counts_are_compared_by_name() {
        let difference = report(&[], 2).difference(&report(&[], 3));
        assert_eq!(difference.lines, ["summary.objects.done: 2 instead of 3"]);
    }
}
