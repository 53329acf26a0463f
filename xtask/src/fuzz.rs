//! `cargo xtask fuzz`: builds the fuzzer (`fuzz/`, a package outside of the workspace) and runs it on targets, one after
//! another. What it needs beside the pinned compiler is a C++ compiler, for libFuzzer.
//!
//! What the corpus replays is a test of the workspace; nothing of CI runs this.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace::{cargo, root};

/// How long one target is fuzzed, seconds, unless set otherwise.
const SECONDS: u64 = 300;
/// What one input may take before it is a crash: seconds, and MiB of the process.
const TIMEOUT_S: u64 = 20;
const RSS_MAX_MIB: u64 = 1024;
/// Bytes of the longest input that is made: a little more than the first bytes of a disc image.
const INPUT_MAX: u64 = 40 << 10;
/// Where the program is built for. That it is named keeps build scripts from being instrumented.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";
/// The counters and comparisons by which libFuzzer is guided, in Rust and, with gcc, in C.
const RUST_FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=16 --cfg fuzzing";
const C_FLAGS: &str = "-fsanitize-coverage=trace-pc";

pub struct Options {
    targets: Vec<String>,
    seconds: u64,
    /// Reduce the corpus to what reaches all that it and the fuzzer's own inputs reach.
    minimises: bool,
}

impl Options {
    pub fn parse(arguments: &[String]) -> Result<Options> {
        let mut options = Options { targets: Vec::new(), seconds: SECONDS, minimises: false };
        let known = targets()?;
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--all" => options.targets.clone_from(&known),
                "--minimise" => options.minimises = true,
                "--seconds" => {
                    let value = rest.next().context("--seconds needs a value")?;
                    options.seconds =
                        value.parse().with_context(|| format!("--seconds needs a number, not `{value}`"))?;
                }
                name if known.iter().any(|target| target == name) => options.targets.push(name.to_owned()),
                name => bail!("`{name}` is no target; known: {}", known.join(", ")),
            }
        }
        if options.targets.is_empty() {
            bail!("name a target, or --all; known: {}", known.join(", "));
        }
        Ok(options)
    }
}

fn package() -> PathBuf {
    root().join("fuzz")
}

/// Each has a folder of the corpus, which a test of the targets sees to.
fn targets() -> Result<Vec<String>> {
    let folder = package().join("corpus");
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

pub fn run(options: &Options) -> Result<()> {
    let program = build()?;
    let mut table = vec![Figures::HEAD.to_owned()];
    let mut crashed = Vec::new();
    for target in &options.targets {
        println!("==> {target}");
        if options.minimises {
            minimise(&program, target)?;
            continue;
        }
        let (figures, is_sound) = fuzz(&program, target, options.seconds)?;
        println!("{}\n{}", Figures::HEAD, figures.row(target));
        table.push(figures.row(target));
        if !is_sound {
            crashed.push(target.as_str());
        }
    }
    if !options.minimises {
        println!("\n{}", table.join("\n"));
    }
    if !crashed.is_empty() {
        bail!("inputs that broke {} are in {}", crashed.join(", "), artifacts().display());
    }
    Ok(())
}

fn artifacts() -> PathBuf {
    package().join("artifacts")
}

fn build() -> Result<PathBuf> {
    let status = cargo(&package())
        .args(["build", "--target", TRIPLE])
        // The passes and arguments of LLVM may be unstable flags one day; here they are allowed.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", RUST_FLAGS)
        .env("CFLAGS", C_FLAGS)
        .env_remove("CARGO_TARGET_DIR")
        .status()?;
    if !status.success() {
        bail!("the fuzzer was not built: {status}");
    }
    Ok(package().join("target").join(TRIPLE).join("debug/domesday-fuzz"))
}

/// The fuzzer on a target, with the limits of one input.
fn fuzzer(program: &Path, target: &str) -> Result<Command> {
    let artifacts = artifacts().join(target);
    fs::create_dir_all(&artifacts)?;
    let mut command = Command::new(program);
    command
        .env("DOMESDAY_FUZZ_TARGET", target)
        .arg(format!("-timeout={TIMEOUT_S}"))
        .arg(format!("-rss_limit_mb={RSS_MAX_MIB}"))
        .arg(format!("-max_len={INPUT_MAX}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()));
    Ok(command)
}

/// The folder of the corpus, and the one of the fuzzer's own inputs.
fn corpora(target: &str) -> Result<(PathBuf, PathBuf)> {
    let own = package().join("target/corpus").join(target);
    fs::create_dir_all(&own)?;
    Ok((package().join("corpus").join(target), own))
}

fn fuzz(program: &Path, target: &str, seconds: u64) -> Result<(Figures, bool)> {
    let (corpus, own) = corpora(target)?;
    let output = fuzzer(program, target)?
        .arg(format!("-max_total_time={seconds}"))
        .arg("-print_final_stats=1")
        .args([own, corpus])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .context("cannot run the fuzzer")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        eprintln!("{said}");
    }
    Ok((Figures::of(&said), output.status.success()))
}

/// Adds to the corpus what the fuzzer found and needs, and removes what it found before and does not need any more. Files
/// with names that people gave them stay.
fn minimise(program: &Path, target: &str) -> Result<()> {
    let (corpus, own) = corpora(target)?;
    let (merged, control) = (package().join("target/merged"), package().join("target/merge-control"));
    for old in [&merged, &control] {
        let _ = fs::remove_dir_all(old).or_else(|_| fs::remove_file(old));
    }
    fs::create_dir_all(&merged)?;
    let status = fuzzer(program, target)?
        .arg("-merge=1")
        .arg(format!("-merge_control_file={}", control.display()))
        .args([&merged, &corpus, &own])
        .stderr(Stdio::null())
        .status()?;
    if !status.success() {
        bail!("the inputs of {target} were not compared: {status}");
    }
    let inputs = Input::all(&fs::read_to_string(&control)?);
    let chosen = choose(inputs);
    for path in &chosen {
        let name = path.file_name().context("an input has a name")?;
        if *path != corpus.join(name) {
            fs::copy(path, corpus.join(name))?;
        }
    }
    for entry in fs::read_dir(&corpus)? {
        let path = entry?.path();
        if !is_named(&path) && !chosen.iter().any(|chosen| chosen.file_name() == path.file_name()) {
            fs::remove_file(path)?;
        }
    }
    println!("{} files in {}", fs::read_dir(&corpus)?.count(), corpus.display());
    Ok(())
}

/// Files of the fuzzer's that the corpus of a target has, at most.
const FOUND_MAX: usize = 40;
/// What libFuzzer calls features of an edge: how often it was passed, in so many steps.
const STEPS: u64 = 8;

/// An input, as the fuzzer compared it with others.
#[derive(Default)]
struct Input {
    path: PathBuf,
    size: u64,
    edges: BTreeSet<u64>,
}

impl Input {
    /// Those of a control file: the number of inputs, and of those in the first folder; their paths; then, for each by its
    /// number, `STARTED` with the size and `FT` with the features.
    fn all(control: &str) -> Vec<Input> {
        let mut lines = control.lines();
        let count = lines.next().and_then(|line| line.parse().ok()).unwrap_or(0);
        let path = |line: &str| Input { path: PathBuf::from(line), ..Input::default() };
        let mut inputs: Vec<Input> = lines.by_ref().skip(1).take(count).map(path).collect();
        for line in lines {
            let mut words = line.split(' ');
            let kind = words.next();
            let mut numbers = words.filter_map(|word| word.parse::<u64>().ok());
            let Some(input) = numbers.next().and_then(|number| inputs.get_mut(number as usize)) else {
                continue;
            };
            match kind {
                Some("STARTED") => input.size = numbers.next().unwrap_or(0),
                Some("FT") => input.edges = numbers.map(|feature| feature / STEPS).collect(),
                _ => {}
            }
        }
        inputs
    }
}

/// Those that reach the most that none before does, small ones first, besides those that stay in any case.
fn choose(inputs: Vec<Input>) -> Vec<PathBuf> {
    let (named, mut found): (Vec<Input>, Vec<Input>) =
        inputs.into_iter().partition(|input| is_named(&input.path));
    let mut reached: BTreeSet<u64> = named.into_iter().flat_map(|input| input.edges).collect();
    let mut chosen = Vec::new();
    while chosen.len() < FOUND_MAX {
        let new = |input: &Input| input.edges.difference(&reached).count();
        let best = (0..found.len()).max_by_key(|&at| (new(&found[at]), Reverse(found[at].size)));
        let Some(best) = best.filter(|&at| new(&found[at]) > 0) else { break };
        let input = found.swap_remove(best);
        reached.extend(&input.edges);
        chosen.push(input.path);
    }
    chosen
}

/// Whether people gave the file its name: the fuzzer's are hashes.
fn is_named(path: &Path) -> bool {
    const HASH_LEN: usize = 40;
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    name.len() != HASH_LEN || !name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What the fuzzer says of a run.
#[derive(Default)]
struct Figures {
    executions: String,
    per_second: String,
    edges: String,
    peak_mib: String,
    slowest_us: String,
    largest_bytes: String,
}

impl Figures {
    const HEAD: &str =
        "target | executions | a second | edges | peak RSS, MiB | slowest, us | largest, bytes";

    fn of(said: &str) -> Figures {
        let after = |label: &str| {
            let line = said.lines().rev().find_map(|line| line.split_once(label));
            line.and_then(|(_, rest)| rest.split_whitespace().next()).unwrap_or("-").to_owned()
        };
        Figures {
            executions: after("stat::number_of_executed_units:"),
            per_second: after("stat::average_exec_per_sec:"),
            edges: after(" cov: "),
            peak_mib: after("stat::peak_rss_mb:"),
            slowest_us: after("slowest: "),
            largest_bytes: after("largest: "),
        }
    }

    fn row(&self, target: &str) -> String {
        let Figures { executions, per_second, edges, peak_mib, slowest_us, largest_bytes } = self;
        format!(
            "{target} | {executions} | {per_second} | {edges} | {peak_mib} | {slowest_us} | {largest_bytes}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_the_last_that_were_said() {
        let said = "#8 NEW    cov: 12 ft: 20 corp: 3/9b\nslowest: 5 us, 3 bytes\nslowest: 70 us, 9 bytes\n\
                    #99\tDONE   cov: 34 ft: 50 corp: 7/30b\nstat::number_of_executed_units: 99\n\
                    stat::average_exec_per_sec:     9\nstat::peak_rss_mb:              41\n";
        assert_eq!(Figures::of(said).row("zip"), "zip | 99 | 9 | 34 | 41 | 70 | -");
    }

    #[test]
    fn inputs_are_chosen_by_what_only_they_reach() {
        let hash = |digit: &str| digit.repeat(40);
        let control = format!(
            "5\n0\n/c/seed\n/o/{}\n/o/{}\n/o/{}\n/o/{}\nSTARTED 0 9\nFT 0 8 16\nCOV 0 1\nSTARTED 1 5\nFT 1 9 24 32\n\
             STARTED 2 4\nFT 2 24 32\nSTARTED 3 7\nFT 3 24 32 40 48 56\nSTARTED 4 1\nFT 4 17\n",
            hash("a"),
            hash("b"),
            hash("c"),
            hash("d")
        );
        let chosen = choose(Input::all(&control));
        assert_eq!(chosen, [PathBuf::from(format!("/o/{}", hash("c")))]);
        assert!(is_named(Path::new("/c/seed")) && !is_named(&chosen[0]));
    }

    #[test]
    fn targets_are_named_one_by_one_or_all() {
        let parse =
            |text: &str| Options::parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        let options = parse("zip tar --seconds 7").unwrap();
        assert_eq!((options.targets, options.seconds), (vec!["zip".to_owned(), "tar".to_owned()], 7));
        assert!(parse("--all").unwrap().targets.len() > 2);
        for wrong in ["", "nothing", "zip --seconds", "zip --seconds many"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
