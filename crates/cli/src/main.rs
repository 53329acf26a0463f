//! `domesday`: arguments, output and wiring. The one place that names every concrete part.

mod args;
mod commands;
#[cfg(feature = "failpoints")]
mod failpoints;
mod output;
mod request;
mod rules;
mod signals;
mod state;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};

/// How the process ends. The codes are part of the interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// Complete, and nothing found.
    Clean = 0,
    /// Complete, with findings.
    Findings = 1,
    /// Wrong usage or a fatal error.
    Fatal = 2,
    /// Ended incomplete: something could not be read, or it was interrupted.
    Incomplete = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Some(level) = cli.log {
        tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(level).with_ansi(false).init();
    }
    let ended = match cli.command {
        Command::Scan(args) => commands::scan::run(&args),
        Command::Findings(args) => commands::findings::run(&args),
        Command::Jobs(args) => commands::jobs::run(&args),
        Command::Rules(args) => commands::rules::run(&args),
    };
    match ended {
        Ok(exit) => exit.into(),
        // Whoever reads our output has seen enough, as in `domesday findings | head`.
        Err(error) if is_broken_pipe(&error) => Exit::Clean.into(),
        Err(error) => {
            eprintln!("domesday: {error:#}");
            Exit::Fatal.into()
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
