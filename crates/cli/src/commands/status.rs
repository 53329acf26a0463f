//! `domesday status`: the fleet at one moment, or as it changes.

use std::io::{IsTerminal, Write};

use anyhow::{Context, Result};
use domesday_store::{Fleet, ProcessState, ReportStore};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::job::Pace;
use super::{list_format, runtime, stdout_style};
use crate::args::StatusArgs;
use crate::book;
use crate::{Exit, output};

/// Clears a terminal and goes to its first line.
const CLEAR: &[u8] = b"\x1b[H\x1b[2J";

pub fn run(args: &StatusArgs) -> Result<Exit> {
    runtime()?.block_on(async {
        let store = book::read(&args.state).await?;
        if args.watch {
            return watch(args, store.as_ref()).await;
        }
        show(args, store.as_ref(), false).await?;
        Ok(Exit::Clean)
    })
}

async fn watch(args: &StatusArgs, store: &dyn ReportStore) -> Result<Exit> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let mut changes = store.changes();
    let mut pace = Pace::default();
    let clear = std::io::stdout().is_terminal() && !args.json;
    loop {
        tokio::select! {
            () = pace.wait(&mut changes) => {}
            _ = interrupt.recv() => return Ok(Exit::Clean),
        }
        let begun = Instant::now();
        show(args, store, clear).await?;
        pace.looked(begun);
    }
}

async fn show(args: &StatusArgs, store: &dyn ReportStore, clear: bool) -> Result<()> {
    let fleet = store.fleet().await?;
    let key = store.fingerprint_key().await?;
    let warnings = warnings(&fleet, key.as_deref());
    let mut text = if clear { CLEAR.to_vec() } else { Vec::new() };
    output::write_status(&mut text, &fleet, &warnings, list_format(args.json), stdout_style())?;
    let mut out = std::io::stdout().lock();
    out.write_all(&text)?;
    out.flush()?;
    Ok(())
}

/// What keeps work from being done, group by group.
fn warnings(fleet: &Fleet, key: Option<&str>) -> Vec<String> {
    let mut found = Vec::new();
    for group in &fleet.groups {
        let name = &group.node_group;
        let is_live = |process: &&ProcessState| process.lease_ms > 0 && process.node_group == *name;
        let has_orchestrator = fleet.orchestrators.iter().any(|process| is_live(&process));
        let mut workers = fleet.workers.iter().filter(is_live).peekable();
        let has_work = group.tasks_pending > 0 || group.jobs_running > 0;
        if group.jobs_queued + group.jobs_running + group.jobs_commanded > 0 && !has_orchestrator {
            found.push(format!(
                "{} of node group {name} without an orchestrator",
                output::counted(group.jobs_queued + group.jobs_running, "open job")
            ));
        }
        if has_work && workers.peek().is_none() {
            found.push(format!(
                "{} of node group {name} without a worker",
                output::counted(group.tasks_pending, "pending task")
            ));
        } else if has_work && key.is_some() && !workers.any(|p| p.profile.fingerprint_key.as_deref() == key) {
            found.push(format!("no worker of node group {name} has the book's fingerprint key"));
        }
        if group.tasks_orphaned > 0 {
            found.push(format!(
                "{} of node group {name} whose worker is gone; an orchestrator takes them back",
                output::counted(group.tasks_orphaned, "running task")
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use domesday_model::ProcessId;
    use domesday_store::{GroupState, Load, Profile};

    use super::*;

    fn process(group: &str, key: &str, lease_ms: i64) -> ProcessState {
        ProcessState {
            id: ProcessId([0; 16]),
            node_group: group.into(),
            profile: Profile { fingerprint_key: Some(key.into()), ..Profile::default() },
            load: Load::default(),
            started_at_ms: 0,
            lease_ms,
            jobs: 0,
        }
    }

    #[test]
    fn what_keeps_work_from_being_done_is_told() {
        let group = GroupState { node_group: "eu".into(), jobs_queued: 1, ..GroupState::default() };
        let mut fleet = Fleet { groups: vec![group], ..Fleet::default() };
        assert_eq!(warnings(&fleet, None), ["1 open job of node group eu without an orchestrator"]);
        fleet.orchestrators = vec![process("eu", "", 1)];
        assert_eq!(warnings(&fleet, None), [""; 0]);
        fleet.groups[0].tasks_pending = 1_200;
        fleet.workers = vec![process("us", "k", 1), process("eu", "k", 0)];
        assert_eq!(warnings(&fleet, None), ["1,200 pending tasks of node group eu without a worker"]);
        fleet.workers = vec![process("eu", "old", 1)];
        assert_eq!(
            warnings(&fleet, Some("k")),
            ["no worker of node group eu has the book's fingerprint key"]
        );
        fleet.workers.push(process("eu", "k", 1));
        fleet.groups[0].tasks_orphaned = 2;
        assert!(
            warnings(&fleet, Some("k"))[0]
                .starts_with("2 running tasks of node group eu whose worker is gone")
        );
    }
}
