//! One file per command.

pub mod baseline;
pub mod catalog;
pub mod datasource;
pub mod db;
pub mod findings;
mod fleet;
pub mod job;
mod logins;
pub mod orchestrator;
pub mod problems;
pub mod prune;
mod report;
mod retry;
pub mod rules;
mod sample;
pub mod scan;
pub mod session;
pub mod status;
pub mod target;
pub mod task;
pub mod template;
mod which;
pub mod worker;

use std::io::IsTerminal;

use anyhow::{Context, Result};

use crate::output::{ListFormat, Style};

/// Rows that a list reads and writes at a time.
const PAGE_ROWS: u32 = 500;

/// The runtime of a command: few threads, since scanning and storing have their own.
fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("cannot start the runtime")
}

/// Colour only where a person looks, and did not object.
fn stdout_style() -> Style {
    Style::stdout(std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none())
}

fn stderr_style() -> Style {
    Style::stderr(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
}

/// Tables on a terminal, JSON elsewhere or when asked for.
fn list_format(json: bool) -> ListFormat {
    if json || !std::io::stdout().is_terminal() { ListFormat::Json } else { ListFormat::Table }
}
