//! How well columns are labelled: generated columns with their type, free text in which something occurs, and columns
//! that only look like something and must have no label at all.
//!
//! Each is scanned and classified as a table of one column, by the same code as any table. It must not know rules but
//! by the types that they find.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use domesday_columns::{ColumnLabel, ColumnSketch, LabelKind, TableScan, classify};
use domesday_engine::{Rule, RuleSet, Scanner, Scratch};
use domesday_model::{Category, ColumnShape, FingerprintKey, RowBatch, Score, TableShape};
use serde::Deserialize;

use super::metrics::Counts;
use super::types;

/// The same for everybody.
const KEY: [u8; FingerprintKey::LEN] = [7; FingerprintKey::LEN];

/// One column of a set.
#[derive(Deserialize)]
pub struct Column {
    pub column: String,
    #[serde(rename = "type")]
    pub type_name: String,
    pub values: Vec<Option<String>>,
    /// The type of its values, if they are of one.
    pub expect: Option<String>,
    /// What occurs in its texts.
    pub occurs: Vec<String>,
    /// What it looks like, if it is nothing.
    pub kind: Option<String>,
}

pub fn read(path: &Path) -> Result<Vec<Column>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let column = |(number, line)| {
        serde_json::from_str(line).with_context(|| format!("line {} of {}", number + 1, path.display()))
    };
    text.lines().enumerate().map(column).collect()
}

/// What became of the columns of a set.
#[derive(Default)]
pub struct Labelled {
    pub columns: u64,
    /// By type, one entry per column that is of it or was taken for it.
    pub types: BTreeMap<String, Vec<Counts>>,
    /// All columns that have a type, or were given one.
    pub all: Vec<Counts>,
    /// Types that occur in texts.
    pub occurs: BTreeMap<String, Vec<Counts>>,
    /// By what they look like: columns, and labels that they have.
    pub look_alikes: BTreeMap<String, (u64, u64)>,
    /// What is not as it should be, in words.
    pub misses: Vec<String>,
}

impl Labelled {
    /// Labels on columns that have nothing.
    pub fn wrong(&self) -> u64 {
        self.look_alikes.values().map(|(_, labels)| labels).sum()
    }
}

pub fn label(columns: &[Column], rules: &RuleSet) -> Result<Labelled> {
    // As a job does, whose findings are of medium level or better.
    let scanner = Scanner::with_floor(std::sync::Arc::new(rules.clone()), Score::MEDIUM);
    let mut scratch = Scratch::new();
    let mut labelled = Labelled::default();
    for column in columns {
        let labels = labels_of(column, &scanner, &mut scratch)?;
        labelled.columns += 1;
        labelled.add(column, &labels, rules);
    }
    Ok(labelled)
}

fn labels_of(column: &Column, scanner: &Scanner, scratch: &mut Scratch) -> Result<Vec<ColumnLabel>> {
    let name = column.column.clone();
    let columns = vec![ColumnShape { name, type_name: column.type_name.clone(), comment: None }];
    let shape = TableShape { columns, ..TableShape::default() };
    let mut scan = TableScan::new(&shape, &FingerprintKey::new(KEY), 0);
    let mut found = Vec::new();
    for rows in column.values.chunks(RowBatch::ROWS_MAX) {
        let mut batch = RowBatch::new(1);
        for value in rows {
            match value {
                Some(value) => batch.columns[0].push(value.as_bytes()),
                None => batch.columns[0].push_null(),
            }
        }
        scan.scan(scanner, &batch, scratch, &mut found);
    }
    let sketches: Option<Vec<_>> = scan.finish().iter().map(|bytes| ColumnSketch::decode(bytes)).collect();
    let sketches = sketches.ok_or_else(|| anyhow!("a sketch that was just made cannot be read"))?;
    Ok(classify(&shape, &sketches, scanner.rules()).swap_remove(0).labels)
}

impl Labelled {
    fn add(&mut self, column: &Column, labels: &[ColumnLabel], rules: &RuleSet) {
        let rule = |label: &ColumnLabel| rules.get(&label.rule).expect("labels are of the rules");
        let told: Vec<String> =
            labels.iter().map(|label| format!("{} {}", label.kind.as_str(), label.rule)).collect();
        let mut miss = |what: &str| {
            let sample = column.values.iter().flatten().find(|value| value.len() > 2);
            self.misses
                .push(format!("{what}: `{}` {} {sample:?}: {told:?}", column.column, column.type_name));
        };
        if let Some(kind) = &column.kind {
            let (columns, wrong) = self.look_alikes.entry(kind.clone()).or_default();
            *columns += 1;
            *wrong += labels.len() as u64;
            if !labels.is_empty() {
                miss(kind);
            }
        }
        for expected in &column.occurs {
            let right =
                labels.iter().any(|label| label.kind != LabelKind::Column && accepts(expected, rule(label)));
            self.occurs.entry(expected.clone()).or_default().push(counts(true, right, right));
            if !right {
                miss(expected);
            }
        }
        let of_column = labels.iter().find(|label| label.kind == LabelKind::Column);
        let right = column
            .expect
            .as_deref()
            .zip(of_column)
            .is_some_and(|(expect, label)| accepts(expect, rule(label)));
        if let Some(expect) = &column.expect {
            self.types.entry(expect.clone()).or_default().push(counts(true, right, right));
            if !right {
                miss(expect);
            }
        }
        if let Some(label) = of_column.filter(|_| !right) {
            let taken_for = owner(rule(label));
            self.types.entry(taken_for).or_default().push(counts(false, true, false));
        }
        if column.expect.is_some() || of_column.is_some() {
            self.all.push(counts(column.expect.is_some(), of_column.is_some(), right));
        }
    }
}

fn counts(is_labelled: bool, is_found: bool, is_right: bool) -> Counts {
    let is_right = u64::from(is_right);
    Counts { texts: 1, labelled: is_labelled.into(), found: is_found.into(), exact: is_right, half: is_right }
}

/// Whether a label of the rule is right for the type.
fn accepts(name: &str, rule: &Rule) -> bool {
    match name {
        "DATE_OF_BIRTH" => &*rule.id == "date-of-birth",
        "PASSWORD" => rule.category == Category::Secret && rule.id.contains("password"),
        "JWT" => {
            rule.category == Category::Secret && (rule.id.contains("jwt") || rule.id.contains("json-web"))
        }
        "API_KEY" => rule.category == Category::Secret,
        _ => types::of_label(name).is_some_and(|kind| kind.accepts(&rule.id)),
    }
}

/// The type that a rule finds.
fn owner(rule: &Rule) -> String {
    match rule.category {
        Category::Secret => "API_KEY".to_owned(),
        _ => {
            types::ALL.iter().find(|kind| kind.owns(&rule.id)).map_or(&*rule.id, |kind| kind.name).to_owned()
        }
    }
}
