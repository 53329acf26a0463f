//! `cargo xtask instructions`: how many instructions the engine takes for a pass over each of a few generated texts,
//! counted by callgrind and compared with `bench/instructions.toml`. So a regression is seen on any machine, however
//! busy, and without a clock.
//!
//! Counted is the release build as it is shipped. What loading rules and a first pass cost falls out, because two runs
//! with different numbers of passes are subtracted. Valgrind offers a program AVX2 at most, so that every x86-64 host
//! that has it takes the same path; elsewhere the counts would be those of another path, and nothing is compared.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::{Workspace, cargo};

/// Where the counts are, below the workspace's root.
const COUNTS: &str = "bench/instructions.toml";
const HEAD: &str = "# Instructions of the engine for one pass over a generated text of 256 KiB, by text (`counted` in\n\
    # crates/engine/examples/texts/counted.rs). Written by `cargo xtask instructions --bless`.\n\n";
/// The texts of the example `texts`.
const TEXTS: [&str; 3] = ["source", "settings", "digits"];
/// Passes of the two runs that are subtracted.
const PASSES: [u64; 2] = [2, 6];
/// How far a count may be from what is written down, either way, as a share.
const TOLERANCE: f64 = 0.03;
/// How callgrind begins the line with the count.
const COLLECTED: &str = "Collected :";

type Counts = BTreeMap<String, u64>;

/// Counts, and writes the counts down (`bless`) or compares them.
pub fn run(bless: bool) -> Result<()> {
    if !has_avx2() {
        println!("not compared: the counts are those of x86-64 with AVX2");
        return Ok(());
    }
    let workspace = Workspace::load()?;
    let example = build(&workspace)?;
    let mut counts = Counts::new();
    for text in TEXTS {
        counts.insert(text.to_owned(), per_pass(&example, text)?);
    }
    let path = workspace.root.join(COUNTS);
    if bless {
        std::fs::write(&path, format!("{HEAD}{}", toml::to_string(&counts)?))
            .with_context(|| format!("cannot write {}", path.display()))?;
        counts.iter().for_each(|(text, count)| println!("{text}: {count} instructions"));
        return Ok(());
    }
    let known = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let known: Counts = toml::from_str(&known).with_context(|| format!("{COUNTS} is no list of counts"))?;
    let mut offences = Vec::new();
    for (text, count) in &counts {
        let verdict = compare(*count, known.get(text).copied());
        println!("{text}: {count} instructions, {verdict}");
        if verdict.is_offence() {
            offences.push(format!("{text} {verdict}"));
        }
    }
    match offences[..] {
        [] => Ok(()),
        _ => bail!(
            "{}; if that is meant, write it down: cargo xtask instructions --bless",
            offences.join("; ")
        ),
    }
}

fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

fn build(workspace: &Workspace) -> Result<std::path::PathBuf> {
    let mut build = cargo(&workspace.root);
    build.args(["build", "--quiet", "--release", "--package", "domesday-engine", "--example", "texts"]);
    let status = build.status().context("cannot run cargo build")?;
    if !status.success() {
        bail!("cannot build the example: {status}");
    }
    Ok(workspace.target.join("release/examples/texts"))
}

fn per_pass(example: &Path, text: &str) -> Result<u64> {
    let [fewer, more] = PASSES;
    let less = instructions(example, text, fewer)?;
    Ok(instructions(example, text, more)?.saturating_sub(less) / (more - fewer))
}

/// All that a run executes.
fn instructions(example: &Path, text: &str, passes: u64) -> Result<u64> {
    let mut callgrind = Command::new("valgrind");
    callgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(example);
    callgrind.args(["count", text, &passes.to_string()]);
    let output = callgrind.output().context("cannot run valgrind: install package `valgrind`")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{callgrind:?} ended with {}: {errors}", output.status);
    }
    collected(&errors).with_context(|| format!("valgrind says nothing of instructions: {errors}"))
}

fn collected(output: &str) -> Option<u64> {
    let (_, count) = output.lines().find_map(|line| line.split_once(COLLECTED))?;
    count.trim().parse().ok()
}

#[derive(PartialEq, Debug)]
enum Verdict {
    /// Of what is written down, with the share by which it differs.
    Same(f64),
    More(f64),
    Fewer(f64),
    Unknown,
}

impl Verdict {
    /// Fewer is one, too: what was gained is only kept if it is written down.
    fn is_offence(&self) -> bool {
        !matches!(self, Verdict::Same(_))
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Verdict::Same(share) => write!(out, "as it was ({:+.1} %)", 100.0 * share),
            Verdict::More(share) => write!(out, "takes {:.1} % more than before", 100.0 * share),
            Verdict::Fewer(share) => write!(out, "takes {:.1} % less than before", -100.0 * share),
            Verdict::Unknown => write!(out, "was never counted before"),
        }
    }
}

fn compare(count: u64, known: Option<u64>) -> Verdict {
    let Some(known) = known.filter(|known| *known > 0) else { return Verdict::Unknown };
    let share = count as f64 / known as f64 - 1.0;
    match share {
        _ if share > TOLERANCE => Verdict::More(share),
        _ if share < -TOLERANCE => Verdict::Fewer(share),
        _ => Verdict::Same(share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_compared_both_ways() {
        assert!(!compare(1_029, Some(1_000)).is_offence());
        assert!(!compare(971, Some(1_000)).is_offence());
        for (count, known) in [(1_031, Some(1_000)), (960, Some(1_000)), (5, None), (5, Some(0))] {
            assert!(compare(count, known).is_offence(), "{count} {known:?}");
        }
        assert_eq!(compare(1_100, Some(1_000)).to_string(), "takes 10.0 % more than before");
    }

    #[test]
    fn the_count_is_found_in_what_callgrind_says() {
        let output = "==7== Events    : Ir\n==7== Collected : 123456789\n==7==\n";
        assert_eq!(collected(output), Some(123_456_789));
        assert_eq!(collected("==7== Events    : Ir\n"), None);
    }

    #[test]
    fn the_counts_that_are_checked_in_are_of_the_texts_there_are() {
        let path = crate::workspace::root().join(COUNTS);
        let counts: Counts = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let mut texts = TEXTS.map(str::to_owned);
        texts.sort();
        assert!(counts.keys().eq(&texts), "{counts:?}");
    }
}
