//! What the cases share: listing to the end, walking a source, reading as the scan core does.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use std::thread;

use domesday_content::ObjectError;
use domesday_model::{ListedObject, ObjectKey, RecordKind, UnitRecord};
use domesday_scheduler::{OpenBytes, Opened};
use tokio::sync::oneshot;

use crate::{Connector, ConnectorError, Listing};

/// Entries asked for at once: as few as can be, a few, and as many as the worker does.
pub const BATCH_SIZES: [usize; 3] = [1, 2, 1_000];
/// As many as the worker asks for.
pub const BATCH: usize = 1_000;
/// Bytes of the buffer that objects are read through: few, so that small objects take several reads.
const BUFFER_LEN: usize = 13;

/// A batch, and where the listing stood after it.
pub struct Batch {
    pub records: Vec<UnitRecord>,
    pub resume_point: Option<String>,
}

/// What is left of a listing, batch by batch, each held to the contract.
pub async fn rest(listing: &mut dyn Listing, max: usize) -> Result<Vec<Batch>, ConnectorError> {
    let mut batches: Vec<Batch> = Vec::new();
    loop {
        let records = listing.next_batch(max).await?;
        assert!(records.len() <= max, "a batch of {} where {max} were asked for", records.len());
        if records.is_empty() {
            let more = listing.next_batch(max).await?;
            assert_eq!(more, [], "a listing goes on after an empty batch, which is its end");
            assert_eq!(listing.resume_point(), None, "there is nothing to go on with after the end");
            return Ok(batches);
        }
        if let Some(last) = batches.last() {
            assert!(
                last.resume_point.is_some() || listing.resume_point().is_none(),
                "more entries after a batch without a resume point, which says that it was the last"
            );
        }
        batches.push(Batch { records, resume_point: listing.resume_point() });
    }
}

/// One container from the beginning, or from where a listing of it was cut.
pub async fn list(
    connector: &dyn Connector,
    container: &ObjectKey,
    resume_point: Option<&str>,
    max: usize,
) -> Result<Vec<Batch>, ConnectorError> {
    rest(connector.list(container, resume_point).await?.as_mut(), max).await
}

pub fn records(batches: Vec<Batch>) -> Vec<UnitRecord> {
    batches.into_iter().flat_map(|batch| batch.records).collect()
}

/// All that a source has.
#[derive(PartialEq, Debug)]
pub struct Seen {
    pub objects: BTreeMap<ObjectKey, UnitRecord>,
    /// The root first.
    pub containers: Vec<ObjectKey>,
}

/// Walks a source from its root through its containers.
pub async fn walk(connector: &dyn Connector, max: usize) -> Result<Seen, ConnectorError> {
    let mut seen = Seen { objects: BTreeMap::new(), containers: vec![ObjectKey::default()] };
    let mut at = 0;
    while let Some(container) = seen.containers.get(at).cloned() {
        at += 1;
        for record in records(list(connector, &container, None, max).await?) {
            assert!(!record.name.is_empty(), "an entry of `{container}` has no name");
            let key = container.join(&record.name);
            let is_skipped = record.kind == RecordKind::Skipped;
            assert_eq!(record.reason.is_some(), is_skipped, "`{key}`: exactly what is left out has a reason");
            if record.kind == RecordKind::Directory {
                assert!(!seen.containers.contains(&key), "container `{key}` is listed twice");
                seen.containers.push(key);
            } else if record.kind == RecordKind::File {
                let before = seen.objects.insert(key.clone(), record);
                assert_eq!(before, None, "object `{key}` is listed twice");
            }
        }
    }
    Ok(seen)
}

/// Runs on a thread like those of the scan core, which know no runtime.
pub async fn on_scan_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = oneshot::channel();
    thread::spawn(move || done.send(work()));
    result.await.expect("the work on a scan thread ends without a panic")
}

/// Opens an object of which only the key is known.
pub fn open(connector: &dyn Connector, key: &ObjectKey) -> Result<OpenBytes, ObjectError> {
    connector.open(&ListedObject::by_key(key.clone())).and_then(Opened::into_bytes)
}

/// Opens an object and reads it whole.
pub async fn read(connector: &Arc<dyn Connector>, key: &ObjectKey) -> Result<Vec<u8>, ObjectError> {
    let (connector, key) = (Arc::clone(connector), key.clone());
    on_scan_thread(move || open(&*connector, &key).and_then(read_whole)).await
}

/// An object's bytes. What it says of its size must hold, and so must the bytes at any place.
pub fn read_whole(mut open: OpenBytes) -> Result<Vec<u8>, ObjectError> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; BUFFER_LEN]);
    loop {
        match open.reader.read(&mut buffer)? {
            0 => break,
            read => bytes.extend_from_slice(&buffer[..read]),
        }
    }
    if let Some(size) = open.size {
        assert_eq!(size, bytes.len() as u64, "an object's size and its bytes");
    }
    let Some(random) = open.random else { return Ok(bytes) };
    assert_eq!(random.size()?, bytes.len() as u64, "the size at any place and the bytes in their order");
    let end = bytes.len();
    for start in [0, end / 2, end.saturating_sub(1), end, end + BUFFER_LEN] {
        let expected = bytes.get(start..).unwrap_or_default();
        let expected = &expected[..expected.len().min(BUFFER_LEN)];
        let mut got = Vec::new();
        while got.len() < expected.len() {
            let rest = expected.len() - got.len();
            match random.read_at(&mut buffer[..rest], (start + got.len()) as u64)? {
                0 => break,
                read => got.extend_from_slice(&buffer[..read]),
            }
        }
        assert_eq!(got, expected, "the bytes at {start} and the bytes in their order");
        let beyond = random.read_at(&mut buffer, (end.max(start)) as u64)?;
        assert_eq!(beyond, 0, "bytes beyond the end");
    }
    Ok(bytes)
}
