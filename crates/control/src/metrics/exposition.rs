//! All metrics as text, in the format of Prometheus. Every family is described here, and in `docs/fleet/README.md`, which
//! a test compares with this.

use std::fmt::{Display, Write as _};
use std::sync::Weak;
use std::time::Duration;

use domesday_connector::remote;
use domesday_model::times::{BOUNDS, Times};
use domesday_model::{ByTaskType, TaskType};
use domesday_scheduler::ScanCore;
use domesday_store::Role;

use super::{CommitCall, Metrics, Number};

impl Metrics {
    /// All of it, in the text format of Prometheus.
    pub fn exposition(&self) -> String {
        let mut text = Exposition::default();
        self.tell_tasks(&mut text);
        self.tell_work(&mut text);
        self.tell_lease(&mut text);
        self.tell_group(&mut text);
        self.tell_times(&mut text);
        tell_sources(&mut text);
        if let Some(core) = self.core.get().and_then(Weak::upgrade) {
            tell_core(&mut text, &core);
        }
        text.0
    }

    fn tell_tasks(&self, text: &mut Exposition) {
        for (name, help, counter) in [
            ("tasks_claimed_total", "tasks claimed", &self.tasks_claimed),
            ("tasks_completed_total", "tasks completed", &self.tasks_completed),
            ("tasks_failed_total", "tasks failed for good", &self.tasks_failed),
            ("tasks_retried_total", "tasks given back to be tried again", &self.tasks_retried),
            ("tasks_returned_total", "tasks given back unfinished", &self.tasks_returned),
            ("fan_out_tasks_total", "tasks created by the pipeliner", &self.fanned_out),
        ] {
            text.counters(name, help, by_type(counter, Number::get));
        }
        text.counters(
            "tasks_reaped_total",
            "tasks taken from ended workers",
            [
                (label("outcome", "returned"), self.reaped_returned.get()),
                (label("outcome", "split"), self.reaped_split.get()),
                (label("outcome", "poisoned"), self.reaped_poisoned.get()),
            ],
        );
        text.counters(
            "firings_total",
            "firings of schedules",
            [
                (label("outcome", "started"), self.firings_started.get()),
                (label("outcome", "skipped"), self.firings_skipped.get()),
            ],
        );
    }

    fn tell_work(&self, text: &mut Exposition) {
        for (name, help, counter) in [
            ("objects_total", "objects of completed tasks", &self.objects),
            ("bytes_total", "bytes of completed tasks", &self.bytes),
            ("findings_total", "findings of completed tasks", &self.findings),
            ("writes_refused_total", "late writes the book refused", &self.writes_refused),
            ("retries_total", "calls of the book that were repeated", &self.retries),
            ("store_errors_total", "calls of the book that failed", &self.store_errors),
            ("jobs_claimed_total", "jobs claimed or taken over", &self.jobs_claimed),
            ("enqueue_failures_total", "failed calls that create tasks", &self.enqueue_failures),
            ("targets_processed_total", "enumerations that ended", &self.targets_processed),
            (
                "enumerations_failed_total",
                "enumerations of which nothing could be listed",
                &self.enumerations_failed,
            ),
            ("core_starved_total", "times the scan core ran short of packets", &self.core_starved),
        ] {
            text.counters(name, help, [(String::new(), counter.get())]);
        }
        let processing = Duration::from_millis(self.targets_processed_ms.get());
        text.counters(
            "target_processing_seconds_total",
            "time that enumerations took",
            [(String::new(), Seconds(processing))],
        );
        for (name, help, gauge) in [
            ("packets_in_flight", "packets this worker holds", &self.packets_in_flight),
            ("packets_allowed", "packets this worker may hold at the moment", &self.packets_allowed),
            (
                "completions_waiting",
                "packets that wait for their results to be in the book",
                &self.completions_waiting,
            ),
            ("jobs_owned", "jobs this orchestrator owns", &self.jobs_owned),
            ("enumerations_running", "enumerations under way of owned jobs", &self.enumerations_running),
        ] {
            text.gauge(name, help, gauge.get());
        }
        let waited: Vec<_> = self.kinds.iter().map(|(slot, kind)| (slot, label("kind", &kind))).collect();
        let waits = waited.iter().map(|(slot, kind)| (kind.clone(), self.source_waits[*slot].get()));
        text.counters("source_waits_total", "tasks given back because a source asked to wait", waits);
        let waits = waited.iter().map(|(slot, kind)| {
            (kind.clone(), Seconds(Duration::from_millis(self.source_wait_ms[*slot].get())))
        });
        text.counters("source_wait_seconds_total", "time that sources asked to wait for", waits);
    }

    fn tell_lease(&self, text: &mut Exposition) {
        let process = self.process.get().map(|process| {
            let role = match process.role {
                Role::Orchestrator => "orchestrator",
                Role::Worker => "worker",
            };
            let labels = [
                label("role", role),
                label("node_group", &process.node_group),
                label("version", &process.profile.version),
            ];
            (labels.join(","), 1)
        });
        text.family("process_info", "gauge", "1, with what this process is as labels", process);
        text.gauge("lease_held", "whether the lease is held", u64::from(self.is_ready()));
        let age = self.lease_age().unwrap_or_default();
        text.gauge("lease_age_seconds", "time since the lease was renewed", Seconds(age));
        let lease = Duration::from_millis(self.lease_ms.get());
        text.gauge("lease_duration_seconds", "how long a lease is held without a renewal", Seconds(lease));
        for (name, help, counter) in [
            ("sessions_total", "leases begun by this process", &self.sessions),
            ("lease_renewals_total", "renewals of the lease", &self.lease_renewals),
        ] {
            text.counters(name, help, [(String::new(), counter.get())]);
        }
    }

    /// What an orchestrator has last seen of its node group. Those of one group all tell the same.
    fn tell_group(&self, text: &mut Exposition) {
        let seen = self.group.lock().clone();
        let group = seen.as_ref().map(|group| label("node_group", &group.node_group));
        let group = group.unwrap_or_default();
        let seen = seen.unwrap_or_default();
        let oldest = Duration::from_millis(u64::try_from(seen.oldest_pending_ms.unwrap_or(0)).unwrap_or(0));
        let is_seen = !group.is_empty();
        for (name, help, count) in [
            ("group_jobs_queued", "jobs of the node group that nobody has claimed", seen.jobs_queued),
            ("group_jobs_running", "jobs of the node group that run", seen.jobs_running),
            ("group_tasks_pending", "tasks of open jobs of the node group that wait", seen.tasks_pending),
            ("group_tasks_running", "tasks of open jobs of the node group that run", seen.tasks_running),
            ("group_tasks_failed", "tasks of open jobs of the node group that failed", seen.tasks_failed),
            ("group_tasks_orphaned", "running tasks of workers that are gone", seen.tasks_orphaned),
        ] {
            text.family(name, "gauge", help, is_seen.then(|| (group.clone(), count)));
        }
        let oldest = is_seen.then(|| (group.clone(), Seconds(oldest)));
        text.family(
            "group_oldest_pending_seconds",
            "gauge",
            "how long the oldest pending task has waited",
            oldest,
        );
    }

    fn tell_times(&self, text: &mut Exposition) {
        let mut claims = by_type(&self.claims, |claims| claims.get());
        claims.push((label("type", "job"), self.job_claims.get()));
        text.histogram("claim_seconds", "calls of the book that claim", claims);
        let commits =
            CommitCall::ALL.iter().map(|call| (label("call", call.name()), self.commits(*call).get()));
        text.histogram("commit_seconds", "calls of the book that write results or create tasks", commits);
        let stages = self.stage_times().into_iter().map(|(stage, kind, times)| {
            (format!("{},{}", label("stage", stage), label("kind", &kind)), times)
        });
        text.histogram("stage_seconds", "steps of a stage, by kind of data source", stages);
    }
}

/// What the process asks of sources that are far away, whichever they are.
fn tell_sources(text: &mut Exposition) {
    let used = remote::usage();
    text.counters(
        "source_retries_total",
        "requests to sources that were made again",
        [(String::new(), used.retries)],
    );
    text.counters(
        "source_retry_seconds_total",
        "pauses before requests to sources that were made again",
        [(String::new(), Seconds(used.paused))],
    );
    text.gauge("remote_requests_in_flight", "remote reads under way", used.requests);
    text.gauge("remote_requests_capacity", "remote reads under way, at most", remote::REQUESTS_MAX);
    text.gauge("remote_bytes_in_flight", "bytes of remote reads under way or not yet scanned", used.bytes);
    text.gauge(
        "remote_bytes_capacity",
        "bytes of remote reads under way or not yet scanned, at most",
        remote::AHEAD_MAX + remote::PARTS_MAX,
    );
}

fn tell_core(text: &mut Exposition, core: &ScanCore) {
    let counts = core.metrics();
    for (name, help, count) in [
        ("core_enumerate_total", "steps of enumeration, at most one batch each", counts.enumerate_count),
        (
            "core_objects_discovered_total",
            "objects handed to fetch, nested ones too",
            counts.objects_discovered,
        ),
        (
            "core_enumerate_backpressure_total",
            "times no permit was free for the next object",
            counts.enumerate_backpressure,
        ),
        ("core_fetch_sync_total", "chunks read", counts.fetch_sync_count),
        ("core_bytes_fetched_total", "bytes handed to scans, overlap included", counts.bytes_fetched),
        ("core_scan_total", "chunks scanned", counts.scan_count),
        ("core_bytes_scanned_total", "bytes scanned, overlap excluded", counts.bytes_scanned),
        ("core_objects_completed_total", "objects whose last task is done", counts.objects_completed),
    ] {
        text.counters(name, help, [(String::new(), count)]);
    }
    let (frontier, queues) = (core.frontier(), core.queues());
    for (name, help, count) in [
        ("core_objects_in_flight", "objects being scanned: permits that are taken", frontier.in_flight()),
        ("core_objects_capacity", "objects scanned at once, at most: permits there are", frontier.capacity()),
        ("core_tasks_queued", "tasks of the scan core that wait for a thread", queues.tasks),
        ("core_enumerations_parked", "enumerations that wait for a permit", queues.parked),
        ("core_buffers_in_use", "pooled buffers with a chunk in them", queues.buffers),
        ("core_buffers_capacity", "pooled buffers, at most", queues.buffers_max),
    ] {
        text.gauge(name, help, count);
    }
}

fn by_type<T, V>(of: &ByTaskType<T>, value: impl Fn(&T) -> V) -> Vec<(String, V)> {
    let label = |task_type: TaskType| label("type", task_type.facts().label);
    of.iter().map(|(task_type, one)| (label(task_type), value(one))).collect()
}

fn label(name: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{name}=\"{value}\"")
}

/// Families of samples as text.
#[derive(Default)]
struct Exposition(String);

impl Exposition {
    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help, [(String::new(), value)]);
    }

    fn counters<V: Display>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (String, V)>,
    ) {
        self.family(name, "counter", help, samples);
    }

    fn family<V: Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: impl IntoIterator<Item = (String, V)>,
    ) {
        self.head(name, kind, help);
        for (labels, value) in samples {
            self.sample(name, &labels, value);
        }
    }

    fn histogram(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = (String, Times)>) {
        self.head(name, "histogram", help);
        for (labels, times) in samples {
            let bounds = BOUNDS.iter().map(|(_, name)| *name).chain(["+Inf"]);
            let mut below = 0;
            for (bound, count) in bounds.zip(times.buckets) {
                below += count;
                self.sample(&format!("{name}_bucket"), &format!("{labels},le=\"{bound}\""), below);
            }
            self.sample(&format!("{name}_sum"), &labels, Seconds(times.total()));
            self.sample(&format!("{name}_count"), &labels, below);
        }
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "domesday_{name}{labels} {value}");
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP domesday_{name} {help}\n# TYPE domesday_{name} {kind}");
    }
}

/// A duration as a value.
struct Seconds(Duration);

impl Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.6}", self.0.as_secs_f64())
    }
}
