//! What `domesday scan --timings` says: where the time went, what the book cost, and what the scan core counted. The
//! same numbers as in the metrics of a fleet, under the same names.

use std::time::Duration;

use domesday_control::{CommitCall, Metrics};
use domesday_model::times::{BOUNDS, Times};
use domesday_scheduler::ScanCore;
use domesday_store::sqlite::Spent;

use super::human::duration;

/// Line by line. Times are summed over the threads that spent them, so that they may exceed the clock's.
pub fn timings(
    wall: Duration,
    objects: u64,
    book: &Spent,
    core: &ScanCore,
    metrics: &Metrics,
) -> Vec<String> {
    let mut lines = vec![format!("{} in all, by the clock", duration(wall))];
    let stages = metrics.stage_times();
    lines.extend(stages.iter().map(|(stage, kind, times)| timed(stage, Some(kind), times)));
    let (seconds, rows) = (book.cpu.as_secs_f64(), Some(book.rows));
    lines.push(format!("the book: {seconds:.3} s on processors, for {objects} objects"));
    lines.push(format!("  {:<9} {} with a transaction open", "writing", duration(book.writing)));
    for (what, count) in [("rows", rows), ("bytes", book.bytes)] {
        let Some(count) = count else { continue };
        let per_object = count as f64 / objects.max(1) as f64;
        lines.push(format!("  {what:<9} {count} written, {per_object:.2} per object"));
    }
    lines.extend(calls(metrics));
    lines.extend(counted(core));
    let (waits, waited) = metrics.source_waited();
    if waits > 0 {
        lines.push(format!("sources asked {waits} times to wait, {} in all", duration(waited)));
    }
    lines
}

/// The calls of the book, and those that failed or were repeated.
fn calls(metrics: &Metrics) -> Vec<String> {
    let mut lines = vec!["calls of the book:".to_owned()];
    let mut claims = metrics.job_claims.get();
    metrics.claims.iter().for_each(|(_, of_type)| claims.add(&of_type.get()));
    lines.push(timed("claim", None, &claims));
    let commits = CommitCall::ALL.iter().map(|call| (call.name(), metrics.commits(*call).get()));
    lines.extend(commits.map(|(name, times)| timed(name, None, &times)));
    for (what, count) in [("failed", &metrics.store_errors), ("repeated", &metrics.retries)] {
        if count.get() > 0 {
            lines.push(format!("  {what:<9} {}", count.get()));
        }
    }
    lines
}

fn counted(core: &ScanCore) -> Vec<String> {
    let counts = core.metrics();
    let mut lines = vec![format!(
        "the scan core: {} threads, {} permits, {} buffers",
        core.threads(),
        core.frontier().capacity(),
        core.queues().buffers_max
    )];
    for (name, count) in [
        ("enumerate_count", counts.enumerate_count),
        ("objects_discovered", counts.objects_discovered),
        ("enumerate_backpressure", counts.enumerate_backpressure),
        ("fetch_sync_count", counts.fetch_sync_count),
        ("bytes_fetched", counts.bytes_fetched),
        ("scan_count", counts.scan_count),
        ("bytes_scanned", counts.bytes_scanned),
        ("objects_completed", counts.objects_completed),
    ] {
        lines.push(format!("  {name:<23} {count}"));
    }
    lines
}

/// `  list      filesystem  120 ms in 40 steps, half of them within 1 ms`
fn timed(what: &str, kind: Option<&String>, times: &Times) -> String {
    let kind = kind.map_or(String::new(), |kind| format!(" {kind:<11}"));
    let count = times.count();
    let mut line = format!("  {what:<9}{kind} {} in {count}", duration(times.total()));
    if count > 0 {
        line += &format!(", 95 of 100 {}", within(times, 0.95));
    }
    line
}

/// The bound that so large a share of the times is within.
fn within(times: &Times, share: f64) -> String {
    let (count, mut below) = (times.count() as f64, 0);
    let bound = BOUNDS.iter().zip(times.buckets).find(|(_, bucket)| {
        below += bucket;
        below as f64 >= count * share
    });
    match bound {
        Some(((_, name), _)) => format!("within {name} s"),
        None => format!("longer than {} s", BOUNDS[BOUNDS.len() - 1].1),
    }
}

#[cfg(test)]
mod tests {
    use domesday_model::times::{BUCKETS, bucket};

    use super::*;

    #[test]
    fn a_stage_is_told_with_its_sum_its_count_and_a_bound() {
        let mut times = Times { nanos: 1_200_000_000, ..Times::default() };
        times.buckets[bucket(Duration::from_millis(3))] = 95;
        times.buckets[bucket(Duration::from_millis(200))] = 5;
        assert_eq!(
            timed("list", Some(&"git".to_owned()), &times),
            "  list      git         1.2 s in 100, 95 of 100 within 0.005 s"
        );
        times.buckets[BUCKETS - 1] = 50;
        assert_eq!(timed("units", None, &times), "  units     1.2 s in 150, 95 of 100 longer than 60 s");
        assert_eq!(timed("claim", None, &Times::default()), "  claim     0 ms in 0");
    }
}
