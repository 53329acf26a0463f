//! `domesday`: arguments, output and wiring. The one place that names every concrete part.

mod args;
mod baseline;
mod book;
mod commands;
mod config;
mod connectors;
mod definition;
mod document;
#[cfg(feature = "failpoints")]
mod failpoints;
mod fingerprint;
mod logs;
#[cfg(any(test, feature = "otlp"))]
mod otlp;
mod output;
mod process;
mod reach;
mod request;
mod rules;
mod sealing;
mod signals;
mod state;
mod target;
mod telemetry;

use std::fmt;
use std::io::Write;
use std::panic::{PanicHookInfo, catch_unwind};
use std::process::ExitCode;

use clap::Parser;
use domesday_model::redact;
use tracing::level_filters::LevelFilter;

use args::{Cli, Command};
use output::shown_lines;

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
    std::panic::set_hook(Box::new(report_panic));
    process::keep_memory_private();
    let cli = Cli::parse();
    // Those who serve tell what they do, unless told otherwise.
    let serves = matches!(cli.command, Command::Orchestrator(_) | Command::Worker(_));
    let level = cli.log.or(serves.then_some(LevelFilter::INFO));
    let log = level.map(|level| logs::layer(level, cli.log_format));
    #[cfg(not(feature = "otlp"))]
    logs::begin(log);
    #[cfg(feature = "otlp")]
    let traces = match begin_traces(cli.otlp_endpoint.as_deref(), log) {
        Ok(traces) => traces,
        Err(error) => {
            say(format_args!("{error:#}"));
            return Exit::Fatal.into();
        }
    };
    let exit = ended(&cli.command);
    #[cfg(feature = "otlp")]
    if let Some(traces) = traces {
        traces.finish();
    }
    exit.into()
}

/// Begins the log and, where a collector is named, the traces.
#[cfg(feature = "otlp")]
fn begin_traces(endpoint: Option<&str>, log: Option<logs::Log>) -> anyhow::Result<Option<otlp::Traces>> {
    let traces = endpoint.map(otlp::Traces::begin).transpose()?;
    let (traces, spans) = traces.unzip();
    logs::begin(log.into_iter().chain(spans.map(otlp::Spans::layer)));
    Ok(traces)
}

/// Runs the command; how the process ends.
fn ended(command: &Command) -> Exit {
    // A panic was reported where it happened; it must not end in a code of its own.
    let Ok(ended) = catch_unwind(|| run(command)) else { return Exit::Fatal };
    match ended {
        Ok(exit) => exit,
        // Whoever reads our output has seen enough, as in `domesday findings | head`; what they have not
        // seen may hold findings, so this is not a clean end.
        Err(error) if is_broken_pipe(&error) => Exit::Incomplete,
        Err(error) => {
            say(format_args!("{error:#}"));
            Exit::Fatal
        }
    }
}

fn run(command: &Command) -> anyhow::Result<Exit> {
    match command {
        Command::Scan(args) => commands::scan::run(args),
        Command::Findings(args) => commands::findings::run(args),
        Command::Catalog(args) => commands::catalog::run(args),
        Command::Jobs(args) => commands::job::list(args),
        Command::Problems(args) => commands::problems::run(args),
        Command::Rules(args) => commands::rules::run(args),
        Command::Baseline(args) => commands::baseline::run(args),
        Command::Orchestrator(args) => commands::orchestrator::run(args),
        Command::Worker(args) => commands::worker::run(args),
        Command::Datasource(args) => commands::datasource::run(args),
        Command::Template(args) => commands::template::run(args),
        Command::Job(args) => commands::job::run(args),
        Command::Task(args) => commands::task::run(args),
        Command::Session(args) => commands::session::run(args),
        Command::Target(args) => commands::target::run(args),
        Command::Status(args) => commands::status::run(args),
        Command::Db(args) => commands::db::run(args),
        Command::Prune(args) => commands::prune::run(args),
    }
}

/// A message to the user, on standard error. It may quote what was scanned, so nothing in it may act on the terminal,
/// and secrets in addresses are not told. Nobody may be there to read it: that is no error.
pub fn say(message: fmt::Arguments<'_>) {
    let message = message.to_string();
    let _ = writeln!(std::io::stderr(), "domesday: {}", shown_lines(&redact::redacted(&message)));
}

/// Where a panic was, and not its words: they may quote what was being read.
fn report_panic(panic: &PanicHookInfo<'_>) {
    match panic.location() {
        Some(place) => {
            say(format_args!("internal error at {}:{}; please report it", place.file(), place.line()))
        }
        None => say(format_args!("internal error; please report it")),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
