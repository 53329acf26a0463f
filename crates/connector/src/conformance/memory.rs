//! Memory: a listing holds a bounded number of entries, however many there are. To be run in a process of its
//! own: it measures this one.

use std::fs;
use std::sync::Arc;

use domesday_model::{ObjectKey, RecordKind};

use super::walk::BATCH;
use super::{Fixture, cases};

cases![a_large_listing_needs_no_more_memory_than_a_small_one];

/// Objects of the large listing. The small one has a tenth of them.
const OBJECTS: u64 = 200_000;
const FEW: u64 = OBJECTS / 10;
/// Bytes that the large one may need more: about 30 for each of its objects, less than any record has.
const GROWTH_MAX: u64 = 6 << 20;

async fn a_large_listing_needs_no_more_memory_than_a_small_one(fixture: Arc<dyn Fixture>) {
    // What the first listing of a process needs once is no growth.
    let Some(_) = growth(&*fixture, FEW / 2).await else { return };
    let Some(small) = growth(&*fixture, FEW).await else { return };
    let Some(large) = growth(&*fixture, OBJECTS).await else { return };
    let held = fixture.held(OBJECTS) - fixture.held(FEW);
    println!("listing {FEW} objects: {small} bytes; {OBJECTS}: {large} bytes, of which {held} may be held");
    assert!(
        large < small + held + GROWTH_MAX,
        "memory grows with what is listed: {small}, then {large} bytes"
    );
}

/// How much memory a listing of all takes at most, beyond what was in use before it.
async fn growth(fixture: &dyn Fixture, objects: u64) -> Option<u64> {
    let (connector, expected) = fixture.large(objects).await?;
    let before = resident();
    let (mut peak, mut listed) = (before, 0);
    let mut containers = vec![ObjectKey::default()];
    while let Some(container) = containers.pop() {
        let mut listing = connector.list(&container, None).await.unwrap();
        loop {
            let batch = listing.next_batch(BATCH).await.unwrap();
            peak = peak.max(resident());
            if batch.is_empty() {
                break;
            }
            for record in batch {
                if record.kind == RecordKind::Directory {
                    containers.push(container.join(&record.name));
                } else if record.kind == RecordKind::File {
                    listed += 1;
                }
            }
        }
    }
    assert_eq!(listed, expected, "every object is listed");
    Some(peak - before)
}

/// Bytes of this process that are in memory.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kibibytes << 10
}
