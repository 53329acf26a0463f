//! Loading rules for a command: the built-in ones, and the user's own.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use anyhow::{Context, Result, anyhow, bail};
use domesday_control::{ControlError, RuleCache};
use domesday_engine::{Rule, RuleSet, RuleSource, check_examples};
use domesday_model::MasterJobId;
use domesday_store::ReportStore;

use crate::output::RuleInfo;
use crate::reach::Reach;
use crate::say;

/// The name of the source that `--only` and `--skip` make.
pub const SELECTION: &str = "selection (--only, --skip)";

/// Files that one adds to, each naming the next, that are read with it.
const BASES_MAX: usize = 2;
/// Bytes of a rule file, at most.
const RULES_BYTES_MAX: u64 = 16 << 20;

/// The built-in rules and those at `paths`.
pub fn load(paths: &[PathBuf]) -> Result<RuleSet> {
    load_with(read(paths, &Reach::Anywhere)?)
}

/// The built-in rules and these.
pub fn load_with(more: impl IntoIterator<Item = RuleSource>) -> Result<RuleSet> {
    let mut sources = RuleSet::builtin_sources();
    sources.extend(more);
    RuleSet::load(&sources).map_err(|errors| anyhow!("{errors}"))
}

/// A selection of rules as the source that says so; `None` for all rules.
pub fn selection(only: &[String], skip: &[String]) -> Option<RuleSource> {
    if only.is_empty() && skip.is_empty() {
        return None;
    }
    let list = |selectors: &[String]| toml::Value::from(selectors.to_vec());
    let text = format!("[select]\nonly = {}\nskip = {}\n", list(only), list(skip));
    Some(RuleSource { name: SELECTION.to_owned(), text })
}

/// Tells what of the user's files could not be honoured.
pub fn say_notes(rules: &RuleSet) {
    rules.notes().iter().for_each(|note| say(format_args!("warning: {note}")));
}

/// The rule files at `paths`, with those that they add to; of a folder, its `.toml` files in the order of their names.
pub fn read(paths: &[PathBuf], reach: &Reach) -> Result<Vec<RuleSource>> {
    let mut sources = Vec::new();
    for path in paths {
        let files = if reach.is_folder(path) { files_of(path, reach)? } else { vec![path.clone()] };
        for file in files {
            let source = read_file(&file, reach)?;
            let mut base = source.base();
            sources.push(source);
            for _ in 0..BASES_MAX {
                let Some(path) = base.take() else { break };
                if sources.iter().any(|source| source.name == path.display().to_string()) {
                    break;
                }
                let source = read_file(&path, reach)
                    .with_context(|| format!("{} adds to other rules in `extend.path`", file.display()))?;
                base = source.base();
                sources.push(source);
            }
        }
    }
    Ok(sources)
}

fn read_file(file: &Path, reach: &Reach) -> Result<RuleSource> {
    let about = || format!("cannot read rules from {}", file.display());
    let mut text = String::new();
    let opened = reach.open(file).with_context(about)?;
    opened.take(RULES_BYTES_MAX + 1).read_to_string(&mut text).with_context(about)?;
    if text.len() as u64 > RULES_BYTES_MAX {
        bail!("{}: it is longer than {RULES_BYTES_MAX} bytes", about());
    }
    Ok(RuleSource { name: file.display().to_string(), text })
}

fn files_of(folder: &Path, reach: &Reach) -> Result<Vec<PathBuf>> {
    let about = || format!("cannot read rules from {}", folder.display());
    let mut files = reach.list(folder).with_context(about)?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    if files.is_empty() {
        bail!("the folder {} has no .toml files: rules are TOML", folder.display());
    }
    files.sort();
    Ok(files)
}

/// Loads rules on top of the built-in ones, as a scan would, and runs every example in them; how many rules.
pub fn check(own: &[RuleSource]) -> Result<usize> {
    let mut sources = RuleSet::builtin_sources();
    sources.extend(own.iter().cloned());
    let set = Arc::new(RuleSet::load(&sources).map_err(|errors| anyhow!("{errors}"))?);
    say_notes(&set);
    let is_own = |rule: &Rule| own.iter().any(|source| source.name == *rule.family);
    let failures = check_examples(&set, is_own);
    if !failures.is_empty() {
        bail!("{}", failures.join("\n"));
    }
    Ok(set.rules().iter().filter(|rule| is_own(rule)).count())
}

/// What a report of a job says of its rules: those it was run with, which may be gone by now. A set that
/// this version cannot read leaves the built-in ones, and other findings are shown by their rule's id.
pub async fn of_job(store: &dyn ReportStore, master: MasterJobId) -> Result<RuleSet> {
    if let Some(hash) = store.job_rule_set(master).await? {
        match RuleCache::stored(store, hash).await {
            Ok(rules) => return Ok(rules),
            Err(ControlError::Store(error)) => return Err(error.into()),
            Err(_) => {}
        }
    }
    load(&[])
}

/// What reports say of the rules.
pub fn infos(rules: &Arc<RuleSet>) -> Vec<RuleInfo> {
    let info = |(index, rule): (usize, &Rule)| {
        let all = Arc::clone(rules);
        RuleInfo {
            id: rule.id.to_string(),
            description: rule.description.clone(),
            category: rule.category,
            class: LazyLock::new(Box::new(move || all.rules()[index].class())),
        }
    };
    rules.rules().iter().enumerate().map(info).collect()
}
