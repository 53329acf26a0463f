//! `cargo xtask bench`: every benchmark of the platform, each beside what it is to be compared with in the same run,
//! and one file of results (`bench/results.md`).
//!
//! A benchmark is a file here with a function that fills [`Rows`] and a line of [`ALL`]. It measures the binary as
//! users have it, or an example of the crate whose inside it looks at. Figures are printed and never asserted: a test
//! that fails because a machine was busy is worth nothing. What is compared in tests is `cargo xtask instructions`.

mod databases;
mod fleet;
mod git;
mod hostile;
mod large;
mod listing;
mod micro;
mod objects;
mod options;
mod process;
mod store;
mod table;
mod threads;
mod tree;

use std::cell::OnceCell;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::crash::tree::Shape;
use crate::workspace::{Build, Workspace, cargo};
pub use options::Options;
use table::Rows;

/// Where the results are, below the workspace's root.
const RESULTS: &str = "bench/results.md";
/// Where a source tree of Linux is kept for benchmarks, below the user's cache folder.
const LINUX: &str = "domesday-bench/linux-source-6.1";
/// In its place where there is none.
const GENERATED: Shape = Shape { files: 60_000, many: 20_000, dense: 2_000, archives: 60 };

struct Benchmark {
    name: &'static str,
    /// What is measured, and with which commands.
    about: &'static str,
    run: fn(&Setup, &mut Rows) -> Result<()>,
}

/// All of them, in the order in which they run.
const ALL: &[Benchmark] = &[
    Benchmark { name: "tree", about: tree::ABOUT, run: tree::run },
    Benchmark { name: "large", about: large::ABOUT, run: large::run },
    Benchmark { name: "hostile", about: hostile::ABOUT, run: hostile::run },
    Benchmark { name: "store", about: store::ABOUT, run: store::run },
    Benchmark { name: "threads", about: threads::ABOUT, run: threads::run },
    Benchmark { name: "micro", about: micro::ABOUT, run: micro::run },
    Benchmark { name: "objects", about: objects::ABOUT, run: objects::run },
    Benchmark { name: "git", about: git::ABOUT, run: git::run },
    Benchmark { name: "listing", about: listing::ABOUT, run: listing::run },
    Benchmark { name: "databases", about: databases::ABOUT, run: databases::run },
    Benchmark { name: "fleet", about: fleet::ABOUT, run: fleet::run },
];

/// What benchmarks have in common.
struct Setup {
    workspace: Workspace,
    options: Options,
    /// For whatever they write; a folder of their own on the disk that cargo builds on.
    folder: PathBuf,
    binary: OnceCell<PathBuf>,
    tree: OnceCell<PathBuf>,
}

pub fn run(options: Options) -> Result<()> {
    let workspace = Workspace::load()?;
    let folder = workspace.target.join("bench");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let setup = Setup { workspace, options, folder, binary: OnceCell::new(), tree: OnceCell::new() };
    let results = setup.workspace.root.join(RESULTS);
    let mut failed = Vec::new();
    for benchmark in ALL.iter().filter(|benchmark| setup.options.wants(benchmark.name)) {
        eprintln!("{}:", benchmark.name);
        let mut rows = Rows::default();
        if let Err(error) = (benchmark.run)(&setup, &mut rows) {
            eprintln!("  failed: {error:#}");
            rows.missing("the rest", "it failed");
            failed.push(benchmark.name);
        }
        let section = rows.section(benchmark.name, &format!("{} {}", benchmark.about, setup.conditions()));
        println!("{section}");
        // After each, so that an hour's figures are not lost with the next one.
        let before = std::fs::read_to_string(&results).unwrap_or_default();
        let after = table::merge(&before, &[(benchmark.name, section)], &options::names());
        std::fs::write(&results, after).with_context(|| format!("cannot write {}", results.display()))?;
    }
    match failed[..] {
        [] => Ok(()),
        _ => bail!("not everything could be measured: {}", failed.join(", ")),
    }
}

impl Setup {
    /// The binary as users have it.
    fn binary(&self) -> Result<&Path> {
        if self.binary.get().is_none() {
            let _ = self.binary.set(self.workspace.build(&self.folder, Build::Release)?);
        }
        Ok(self.binary.get().expect("it was built above"))
    }

    /// The source tree that is scanned.
    fn tree(&self) -> Result<&Path> {
        if self.tree.get().is_none() {
            let linux = || process::cache().map(|cache| cache.join(LINUX)).filter(|tree| tree.is_dir());
            let tree = match self.options.tree.clone().or_else(linux) {
                Some(tree) => tree,
                None => crate::crash::tree::prepare(&self.folder, 1, GENERATED)?.path,
            };
            let _ = self.tree.set(tree);
        }
        Ok(self.tree.get().expect("it was chosen above"))
    }

    /// Runs an example (`--package … --example … --`, with its arguments), and what it printed.
    fn example(&self, which: &[&str], arguments: &[&str]) -> Result<String> {
        let mut example = cargo(&self.workspace.root);
        output(example.args(["run", "--quiet", "--release"]).args(which).arg("--").args(arguments))
    }

    /// On what the figures were taken.
    fn conditions(&self) -> String {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let mut git = Command::new("git");
        git.args(["describe", "--always", "--dirty"]).current_dir(&self.workspace.root);
        let commit = output(&mut git).unwrap_or_default();
        format!("({} processors, commit {})", processors, commit.trim())
    }
}

/// What a program prints; its errors are shown.
fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} ended with {}", output.status);
    }
    String::from_utf8(output.stdout).context("what it printed is no text")
}
