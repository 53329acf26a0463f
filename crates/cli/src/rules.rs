//! Loading rules for a command: the built-in ones, and the user's own.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use domesday_engine::{RuleSet, RuleSource};

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
