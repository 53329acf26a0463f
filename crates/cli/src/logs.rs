//! The log: on standard error, as text or as one JSON object a line. What is logged never holds a value that
//! was found; ids of jobs, tasks and processes are fields. Libraries log addresses as they have them: of every line,
//! whoever wrote it, secrets in addresses and tokens are redacted on the way out.

mod json;

use std::io::{self, Write};

use clap::ValueEnum;
use domesday_model::redact::{REDACTED, replaced, secret_parts};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use json::Json;

/// How log lines are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

/// What is told of spans and events.
pub type Log = Box<dyn Layer<Registry> + Send + Sync>;

/// The log of this level on standard error.
pub fn layer(level: LevelFilter, format: LogFormat) -> Log {
    let log = tracing_subscriber::fmt::layer().with_writer(|| Redacting(io::stderr())).with_ansi(false);
    match format {
        LogFormat::Text => log.with_filter(level).boxed(),
        LogFormat::Json => log.fmt_fields(JsonFields::new()).event_format(Json).with_filter(level).boxed(),
    }
}

/// Begins with these, if there are any.
pub fn begin(layers: impl IntoIterator<Item = Log>) {
    let layers: Vec<Log> = layers.into_iter().collect();
    if !layers.is_empty() {
        tracing_subscriber::registry().with(layers).init();
    }
}

/// Redacts what is written. The log writes a line at a time.
struct Redacting<W>(W);

impl<W: Write> Write for Redacting<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let parts = secret_parts(line);
        match parts.is_empty() {
            true => self.0.write_all(line)?,
            false => self.0.write_all(&replaced(line, &parts, |_| REDACTED.into()))?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_written_without_secrets() {
        let mut log = Redacting(Vec::new());
        log.write_all(b"{\"message\":\"GET https://h/x?token=abc HTTP/1.1\",\"task_id\":7}\n").unwrap();
        log.write_all(b"plain\n").unwrap();
        let text = String::from_utf8(log.0).unwrap();
        assert_eq!(text, "{\"message\":\"GET https://h/x?token=**** HTTP/1.1\",\"task_id\":7}\nplain\n");
    }
}
