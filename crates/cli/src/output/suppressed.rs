//! What controls keep out of a report, and how much that is: whoever reads a report sees what somebody decided not to
//! show, and can ask for it (`--show-suppressed`).
//!
//! The same facts for every format. What a control leaves out before it is scanned is counted in objects, or in rules:
//! nobody knows what would have been found.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use domesday_model::{Level, Reason, SuppressedBy};
use domesday_store::JobSummary;
use serde::Serialize;

use super::human::{count, counted};
use super::{Style, Summary, text};

/// Reasons by which a control leaves out objects, and the control.
const OBJECT_CONTROLS: [(Reason, &str); 3] =
    [(Reason::Excluded, "exclude"), (Reason::Ignored, "ignore_file"), (Reason::TooLarge, "max_file_size")];

/// A control that keeps one finding out of a report.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Control {
    Scan(SuppressedBy),
    Baseline,
}

impl Control {
    fn name(&self) -> &'static str {
        match self {
            Control::Scan(SuppressedBy::Mark) => "mark",
            Control::Scan(SuppressedBy::Allow(_)) => "allow",
            Control::Baseline => "baseline",
        }
    }

    fn entry(&self) -> Option<&str> {
        match self {
            Control::Scan(SuppressedBy::Allow(name)) => Some(name),
            _ => None,
        }
    }

    /// Whether it is in the content that it is about, in SARIF's words.
    pub fn sarif_kind(&self) -> &'static str {
        if *self == Control::Scan(SuppressedBy::Mark) { "inSource" } else { "external" }
    }

    /// For people.
    pub fn shown(&self) -> Cow<'static, str> {
        match self {
            Control::Scan(SuppressedBy::Mark) => "an ignore mark".into(),
            Control::Scan(SuppressedBy::Allow(name)) => format!("[[allow]] {}", text::shown(name)).into(),
            Control::Baseline => "the baseline".into(),
        }
    }
}

/// One finding that a control keeps out of a report which shows it all the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hidden {
    pub by: Control,
    /// Findings that it stands for, itself included.
    pub count: u64,
}

#[derive(Serialize)]
pub struct HiddenJson<'a> {
    control: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<&'a str>,
    count: u64,
}

impl<'a> HiddenJson<'a> {
    pub fn of(hidden: &'a Hidden) -> HiddenJson<'a> {
        HiddenJson { control: hidden.by.name(), entry: hidden.by.entry(), count: hidden.count }
    }
}

/// How much each control keeps out of a report.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Suppressions {
    findings: BTreeMap<Control, u64>,
    objects: Vec<(&'static str, u64)>,
    /// Rules that a selection leaves out.
    rules: u64,
    /// Findings below it are not looked for; `None` where all are.
    level: Option<Level>,
}

impl Suppressions {
    /// Those of a job, whose selection leaves out so many rules. A report adds those of its own.
    pub fn of(totals: &JobSummary, rules: usize, level: Level) -> Suppressions {
        let objects = |(reason, name)| {
            let counts = totals.skipped.iter().filter(|(skipped, _)| *skipped == reason);
            Some((name, counts.map(|(_, count)| count).sum())).filter(|(_, count)| *count > 0)
        };
        Suppressions {
            findings: totals
                .suppressed
                .iter()
                .map(|(by, count)| (Control::Scan(by.clone()), *count))
                .collect(),
            objects: OBJECT_CONTROLS.into_iter().filter_map(objects).collect(),
            rules: rules as u64,
            level: Some(level).filter(|level| *level > Level::Low),
        }
    }

    /// Counts a finding that the report itself leaves out.
    pub fn add(&mut self, by: Control) {
        *self.findings.entry(by).or_default() += 1;
    }

    /// Whether nothing is left out but what is below a level.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty() && self.objects.is_empty() && self.rules == 0
    }

    /// In the order of controls.
    pub fn json(&self) -> Vec<ControlJson<'_>> {
        let findings = self.findings.iter().map(|(control, count)| ControlJson {
            entry: control.entry(),
            findings: Some(*count),
            ..ControlJson::new(control.name())
        });
        let objects = self
            .objects
            .iter()
            .map(|(name, count)| ControlJson { objects: Some(*count), ..ControlJson::new(name) });
        let rules = (self.rules > 0)
            .then(|| ControlJson { rules: Some(self.rules), ..ControlJson::new("selection") });
        let level =
            self.level.map(|level| ControlJson { level: Some(level.as_str()), ..ControlJson::new("level") });
        findings.chain(objects).chain(rules).chain(level).collect()
    }

    /// What is counted, one line each, for formats that have only lines.
    pub fn lines(&self) -> Vec<String> {
        let findings = self
            .findings
            .iter()
            .map(|(control, n)| format!("{} suppressed by {}", counted(*n, "finding"), control.shown()));
        let objects =
            self.objects.iter().map(|(name, n)| format!("{} left out by {name}", counted(*n, "object")));
        let rules =
            (self.rules > 0).then(|| format!("{} left out by a selection", counted(self.rules, "rule")));
        findings.chain(objects).chain(rules).collect()
    }
}

/// One control of a report. What it left out before the scan has no count of findings.
#[derive(Serialize)]
pub struct ControlJson<'a> {
    control: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    objects: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<u64>,
}

impl ControlJson<'_> {
    fn new(control: &'static str) -> Self {
        ControlJson { control, entry: None, level: None, findings: None, objects: None, rules: None }
    }
}

/// The part of a summary for people. Objects that were left out are among those that were skipped.
pub fn write_suppressed(out: &mut impl Write, summary: &Summary<'_>, style: Style) -> io::Result<()> {
    let suppressed = summary.suppressed;
    // What a baseline hides has a line of its own.
    let findings = || suppressed.findings.iter().filter(|(control, _)| **control != Control::Baseline);
    let total: u64 = findings().map(|(_, n)| n).sum();
    if total > 0 {
        // The label is as long as labels may be.
        super::summary::line(out, style, "suppressed ", &count(total))?;
        for (control, n) in findings() {
            super::summary::count_line(out, *n, &format!("by {}", control.shown()))?;
        }
    }
    if suppressed.rules > 0 {
        let rules = format!("{} left out by a selection", count(suppressed.rules));
        super::summary::line(out, style, "rules", &rules)?;
    }
    Ok(())
}
