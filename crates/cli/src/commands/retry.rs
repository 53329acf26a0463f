//! What `domesday job retry` and `domesday task retry` share.

use anyhow::Result;
use domesday_store::{Retried, RetryScope};
use serde_json::json;

use crate::Exit;
use crate::output::{self, ListFormat};

pub fn scope(any_reason: bool) -> RetryScope {
    if any_reason { RetryScope::All } else { RetryScope::Passing }
}

/// Says what is tried again, and what is not.
pub fn answer(retried: Retried, refused: &[String], format: ListFormat) -> Result<Exit> {
    let Retried { tasks, containers, objects } = retried;
    let json = json!({
        "retried": tasks + containers + objects,
        "tasks": tasks,
        "containers": containers,
        "objects": objects,
        "refused": refused,
    });
    let counts = [(tasks, "task"), (containers, "container"), (objects, "object")];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, what)| output::counted(*count, what)).collect();
    let mut lines = match counts.is_empty() {
        true => vec![
            "nothing is tried again: nothing failed for a reason that may pass; `--any-reason` tries all that \
             failed"
                .to_owned(),
        ],
        false => vec![format!("tried again: {}", counts.join(", "))],
    };
    lines.extend(refused.iter().cloned());
    output::write_answer(&mut std::io::stdout().lock(), &json, &lines, format)?;
    Ok(if refused.is_empty() && !retried.is_empty() { Exit::Clean } else { Exit::Incomplete })
}
