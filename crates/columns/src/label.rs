//! From sketches to labels.
//!
//! A label says what the distinct values of a column are. Values speak first: how many of them a rule took, and how much
//! that says. The column's name, comment and type are kept apart; they decide what values leave open, and never speak
//! alone. What chance explains is no label: where many values have a form and most of them fail its check digit, the
//! few that pass are none. `docs/columns.md` tells the same at length.
//!
//! Nothing here may depend on the order of anything: the same sketches give the same labels in the same order.

mod decide;
mod evidence;
mod kinds;
#[cfg(test)]
mod tests;

use domesday_engine::RuleSet;
use domesday_model::{Category, ColumnShape, Level, Regulation, Sensitivity, TableShape};

use crate::header::Vocabulary;
use crate::sketch::ColumnSketch;
use decide::Decision;
use evidence::{Group, Header};
use kinds::Kind;

/// What a label says of its column.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LabelKind {
    /// The column is of this type.
    Column,
    /// Few values are, and those beyond doubt.
    Sparse,
    /// Free text in which such values occur.
    Occurs,
}

impl LabelKind {
    pub fn as_str(self) -> &'static str {
        match self {
            LabelKind::Column => "column",
            LabelKind::Sparse => "sparse",
            LabelKind::Occurs => "occurs",
        }
    }
}

/// One label of a column, with its evidence.
#[derive(Clone, PartialEq, Debug)]
pub struct ColumnLabel {
    pub kind: LabelKind,
    /// The rule, which is the info type.
    pub rule: String,
    pub category: Category,
    pub sensitivity: Sensitivity,
    pub regulations: Vec<Regulation>,
    pub level: Level,
    /// Distinct values that are of this type, of the distinct values in the sketch.
    pub matched: u64,
    pub sampled: u64,
    /// Share of distinct values, with its 95 % interval.
    pub prevalence: f64,
    pub interval: (f64, f64),
    /// Cells with a match that is reported, of all that were read.
    pub cells: u64,
    /// Evidence of the values, and of all else, in words.
    pub value_evidence: Vec<String>,
    pub other_evidence: Vec<String>,
    /// Where an example is, and what of it may be shown.
    pub example: Option<Example>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Example {
    /// The row's primary key, or its number.
    pub row: String,
    pub preview: String,
}

/// What a column is.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ColumnVerdict {
    /// Best first; empty when nothing sensitive was seen.
    pub labels: Vec<ColumnLabel>,
    pub is_free_text: bool,
    pub nulls: u64,
    /// Cells that are not null.
    pub values: u64,
    /// Distinct values, counted or estimated.
    pub distinct: u64,
}

/// Labels the columns of a table from their sketches, which are in the order of its columns. A column without a sketch
/// has no labels.
pub fn classify(shape: &TableShape, sketches: &[ColumnSketch], rules: &RuleSet) -> Vec<ColumnVerdict> {
    let (mut sketches, known) = (sketches.iter(), Vocabulary::of(rules));
    shape
        .columns
        .iter()
        .map(|column| {
            sketches
                .next()
                .map_or_else(ColumnVerdict::default, |sketch| verdict(column, sketch, rules, &known))
        })
        .collect()
}

fn verdict(
    column: &ColumnShape,
    sketch: &ColumnSketch,
    rules: &RuleSet,
    known: &Vocabulary,
) -> ColumnVerdict {
    let kind = Kind::of(&column.type_name);
    let header = Header::of(column, known);
    let groups = evidence::groups(sketch, rules);
    let decision = Decision { kind, header: &header, sketch, groups: &groups };
    let (mut labels, is_free_text) = decision.labels();
    labels.sort_by(|a, b| order(a).partial_cmp(&order(b)).expect("prevalences are numbers"));
    ColumnVerdict {
        labels,
        is_free_text,
        nulls: sketch.nulls,
        values: sketch.values,
        distinct: sketch.distinct(),
    }
}

/// Best first.
fn order(label: &ColumnLabel) -> (LabelKind, std::cmp::Reverse<Sensitivity>, f64, u64, &str) {
    (label.kind, std::cmp::Reverse(label.sensitivity), -label.interval.0, u64::MAX - label.cells, &label.rule)
}

/// A label of a group of rules, with what its values say.
fn label(kind: LabelKind, group: &Group<'_>, sketch: &ColumnSketch, level: Level) -> ColumnLabel {
    let sampled = sketch.sample.len() as u64;
    let matched = if kind == LabelKind::Column { group.matched } else { group.anywhere };
    let class = group.rule.class();
    let tally = || group.rules.iter().filter_map(|rule| sketch.rules.get(&rule.id));
    let kept = || tally().filter_map(|tally| tally.reported.as_ref()).min();
    let kept = kept().or_else(|| tally().filter_map(|tally| tally.sampled.as_ref()).min());
    ColumnLabel {
        kind,
        rule: group.rule.id.to_string(),
        category: group.rule.category,
        sensitivity: class.sensitivity,
        regulations: class.regulations,
        level,
        matched,
        sampled,
        prevalence: matched as f64 / sampled.max(1) as f64,
        interval: wilson(matched, sampled),
        cells: tally().map(|tally| tally.cells).sum(),
        value_evidence: Vec::new(),
        other_evidence: Vec::new(),
        example: kept.map(|kept| Example { row: kept.row.clone(), preview: kept.preview.clone() }),
    }
}

/// Wilson's interval of 95 % for a share of which `matched` of `sampled` were seen.
pub fn wilson(matched: u64, sampled: u64) -> (f64, f64) {
    const Z: f64 = 1.959_964;
    if sampled == 0 {
        return (0.0, 1.0);
    }
    let (n, share) = (sampled as f64, matched.min(sampled) as f64 / sampled as f64);
    let around = 1.0 + Z * Z / n;
    let middle = (share + Z * Z / (2.0 * n)) / around;
    let half = Z / around * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    ((middle - half).max(0.0), (middle + half).min(1.0))
}
