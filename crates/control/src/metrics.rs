//! What a service counts, and how it tells it: the text format of Prometheus. Nothing here decides anything,
//! so relaxed order is enough. This module must not know how the text is served.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{OnceLock, Weak};
use std::time::Duration;

use domesday_model::{ByTaskType, TaskType};
use domesday_scheduler::ScanCore;
use domesday_store::{FanOutReport, ReapReport};

use crate::lease::boot_time;

/// A number that goes up, or, as a gauge, also down.
#[derive(Debug, Default)]
pub struct Number(AtomicU64);

impl Number {
    pub(crate) fn add(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, to: u64) {
        self.0.store(to, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
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
    core: OnceLock<Weak<ScanCore>>,
}

impl Metrics {
    /// Lets what the scan core counts be told, too.
    pub fn watch_core(&self, core: Weak<ScanCore>) {
        let _ = self.core.set(core);
    }

    pub(crate) fn set_lease(&self, lease: Duration) {
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

    /// All of it, in the text format of Prometheus.
    pub fn exposition(&self) -> String {
        let mut text = Exposition::default();
        let by_type = [
            ("tasks_claimed_total", "tasks claimed", &self.tasks_claimed),
            ("tasks_completed_total", "tasks completed", &self.tasks_completed),
            ("tasks_failed_total", "tasks failed for good", &self.tasks_failed),
            ("tasks_retried_total", "tasks given back to be tried again", &self.tasks_retried),
            ("tasks_returned_total", "tasks given back unfinished", &self.tasks_returned),
            ("fan_out_tasks_total", "tasks created by the pipeliner", &self.fanned_out),
        ];
        for (name, help, counter) in by_type {
            let label = |task_type: TaskType| format!("type=\"{}\"", task_type.facts().label);
            let samples: Vec<_> = counter.iter().map(|(of, number)| (label(of), number.get())).collect();
            text.family(name, "counter", help, &samples);
        }
        for (name, help, counter) in [
            ("writes_refused_total", "late writes the book refused", &self.writes_refused),
            ("retries_total", "calls of the book that were repeated", &self.retries),
            ("store_errors_total", "calls of the book that failed", &self.store_errors),
            ("sessions_total", "leases begun by this process", &self.sessions),
            ("objects_total", "objects of completed tasks", &self.objects),
            ("bytes_total", "bytes of completed tasks", &self.bytes),
            ("findings_total", "findings of completed tasks", &self.findings),
            ("lease_renewals_total", "renewals of the lease", &self.lease_renewals),
            ("core_starved_total", "times the scan core ran short of packets", &self.core_starved),
            ("jobs_claimed_total", "jobs claimed or taken over", &self.jobs_claimed),
            ("enqueue_failures_total", "failed calls that create tasks", &self.enqueue_failures),
            ("targets_processed_total", "enumerations that ended", &self.targets_processed),
            (
                "enumerations_failed_total",
                "enumerations of which nothing could be listed",
                &self.enumerations_failed,
            ),
        ] {
            text.family(name, "counter", help, &[("", counter.get())]);
        }
        let reaped = [
            ("outcome=\"returned\"", self.reaped_returned.get()),
            ("outcome=\"split\"", self.reaped_split.get()),
            ("outcome=\"poisoned\"", self.reaped_poisoned.get()),
        ];
        text.family("tasks_reaped_total", "counter", "tasks taken from ended workers", &reaped);
        let firings = [
            ("outcome=\"started\"", self.firings_started.get()),
            ("outcome=\"skipped\"", self.firings_skipped.get()),
        ];
        text.family("firings_total", "counter", "firings of schedules", &firings);
        for (name, help, gauge) in [
            ("packets_in_flight", "packets this worker holds", self.packets_in_flight.get()),
            ("packets_allowed", "packets this worker may hold at the moment", self.packets_allowed.get()),
            ("jobs_owned", "jobs this orchestrator owns", self.jobs_owned.get()),
            ("enumerations_running", "enumerations under way of owned jobs", self.enumerations_running.get()),
            ("lease_held", "whether the lease is held", u64::from(self.is_ready())),
        ] {
            text.family(name, "gauge", help, &[("", gauge)]);
        }
        let processing = Duration::from_millis(self.targets_processed_ms.get());
        text.seconds("target_processing_seconds_total", "counter", "time that enumerations took", processing);
        let age = self.lease_age().unwrap_or_default();
        text.seconds("lease_age_seconds", "gauge", "time since the lease was renewed", age);
        if let Some(core) = self.core.get().and_then(Weak::upgrade) {
            let busy = core.metrics();
            text.seconds("core_read_seconds_total", "counter", "time spent reading", busy.read_time());
            text.seconds("core_match_seconds_total", "counter", "time spent matching", busy.match_time());
            let (used, room) = (core.frontier().in_flight(), core.frontier().capacity());
            text.family("core_objects_in_flight", "gauge", "objects being scanned", &[("", used as u64)]);
            text.family("core_objects_capacity", "gauge", "objects scanned at once", &[("", room as u64)]);
        }
        text.0
    }
}

/// Families of samples as text.
#[derive(Default)]
struct Exposition(String);

impl Exposition {
    fn family(&mut self, name: &str, kind: &str, help: &str, samples: &[(impl AsRef<str>, u64)]) {
        self.head(name, kind, help);
        for (labels, value) in samples {
            let labels = labels.as_ref();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
            // Writing to a string cannot fail.
            let _ = writeln!(self.0, "domesday_{name}{labels} {value}");
        }
    }

    fn seconds(&mut self, name: &str, kind: &str, help: &str, value: Duration) {
        self.head(name, kind, help);
        let _ = writeln!(self.0, "domesday_{name} {:.3}", value.as_secs_f64());
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP domesday_{name} {help}\n# TYPE domesday_{name} {kind}");
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_family_is_declared_once_and_every_sample_belongs_to_one() {
        let metrics = Metrics::default();
        metrics.tasks_claimed[TaskType::Classification].add(3);
        metrics.reaped(&ReapReport { returned: 1, split: 2, poisoned: 4 });
        let text = metrics.exposition();
        assert!(text.ends_with('\n'));
        let mut declared = HashSet::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(name.starts_with("domesday_") && ["counter", "gauge"].contains(&kind), "{line}");
                assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
                assert!(declared.insert(name.to_owned()), "{line}");
            } else if !line.starts_with('#') {
                let (sample, value) = line.rsplit_once(' ').unwrap();
                let name = sample.split('{').next().unwrap();
                assert!(declared.contains(name), "{line}");
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
        }
        assert!(text.contains("domesday_tasks_claimed_total{type=\"classify\"} 3\n"));
        assert!(text.contains("domesday_tasks_reaped_total{outcome=\"poisoned\"} 4\n"));
    }

    #[test]
    fn a_process_is_ready_while_it_holds_its_lease() {
        let metrics = Metrics::default();
        assert!(!metrics.is_ready());
        metrics.set_lease(Duration::from_secs(30));
        metrics.lease_renewed();
        assert!(metrics.is_ready());
        metrics.set_lease(Duration::ZERO);
        assert!(!metrics.is_ready(), "renewed too long ago");
        metrics.set_lease(Duration::from_secs(30));
        metrics.lease_lost();
        assert!(!metrics.is_ready());
        assert!(metrics.exposition().contains("domesday_lease_held 0\n"));
    }
}
