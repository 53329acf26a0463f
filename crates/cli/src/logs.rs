//! The log: on standard error, as text or as one JSON object a line. What is logged never holds a value that
//! was found; ids of jobs, tasks and processes are fields.

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;

/// How log lines are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

pub fn begin(level: LevelFilter, format: LogFormat) {
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(level).with_ansi(false);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().flatten_event(true).with_current_span(false).init(),
    }
}
