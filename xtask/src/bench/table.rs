//! The table that benchmarks fill: figures with their units, the targets they are held against, and the file of
//! results that keeps the newest of each benchmark.
//!
//! It only writes down. A target that is missed is said to be missed, and nothing fails because of it: whether a
//! machine was quiet enough to judge by is known to whoever ran it.

use std::fmt;

/// What begins the results of one benchmark in the file.
const HEADING: &str = "## ";
const TITLE: &str = "# Results\n\nWritten by `cargo xtask bench`, which keeps what it does not run again. \
    Take ratios from here, not seconds: both sides of one were measured in the same run, in turn.\n";

/// What a figure is to be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Target {
    AtMost(f64),
    AtLeast(f64),
}

impl Target {
    fn is_met_by(self, value: f64) -> bool {
        match self {
            Target::AtMost(limit) => value <= limit,
            Target::AtLeast(limit) => value >= limit,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::AtMost(limit) => write!(out, "≤ {}", Number(*limit)),
            Target::AtLeast(limit) => write!(out, "≥ {}", Number(*limit)),
        }
    }
}

/// One line of the table.
#[derive(Clone, PartialEq, Debug)]
struct Row {
    what: String,
    figure: Figure,
    target: Option<Target>,
}

#[derive(Clone, PartialEq, Debug)]
enum Figure {
    Value(f64, String),
    /// Why there is none.
    Missing(String),
}

/// The lines of one benchmark, in the order in which they were measured. Each is printed when it is known, for a
/// benchmark takes minutes.
#[derive(Default)]
pub struct Rows(Vec<Row>);

impl Rows {
    pub fn add(&mut self, what: impl Into<String>, value: f64, unit: &str) {
        self.push(what.into(), Figure::Value(value, unit.to_owned()), None);
    }

    /// A figure with a target.
    pub fn judge(&mut self, what: impl Into<String>, value: f64, unit: &str, target: Target) {
        self.push(what.into(), Figure::Value(value, unit.to_owned()), Some(target));
    }

    /// A figure that cannot be measured here.
    pub fn missing(&mut self, what: impl Into<String>, why: &str) {
        self.push(what.into(), Figure::Missing(why.to_owned()), None);
    }

    /// Takes over lines `name value unit` of a program's output; other lines are passed over.
    pub fn read(&mut self, output: &str) {
        for line in output.lines() {
            if let Some((name, value, unit)) = named_value(line) {
                self.add(name.replace('_', " "), value, unit);
            }
        }
    }

    fn push(&mut self, what: String, figure: Figure, target: Option<Target>) {
        let row = Row { what, figure, target };
        eprintln!("  {row}");
        self.0.push(row);
    }

    /// The results of a benchmark as they stand in the file.
    pub fn section(&self, name: &str, about: &str) -> String {
        let mut text =
            format!("{HEADING}{name}\n\n{about}\n\n| what | figure | target | met |\n|---|---:|---:|---|\n");
        for row in &self.0 {
            text.push_str(&row.markdown());
            text.push('\n');
        }
        text
    }
}

/// The parts of a line `name value unit`.
pub fn named_value(line: &str) -> Option<(&str, f64, &str)> {
    let (name, rest) = line.split_once(' ')?;
    let (value, unit) = rest.split_once(' ').unwrap_or((rest, ""));
    Some((name, value.parse().ok()?, unit))
}

impl Row {
    fn is_met(&self) -> Option<bool> {
        match (&self.figure, self.target) {
            (Figure::Value(value, _), Some(target)) => Some(target.is_met_by(*value)),
            _ => None,
        }
    }

    fn markdown(&self) -> String {
        let target = self.target.map(|target| target.to_string()).unwrap_or_default();
        let met = match self.is_met() {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        // What was measured may quote a text that has any character in it.
        format!("| {} | {} | {target} | {met} |", self.what.replace('|', "\\|"), self.figure)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.what, self.figure)?;
        match (self.target, self.is_met()) {
            (Some(target), Some(met)) => write!(out, " ({target}: {})", if met { "met" } else { "missed" }),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Figure::Value(value, unit) => write!(out, "{} {unit}", Number(*value)),
            Figure::Missing(why) => write!(out, "not measured: {why}"),
        }
    }
}

/// A number with about three digits that say something.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0;
        let decimals = match value.abs() {
            _ if value.fract() == 0.0 => 0,
            size if size >= 100.0 => 0,
            size if size >= 10.0 => 1,
            size if size >= 1.0 => 2,
            size if size >= 0.01 => 3,
            _ => 5,
        };
        write!(out, "{value:.decimals$}")
    }
}

/// The file of results with these sections in place of older ones, in the order of `names`. What is there of a
/// benchmark that no longer exists goes.
pub fn merge(before: &str, sections: &[(&str, String)], names: &[&str]) -> String {
    let mut text = TITLE.to_owned();
    for name in names {
        let new = sections.iter().find(|(known, _)| known == name).map(|(_, section)| section.as_str());
        if let Some(section) = new.or_else(|| section_of(before, name)) {
            text.push('\n');
            text.push_str(section);
        }
    }
    text
}

/// The section of this name in a file of results.
fn section_of<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let heading = format!("{HEADING}{name}\n");
    let mut begin = 0;
    let begin = loop {
        let at = begin + text[begin..].find(&heading)?;
        if at == 0 || text[..at].ends_with('\n') {
            break at;
        }
        begin = at + heading.len();
    };
    let inner = begin + heading.len();
    let end = text[inner..].find(&format!("\n{HEADING}")).map_or(text.len(), |end| inner + end);
    Some(&text[begin..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_whether_its_target_is_met() {
        let mut rows = Rows::default();
        rows.add("files | folders", 78_642.0, "files");
        rows.judge("time", 1.734, "s", Target::AtMost(2.0));
        rows.judge("rate", 5.0, "times", Target::AtLeast(6.0));
        rows.missing("peer", "rg is not installed");
        let section = rows.section("tree", "A tree.");
        for line in [
            "## tree\n\nA tree.\n",
            "| files \\| folders | 78642 files |  |  |",
            "| time | 1.73 s | ≤ 2 | yes |",
            "| rate | 5 times | ≥ 6 | **no** |",
            "| peer | not measured: rg is not installed |  |  |",
        ] {
            assert!(section.contains(line), "{line} is not in\n{section}");
        }
    }

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        let shown = [0.000_71, 0.0314, 1.234, 12.34, 123.4, 7.0, -0.5].map(|value| Number(value).to_string());
        assert_eq!(shown, ["0.00071", "0.031", "1.23", "12.3", "123", "7", "-0.500"]);
    }

    #[test]
    fn lines_of_other_programs_are_taken_over() {
        assert_eq!(named_value("scan_rate 12.5 MB/s and more"), Some(("scan_rate", 12.5, "MB/s and more")));
        assert_eq!(named_value("ratio 3"), Some(("ratio", 3.0, "")));
        assert_eq!(named_value("tree somewhere"), None);
        let mut rows = Rows::default();
        rows.read("loading rules\nscan_rate 12.5 MB/s\n");
        assert_eq!(rows.0.len(), 1);
        assert_eq!(rows.0[0].to_string(), "scan rate: 12.5 MB/s");
    }

    #[test]
    fn only_what_was_run_again_changes_in_the_file() {
        let names = ["tree", "large", "tree-like"];
        let first =
            merge("", &[("large", "## large\n\nold\n".into()), ("tree", "## tree\n\n1\n".into())], &names);
        let second = merge(&first, &[("large", "## large\n\nnew\n".into())], &names);
        assert_eq!(second, format!("{TITLE}\n## tree\n\n1\n\n## large\n\nnew\n"));
        assert_eq!(merge(&second, &[], &names), second);
        assert_eq!(merge(&second, &[], &["large"]), format!("{TITLE}\n## large\n\nnew\n"));
    }
}
