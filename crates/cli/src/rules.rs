//! Loading rules for a command: the built-in ones, and the user's own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use domesday_control::{ControlError, RuleCache};
use domesday_engine::{Rule, RuleSet, RuleSource, check_examples};
use domesday_model::MasterJobId;
use domesday_store::Store;

use crate::output::RuleInfo;

/// The built-in rules and those at `paths`.
pub fn load(paths: &[PathBuf]) -> Result<RuleSet> {
    let mut sources = RuleSet::builtin_sources();
    sources.extend(read(paths)?);
    RuleSet::load(&sources).map_err(|errors| anyhow!("{errors}"))
}

/// The rule files at `paths`; of a folder, its `.toml` files in the order of their names.
pub fn read(paths: &[PathBuf]) -> Result<Vec<RuleSource>> {
    let mut sources = Vec::new();
    for path in paths {
        let files = if path.is_dir() { files_of(path)? } else { vec![path.clone()] };
        for file in files {
            let text = std::fs::read_to_string(&file)
                .with_context(|| format!("cannot read rules from {}", file.display()))?;
            sources.push(RuleSource { name: file.display().to_string(), text });
        }
    }
    Ok(sources)
}

fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let about = || format!("cannot read rules from {}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(about)? {
        let path = entry.with_context(about)?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
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
    let is_own = |rule: &Rule| own.iter().any(|source| source.name == *rule.family);
    let failures = check_examples(&set, is_own);
    if !failures.is_empty() {
        bail!("{}", failures.join("\n"));
    }
    Ok(set.rules().iter().filter(|rule| is_own(rule)).count())
}

/// What a report of a job says of its rules: those it was run with, which may be gone by now. A set that
/// this version cannot read leaves the built-in ones, and other findings are shown by their rule's id.
pub async fn of_job(store: &dyn Store, master: MasterJobId) -> Result<Vec<RuleInfo>> {
    if let Some(hash) = store.job_rule_set(master).await? {
        match RuleCache::stored(store, hash).await {
            Ok(rules) => return Ok(infos(&rules)),
            Err(ControlError::Store(error)) => return Err(error.into()),
            Err(_) => {}
        }
    }
    Ok(infos(&load(&[])?))
}

/// What reports say of the rules.
pub fn infos(rules: &RuleSet) -> Vec<RuleInfo> {
    rules
        .rules()
        .iter()
        .map(|rule| RuleInfo {
            id: rule.id.to_string(),
            description: rule.description.clone(),
            category: rule.category,
        })
        .collect()
}
