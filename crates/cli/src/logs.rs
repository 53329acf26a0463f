//! The log: on standard error, as text or as one JSON object a line. What is logged never holds a value that
//! was found; ids of jobs, tasks and processes are fields. Libraries log addresses as they have them: of every line,
//! whoever wrote it, secrets in addresses and tokens are redacted on the way out.

use std::io::{self, Write};

use clap::ValueEnum;
use domesday_model::redact::{REDACTED, replaced, secret_parts};
use tracing::level_filters::LevelFilter;

/// How log lines are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

pub fn begin(level: LevelFilter, format: LogFormat) {
    let log = tracing_subscriber::fmt()
        .with_writer(|| Redacting(io::stderr()))
        .with_max_level(level)
        .with_ansi(false);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().flatten_event(true).with_current_span(false).init(),
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
