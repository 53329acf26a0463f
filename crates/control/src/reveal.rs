//! Raw values, when the user asks for them. They are not in the book, so the objects that have findings
//! are read again, and each value is matched to its finding by span, rule and fingerprint.

use std::collections::HashMap;
use std::sync::Arc;

use domesday_connector::Connector;
use domesday_engine::Scanner;
use domesday_model::{FindingDraft, Fingerprint, ListedObject, Location, ObjectReport, ScanOptions, Span};
use domesday_scheduler::{KindSlot, Moved, Packet, PacketTotals, RawValue, ResultSink, ScanCore};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::kinds::classify::{PacketSource, packet_options};

/// Which occurrence a value belongs to.
pub type RevealKey = (Location, Span, String, Fingerprint);

/// What was found in one object, as it is.
#[derive(Default)]
pub struct Revealed {
    pub values: HashMap<RevealKey, Vec<u8>>,
    /// The primary keys of rows, by what the book names these rows.
    pub rows: HashMap<Box<str>, Box<str>>,
}

/// The values found in one object of a data source, nested ones included.
pub async fn reveal(
    core: &ScanCore,
    scanner: Arc<Scanner>,
    connector: Arc<dyn Connector>,
    options: &ScanOptions,
    object: ListedObject,
) -> Revealed {
    let (done, ended) = oneshot::channel();
    let revealed = Arc::new(Mutex::new(Revealed::default()));
    let sink = Revealing { revealed: Arc::clone(&revealed), done: Mutex::new(Some(done)) };
    let mut options = packet_options(options);
    options.reveal = true;
    core.submit(Packet {
        source: Arc::new(PacketSource::new(connector, vec![object], 0)),
        sink: Arc::new(sink),
        scanner,
        options,
        kind: KindSlot::default(),
        moved: Moved::default(),
    });
    // A core that went away reveals nothing; the report then says that the value is not to be had.
    let _ = ended.await;
    std::mem::take(&mut *revealed.lock())
}

struct Revealing {
    revealed: Arc<Mutex<Revealed>>,
    done: Mutex<Option<oneshot::Sender<()>>>,
}

impl ResultSink for Revealing {
    fn findings(&self, _: Vec<FindingDraft>) {}

    fn object(&self, _: ObjectReport) {}

    fn packet_done(&self, _: PacketTotals) {
        if let Some(done) = self.done.lock().take() {
            let _ = done.send(());
        }
    }

    fn reveal(&self, finding: &FindingDraft, raw: &RawValue) {
        let key = ((*finding.location).clone(), finding.span, finding.rule.to_string(), finding.fingerprint);
        let mut revealed = self.revealed.lock();
        revealed.values.insert(key, raw.value.to_vec());
        if let (Some(name), Some(row)) = (&finding.row, &raw.row) {
            revealed.rows.insert(name.clone(), row.clone());
        }
    }
}
