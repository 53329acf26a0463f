//! Why a finding is one, or is none: labelled lines below it, and what every rule says of a sample.

use std::io::{self, Write};

use owo_colors::Style as Paint;
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use super::json::write_json_lines;
use super::table::{COLUMN_WIDTH, LINE_WIDTH, paint};
use super::{ListFormat, Style, text};

/// Columns before an explanation.
const INDENT: usize = 13;
/// Columns of its labels.
const LABEL_WIDTH: usize = 13;
/// Columns that a line has at least, however narrow the terminal.
const ROOM_MIN: usize = 24;
/// Columns of a verdict and of a score.
const VERDICT_WIDTH: usize = 9;
const SCORE_WIDTH: usize = 3;

/// Writes labelled lines below a finding. A value of several lines keeps them; an empty one is left out.
pub fn write_below(out: &mut impl Write, fields: &[(&str, String)], style: Style) -> io::Result<()> {
    let taken = INDENT + LABEL_WIDTH;
    let room = style.width.map_or(usize::MAX, |width| width.saturating_sub(taken).max(ROOM_MIN));
    for (label, value) in fields {
        let mut label = text::pad(label, LABEL_WIDTH);
        for line in value.lines() {
            for part in text::wrap(&text::shown(line), room) {
                let line = format!("{:INDENT$}{label}{part}", "");
                writeln!(out, "{}", paint(style, Paint::new().dimmed(), line.trim_end()))?;
                label = " ".repeat(LABEL_WIDTH);
            }
        }
    }
    Ok(())
}

/// What a rule says of one place of a sample.
#[derive(Serialize)]
pub struct Said {
    pub line: u64,
    pub column: u64,
    pub start: usize,
    pub end: usize,
    pub rule: String,
    pub description: String,
    pub category: &'static str,
    pub sensitivity: &'static str,
    pub regulations: Vec<String>,
    /// `reported`, `low`, `refused`, `displaced`, `ignored` or `allowed`.
    pub verdict: &'static str,
    /// The validator that refused it, or the rule that displaced it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<u8>,
    pub reasons: Vec<String>,
    pub decoding: Vec<&'static str>,
    pub preview: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Writes what rules say of a sample, in the order given.
pub fn write_said(out: &mut impl Write, said: &[Said], format: ListFormat, style: Style) -> io::Result<()> {
    if format == ListFormat::Json {
        return write_json_lines(out, said);
    }
    let rule_width = said.iter().map(|said| said.rule.width()).max().unwrap_or(0);
    for said in said {
        let place = format!("{:>LINE_WIDTH$}:{:<COLUMN_WIDTH$}", said.line, said.column);
        let score = said.score.map(|score| score.to_string()).unwrap_or_default();
        let colour = if said.verdict == "reported" { Paint::new().bold() } else { Paint::new() };
        writeln!(
            out,
            "{place}  {}  {score:>SCORE_WIDTH$}  {}  {}",
            paint(style, colour, &text::pad(said.verdict, VERDICT_WIDTH)),
            text::pad(&text::shown(&said.rule), rule_width),
            text::shown(said.value.as_ref().unwrap_or(&said.preview)),
        )?;
        let by = said.by.as_ref().map(|by| format!("{} by {by}", said.verdict));
        write_below(out, &[("", by.unwrap_or_default()), ("", said.reasons.join("\n"))], style)?;
    }
    let count = |verdict: &str| said.iter().filter(|said| said.verdict == verdict).count();
    let verdicts = ["reported", "low", "refused", "displaced", "ignored", "allowed"];
    let counts = verdicts.into_iter().filter(|verdict| count(verdict) > 0);
    let counts: Vec<_> = counts.map(|verdict| format!("{} {verdict}", count(verdict))).collect();
    writeln!(out, "{}", if counts.is_empty() { "no rule matches".to_owned() } else { counts.join(", ") })
}
