//! Packets as a whole: isolation, cancelling, caps, and the same outcome every time.

use std::sync::{Arc, mpsc};

use domesday_content::ObjectError;
use domesday_model::{FindingDraft, ObjectKey, ObjectReport, Reason};

use super::support::*;
use crate::*;

#[test]
fn an_object_that_panics_or_fails_fails_alone() {
    let many = 10 * (domesday_engine::LOOKAHEAD + domesday_engine::LOOKBEHIND);
    let bodies = vec![
        Body::bytes(key(0)),
        Body::OpenPanics,
        Body::ReadPanics(0),
        Body::ReadPanics(many),
        Body::ReadFails(many),
        Body::ReadFails(0),
        Body::Denied,
        Body::bytes(key(7)),
    ];
    for threads in [1, 3] {
        let outcome = Survey::new(threads).chunk(256).run(bodies.clone());
        assert_eq!(outcome.places(), ["o0", "o7"]);
        let expected = [
            ("o1", "failed", Reason::Panicked),
            ("o2", "failed", Reason::Panicked),
            ("o3", "partial", Reason::Panicked),
            ("o4", "partial", Reason::ReadError),
            ("o5", "failed", Reason::ReadError),
            ("o6", "failed", Reason::PermissionDenied),
        ];
        assert_eq!(
            outcome.reported(),
            expected.map(|(name, status, why)| (name.to_owned(), status, Some(why)))
        );
        assert_eq!(outcome.reports[0].detail, "panicked: open failed badly");
        assert_eq!((outcome.totals.objects, outcome.totals.incomplete), (8, 6));
    }
}

/// A chunk whose description is wrong stands for any panic while matching.
#[test]
fn a_chunk_that_panics_leaves_the_others() {
    use crate::executor::WorkerCtx;
    use crate::object::ObjectCtx;
    use crate::packet::{LivePackets, PacketCtx};
    use crate::position::{Place, Units};
    use crate::scan::ChunkPlace;

    let core = core(CoreConfig::for_threads(1));
    let sink = Arc::new(Collector::default());
    let packet = packet(Arc::new(Endless { limit: 1 }), &sink, options());
    let ctx = PacketCtx::new(
        packet,
        domesday_model::FingerprintKey::new([7; 32]),
        Arc::new(LivePackets::default()),
    )
    .0;
    let permit = core.frontier().try_acquire_ctx().unwrap();
    let object = ObjectCtx::root(ctx, ObjectDescriptor::default(), permit, None);
    let mut worker = WorkerCtx::new(Arc::clone(core.shared()), 0, crossbeam_deque::Worker::new_lifo());
    let bytes = key(1).into_bytes();
    let right = ChunkPlace {
        place: Place::start(0),
        len: bytes.len() as u32,
        prefix_len: 0,
        accept_end: bytes.len() as u32,
        units: Units::Bytes,
    };
    worker.scan_chunk(&object, &bytes, ChunkPlace { len: 1000, ..right });
    worker.scan_chunk(&object, &bytes, right);
    drop(object);
    let outcome = outcome(&sink);
    assert_eq!(outcome.findings.len(), 1);
    assert_eq!(outcome.reported(), [(String::new(), "partial", Some(Reason::Panicked))]);
    assert!(outcome.reports[0].detail.contains("withheld"), "{}", outcome.reports[0].detail);
}

#[test]
fn the_cap_keeps_the_first_occurrences_and_counts_the_rest() {
    let text: String = (0..5000).map(|n| format!("{}\n", key(n))).collect();
    let survey = |threads| Survey::new(threads).chunk(1000).cap(10).run(vec![Body::bytes(text.as_bytes())]);
    let first = survey(1);
    assert_eq!(
        first.findings.iter().map(|f| f.position.line).collect::<Vec<_>>(),
        (1..=10).collect::<Vec<_>>()
    );
    let [report] = &first.reports[..] else { panic!("one report") };
    assert_eq!((report.status.as_str(), report.reason, report.overflow), ("scanned", None, 4990));
    assert_eq!((first.totals.findings, first.totals.overflow, first.totals.incomplete), (10, 4990, 0));
    for threads in [2, 4] {
        assert_eq!(survey(threads), first);
    }
}

#[test]
fn what_is_allowed_by_fingerprint_is_counted_apart() {
    let body = || vec![Body::bytes(format!("{} {} {}", key(1), key(2), key(1)))];
    let allowed = fingerprint_key().fingerprint(key(1).as_bytes());
    let found = |allow: &str| {
        let outcome = Survey::new(1).cap(1).allow(allow).run(body());
        let (suppressed, reported): (Vec<_>, Vec<_>) =
            outcome.findings.iter().partition(|found| found.suppressed.is_some());
        let suppressed = suppressed.iter().filter_map(|found| Some(found.suppressed.as_ref()?.count));
        (reported[0].span.start, outcome.totals.overflow, suppressed.sum::<u64>())
    };
    let allow = format!("fingerprints = ['{allowed}']");
    assert_eq!(found(&format!("fingerprints = ['{}']", "0".repeat(32))), (0, 2, 0));
    assert_eq!(found(&allow), (1 + key(1).len() as u64, 0, 2));
    assert_eq!(found(&format!("{allow}\npaths = ['^other']\ncondition = 'all'")), (0, 2, 0));
}

#[test]
fn the_outcome_is_the_same_every_time() {
    let archive = tar(&[("a", key(1).as_bytes()), ("b", &tar(&[("c", key(2).as_bytes())]))]);
    let long: String =
        (0..3000).map(|n| if n % 50 == 0 { key(n) + "\n" } else { "filler\n".into() }).collect();
    let bodies: Vec<Body> = (0..60)
        .map(|n| match n % 5 {
            0 => Body::bytes(archive.clone()),
            1 => Body::stream(gzip(&archive)),
            2 => Body::bytes(long.as_bytes()),
            3 => Body::ReadFails(n),
            _ => Body::bytes(key(n)),
        })
        .collect();
    let first = Survey::new(1).run(bodies.clone());
    assert!(first.findings.len() > 100 && first.reports.len() == 12);
    for round in 0..8 {
        let again = Survey::new(4).frontier(1 + round).chunk(1000 * (round + 1)).cap(100).run(bodies.clone());
        assert_eq!(again, first);
    }
}

#[test]
fn scores_below_the_minimum_are_dropped_and_values_shown_only_on_demand() {
    let mut survey = Survey::new(1);
    survey.options.min_score = domesday_model::Score(101);
    assert_eq!(survey.run(vec![Body::bytes(key(1))]).findings, []);

    let core = core(CoreConfig::for_threads(1));
    let (plain, shown) = (Arc::new(Collector::default()), Arc::new(Collector::default()));
    core.submit(packet(Arc::new(Endless { limit: 1 }), &plain, options()));
    core.submit(packet(Arc::new(Endless { limit: 1 }), &shown, PacketOptions { reveal: true, ..options() }));
    core.shutdown();
    assert!(plain.revealed.lock().unwrap().is_empty());
    assert_eq!(*shown.revealed.lock().unwrap(), [key(1).into_bytes()]);
    assert!(!format!("{:?}", outcome(&shown).findings).contains(&key(1)));
}

/// A source with as many objects as asked, each a key.
struct Endless {
    limit: u64,
}

impl ObjectSource for Endless {
    fn enumerate(
        &self,
        cursor: &mut EnumCursor,
        _: usize,
        out: &mut Vec<ObjectDescriptor>,
    ) -> Result<(), ObjectError> {
        let EnumCursor::Start = cursor else { panic!("a cursor is used once: {}", cursor.is_done()) };
        out.push(ObjectDescriptor { path: ObjectKey::new(*b"same"), ..ObjectDescriptor::default() });
        if self.limit == 1 {
            *cursor = EnumCursor::Done;
        }
        Ok(())
    }

    fn open(&self, _: &ObjectDescriptor) -> Result<Opened, ObjectError> {
        Ok(Opened::Bytes(OpenBytes::stream(Box::new(std::io::Cursor::new(key(1))), None)))
    }
}

/// Tells of the first findings and of the end.
struct Herald(mpsc::Sender<Option<PacketTotals>>);

impl ResultSink for Herald {
    fn findings(&self, _: Vec<FindingDraft>) {
        let _ = self.0.send(None);
    }

    fn object(&self, _: ObjectReport) {}

    fn packet_done(&self, totals: PacketTotals) {
        let _ = self.0.send(Some(totals));
    }
}

#[test]
fn a_cancelled_packet_ends_and_the_others_go_on() {
    let core = core(CoreConfig::for_threads(2));
    let (sender, receiver) = mpsc::channel();
    let endless = Packet {
        source: Arc::new(Endless { limit: u64::MAX }),
        sink: Arc::new(Herald(sender)),
        scanner: scanner(),
        options: options(),
        kind: KindSlot::default(),
        moved: Moved::default(),
    };
    let handle = core.submit(endless);
    assert_eq!(receiver.recv().unwrap(), None, "it has begun");
    let other = Arc::new(Collector::default());
    core.submit(packet(Arc::new(Endless { limit: 1 }), &other, options()));
    while other.totals.lock().unwrap().is_empty() {
        std::thread::yield_now();
    }
    handle.cancel();
    let ends: Vec<PacketTotals> = receiver.iter().flatten().collect();
    assert!(ends.len() == 1 && ends[0].cancelled && ends[0].objects > 0);
    assert!(!outcome(&other).totals.cancelled);
    core.shutdown();
}

#[test]
fn dropping_the_core_cancels_what_is_under_way() {
    let core = core(CoreConfig::for_threads(2));
    let (sender, receiver) = mpsc::channel();
    core.submit(Packet {
        source: Arc::new(Endless { limit: u64::MAX }),
        sink: Arc::new(Herald(sender)),
        scanner: scanner(),
        options: options(),
        kind: KindSlot::default(),
        moved: Moved::default(),
    });
    assert_eq!(receiver.recv().unwrap(), None);
    drop(core);
    let ends: Vec<PacketTotals> = receiver.iter().flatten().collect();
    assert!(ends.len() == 1 && ends[0].cancelled);
}

#[test]
fn a_listing_that_fails_or_panics_ends_its_packet_with_the_reason() {
    struct Broken {
        panics: bool,
    }
    impl ObjectSource for Broken {
        fn enumerate(
            &self,
            _: &mut EnumCursor,
            _: usize,
            out: &mut Vec<ObjectDescriptor>,
        ) -> Result<(), ObjectError> {
            assert!(!self.panics, "the listing is broken");
            out.push(ObjectDescriptor::default());
            Err(ObjectError::new(Reason::PermissionDenied, "cannot list"))
        }
        fn open(&self, _: &ObjectDescriptor) -> Result<Opened, ObjectError> {
            Ok(Opened::Bytes(OpenBytes::stream(Box::new(std::io::Cursor::new(key(1))), None)))
        }
    }
    for (panics, reason, objects) in [(true, Reason::Panicked, 0), (false, Reason::PermissionDenied, 1)] {
        let core = core(CoreConfig::for_threads(1));
        let sink = Arc::new(Collector::default());
        core.submit(packet(Arc::new(Broken { panics }), &sink, options()));
        core.shutdown();
        let totals = outcome(&sink).totals;
        assert_eq!((totals.failure.map(|failure| failure.reason), totals.objects), (Some(reason), objects));
    }
}

#[test]
fn a_sink_that_panics_does_not_pass_for_success() {
    struct Fragile(mpsc::Sender<PacketTotals>);
    impl ResultSink for Fragile {
        fn findings(&self, _: Vec<FindingDraft>) {
            panic!("the sink is full");
        }
        fn object(&self, _: ObjectReport) {}
        fn packet_done(&self, totals: PacketTotals) {
            self.0.send(totals).unwrap();
        }
    }
    let (sender, receiver) = mpsc::channel();
    let core = core(CoreConfig::for_threads(1));
    core.submit(Packet {
        source: Arc::new(Endless { limit: 1 }),
        sink: Arc::new(Fragile(sender)),
        scanner: scanner(),
        options: options(),
        kind: KindSlot::default(),
        moved: Moved::default(),
    });
    core.shutdown();
    let totals = receiver.recv().unwrap();
    assert_eq!(totals.failure, Some(ObjectError::new(Reason::Panicked, "the result sink panicked")));
}
