//! `domesday session list|show`.

use anyhow::{Context, Result};
use domesday_control::Enumeration;
use domesday_model::EnumerationSessionId;
use domesday_store::{BatchInfo, SessionFilter, SessionInfo};
use serde::Serialize;
use serde_json::Value;

use super::which::find_job;
use super::{PAGE_ROWS, list_format, runtime, stdout_style};
use crate::args::{SessionArgs, SessionCommand, SessionListArgs, StateArgs};
use crate::book;
use crate::{Exit, output};

/// Batches that are shown with a session.
const LAST_BATCHES: u32 = 5;

pub fn run(args: &SessionArgs) -> Result<Exit> {
    runtime()?.block_on(async {
        match &args.command {
            SessionCommand::List(args) => list(args).await,
            SessionCommand::Show { id, follow: true, json, state } => follow(*id, *json, state).await,
            SessionCommand::Show { id, follow: false, json, state } => show(*id, *json, state).await,
        }
    })
}

#[derive(Serialize)]
struct SessionJson<'a> {
    id: i64,
    job: i64,
    master_job: String,
    node_group: &'a str,
    datasource: &'a str,
    source_type: &'a str,
    status: &'static str,
    failure_reason: Option<&'a str>,
    waiting_until: Option<String>,
    started_at: String,
    completed_at: Option<String>,
    last_update: String,
    total_batches: u64,
    failed_batches: u64,
    items_found: u64,
    items_processed: u64,
    last_checkpoint: Option<&'a Value>,
}

impl<'a> SessionJson<'a> {
    fn new(session: &'a SessionInfo) -> SessionJson<'a> {
        let metrics = &session.metrics;
        SessionJson {
            id: session.id.0,
            job: session.job.0,
            master_job: session.master.to_string(),
            node_group: &session.node_group,
            datasource: &session.datasource,
            source_type: &session.source_type,
            status: session.status.as_str(),
            failure_reason: session.failure_reason.as_deref(),
            waiting_until: session.waiting_until_ms.map(output::timestamp),
            started_at: output::timestamp(session.started_at_ms),
            completed_at: session.completed_at_ms.map(output::timestamp),
            last_update: output::timestamp(session.last_update_ms),
            total_batches: metrics.total_batches,
            failed_batches: metrics.failed_batches,
            items_found: metrics.items_found,
            items_processed: metrics.items_processed,
            last_checkpoint: session.last_checkpoint.as_ref().map(|checkpoint| &checkpoint.data),
        }
    }
}

#[derive(Serialize)]
struct ShownJson<'a> {
    #[serde(flatten)]
    session: SessionJson<'a>,
    configuration: &'a Value,
    /// Newest first.
    last_batches: Vec<BatchJson<'a>>,
}

#[derive(Serialize)]
struct BatchJson<'a> {
    id: i64,
    status: &'static str,
    expected_items: u64,
    items_processed: u64,
    error_details: Option<&'a str>,
    checkpoint: Option<&'a Value>,
    started_at: String,
    completed_at: Option<String>,
}

impl<'a> BatchJson<'a> {
    fn new(batch: &'a BatchInfo) -> BatchJson<'a> {
        BatchJson {
            id: batch.id.0,
            status: batch.status.as_str(),
            expected_items: batch.expected_items,
            items_processed: batch.items_processed,
            error_details: batch.error_details.as_deref(),
            checkpoint: batch.checkpoint.as_ref(),
            started_at: output::timestamp(batch.started_at_ms),
            completed_at: batch.completed_at_ms.map(output::timestamp),
        }
    }
}

async fn list(args: &SessionListArgs) -> Result<Exit> {
    let store = book::read(&args.state).await?;
    let master = match &args.job {
        Some(id) => Some(find_job(store.as_ref(), Some(id)).await?.id),
        None => None,
    };
    let filter = SessionFilter { master, status: args.status, active_only: args.active };
    let header = ["session", "status", "group", "data source", "kind", "items", "batches", "why"];
    let out = std::io::stdout().lock();
    let mut pages = output::ListPages::new(out, header, list_format(args.json), stdout_style());
    let (mut left, mut after) = (args.max, None);
    while left > 0 {
        let page = store.sessions(filter.clone(), after, left.min(PAGE_ROWS)).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        left = left.saturating_sub(page.len() as u32);
        pages.page(&page, SessionJson::new, row)?;
    }
    pages.end()?;
    Ok(Exit::Clean)
}

fn row(session: &SessionInfo) -> [String; 8] {
    [
        session.id.to_string(),
        session.status.as_str().to_lowercase(),
        session.node_group.clone(),
        session.datasource.clone(),
        session.source_type.clone(),
        output::count(session.metrics.items_processed),
        batches(session),
        session.failure_reason.clone().or(waiting(session)).unwrap_or_default(),
    ]
}

/// One thing that a session came upon.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    Target { id: String },
    Task { id: i64, r#type: &'static str },
    Error { batch: i64, detail: String },
}

impl Event {
    fn line(&self) -> String {
        match self {
            Event::Target { id } => format!("target {id}"),
            Event::Task { id, r#type } => format!("task {id}  {}", r#type.to_lowercase()),
            Event::Error { batch, detail } => format!("error in batch {batch}: {detail}"),
        }
    }
}

/// Tells what a session comes upon, as it is committed, until it has ended; then what became of it.
async fn follow(id: EnumerationSessionId, json: bool, state: &StateArgs) -> Result<Exit> {
    let store = book::read(state).await?;
    let mut session = Enumeration::follow(store, id).await?;
    let (mut targets, mut tasks, mut errors) = (true, true, true);
    while targets || tasks || errors {
        let event = tokio::select! {
            target = session.targets.next(), if targets => {
                let target = target?;
                targets = target.is_some();
                target.map(|id| Event::Target { id: id.to_string() })
            }
            task = session.tasks.next(), if tasks => {
                let task = task?;
                tasks = task.is_some();
                task.map(|task| Event::Task { id: task.id.0, r#type: task.task_type.as_str() })
            }
            error = session.errors.next(), if errors => {
                let error = error?;
                errors = error.is_some();
                error.map(|error| Event::Error { batch: error.batch.0, detail: error.detail })
            }
        };
        if let Some(event) = event {
            let lines = [event.line()];
            output::write_answer(&mut std::io::stdout().lock(), &event, &lines, list_format(json))?;
        }
    }
    show(id, json, state).await
}

async fn show(id: EnumerationSessionId, json: bool, state: &StateArgs) -> Result<Exit> {
    let store = book::read(state).await?;
    let session = store
        .session(id)
        .await?
        .with_context(|| format!("there is no session {id}: `domesday session list` shows them"))?;
    let last = store.batches(id, None, LAST_BATCHES).await?;
    let checkpoint = session.last_checkpoint.as_ref();
    let fields = vec![
        ("session", session.id.to_string()),
        ("job", session.master.to_string()),
        ("status", session.status.as_str().to_lowercase()),
        ("why", session.failure_reason.clone().unwrap_or_default()),
        ("waiting", waiting(&session).unwrap_or_default()),
        ("node group", session.node_group.clone()),
        ("data source", session.datasource.clone()),
        ("kind", session.source_type.clone()),
        ("started", output::timestamp(session.started_at_ms)),
        ("last progress", output::timestamp(session.last_update_ms)),
        ("completed", session.completed_at_ms.map(output::timestamp).unwrap_or_default()),
        ("items", format!("{} of {}", output::count(session.metrics.items_processed), found(&session))),
        ("batches", batches(&session)),
        ("checkpoint", checkpoint.map(|checkpoint| checkpoint.data.to_string()).unwrap_or_default()),
        ("last batches", last.iter().map(shown).collect::<Vec<_>>().join("\n")),
    ];
    let json_of = ShownJson {
        session: SessionJson::new(&session),
        configuration: &session.configuration,
        last_batches: last.iter().map(BatchJson::new).collect(),
    };
    let mut out = std::io::stdout().lock();
    output::write_detail(&mut out, &json_of, fields, list_format(json), stdout_style())?;
    Ok(Exit::Clean)
}

fn found(session: &SessionInfo) -> String {
    format!("{} found", output::count(session.metrics.items_found))
}

fn batches(session: &SessionInfo) -> String {
    let metrics = &session.metrics;
    match metrics.failed_batches {
        0 => output::count(metrics.total_batches),
        failed => format!("{}, {} failed", output::count(metrics.total_batches), output::count(failed)),
    }
}

fn waiting(session: &SessionInfo) -> Option<String> {
    let until = session.waiting_until_ms.filter(|until| *until > session.last_update_ms)?;
    Some(format!("for the source, until {}", output::timestamp(until)))
}

/// A batch on one line.
fn shown(batch: &BatchInfo) -> String {
    let error = batch.error_details.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
    format!(
        "{} {} {}{error}",
        output::timestamp(batch.completed_at_ms.unwrap_or(batch.started_at_ms)),
        batch.status.as_str().to_lowercase(),
        output::counted(batch.items_processed, "item"),
    )
}
