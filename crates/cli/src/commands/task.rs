//! `domesday task list|show|retry`.

use anyhow::{Context, Result};
use domesday_model::{TaskId, TaskPayload};
use domesday_store::{Retried, Retry, StoreError, TaskFilter, TaskInfo};
use serde::Serialize;

use super::which::find_job;
use super::{list_format, retry, runtime, stdout_style};
use crate::args::{RetryArgs, StateArgs, TaskArgs, TaskCommand, TaskListArgs};
use crate::book;
use crate::{Exit, output};

pub fn run(args: &TaskArgs) -> Result<Exit> {
    runtime()?.block_on(async {
        match &args.command {
            TaskCommand::List(args) => list(args).await,
            TaskCommand::Show { id, json, state } => show(*id, *json, state).await,
            TaskCommand::Retry(args) => try_again(args).await,
        }
    })
}

#[derive(Serialize)]
struct TaskJson<'a> {
    id: i64,
    job: i64,
    master_job: String,
    node_group: &'a str,
    datasource: &'a str,
    #[serde(rename = "type")]
    task_type: &'static str,
    status: &'static str,
    worker: Option<String>,
    failures: u32,
    abandonments: u32,
    last_error: Option<&'a str>,
    created_at: String,
    not_before: Option<String>,
    progress_at: Option<String>,
    finished_at: Option<String>,
    objects: u64,
    nested: u64,
    bytes: u64,
    payload: &'a TaskPayload,
}

impl<'a> TaskJson<'a> {
    fn new(task: &'a TaskInfo) -> TaskJson<'a> {
        TaskJson {
            id: task.id.0,
            job: task.job.0,
            master_job: task.master.to_string(),
            node_group: &task.node_group,
            datasource: &task.datasource,
            task_type: task.task_type.as_str(),
            status: task.status.as_str(),
            worker: task.worker.map(|worker| worker.to_string()),
            failures: task.failures,
            abandonments: task.abandonments,
            last_error: task.last_error.as_deref(),
            created_at: output::timestamp(task.created_at_ms),
            not_before: (task.not_before_ms > 0).then(|| output::timestamp(task.not_before_ms)),
            progress_at: task.progress_at_ms.map(output::timestamp),
            finished_at: task.finished_at_ms.map(output::timestamp),
            objects: task.totals.objects,
            nested: task.totals.nested,
            bytes: task.totals.bytes,
            payload: &task.payload,
        }
    }
}

async fn list(args: &TaskListArgs) -> Result<Exit> {
    let store = book::read(&args.state).await?;
    let master = match &args.job {
        Some(id) => Some(find_job(store.as_ref(), Some(id)).await?.id),
        None => None,
    };
    let filter =
        TaskFilter { master, status: args.status, task_type: args.task_type, ..TaskFilter::default() };
    let tasks = store.tasks(filter, args.max).await?;
    let row = |task: &TaskInfo| {
        [
            task.id.to_string(),
            task.task_type.as_str().to_lowercase(),
            task.status.as_str().to_lowercase(),
            task.node_group.clone(),
            task.datasource.clone(),
            format!("{} failed, {} abandoned", task.failures, task.abandonments),
            task.last_error.clone().unwrap_or_default(),
        ]
    };
    let header = ["task", "type", "status", "group", "data source", "attempts", "last error"];
    let mut out = std::io::stdout().lock();
    let format = list_format(args.json);
    output::write_list(&mut out, &tasks, TaskJson::new, (header, row), format, stdout_style())?;
    Ok(Exit::Clean)
}

async fn show(id: TaskId, json: bool, state: &StateArgs) -> Result<Exit> {
    let store = book::read(state).await?;
    let task = store
        .task(id)
        .await?
        .with_context(|| format!("there is no task {id}: `domesday task list` shows them"))?;
    let time = |ms: Option<i64>| ms.map(output::timestamp).unwrap_or_default();
    let fields = vec![
        ("task", task.id.to_string()),
        ("job", task.master.to_string()),
        ("type", task.task_type.as_str().to_lowercase()),
        ("status", task.status.as_str().to_lowercase()),
        ("node group", task.node_group.clone()),
        ("data source", task.datasource.clone()),
        ("worker", task.worker.map(|worker| worker.to_string()).unwrap_or_default()),
        ("attempts", format!("{} failed, {} abandoned", task.failures, task.abandonments)),
        ("last error", task.last_error.clone().unwrap_or_default()),
        ("created", output::timestamp(task.created_at_ms)),
        ("not before", time(Some(task.not_before_ms).filter(|ms| *ms > 0))),
        ("progress", time(task.progress_at_ms)),
        ("finished", time(task.finished_at_ms)),
        ("read", read(&task)),
        ("covers", covers(&task.payload)),
    ];
    let mut out = std::io::stdout().lock();
    output::write_detail(&mut out, &TaskJson::new(&task), fields, list_format(json), stdout_style())?;
    Ok(Exit::Clean)
}

fn read(task: &TaskInfo) -> String {
    let totals = &task.totals;
    if totals.objects == 0 && totals.bytes == 0 {
        return String::new();
    }
    let nested = output::counted(totals.nested, "object");
    format!(
        "{}, {nested} in them, {}",
        output::counted(totals.objects, "object"),
        output::bytes(totals.bytes)
    )
}

/// What a task covers, in words.
fn covers(payload: &TaskPayload) -> String {
    let lines: Vec<String> = match payload {
        TaskPayload::PathsToScan(keys) => {
            let shown = |key: &domesday_model::ObjectKey| match key.as_bytes() {
                b"" => "the root".to_owned(),
                _ => key.to_string(),
            };
            keys.iter().map(shown).collect()
        }
        TaskPayload::UntracedObjects => vec!["objects with findings, to see where they came from".to_owned()],
        TaskPayload::UnitRanges(ranges) => {
            let shown = |range: &domesday_model::UnitRange| {
                format!("records {} to {} of unit {}", range.from, range.to - 1, range.unit)
            };
            ranges.iter().map(shown).collect()
        }
    };
    lines.join("\n")
}

async fn try_again(args: &RetryArgs) -> Result<Exit> {
    let store = book::compose(&args.state).await?;
    let scope = retry::scope(args.any_reason);
    let mut retried = Retried::default();
    if let Some(id) = &args.job {
        let job = find_job(store.as_ref(), Some(id)).await?;
        retried = store.retry(Retry::AllOf(job.id), scope).await?;
    }
    let mut refused = Vec::new();
    for id in &args.ids {
        match store.retry(Retry::Task(*id), scope).await {
            Ok(of_task) if !of_task.is_empty() => retried += of_task,
            Ok(_) | Err(StoreError::Missing { .. }) => refused.push(match store.task(*id).await? {
                Some(task) => format!("task {id} is {}: nothing of it can be tried again", task.status),
                None => format!("there is no task {id}: `domesday task list` shows them"),
            }),
            Err(error) => return Err(error.into()),
        }
    }
    retry::answer(retried, &refused, list_format(args.json))
}

#[cfg(test)]
mod tests {
    use domesday_model::{ObjectKey, UnitId, UnitRange};

    use super::*;

    #[test]
    fn what_a_task_covers_is_told_in_words() {
        let paths = TaskPayload::PathsToScan(vec![ObjectKey::default(), ObjectKey::new(*b"a/\xff")]);
        assert_eq!(covers(&paths), "the root\na/\\xff");
        let ranges = TaskPayload::UnitRanges(vec![UnitRange { unit: UnitId(7), from: 0, to: 50 }]);
        assert_eq!(covers(&ranges), "records 0 to 49 of unit 7");
    }
}
