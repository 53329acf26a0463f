//! `domesday prune`: removes what ended long ago, a bounded batch at a time.

use std::io::IsTerminal;

use anyhow::{Context, Result};
use domesday_store::PruneReport;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::signal::unix::{SignalKind, signal};

use super::{list_format, runtime};
use crate::args::PruneArgs;
use crate::book;
use crate::{Exit, output, say};

pub fn run(args: &PruneArgs) -> Result<Exit> {
    runtime()?.block_on(prune(args))
}

async fn prune(args: &PruneArgs) -> Result<Exit> {
    let store = book::administer(&args.state).await?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let shown = progress();
    let mut sum = PruneReport::default();
    let is_stopped = loop {
        // A batch that has begun is finished: it is one transaction.
        let step = store.prune(args.older_than, args.batch_rows).await?;
        sum = PruneReport { jobs: sum.jobs + step.jobs, rows: sum.rows + step.rows, done: step.done };
        if sum.done {
            break false;
        }
        shown.set_message(line(&sum));
        shown.tick();
        tokio::select! {
            biased;
            _ = interrupt.recv() => break true,
            _ = terminate.recv() => break true,
            () = std::future::ready(()) => {}
        }
    };
    shown.finish_and_clear();
    let json = serde_json::json!({ "jobs": sum.jobs, "rows": sum.rows, "done": sum.done });
    let format = list_format(args.json);
    output::write_answer(&mut std::io::stdout().lock(), &json, &[line(&sum)], format)?;
    if is_stopped {
        say(format_args!("stopped; run the same command to go on"));
        return Ok(Exit::Incomplete);
    }
    Ok(Exit::Clean)
}

fn line(sum: &PruneReport) -> String {
    format!("removed {} with {}", output::counted(sum.jobs, "job"), output::counted(sum.rows, "row"))
}

/// A line on standard error, where somebody looks.
fn progress() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {wide_msg}").expect("the template is well-formed");
    ProgressBar::new_spinner().with_style(style)
}
