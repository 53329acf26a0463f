//! Permits: taken, held, given back, and what waits for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domesday_content::ObjectError;

use super::support::*;
use crate::executor::RunQueue;
use crate::metrics::Metrics;
use crate::object::ObjectCtx;
use crate::packet::{LivePackets, PacketCtx};
use crate::*;

fn lone_packet() -> Arc<PacketCtx> {
    struct Nothing;
    impl ObjectSource for Nothing {
        fn enumerate(
            &self,
            cursor: &mut EnumCursor,
            _: usize,
            _: &mut Vec<ObjectDescriptor>,
        ) -> Result<(), ObjectError> {
            *cursor = EnumCursor::Done;
            Ok(())
        }
        fn open(&self, _: &ObjectDescriptor) -> Result<Opened, ObjectError> {
            unreachable!("there are no objects")
        }
    }
    let packet = packet(Arc::new(Nothing), &Arc::default(), options());
    PacketCtx::new(packet, domesday_model::FingerprintKey::new([0; 32]), Arc::new(LivePackets::default())).0
}

#[test]
fn frontier_try_acquire_does_not_block() {
    let frontier = ObjectFrontier::new(2, Arc::new(RunQueue::default()));
    let (a, b) = (frontier.try_acquire_ctx(), frontier.try_acquire_ctx());
    assert!(a.is_some() && b.is_some() && frontier.try_acquire_ctx().is_none());
    assert_eq!((frontier.in_flight(), frontier.capacity(), frontier.available()), (2, 2, 0));
    drop(a);
    assert_eq!(frontier.available(), 1);
    drop(frontier.acquire());
    assert!(frontier.try_acquire_ctx().is_some());
}

#[test]
fn object_ctx_releases_permit_on_drop() {
    let frontier = ObjectFrontier::new(1, Arc::new(RunQueue::default()));
    let permit = frontier.try_acquire_ctx().unwrap();
    let object = ObjectCtx::root(lone_packet(), ObjectDescriptor::default(), permit, None);
    let tasks: Vec<_> = (0..3).map(|_| Arc::clone(&object)).collect();
    drop(object);
    for task in tasks {
        assert_eq!(frontier.in_flight(), 1);
        drop(task);
    }
    assert_eq!(frontier.in_flight(), 0);
}

#[test]
fn multi_chunk_object_permit_lifetime() {
    let mut bytes = noise(5 * (domesday_engine::LOOKAHEAD + domesday_engine::LOOKBEHIND));
    bytes.extend_from_slice(format!(" {}", key(1)).as_bytes());
    let len = bytes.len() as u64;
    let survey =
        Survey::new(3).frontier(1).chunk(1024).on_open(|shared| assert_eq!(shared.frontier.in_flight(), 1));
    let (outcome, metrics) = survey.run_with_metrics(vec![Body::bytes(bytes.clone()), Body::stream(bytes)]);
    assert_eq!(outcome.reports, []);
    assert_eq!((outcome.findings.len(), outcome.totals.objects), (2, 2));
    assert!(metrics.scan_count > 50 && metrics.objects_completed == 2);
    assert_eq!(metrics.bytes_scanned, outcome.totals.bytes_scanned);
    assert_eq!(metrics.bytes_scanned, 2 * len, "overlap is not counted");
}

#[test]
fn concurrent_object_completion() {
    const OBJECTS: usize = 500;
    let most = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&most);
    let survey = Survey::new(4).frontier(8).on_open(move |shared| {
        seen.fetch_max(shared.frontier.in_flight(), Ordering::Relaxed);
    });
    let bodies = (0..OBJECTS).map(|n| Body::bytes(key(n))).collect();
    let (outcome, metrics) = survey.run_with_metrics(bodies);
    assert_eq!((outcome.findings.len(), outcome.totals.objects), (OBJECTS, OBJECTS as u64));
    assert_eq!((metrics.objects_discovered, metrics.objects_completed), (OBJECTS as u64, OBJECTS as u64));
    assert!((1..=8).contains(&most.load(Ordering::Relaxed)));
}

/// The first object stays open until the enumeration has been parked for want of a permit.
#[test]
fn a_full_frontier_parks_the_enumeration_and_resumes_it() {
    let survey = Survey::new(2).frontier(1).on_open(|shared| {
        while Metrics::sum(&shared.metrics).enumerate_backpressure == 0 {
            std::thread::yield_now();
        }
    });
    let (outcome, metrics) = survey.run_with_metrics((0..100).map(|n| Body::bytes(key(n))).collect());
    assert_eq!(outcome.findings.len(), 100);
    assert!(metrics.enumerate_backpressure > 0);
}
