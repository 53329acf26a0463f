//! Compiles `rules/*.toml` into the form that the engine loads: the packed rules, and the plans of the prefilter. The code
//! that reads and packs rules is the engine's own, included here as modules, so that there is one reader of rules and
//! a wrong rule fails the build with the message that a user's rule gets. It must not read anything but the rule files:
//! cargo runs it again only if those or its own modules change.

// A build script uses a part of the engine's modules: what reads, checks and packs rules.
#![allow(dead_code, unused_imports)]

#[path = "src/decode/mod.rs"]
mod decode;
#[path = "src/limits.rs"]
mod limits;
#[path = "src/parts.rs"]
mod parts;
#[path = "src/prefilter/mod.rs"]
mod prefilter;
#[path = "src/rules/mod.rs"]
mod rules;
#[path = "src/scoring/mod.rs"]
mod scoring;
#[path = "src/validators/mod.rs"]
mod validators;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use limits::{CONTEXT_MAX, MAX_MATCH_LEN};
use rules::RuleSource;

/// What `src/builtin.rs` is in the engine: nothing is built in yet.
mod builtin {
    pub const FAMILIES: &[(&str, &str)] = &[];
    pub static RULES: &[u8] = &[];
    pub static PLANS: &[u8] = &[];
}

/// The folder of the rule files, in that of the crate.
const RULES_FOLDER: &str = "rules";

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed={RULES_FOLDER}");
    match compile() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.to_string().lines().for_each(|line| println!("cargo::error={line}"));
            ExitCode::FAILURE
        }
    }
}

fn compile() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let families = read_families(Path::new(RULES_FOLDER))?;
    let (rules, packed) = rules::pack_families(&families)?;
    fs::write(out.join("families.rs"), family_list(&families).as_bytes())?;
    fs::write(out.join("rules.bin"), &packed)?;
    fs::write(out.join("plans.bin"), prefilter::pack_plans(&rules))?;
    Ok(())
}

/// The rule files of a folder, in order of their names.
fn read_families(folder: &Path) -> Result<Vec<RuleSource>, Box<dyn Error>> {
    let mut families = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name =
            path.file_name().and_then(|name| name.to_str()).ok_or("the name of a rule file is UTF-8")?;
        if name.ends_with(".toml") {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            families.push(RuleSource { name: name.to_owned(), text });
        }
    }
    families.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(families)
}

/// A Rust expression: a slice of the name and text of each rule file.
fn family_list(families: &[RuleSource]) -> String {
    let line = |family: &RuleSource| {
        let name = &family.name;
        let path = format!("/{RULES_FOLDER}/{name}");
        format!("    ({name:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {path:?}))),\n")
    };
    format!("&[\n{}]\n", families.iter().map(line).collect::<String>())
}
