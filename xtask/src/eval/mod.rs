//! `cargo xtask eval`: how well detection detects. Precision, recall and F1 with their intervals on labelled sets, on
//! generated ones and on texts that have nothing, and what is found in a source tree, beside the targets.
//!
//! It uses the engine and the binary as they are. No rule, threshold or exception may be made for it.

mod columns;
mod engine;
mod forms;
mod generated;
mod metrics;
mod report;
mod score;
mod tree;
mod types;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use engine::Engine;
use forms::Set;
use report::Report;

#[derive(Default)]
pub struct Options {
    /// A folder of labelled sets.
    pub data: Option<PathBuf>,
    /// A source tree.
    pub tree: Option<PathBuf>,
    /// What of the tree is left out, as `domesday scan --exclude` takes it.
    pub exclude: Vec<String>,
    /// Where the figures go as JSON.
    pub json: Option<PathBuf>,
    /// List what was missed and what was found too much.
    pub misses: bool,
    /// Files of labelled columns.
    pub columns: Vec<PathBuf>,
    /// Leave out all texts.
    pub columns_only: bool,
    /// Leave out the generated sets, and need no Python.
    pub given_only: bool,
}

impl Options {
    pub fn parse(arguments: &[String]) -> Result<Options> {
        let mut options = Options::default();
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{word} needs a value"));
            match word.as_str() {
                "--data" => options.data = Some(value()?.into()),
                "--tree" => options.tree = Some(value()?.into()),
                "--exclude" => options.exclude.push(value()?.clone()),
                "--json" => options.json = Some(value()?.into()),
                "--columns" => options.columns.push(value()?.into()),
                "--columns-only" => options.columns_only = true,
                "--misses" => options.misses = true,
                "--given-only" => options.given_only = true,
                _ => bail!("`{word}` is no option of eval; see `cargo xtask --help`"),
            }
        }
        let nothing_given = options.data.is_none() && options.tree.is_none() && options.columns.is_empty();
        if nothing_given && options.given_only {
            bail!(
                "nothing to evaluate: name a folder with --data, a file with --columns, or a tree with --tree"
            );
        }
        Ok(options)
    }
}

pub fn run(options: &Options) -> Result<()> {
    let mut sets: Vec<Set> = Vec::new();
    if let Some(folder) = &options.data {
        sets.extend(forms::read_folder(folder)?);
    }
    if !options.given_only && !options.columns_only {
        sets.extend(generated::sets()?);
    }
    let mut columns = options.columns.clone();
    if !options.given_only {
        columns.push(generated::columns()?);
    }
    let mut engine = Engine::new()?;
    let mut report = Report::default();
    for set in &sets {
        evaluate(set, &mut engine, &mut report, options.misses);
    }
    for path in &columns {
        let labelled = columns::label(&columns::read(path)?, engine.rules())?;
        report.add_columns(&path.file_name().unwrap_or_default().to_string_lossy(), &labelled);
        if options.misses {
            labelled.misses.iter().for_each(|miss| println!("{miss}"));
        }
    }
    if let Some(tree) = &options.tree {
        report.add_tree(tree::scan(tree, &options.exclude, engine.rules())?);
    }
    print!("{report}");
    if let Some(path) = &options.json {
        let json = serde_json::to_string_pretty(&report).context("the figures cannot be written as JSON")?;
        std::fs::write(path, json + "\n").with_context(|| format!("cannot write {}", path.display()))?;
    }
    match report.missed_targets() {
        0 => Ok(()),
        1 => bail!("a target is missed"),
        missed => bail!("{missed} targets are missed"),
    }
}

fn evaluate(set: &Set, engine: &mut Engine, report: &mut Report, misses: bool) {
    let name = set.path.file_name().unwrap_or_default().to_string_lossy();
    let scores = score::score(engine, &set.entries);
    if !scores.secrets.kinds.is_empty() {
        report.add_secrets(&name, &scores.secrets);
    }
    if scores.spans.texts > 0 {
        report.add_spans(&name, &scores.spans);
    }
    if !scores.negatives.kinds.is_empty() {
        report.add_negatives(&name, &scores.negatives);
    }
    if misses {
        for misses in [&scores.secrets.misses, &scores.spans.misses, &scores.negatives.misses] {
            report::print_misses(&name, misses);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Options> {
        Options::parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read() {
        let options = parse("--data d --misses --tree t --exclude a --exclude b --json j").unwrap();
        assert_eq!(options.data, Some("d".into()));
        assert_eq!(options.tree, Some("t".into()));
        assert_eq!(options.exclude, ["a", "b"]);
        assert_eq!(options.json, Some("j".into()));
        assert!(options.misses && !options.given_only);
        for wrong in ["--data", "--given-only", "--speed", "d"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
