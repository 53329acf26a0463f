//! Remote reads of a source that breaks: what is retried, what is not, and what is never mixed.

use std::io::Read;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// What becomes of the next requests; when there is nothing left, they succeed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    Transient,
    /// So many bytes arrive, and then it breaks.
    BreakAfter(usize),
    /// So many bytes arrive, and it does not say that there are more.
    EndAfter(usize),
    Fatal,
}

#[derive(Default)]
struct Source {
    bytes: Vec<u8>,
    version: Mutex<Option<&'static str>>,
    faults: Mutex<Vec<Fault>>,
    requests: AtomicUsize,
    tells_size: bool,
}

#[async_trait]
impl RangeSource for Source {
    async fn fetch(
        &self,
        _: &ObjectKey,
        range: Range<u64>,
        version: Option<&str>,
        received: &mut Received,
    ) -> Result<(), Failure> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let own = *self.version.lock().unwrap();
        if version.is_some() && version != own {
            return Err(Failure::fatal(Reason::Changed, "another version"));
        }
        let fault = self.faults.lock().unwrap().pop();
        if fault == Some(Fault::Transient) {
            return Err(Failure::transient("busy"));
        }
        if fault == Some(Fault::Fatal) {
            return Err(Failure::fatal(Reason::PermissionDenied, "no"));
        }
        received.size = self.tells_size.then_some(self.bytes.len() as u64);
        received.version = own.map(str::to_owned);
        received.tag = own.and_then(|own| VersionMarks::tagged(own.as_bytes()).tag);
        let at = |place: u64| (place as usize).min(self.bytes.len());
        let bytes = &self.bytes[at(range.start)..at(range.end)];
        match fault {
            Some(Fault::BreakAfter(len)) => {
                received.bytes.extend_from_slice(&bytes[..len.min(bytes.len())]);
                Err(Failure::transient("reset"))
            }
            Some(Fault::EndAfter(len)) => {
                received.bytes.extend_from_slice(&bytes[..len.min(bytes.len())]);
                Ok(())
            }
            _ => {
                received.bytes.extend_from_slice(bytes);
                Ok(())
            }
        }
    }
}

fn source(len: usize, faults: &[Fault]) -> Source {
    Source {
        bytes: (0..len).map(|n| (n % 251) as u8).collect(),
        version: Mutex::new(Some("v1")),
        faults: Mutex::new(faults.iter().rev().copied().collect()),
        tells_size: true,
        ..Source::default()
    }
}

fn read(source: Source) -> (Result<Vec<u8>, Reason>, usize, Vec<u8>) {
    let source = Arc::new(source);
    let read = Remote::new(Arc::clone(&source) as _).open(&ObjectKey::new("k")).and_then(|mut open| {
        let mut bytes = Vec::new();
        open.reader.read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    let requests = source.requests.load(Ordering::Relaxed);
    (read.map_err(|error| error.reason), requests, source.bytes.clone())
}

#[test]
fn a_broken_answer_goes_on_where_it_stopped() {
    use Fault::{BreakAfter, EndAfter, Transient};
    for faults in [
        &[][..],
        &[Transient, BreakAfter(1), BreakAfter(0), BreakAfter(70)],
        &[EndAfter(99), EndAfter(0), Transient],
    ] {
        let (bytes, requests, expected) = read(source(100, faults));
        assert!(bytes == Ok(expected), "{faults:?}");
        assert_eq!(requests, faults.len() + 1);
    }
}

#[test]
fn an_object_of_unknown_size_is_read_to_its_end() {
    for len in [0, 1, PART_LEN as usize, PART_LEN as usize + 1] {
        let (bytes, _, expected) = read(Source { tells_size: false, ..source(len, &[]) });
        assert!(bytes == Ok(expected), "{len} bytes");
    }
}

#[test]
fn without_a_version_a_broken_answer_begins_anew() {
    let broken = Source { version: Mutex::new(None), ..source(100, &[Fault::BreakAfter(60)]) };
    let (bytes, requests, expected) = read(broken);
    assert!(bytes == Ok(expected));
    assert_eq!(requests, 2);
}

#[test]
fn what_asking_again_cannot_help_is_not_asked_again() {
    let (bytes, requests, _) = read(source(100, &[Fault::Fatal]));
    assert_eq!((bytes, requests), (Err(Reason::PermissionDenied), 1));
}

#[test]
fn attempts_are_bounded() {
    let (bytes, requests, _) = read(source(100, &[Fault::Transient; 20]));
    assert_eq!((bytes, requests), (Err(Reason::Unavailable), ATTEMPTS_MAX as usize));
}

#[test]
fn a_packet_larger_than_the_budgets_is_read_by_a_single_thread() {
    // None is opened before others have taken all the room there is, and the last is opened first.
    const OBJECTS: usize = 24;
    let len = 5 << 20;
    let source = Arc::new(source(len, &[]));
    let remote = Remote::new(Arc::clone(&source) as _);
    let marks = VersionMarks::tagged(b"v1");
    let listed = |_| ListedObject { size: len as u64, marks, ..ListedObject::by_key(ObjectKey::new("k")) };
    let objects: Vec<ListedObject> = (0..OBJECTS).map(listed).collect();
    let packets: Vec<_> = (0..8).map(|_| remote.read_ahead(&objects).unwrap()).collect();
    let open = |index: usize| packets[7].open(index).unwrap().into_bytes().unwrap();
    let mut open: Vec<OpenBytes> = (0..OBJECTS).rev().map(open).collect();
    for object in &mut open {
        let mut bytes = Vec::new();
        object.reader.read_to_end(&mut bytes).unwrap();
        assert!(bytes == source.bytes);
    }
    *source.version.lock().unwrap() = Some("v2");
    let late = remote.read_ahead(&objects[..1]).unwrap().open(0);
    assert_eq!(late.err().map(|error| error.reason), Some(Reason::Changed));
}

#[test]
fn pauses_grow_to_a_limit() {
    let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3_600));
    let first = BACKOFF.longest_after(1);
    assert!(pause(1, None) <= first && pause(5, None) > 4 * first);
    assert!(pause(60, None) <= PAUSE_MAX && pause(1, Some(hour)) <= PAUSE_MAX);
    assert!(pause(1, Some(8 * second)) >= 4 * second);
}
