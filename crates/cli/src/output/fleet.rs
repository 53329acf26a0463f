//! A job's shares and the fleet, for people and programs.

use std::io::{self, Write};
use std::time::Duration;

use domesday_store::{ChildJobState, Fleet, GroupState, JobProgress, ProcessState};
use serde::Serialize;

use super::answers::{write_object, write_table};
use super::human::{bytes, count, counted, duration, timestamp};
use super::lists::status_word;
use super::{ListFormat, Style, text};

/// Characters of a process's id in a table: enough to tell them apart.
const SHORT_ID_LEN: usize = 8;

/// A child job, as programs read it.
#[derive(Serialize)]
pub struct ChildJson<'a> {
    job: i64,
    node_group: &'a str,
    status: &'static str,
    pending_commands: Vec<&'static str>,
    failure_reason: Option<&'a str>,
    /// Until when a source of the job is left alone, and why.
    waiting_until: Option<String>,
    waiting_why: Option<&'a str>,
    owner: Option<OwnerJson>,
    workers: u64,
    created_at: String,
    started_at: Option<String>,
    finished_at: Option<String>,
    #[serde(flatten)]
    progress: ProgressJson,
}

#[derive(Serialize)]
struct OwnerJson {
    orchestrator: String,
    lease_ms: i64,
}

#[derive(Serialize)]
struct ProgressJson {
    objects_listed: u64,
    objects_done: u64,
    bytes_listed: u64,
    bytes_done: u64,
    listing_done: bool,
    tasks: TasksJson,
}

#[derive(Serialize)]
struct TasksJson {
    pending: u64,
    running: u64,
    done: u64,
    failed: u64,
}

impl<'a> ChildJson<'a> {
    pub fn new(child: &'a ChildJobState) -> ChildJson<'a> {
        let JobProgress { objects_listed, bytes_listed, objects_done, bytes_done, listing_done, .. } =
            child.progress;
        let tasks = TasksJson {
            pending: child.progress.tasks_pending,
            running: child.progress.tasks_running,
            done: child.progress.tasks_done,
            failed: child.progress.tasks_failed,
        };
        ChildJson {
            job: child.job.0,
            node_group: &child.node_group,
            status: child.status.as_str(),
            pending_commands: child.pending.iter().map(|command| command.as_str()).collect(),
            failure_reason: child.failure_reason.as_deref(),
            waiting_until: child.progress.waiting_until_ms.map(super::timestamp),
            waiting_why: child.waiting_why.as_deref(),
            owner: child.owner.map(|(id, lease_ms)| OwnerJson { orchestrator: id.to_string(), lease_ms }),
            workers: child.workers,
            created_at: timestamp(child.created_at_ms),
            started_at: child.started_at_ms.map(timestamp),
            finished_at: child.finished_at_ms.map(timestamp),
            progress: ProgressJson {
                objects_listed,
                objects_done,
                bytes_listed,
                bytes_done,
                listing_done,
                tasks,
            },
        }
    }
}

/// The shares of a job as a table.
pub fn write_children(out: &mut impl Write, children: &[ChildJobState], style: Style) -> io::Result<()> {
    let rows = children.iter().map(|child| {
        [
            child.node_group.clone(),
            status_word(child.status),
            child.pending.iter().map(|command| command.as_str().to_lowercase()).collect::<Vec<_>>().join(" "),
            child.owner.map(|(id, _)| short(&id.to_string())).unwrap_or_default(),
            count(child.workers),
            objects(&child.progress),
            tasks(&child.progress),
            child.failure_reason.clone().or_else(|| waiting(child)).unwrap_or_default(),
        ]
    });
    let header = ["group", "status", "pending", "owner", "workers", "objects", "tasks", "why"];
    write_table(out, header, rows.collect(), style)
}

/// How far a child job is, on one line, safe on a terminal.
pub fn shown_child(child: &ChildJobState) -> String {
    let progress = &child.progress;
    let mut parts = vec![
        child.node_group.clone(),
        status_word(child.status),
        objects(progress),
        bytes(progress.bytes_done),
    ];
    if !child.status.is_final() {
        parts.push(counted(child.workers, "worker"));
        parts.push(tasks(progress));
    } else if progress.tasks_failed > 0 {
        parts.push(format!("{} failed", counted(progress.tasks_failed, "task")));
    }
    parts.extend(child.failure_reason.clone().or_else(|| waiting(child)));
    text::shown(&parts.join("  ")).into_owned()
}

/// That a source of the job is left alone for a while, and why.
fn waiting(child: &ChildJobState) -> Option<String> {
    let until = child.progress.waiting_until_ms?;
    let why = child.waiting_why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    Some(format!("waits for the source until {}{why}", super::timestamp(until)))
}

fn objects(progress: &JobProgress) -> String {
    let more = if progress.listing_done { "" } else { "+" };
    format!("{}/{}{more} objects", count(progress.objects_done), count(progress.objects_listed))
}

fn tasks(progress: &JobProgress) -> String {
    let mut text = format!("{} running, {} pending", progress.tasks_running, count(progress.tasks_pending));
    if progress.tasks_failed > 0 {
        text.push_str(&format!(", {} failed", count(progress.tasks_failed)));
    }
    text
}

/// The fleet, as programs read it.
#[derive(Serialize)]
pub struct StatusJson<'a> {
    now: String,
    orchestrators: Vec<ProcessJson<'a>>,
    workers: Vec<ProcessJson<'a>>,
    groups: Vec<GroupJson<'a>>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct ProcessJson<'a> {
    id: String,
    node_group: &'a str,
    host: &'a str,
    version: &'a str,
    live: bool,
    lease_ms: i64,
    started_at: String,
    slots: u32,
    labels: &'a [String],
    fingerprint_key: Option<&'a str>,
    jobs: u64,
    running: u32,
    objects: u64,
    bytes: u64,
    findings: u64,
    objects_per_second: u64,
    bytes_per_second: u64,
}

#[derive(Serialize)]
struct GroupJson<'a> {
    node_group: &'a str,
    jobs: JobsJson,
    tasks: GroupTasksJson,
    oldest_pending_ms: Option<i64>,
}

#[derive(Serialize)]
struct JobsJson {
    queued: u64,
    running: u64,
    paused: u64,
    commanded: u64,
}

#[derive(Serialize)]
struct GroupTasksJson {
    pending: u64,
    running: u64,
    failed: u64,
    orphaned: u64,
}

impl<'a> StatusJson<'a> {
    pub fn new(fleet: &'a Fleet, warnings: &'a [String]) -> StatusJson<'a> {
        StatusJson {
            now: timestamp(fleet.now_ms),
            orchestrators: fleet.orchestrators.iter().map(ProcessJson::new).collect(),
            workers: fleet.workers.iter().map(ProcessJson::new).collect(),
            groups: fleet.groups.iter().map(GroupJson::new).collect(),
            warnings,
        }
    }
}

impl<'a> ProcessJson<'a> {
    fn new(process: &'a ProcessState) -> ProcessJson<'a> {
        let (profile, load) = (&process.profile, &process.load);
        ProcessJson {
            id: process.id.to_string(),
            node_group: &process.node_group,
            host: &profile.host,
            version: &profile.version,
            live: process.lease_ms > 0,
            lease_ms: process.lease_ms,
            started_at: timestamp(process.started_at_ms),
            slots: profile.slots,
            labels: &profile.labels,
            fingerprint_key: profile.fingerprint_key.as_deref(),
            jobs: process.jobs,
            running: load.running,
            objects: load.objects,
            bytes: load.bytes,
            findings: load.findings,
            objects_per_second: load.objects_per_second,
            bytes_per_second: load.bytes_per_second,
        }
    }
}

impl<'a> GroupJson<'a> {
    fn new(group: &'a GroupState) -> GroupJson<'a> {
        GroupJson {
            node_group: &group.node_group,
            jobs: JobsJson {
                queued: group.jobs_queued,
                running: group.jobs_running,
                paused: group.jobs_paused,
                commanded: group.jobs_commanded,
            },
            tasks: GroupTasksJson {
                pending: group.tasks_pending,
                running: group.tasks_running,
                failed: group.tasks_failed,
                orphaned: group.tasks_orphaned,
            },
            oldest_pending_ms: group.oldest_pending_ms,
        }
    }
}

/// Writes the fleet: what is wrong first, then queues, orchestrators and workers.
pub fn write_status(
    out: &mut impl Write,
    fleet: &Fleet,
    warnings: &[String],
    format: ListFormat,
    style: Style,
) -> io::Result<()> {
    if format == ListFormat::Json {
        return write_object(out, &StatusJson::new(fleet, warnings));
    }
    for warning in warnings {
        writeln!(out, "warning: {}", text::shown(warning))?;
    }
    if fleet.groups.is_empty() && fleet.orchestrators.is_empty() && fleet.workers.is_empty() {
        return writeln!(out, "nothing runs and nothing waits");
    }
    let groups = fleet.groups.iter().map(|group| {
        [
            group.node_group.clone(),
            format!(
                "{} queued, {} running, {} paused",
                group.jobs_queued, group.jobs_running, group.jobs_paused
            ),
            format!("{} running, {} pending", count(group.tasks_running), count(group.tasks_pending)),
            count(group.tasks_failed),
            group.oldest_pending_ms.map(milliseconds).unwrap_or_default(),
        ]
    });
    write_table(out, ["group", "jobs", "tasks", "failed", "oldest waits"], groups.collect(), style)?;
    let orchestrators = fleet.orchestrators.iter().map(|process| {
        let [id, group, lease, version, host] = common(process);
        [id, group, counted(process.jobs, "job"), lease, version, host]
    });
    write_table(
        out,
        ["orchestrator", "group", "owns", "lease", "version", "host"],
        orchestrators.collect(),
        style,
    )?;
    let workers = fleet.workers.iter().map(|process| {
        let [id, group, lease, version, host] = common(process);
        let load = &process.load;
        let pace =
            format!("{} objects/s, {}/s", count(load.objects_per_second), bytes(load.bytes_per_second));
        let busy = format!("{}/{}", load.running, process.profile.slots);
        let host = [host, process.profile.labels.join(" ")].join(" ");
        [id, group, busy, pace, lease, version, host.trim_end().to_owned()]
    });
    write_table(
        out,
        ["worker", "group", "busy", "pace", "lease", "version", "host"],
        workers.collect(),
        style,
    )
}

/// Id, group, lease, version and host.
fn common(process: &ProcessState) -> [String; 5] {
    let lease = if process.lease_ms > 0 { milliseconds(process.lease_ms) } else { "ended".to_owned() };
    [
        short(&process.id.to_string()),
        process.node_group.clone(),
        lease,
        process.profile.version.clone(),
        process.profile.host.clone(),
    ]
}

fn milliseconds(ms: i64) -> String {
    duration(Duration::from_millis(ms.max(0).cast_unsigned()))
}

fn short(id: &str) -> String {
    id.chars().take(SHORT_ID_LEN).collect()
}
