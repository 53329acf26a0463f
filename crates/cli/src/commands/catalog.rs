//! `domesday catalog`: which columns of which tables hold what, as the latest scans saw it.
//!
//! Labels are derived when they are read, from the sketches in the book and the rules that the job was run with: the
//! parts of a table are merged first. One table is held at a time.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Result, bail};
use domesday_columns::{ColumnLabel, ColumnSketch, ColumnVerdict, classify};
use domesday_control::compose::matches;
use domesday_engine::RuleSet;
use domesday_model::{Level, Location, RuleSetHash, TableKind, TableObservation, TableShape};
use domesday_store::{CatalogSource, ReportStore};
use percent_encoding::percent_decode;

use super::report::{Output, Readers};
use super::which::find_job;
use super::{runtime, stdout_style};
use crate::args::CatalogArgs;
use crate::book;
use crate::output::{CatalogColumn, CatalogFormat, CatalogTable, CatalogWriter, Style, TablePlace};
use crate::{Exit, rules, say};

/// Observations read at a time: those of a wide table may be megabytes each.
const PAGE_TABLES: u32 = 16;

pub fn run(args: &CatalogArgs) -> Result<Exit> {
    runtime()?.block_on(show(args))
}

async fn show(args: &CatalogArgs) -> Result<Exit> {
    let store = book::read(&args.state).await?;
    let sources = sources(store.as_ref(), args).await?;
    let rules = Rules::load(store.as_ref(), &sources).await?;
    rules.check(args)?;
    let mut out = Output::open(args.output.as_deref(), Readers::Umask)?;
    let default = if out.is_terminal { CatalogFormat::Table } else { CatalogFormat::Json };
    let format = args.format.unwrap_or(default);
    let style = if args.output.is_none() { stdout_style() } else { Style::default() };
    let mut writer = CatalogWriter::begin(&mut out.writer, format, style)?;
    for (source, hash) in &sources {
        let rules = rules.of(*hash);
        let (mut table, mut after): (Option<Merged>, _) = (None, None);
        loop {
            let page = store.table_observations(source, after, PAGE_TABLES).await?;
            for observation in page.tables {
                match &mut table {
                    Some(table) if table.location == observation.table => table.add(observation),
                    _ => {
                        let before = table.replace(Merged::new(observation));
                        before.map_or(Ok(()), |before| before.write(source, rules, args, &mut writer))?;
                    }
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        table.map_or(Ok(()), |last| last.write(source, rules, args, &mut writer))?;
    }
    let any = writer.end()?;
    out.finish()?;
    if !any && format == CatalogFormat::Table {
        say(format_args!("no column to show; `--all` shows those without a label, too"));
    }
    Ok(Exit::Clean)
}

/// A source, and the rules of its job.
type RuledSource = (CatalogSource, Option<RuleSetHash>);

/// The sources that were asked for.
async fn sources(store: &dyn ReportStore, args: &CatalogArgs) -> Result<Vec<RuledSource>> {
    let master = match &args.job {
        Some(id) => Some(find_job(store, Some(id)).await?.id),
        None => None,
    };
    let mut sources = store.catalog_sources(master).await?;
    if let Some(pattern) = &args.datasource {
        sources.retain(|source| matches(pattern, &source.name));
        // A misspelt name must not look like a source without anything to show.
        if sources.is_empty() {
            bail!("no data source that was scanned matches `{pattern}`: `domesday jobs` lists the scans");
        }
    }
    let mut ruled = Vec::with_capacity(sources.len());
    for source in sources {
        let hash = store.job_rule_set(source.master_job).await?;
        ruled.push((source, hash));
    }
    Ok(ruled)
}

/// The rule sets of the jobs, each once.
struct Rules(HashMap<Option<RuleSetHash>, Arc<RuleSet>>);

impl Rules {
    async fn load(store: &dyn ReportStore, sources: &[RuledSource]) -> Result<Rules> {
        let mut sets = HashMap::new();
        for (source, hash) in sources {
            if !sets.contains_key(hash) {
                sets.insert(*hash, Arc::new(rules::of_job(store, source.master_job).await?));
            }
        }
        Ok(Rules(sets))
    }

    fn of(&self, hash: Option<RuleSetHash>) -> &RuleSet {
        self.0.get(&hash).expect("the rules of every source were loaded")
    }

    /// Refuses what no rule can say: a misspelt label would make every catalogue an empty one.
    fn check(&self, args: &CatalogArgs) -> Result<()> {
        let known = |is: &dyn Fn(&domesday_engine::Rule) -> bool| {
            self.0.is_empty() || self.0.values().any(|set| set.rules().iter().any(is))
        };
        if let Some(pattern) = &args.label
            && !known(&|rule| matches(pattern, &rule.id))
        {
            bail!("no rule of these scans matches `{pattern}`: `domesday rules list` shows them");
        }
        if let Some(regulation) = &args.regulation
            && !known(&|rule| rule.class().regulations.contains(regulation))
        {
            bail!("no rule of these scans concerns {regulation}");
        }
        Ok(())
    }
}

/// A table, put together from its parts.
struct Merged {
    location: Location,
    shape: TableShape,
    rows: u64,
    is_sample: bool,
    /// One per column of the shape.
    sketches: Vec<ColumnSketch>,
    /// Columns whose sketch this version cannot read.
    unread: usize,
}

impl Merged {
    fn new(observation: TableObservation) -> Merged {
        let TableObservation { table, shape, rows, is_sample, sketches, .. } = observation;
        let mut merged = Merged { location: table, shape, rows, is_sample, sketches: Vec::new(), unread: 0 };
        let mut sketches = sketches.iter();
        for _ in 0..merged.shape.columns.len() {
            let sketch = merged.decode(sketches.next());
            merged.sketches.push(sketch);
        }
        merged
    }

    fn decode(&mut self, sketch: Option<&Vec<u8>>) -> ColumnSketch {
        let decoded = sketch.and_then(|sketch| ColumnSketch::decode(sketch));
        self.unread += usize::from(decoded.is_none());
        decoded.unwrap_or_default()
    }

    /// Adds another part. Columns go by their names: a table may be altered while it is read.
    fn add(&mut self, part: TableObservation) {
        self.rows += part.rows;
        self.is_sample |= part.is_sample;
        self.shape.row_estimate = self.shape.row_estimate.max(part.shape.row_estimate);
        let mut sketches = part.sketches.iter();
        for (index, column) in part.shape.columns.into_iter().enumerate() {
            let sketch = self.decode(sketches.next());
            let is_here = self.shape.columns.get(index).is_some_and(|known| known.name == column.name);
            let known = match is_here {
                true => Some(index),
                false => self.shape.columns.iter().position(|known| known.name == column.name),
            };
            match known {
                Some(index) => self.sketches[index].merge(&sketch),
                None => {
                    self.shape.columns.push(column);
                    self.sketches.push(sketch);
                }
            }
        }
    }

    fn write<W: std::io::Write>(
        self,
        source: &CatalogSource,
        rules: &RuleSet,
        args: &CatalogArgs,
        writer: &mut CatalogWriter<W>,
    ) -> Result<()> {
        let place = place(&self.location, self.shape.kind);
        if !is_asked_for(&place, args) {
            return Ok(());
        }
        if self.unread > 0 {
            say(format_args!(
                "warning: {}: what was seen of {} columns cannot be read by this version",
                self.location, self.unread
            ));
        }
        let verdicts = classify(&self.shape, &self.sketches, rules);
        let columns = self.shape.columns.iter().zip(&verdicts).enumerate();
        let columns = columns.filter(|(_, (shape, _))| is_match(&args.column, Some(&shape.name)));
        let columns = columns.map(|(index, (shape, verdict))| {
            let labels = asked_labels(verdict, args);
            CatalogColumn { index, shape, verdict, labels }
        });
        let columns = columns.filter(|column| args.all || !column.labels.is_empty()).collect();
        writer.table(&CatalogTable {
            source,
            place: &place,
            shape: &self.shape,
            rows: self.rows,
            is_sample: self.is_sample,
            columns,
        })?;
        Ok(())
    }
}

fn is_match(pattern: &Option<String>, name: Option<&str>) -> bool {
    pattern.as_ref().is_none_or(|pattern| name.is_some_and(|name| matches(pattern, name)))
}

fn is_asked_for(place: &TablePlace, args: &CatalogArgs) -> bool {
    is_match(&args.database, place.database.as_deref())
        && is_match(&args.schema, place.schema.as_deref())
        && is_match(&args.table, Some(&place.table))
}

fn asked_labels<'a>(verdict: &'a ColumnVerdict, args: &CatalogArgs) -> Vec<&'a ColumnLabel> {
    let least = Level::from(args.level);
    let is_asked_for = |label: &&ColumnLabel| {
        label.level >= least
            && is_match(&args.label, Some(&label.rule))
            && args.category.is_none_or(|category| label.category == category)
            && args.sensitivity.is_none_or(|sensitivity| label.sensitivity >= sensitivity)
            && args.regulation.as_ref().is_none_or(|regulation| label.regulations.contains(regulation))
    };
    verdict.labels.iter().filter(is_asked_for).collect()
}

/// Where a table is, from its key and the way into it: `database/schema/table` or less, each name with `%` and `/`
/// escaped; of a table in a file, the file is the database; and a file of separated values is its own table.
fn place(location: &Location, kind: TableKind) -> TablePlace {
    if kind == TableKind::File {
        return TablePlace { table: location.to_string(), ..TablePlace::default() };
    }
    if let Some((table, outer)) = location.nested.split_last() {
        let file = Location { key: location.key.clone(), nested: outer.to_vec() };
        return TablePlace {
            database: Some(file.to_string()),
            schema: None,
            table: domesday_model::key::escaped(&table.name),
        };
    }
    let mut names = location.key.as_bytes().split(|&byte| byte == b'/').rev().map(unescaped);
    let table = names.next().unwrap_or_default();
    let mut rest: Vec<String> = names.collect();
    let database = rest.pop();
    let schema = (!rest.is_empty()).then(|| rest.into_iter().rev().collect::<Vec<_>>().join("/"));
    TablePlace { database, schema, table }
}

/// The name that a level of a key stands for.
fn unescaped(level: &[u8]) -> String {
    percent_decode(level).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use domesday_model::{ColumnShape, NestedStep, ObjectKey};

    use super::*;

    fn placed(key: &str, nested: &[&str], kind: TableKind) -> (Option<String>, Option<String>, String) {
        let step = |name: &&str| NestedStep { name: name.as_bytes().to_vec(), ordinal: 0 };
        let location =
            Location { key: ObjectKey::new(key.as_bytes()), nested: nested.iter().map(step).collect() };
        let TablePlace { database, schema, table } = place(&location, kind);
        (database, schema, table)
    }

    #[test]
    fn places_are_levels() {
        use TableKind::{File, Table};
        let some = |name: &str| Some(name.to_owned());
        for (key, nested, kind, expected) in [
            ("shop/public/customers", &[][..], Table, (some("shop"), some("public"), "customers".to_owned())),
            ("shop/a%2Fb%25", &[], Table, (some("shop"), None, "a/b%".to_owned())),
            ("customers", &[], Table, (None, None, "customers".to_owned())),
            ("x/app.db", &["users"], Table, (some("x/app.db"), None, "users".to_owned())),
            ("x.zip", &["app.db", "t"], Table, (some("x.zip!/app.db"), None, "t".to_owned())),
            ("x/people.csv", &[], File, (None, None, "x/people.csv".to_owned())),
            ("x.zip", &["people.csv"], File, (None, None, "x.zip!/people.csv".to_owned())),
        ] {
            assert_eq!(placed(key, nested, kind), expected, "{key}");
        }
        assert_eq!(
            unescaped(b"100%252F"),
            "100%2F",
            "an escaped percent sign is not the beginning of another"
        );
    }

    fn part(columns: &[&str]) -> TableObservation {
        let column = |name: &&str| ColumnShape { name: (*name).to_owned(), ..ColumnShape::default() };
        TableObservation {
            table: Location::default(),
            part: ObjectKey::default(),
            shape: TableShape {
                columns: columns.iter().map(column).collect(),
                row_estimate: Some(columns.len() as u64),
                ..TableShape::default()
            },
            rows: 3,
            is_sample: columns.len() > 2,
            sketches: columns.iter().map(|_| ColumnSketch::default().encode()).collect(),
        }
    }

    #[test]
    fn parts_of_a_table_that_was_altered_are_merged_by_column() {
        let mut merged = Merged::new(part(&["a", "b"]));
        merged.add(part(&["b", "c", "a"]));
        let names: Vec<_> = merged.shape.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!((names, merged.sketches.len()), (vec!["a", "b", "c"], 3));
        assert_eq!((merged.rows, merged.is_sample, merged.unread), (6, true, 0));
        assert_eq!(merged.shape.row_estimate, Some(3));
    }
}
