//! The figures of an evaluation: as data that becomes JSON, as tables for people, and against the targets. It must not
//! decide what is right; it only divides, rounds and prints.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use super::columns::Labelled;
use super::metrics::{Counts, Figure, intervals};
use super::score::{Miss, Negatives, Noise, Secrets, Spans};
use super::tree::Tree;
use super::types::{self, Group, Type};

/// Of the positive secret examples, so much is found.
const SECRETS_FOUND_MIN: f64 = 0.95;
/// Of the negative ones, so much at most.
const SECRETS_WRONG_MAX: f64 = 0.03;
/// F1 over the types of [`Group::Headline`].
const HEADLINE_F1_MIN: f64 = 0.95;
/// Of the labels of columns, so many are right; of the columns with a type, so many have it.
const COLUMNS_PRECISION_MIN: f64 = 0.95;
const COLUMNS_RECALL_MIN: f64 = 0.90;
/// Secrets and validated identifiers in a source tree that has next to none.
const TREE_MAX: u64 = 40;

/// A figure and its 95 % interval.
#[derive(Serialize, Clone, Copy)]
pub struct Value {
    value: Option<f64>,
    interval: Option<(f64, f64)>,
}

#[derive(Serialize)]
pub struct Row {
    name: String,
    labelled: u64,
    found: u64,
    precision: Value,
    recall: Value,
    f1: Value,
    f1_exact: Value,
}

impl Row {
    fn of(name: &str, texts: &[Counts]) -> Row {
        let sum = Counts::sum(texts);
        let figures: [Figure; 4] = [Counts::precision, Counts::recall, Counts::f1, Counts::f1_exact];
        let intervals = intervals(texts, figures);
        let value = |at: usize| Value { value: figures[at](&sum), interval: intervals[at] };
        Row {
            name: name.to_owned(),
            labelled: sum.labelled,
            found: sum.found,
            precision: value(0),
            recall: value(1),
            f1: value(2),
            f1_exact: value(3),
        }
    }
}

/// One table of types with its sum.
#[derive(Serialize)]
pub struct Table {
    title: &'static str,
    rows: Vec<Row>,
    overall: Row,
}

#[derive(Serialize)]
#[serde(tag = "form", rename_all = "snake_case")]
pub enum Section {
    Spans {
        set: String,
        texts: u64,
        tables: Vec<Table>,
        not_scored: BTreeMap<String, u64>,
        besides: BTreeMap<String, u64>,
    },
    Secrets {
        set: String,
        positives: u64,
        at_any_level: u64,
        negatives: u64,
        wrong: Value,
        kinds: Vec<Row>,
        overall: Box<Row>,
    },
    Negatives {
        set: String,
        kinds: BTreeMap<String, Noise>,
        overall: Noise,
    },
    Columns {
        set: String,
        columns: u64,
        tables: Vec<Table>,
        /// Columns of each kind that have nothing, and their labels.
        look_alikes: BTreeMap<String, (u64, u64)>,
    },
    Tree(Tree),
}

/// A figure and what it should be.
#[derive(Serialize)]
pub struct Target {
    what: String,
    wanted: String,
    is: String,
    met: bool,
}

#[derive(Serialize, Default)]
pub struct Report {
    sections: Vec<Section>,
    targets: Vec<Target>,
}

impl Report {
    pub fn missed_targets(&self) -> usize {
        self.targets.iter().filter(|target| !target.met).count()
    }

    pub fn add_spans(&mut self, set: &str, spans: &Spans) {
        let mut tables = Vec::new();
        for (group, title) in [
            (Group::Headline, "card, IBAN, SSN, email, phone, IP"),
            (Group::National, "national identifiers"),
            (Group::Other, "other types"),
        ] {
            let Some(texts) = spans.groups.get(&group) else { continue };
            let of_group = types::ALL.iter().filter(|kind| kind.group == group);
            let row = |kind: &Type| Some(Row::of(kind.name, spans.types.get(kind.name)?));
            let rows = of_group.filter_map(row).collect();
            let overall = Row::of("overall", texts);
            if group == Group::Headline {
                self.at_least(format!("{set}: F1 over {title}"), overall.f1.value, HEADLINE_F1_MIN);
            }
            tables.push(Table { title, rows, overall });
        }
        if spans.paths.len() > 1 {
            let name = |path: &str| if path.is_empty() { "text alone".to_owned() } else { path.to_owned() };
            let rows = spans.paths.iter().map(|(path, texts)| Row::of(&name(path), texts)).collect();
            let all: Vec<Counts> = spans.paths.values().flatten().copied().collect();
            tables.push(Table {
                title: "all types, by where they stand",
                rows,
                overall: Row::of("overall", &all),
            });
        }
        self.sections.push(Section::Spans {
            set: set.to_owned(),
            texts: spans.texts,
            tables,
            not_scored: spans.not_scored.clone(),
            besides: spans.besides.clone(),
        });
    }

    pub fn add_secrets(&mut self, set: &str, secrets: &Secrets) {
        let negatives = secrets.negatives();
        let overall = Row::of("overall", &secrets.all());
        let wrong = Value {
            value: Counts::sum(&negatives).wrong_share(),
            interval: intervals(&negatives, [Counts::wrong_share])[0],
        };
        if overall.labelled > 0 {
            self.at_least(format!("{set}: positive examples found"), overall.recall.value, SECRETS_FOUND_MIN);
        }
        if !negatives.is_empty() {
            self.at_most(format!("{set}: negative examples found"), wrong.value, SECRETS_WRONG_MAX);
        }
        self.sections.push(Section::Secrets {
            set: set.to_owned(),
            positives: overall.labelled,
            at_any_level: secrets.at_any_level,
            negatives: negatives.len() as u64,
            wrong,
            kinds: secrets.kinds.iter().map(|(kind, texts)| Row::of(kind, texts)).collect(),
            overall: Box::new(overall),
        });
    }

    pub fn add_negatives(&mut self, set: &str, negatives: &Negatives) {
        self.sections.push(Section::Negatives {
            set: set.to_owned(),
            kinds: negatives.kinds.clone(),
            overall: negatives.all(),
        });
    }

    pub fn add_columns(&mut self, set: &str, labelled: &Labelled) {
        let row = |(name, columns): (&String, &Vec<Counts>)| Row::of(name, columns);
        let overall = Row::of("overall", &labelled.all);
        self.at_least(format!("{set}: precision of labels"), overall.precision.value, COLUMNS_PRECISION_MIN);
        self.at_least(format!("{set}: recall of labels"), overall.recall.value, COLUMNS_RECALL_MIN);
        let wrong = labelled.wrong();
        self.targets.push(Target {
            what: format!("{set}: labels on columns that only look like something"),
            wanted: "none".to_owned(),
            is: wrong.to_string(),
            met: wrong == 0,
        });
        let texts: Vec<Counts> = labelled.occurs.values().flatten().copied().collect();
        let tables = vec![
            Table { title: "labels of columns", rows: labelled.types.iter().map(row).collect(), overall },
            Table {
                title: "what occurs in free text",
                rows: labelled.occurs.iter().map(row).collect(),
                overall: Row::of("overall", &texts),
            },
        ];
        let look_alikes = labelled.look_alikes.clone();
        self.sections.push(Section::Columns {
            set: set.to_owned(),
            columns: labelled.columns,
            tables,
            look_alikes,
        });
    }

    pub fn add_tree(&mut self, tree: Tree) {
        let found = tree.listed.len() as u64;
        self.targets.push(Target {
            what: "tree: secrets and validated identifiers".to_owned(),
            wanted: format!("at most {TREE_MAX}"),
            is: found.to_string(),
            met: found <= TREE_MAX,
        });
        self.sections.push(Section::Tree(tree));
    }

    fn at_least(&mut self, what: String, is: Option<f64>, least: f64) {
        self.target(what, format!("at least {least:.2}"), is, is.is_some_and(|is| is >= least));
    }

    fn at_most(&mut self, what: String, is: Option<f64>, most: f64) {
        self.target(what, format!("at most {most:.2}"), is, is.is_some_and(|is| is <= most));
    }

    fn target(&mut self, what: String, wanted: String, is: Option<f64>, met: bool) {
        self.targets.push(Target { what, wanted, is: short(is, 4), met });
    }
}

/// A figure, or a dash where there is none.
fn short(value: Option<f64>, digits: usize) -> String {
    value.map_or("–".to_owned(), |value| format!("{value:.digits$}"))
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:>5}", short(self.value, 3))?;
        match self.interval {
            Some((low, high)) => write!(f, " [{low:.3} {high:.3}]"),
            None => write!(f, "{:14}", ""),
        }
    }
}

impl Display for Row {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Row { name, labelled, found, precision, recall, f1, f1_exact } = self;
        writeln!(f, "  {name:42} {labelled:>8} {found:>6}  {precision}  {recall}  {f1}  {f1_exact}")
    }
}

fn heading(f: &mut Formatter<'_>, title: &str) -> fmt::Result {
    writeln!(
        f,
        "  {title:42} {:>8} {:>6}  {:19}  {:19}  {:19}  F1 exact",
        "labelled", "found", "precision", "recall", "F1"
    )
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for section in &self.sections {
            writeln!(f, "{section}")?;
        }
        writeln!(f, "Targets")?;
        for Target { what, wanted, is, met } in &self.targets {
            let verdict = if *met { "met" } else { "MISSED" };
            writeln!(f, "  {verdict:7} {what}: {is}, wanted {wanted}")?;
        }
        Ok(())
    }
}

impl Display for Section {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Section::Spans { set, texts, tables, not_scored, besides } => {
                writeln!(f, "{set}: spans in {texts} texts")?;
                for Table { title, rows, overall } in tables {
                    heading(f, title)?;
                    rows.iter().chain([overall]).try_for_each(|row| write!(f, "{row}"))?;
                }
                list(f, "not scored, since no rule finds them", not_scored)?;
                list(f, "found besides, of what has no labels here", besides)
            }
            Section::Secrets { set, positives, at_any_level, negatives, wrong, kinds, overall } => {
                writeln!(f, "{set}: secrets in {} texts", positives + negatives)?;
                heading(f, "kinds that are not all right")?;
                let faulty = kinds.iter().filter(|row| row.f1.value.is_some_and(|f1| f1 < 1.0));
                faulty.chain([&**overall]).try_for_each(|row| write!(f, "{row}"))?;
                writeln!(f, "  positive {positives}: found {}, at any level {at_any_level}", overall.recall)?;
                writeln!(f, "  negative {negatives}: found {wrong}")
            }
            Section::Negatives { set, kinds, overall } => {
                writeln!(f, "{set}: findings in texts that have nothing, and per thousand texts")?;
                writeln!(
                    f,
                    "  {:28} {:>6} {:>14} {:>14} {:>14}",
                    "kind", "texts", "secrets", "validated", "others"
                )?;
                kinds.iter().try_for_each(|(kind, noise)| row_of_noise(f, kind, noise))?;
                row_of_noise(f, "overall", overall)
            }
            Section::Columns { set, columns, tables, look_alikes } => {
                writeln!(f, "{set}: labels of {columns} columns")?;
                for Table { title, rows, overall } in tables {
                    heading(f, title)?;
                    rows.iter().chain([overall]).try_for_each(|row| write!(f, "{row}"))?;
                }
                writeln!(
                    f,
                    "  {:42} {:>8} {:>6}",
                    "columns that only look like something", "columns", "labels"
                )?;
                look_alikes.iter().try_for_each(|(kind, (columns, labels))| {
                    writeln!(f, "  {kind:42} {columns:>8} {labels:>6}")
                })
            }
            Section::Tree(tree) => write!(f, "{tree}"),
        }
    }
}

fn list(f: &mut Formatter<'_>, title: &str, counts: &BTreeMap<String, u64>) -> fmt::Result {
    if counts.is_empty() {
        return Ok(());
    }
    let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    writeln!(f, "  {title}: {}", counts.join(", "))
}

fn row_of_noise(f: &mut Formatter<'_>, kind: &str, noise: &Noise) -> fmt::Result {
    let per_thousand = |count: u64| 1_000.0 * count as f64 / noise.texts.max(1) as f64;
    let cell = |count: u64| format!("{count} ({:.1})", per_thousand(count));
    let (secrets, validated, others) = (cell(noise.secrets), cell(noise.validated), cell(noise.others));
    writeln!(f, "  {kind:28} {:>6} {secrets:>14} {validated:>14} {others:>14}", noise.texts)
}

/// What was missed and what was found too much, by type. The sets' values are fake: they are shown.
pub fn print_misses(set: &str, misses: &[Miss]) {
    let mut by_type: BTreeMap<&str, Vec<&Miss>> = BTreeMap::new();
    misses.iter().for_each(|miss| by_type.entry(&miss.of).or_default().push(miss));
    for (of, misses) in by_type {
        println!("{set}: {of}");
        for Miss { value, said, is_wrong, text, .. } in misses {
            let verdict = if *is_wrong { "wrong" } else { "missed" };
            println!("  {verdict} {value:?} ({said}) in {text:?}");
        }
    }
}
