//! Generated sets: a Python program, in a virtual environment of its own, makes values, has each checked by a validator
//! that is not ours, and writes them into texts. It runs as a separate process; nothing of it is linked or copied here.
//!
//! The environment and the sets are kept under the target folder, each beside a copy of what it was made from, and
//! made anew when that changes. The seed is fixed: everybody measures the same texts.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::forms::{self, Set};
use crate::workspace::{Workspace, root};

/// Where the program is, below the workspace.
const PROGRAM: &str = "xtask/eval";
const REQUIREMENTS: &str = "requirements.txt";
/// What it generates, and what the set is called.
const PARTS: [(&str, &str); 2] = [("values", "generated"), ("negatives", "hard negatives")];
const SEED: &str = "5";

/// The generated sets of texts.
pub fn sets() -> Result<Vec<Set>> {
    let mut sets = Vec::new();
    for (part, name) in PARTS {
        let set = file(part, name)?;
        let text = std::fs::read_to_string(&set).with_context(|| format!("cannot read {}", set.display()))?;
        let entries = forms::read(&text).with_context(|| format!("in {}", set.display()))?;
        sets.push(Set { path: name.into(), entries });
    }
    Ok(sets)
}

/// The file with the generated columns.
pub fn columns() -> Result<PathBuf> {
    file("columns", "columns")
}

/// A part of what is generated, which is made where it is missing.
fn file(part: &str, name: &str) -> Result<PathBuf> {
    let program = root().join(PROGRAM);
    let folder = Workspace::load()?.target.join("eval");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let set = folder.join(format!("{part}.jsonl"));
    keep(&set, &sources(&program)?, || {
        let python = environment(&program, &folder)?;
        eprintln!("generating {name}");
        generate(&python, &program, part, &set)
    })?;
    Ok(set)
}

/// Everything that decides what is generated.
fn sources(program: &Path) -> Result<String> {
    let listed = std::fs::read_dir(program).with_context(|| format!("cannot list {}", program.display()))?;
    let mut paths = listed.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    paths.retain(|path| path.is_file());
    paths.sort();
    let read = |path: &PathBuf| {
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
    };
    Ok(paths.iter().map(read).collect::<Result<Vec<_>>>()?.concat())
}

/// Makes something again only when what it is made from is not what the copy beside it says. The copy is written last:
/// what was made halfway has none.
fn keep(made: &Path, from: &str, make: impl FnOnce() -> Result<()>) -> Result<()> {
    let copy = made.with_extension("from");
    if std::fs::read_to_string(&copy).is_ok_and(|before| before == from) {
        return Ok(());
    }
    if copy.exists() {
        std::fs::remove_file(&copy).with_context(|| format!("cannot remove {}", copy.display()))?;
    }
    make()?;
    std::fs::write(&copy, from).with_context(|| format!("cannot write {}", copy.display()))
}

/// The interpreter of the virtual environment, which is made and filled first where it is missing.
fn environment(program: &Path, folder: &Path) -> Result<PathBuf> {
    let venv = folder.join("venv");
    let python = venv.join("bin/python");
    let requirements = program.join(REQUIREMENTS);
    let from = std::fs::read_to_string(&requirements).context("cannot read the requirements")?;
    keep(&venv, &from, || {
        eprintln!("installing the independent validators into {}", venv.display());
        let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv).output();
        match made {
            Ok(made) if made.status.success() => {}
            Ok(made) => bail!(
                "cannot make a virtual environment; install python3-venv (or python3 with venv and pip): {}",
                String::from_utf8_lossy(&made.stdout).trim()
            ),
            Err(error) => bail!("cannot run python3; install python3 and python3-venv: {error}"),
        }
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
        let status = install.arg(&requirements).status().context("cannot run pip")?;
        if !status.success() {
            bail!("pip cannot install what {} names: {status}", requirements.display());
        }
        Ok(())
    })?;
    Ok(python)
}

fn generate(python: &Path, program: &Path, part: &str, set: &Path) -> Result<()> {
    let out = std::fs::File::create(set).with_context(|| format!("cannot write {}", set.display()))?;
    let mut generate = Command::new(python);
    // Without byte code of its own in the source tree.
    generate.arg("-B").arg(program.join("generate.py")).args([part, "--seed", SEED]);
    let status = generate.stdin(Stdio::null()).stdout(out).status().context("cannot run the generator")?;
    if !status.success() {
        bail!("the generator ended with {status}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::types::{self, Group};

    #[test]
    fn every_headline_and_national_type_is_generated() {
        let sources = sources(&root().join(PROGRAM)).unwrap();
        for kind in types::ALL.iter().filter(|kind| kind.group != Group::Other) {
            assert!(sources.contains(&format!("\"{}\"", kind.name)), "{}", kind.name);
        }
    }

    #[test]
    fn what_is_kept_is_made_again_only_when_its_source_changes() {
        let folder = tempfile::tempdir().unwrap();
        let made = folder.path().join("set.jsonl");
        let times = std::cell::Cell::new(0);
        let make = || {
            times.set(times.get() + 1);
            Ok(())
        };
        keep(&made, "a", make).unwrap();
        keep(&made, "a", make).unwrap();
        assert_eq!(times.get(), 1);
        keep(&made, "b", || bail!("halfway")).unwrap_err();
        keep(&made, "b", make).unwrap();
        keep(&made, "b", make).unwrap();
        assert_eq!(times.get(), 2);
    }
}
