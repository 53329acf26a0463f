//! What a service counts, and how it tells it: the text format of Prometheus. Nothing here decides anything,
//! so relaxed order is enough. This module must not know how the text is served.

mod exposition;
mod number;
#[cfg(test)]
mod tests;

use std::sync::{OnceLock, Weak};
use std::time::{Duration, Instant};

use domesday_model::ByTaskType;
use domesday_model::times::Times;
use domesday_scheduler::{KindSlot, ScanCore};
use domesday_store::{FanOutReport, GroupState, Process, ReapReport};
use parking_lot::Mutex;

use crate::lease::boot_time;
pub use number::{ByKind, Histogram, Kinds, Number};

/// The stages of the scan core, which keeps their times itself: steps of opening, reading and unpacking, and of matching.
const STAGE_READ: &str = "read";
const STAGE_SCAN: &str = "scan";

/// What a packet spends time in outside of the scan core, which keeps the times of reading and scanning itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Asking the source for the next batch of a listing.
    List,
    /// Waiting until results are in the book.
    Commit,
    /// Asking the source where objects came from.
    Trace,
}

impl Stage {
    pub const ALL: &[Stage] = &[Stage::List, Stage::Commit, Stage::Trace];

    pub fn name(self) -> &'static str {
        match self {
            Stage::List => "list",
            Stage::Commit => "commit",
            Stage::Trace => "trace",
        }
    }
}

/// The calls of the book whose latency is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommitCall {
    /// What enumeration listed.
    Units,
    /// Results of objects, before their task is completed.
    Results,
    /// Completion of tasks.
    Tasks,
    /// Committed units become tasks.
    FanOut,
}

impl CommitCall {
    pub const ALL: &[CommitCall] =
        &[CommitCall::Units, CommitCall::Results, CommitCall::Tasks, CommitCall::FanOut];

    pub fn name(self) -> &'static str {
        match self {
            CommitCall::Units => "units",
            CommitCall::Results => "results",
            CommitCall::Tasks => "tasks",
            CommitCall::FanOut => "fan_out",
        }
    }
}

/// Everything one process counts since its start.
#[derive(Default)]
pub struct Metrics {
    pub tasks_claimed: ByTaskType<Number>,
    pub tasks_completed: ByTaskType<Number>,
    pub tasks_failed: ByTaskType<Number>,
    pub tasks_retried: ByTaskType<Number>,
    pub tasks_returned: ByTaskType<Number>,
    pub writes_refused: Number,
    pub retries: Number,
    pub objects: Number,
    pub bytes: Number,
    pub findings: Number,
    pub sessions: Number,
    pub store_errors: Number,
    pub packets_in_flight: Number,
    pub packets_allowed: Number,
    /// Packets that wait for their results to be in the book.
    pub completions_waiting: Number,
    pub core_starved: Number,
    pub jobs_owned: Number,
    pub jobs_claimed: Number,
    pub fanned_out: ByTaskType<Number>,
    /// Calls that create tasks and failed; they are repeated.
    pub enqueue_failures: Number,
    /// Sessions of owned jobs that have not ended.
    pub enumerations_running: Number,
    pub enumerations_failed: Number,
    /// Sessions that ended, whatever came of them, and how long they took.
    pub targets_processed: Number,
    targets_processed_ms: Number,
    pub reaped_returned: Number,
    pub reaped_split: Number,
    pub reaped_poisoned: Number,
    pub firings_started: Number,
    pub firings_skipped: Number,
    pub lease_renewals: Number,
    /// By the clock that counts suspension; 0 while no lease is held.
    lease_renewed_ms: Number,
    lease_ms: Number,
    /// How often all packets were told to end: tests wait for it.
    #[cfg(test)]
    pub halts: Number,
    /// The kinds of data sources that this process has met.
    pub kinds: Kinds,
    /// Tasks that were given back because a source asked to be left alone, and how long for.
    source_waits: ByKind<Number>,
    source_wait_ms: ByKind<Number>,
    stages: [ByKind<Histogram>; Stage::ALL.len()],
    pub claims: ByTaskType<Histogram>,
    pub job_claims: Histogram,
    commits: [Histogram; CommitCall::ALL.len()],
    /// Who this process is.
    process: OnceLock<Process>,
    /// The node group of an orchestrator, when it last looked.
    group: Mutex<Option<GroupState>>,
    core: OnceLock<Weak<ScanCore>>,
}

impl Metrics {
    /// Lets what the scan core counts be told, too.
    pub fn watch_core(&self, core: Weak<ScanCore>) {
        let _ = self.core.set(core);
    }

    /// What this process is, and how long its lease is.
    pub(crate) fn begin(&self, process: &Process, lease: Duration) {
        let _ = self.process.set(process.clone());
        self.lease_ms.set(millis(lease));
    }

    pub(crate) fn lease_renewed(&self) {
        self.lease_renewals.add(1);
        self.lease_renewed_ms.set(millis(boot_time()).max(1));
    }

    pub(crate) fn lease_lost(&self) {
        self.lease_renewed_ms.set(0);
    }

    pub(crate) fn fanned_out(&self, report: &FanOutReport) {
        for (task_type, made) in report.tasks.iter() {
            self.fanned_out[task_type].add(*made);
        }
    }

    pub(crate) fn session_ended(&self, took: Duration, has_failed: bool) {
        self.targets_processed.add(1);
        self.targets_processed_ms.add(millis(took));
        self.enumerations_failed.add(u64::from(has_failed));
    }

    pub(crate) fn reaped(&self, report: &ReapReport) {
        self.reaped_returned.add(report.returned);
        self.reaped_split.add(report.split);
        self.reaped_poisoned.add(report.poisoned);
    }

    /// How long ago the lease was renewed; `None` while there is none.
    fn lease_age(&self) -> Option<Duration> {
        let renewed = self.lease_renewed_ms.get();
        (renewed > 0).then(|| Duration::from_millis(millis(boot_time()).saturating_sub(renewed)))
    }

    /// Whether this process holds its lease, as far as it knows.
    pub fn is_ready(&self) -> bool {
        self.lease_age().is_some_and(|age| millis(age) < self.lease_ms.get())
    }

    /// How long packets of a kind of data source spend in a stage.
    pub fn stage(&self, stage: Stage, kind: KindSlot) -> &Histogram {
        &self.stages[stage as usize][kind]
    }

    /// How long calls of the book take.
    pub fn commits(&self, call: CommitCall) -> &Histogram {
        &self.commits[call as usize]
    }

    /// Observes a write of one packet: how long the book takes, and the packet waits. Whatever comes of it, repeats
    /// included.
    pub(crate) async fn commit<T>(
        &self,
        call: CommitCall,
        kind: KindSlot,
        write: impl Future<Output = T>,
    ) -> T {
        let begun = Instant::now();
        let written = write.await;
        let took = begun.elapsed();
        self.commits(call).observe(took);
        self.stage(Stage::Commit, kind).observe(took);
        written
    }

    /// A source asked to be left alone for so long.
    pub(crate) fn source_waits(&self, kind: KindSlot, after: Duration) {
        self.source_waits[kind].add(1);
        self.source_wait_ms[kind].add(millis(after));
    }

    /// All waits that sources asked for, and how long they are together.
    pub fn source_waited(&self) -> (u64, Duration) {
        let waits = self.kinds.iter().map(|(kind, _)| {
            (self.source_waits[kind].get(), Duration::from_millis(self.source_wait_ms[kind].get()))
        });
        waits.fold((0, Duration::ZERO), |sum, wait| (sum.0 + wait.0, sum.1 + wait.1))
    }

    /// The times of all stages by kind of data source, those of the scan core among them: stage, kind, times. Of stages
    /// that were entered.
    pub fn stage_times(&self) -> Vec<(&'static str, String, Times)> {
        let busy = self.core.get().and_then(Weak::upgrade).map(|core| core.busy());
        let mut stages = Vec::new();
        for (slot, kind) in self.kinds.iter() {
            let of_packets = Stage::ALL.iter().map(|stage| (stage.name(), self.stage(*stage, slot).get()));
            let of_core = busy.iter().flat_map(|busy| {
                [(STAGE_READ, busy.read[slot.index()]), (STAGE_SCAN, busy.matched[slot.index()])]
            });
            let entered = of_packets.chain(of_core).filter(|(_, times)| times.count() > 0);
            stages.extend(entered.map(|(stage, times)| (stage, kind.clone(), times)));
        }
        stages
    }

    /// What an orchestrator sees of its node group.
    pub(crate) fn saw_group(&self, group: GroupState) {
        *self.group.lock() = Some(group);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
