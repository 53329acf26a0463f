//! `cargo xtask`: what people and CI run on this repository besides cargo itself.
//!
//! Nothing of the product is here, and the product knows nothing of this.

mod bench;
mod chaos;
mod ci;
mod crash;
mod eval;
mod fuzz;
mod instructions;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use crash::source::Kind;

const HELP: &str = "\
Usage: cargo xtask <command>

Commands:
  test                                         everything CI runs, up to the first failure
  tidy                                         crate layers, file lengths, licences and other rules of style
  crash --kills <N> --seed <S> [--files <F>] [--source <KIND>]
                                               kill scans again and again, and prove that nothing is lost
  crash --source long [--seed <S>] [--mib <N>] [--distance-mib <N>]
                                               the same of one very large file
  chaos --minutes <M> --seed <S>               disturb a fleet in every way, and prove the same of it
  bench [<NAME>]... [--tree <PATH>] [--rounds <N>] [--gib <N>] [--millions <N>] [--rows <N>] [--part <PART>]...
        [--search <SECONDS>] [--seed <S>]      all benchmarks, or some, into bench/results.md
  fuzz <TARGET>... | --all [--seconds <N>] [--minimise]
                                               fuzz the parsers of hostile bytes, or reduce their corpus
  instructions [--bless]                       count the engine's instructions, and compare them with what was
  eval [--data <DIR>] [--tree <PATH> [--exclude <GLOB>]...] [--json <FILE>] [--misses] [--given-only]
       [--columns <FILE>]... [--columns-only]
                                               how well detection detects, against the targets
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) if !rest.iter().any(|argument| argument == "--help") => {
            (command.as_str(), rest)
        }
        Some(_) | None => ("--help", &[][..]),
    };
    match (command, rest) {
        ("test", []) => ci::test(),
        ("tidy", []) => tidy::run(),
        ("crash", [source, long, options @ ..]) if source == "--source" && long == "long" => {
            crash::long::run(&long_options(options)?)
        }
        ("crash", options) => crash::run(&crash_options(options)?),
        ("chaos", options) => chaos::run(&chaos_options(options)?),
        ("bench", options) => bench::run(bench::Options::parse(options)?),
        ("fuzz", options) => fuzz::run(&fuzz::Options::parse(options)?),
        ("instructions", []) => instructions::run(false),
        ("instructions", [option]) if option == "--bless" => instructions::run(true),
        ("eval", options) => eval::run(&eval::Options::parse(options)?),
        ("help" | "-h" | "--help", _) => {
            print!("{HELP}");
            Ok(())
        }
        _ => bail!("`{}` is no command; see `cargo xtask --help`", arguments.join(" ")),
    }
}

fn crash_options(arguments: &[String]) -> Result<crash::Options> {
    let mut options = crash::Options::default();
    let mut rest = Vec::new();
    for pair in arguments.chunks(2) {
        match pair {
            [name, value] if name == "--source" => options.source = source(value)?,
            pair => rest.extend_from_slice(pair),
        }
    }
    for (name, number) in numbers(&rest)? {
        match name {
            "--kills" => options.kills = number,
            "--seed" => options.seed = number,
            "--files" => options.files = number,
            _ => bail!("`{name}` is no option of crash; see `cargo xtask --help`"),
        }
    }
    Ok(options)
}

fn long_options(arguments: &[String]) -> Result<crash::long::Options> {
    let mut options = crash::long::Options::long(1);
    for (name, number) in numbers(arguments)? {
        match name {
            "--seed" => options.seed = number,
            "--mib" => options.mib = number,
            "--distance-mib" => options.distance_mib = number,
            _ => bail!("`{name}` is no option of crash --source long; see `cargo xtask --help`"),
        }
    }
    Ok(options)
}

fn source(name: &str) -> Result<Kind> {
    let known = || Kind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
    Kind::ALL
        .iter()
        .copied()
        .find(|kind| kind.name() == name)
        .with_context(|| format!("--source takes one of {}, not `{name}`", known()))
}

fn chaos_options(arguments: &[String]) -> Result<chaos::Options> {
    let mut options = chaos::Options::default();
    for (name, number) in numbers(arguments)? {
        match name {
            "--minutes" => options.minutes = number,
            "--seed" => options.seed = number,
            _ => bail!("`{name}` is no option of chaos; see `cargo xtask --help`"),
        }
    }
    Ok(options)
}

/// Options as pairs of a name and a number.
fn numbers(arguments: &[String]) -> Result<Vec<(&str, u64)>> {
    let number = |pair: &'_ [String]| -> Result<u64> {
        let [name, value] = pair else { bail!("{} needs a value", pair[0]) };
        value.parse().with_context(|| format!("{name} needs a number, not `{value}`"))
    };
    arguments.chunks(2).map(|pair| Ok((pair[0].as_str(), number(pair)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Result<crash::Options> {
        crash_options(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_pairs_of_name_and_number() {
        let parsed = options("--kills 7 --seed 3").unwrap();
        assert_eq!((parsed.kills, parsed.seed, parsed.files), (7, 3, crash::Options::default().files));
        for wrong in ["--kills", "--kills many", "--speed 1"] {
            assert!(options(wrong).is_err(), "{wrong}");
        }
        let words = ["--minutes", "3", "--seed", "9"].map(str::to_owned);
        let parsed = chaos_options(&words).unwrap();
        assert_eq!((parsed.minutes, parsed.seed), (3, 9));
        assert!(chaos_options(&["--kills".to_owned(), "3".to_owned()]).is_err());
    }
}
