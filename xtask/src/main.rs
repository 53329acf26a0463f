//! `cargo xtask`: what people and CI run on this repository besides cargo itself.
//!
//! Nothing of the product is here, and the product knows nothing of this.

mod ci;
mod crash;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};

const HELP: &str = "\
Usage: cargo xtask <command>

Commands:
  test                                         everything CI runs, up to the first failure
  tidy                                         crate layers, file lengths, licences and other rules of style
  crash --kills <N> --seed <S> [--files <F>]   kill scans again and again, and prove that nothing is lost
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
        ("crash", options) => crash::run(&crash_options(options)?),
        ("help" | "-h" | "--help", _) => {
            print!("{HELP}");
            Ok(())
        }
        _ => bail!("`{}` is no command; see `cargo xtask --help`", arguments.join(" ")),
    }
}

fn crash_options(arguments: &[String]) -> Result<crash::Options> {
    let mut options = crash::Options::default();
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { bail!("{} needs a value", pair[0]) };
        let number: u64 = value.parse().with_context(|| format!("{name} needs a number, not `{value}`"))?;
        match name.as_str() {
            "--kills" => options.kills = number,
            "--seed" => options.seed = number,
            "--files" => options.files = number,
            _ => bail!("`{name}` is no option of crash; see `cargo xtask --help`"),
        }
    }
    Ok(options)
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
    }
}
