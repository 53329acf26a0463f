//! Texts: their encodings, what the built-in rules make of them, files of separated values.

use std::io::Cursor;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock};

use domesday_content::Utf16Decoder;
use domesday_content::{Encoding, Limits, ObjectError, utf16_units};
use domesday_engine::{Chunk, LOOKAHEAD, LOOKBEHIND, Match, RuleSet, Scanner, Scratch};
use domesday_model::{FindingDraft, FingerprintKey, ObjectKey, ObjectReport, Score};
use domesday_scheduler::{
    CoreConfig, EnumCursor, KindSlot, Moved, ObjectDescriptor, ObjectSource, OpenBytes, Opened, Packet,
    PacketOptions, PacketTotals, ResultSink, ScanCore,
};
use parking_lot::Mutex;

static SCANNER: LazyLock<Arc<Scanner>> = LazyLock::new(|| {
    let rules = RuleSet::builtin().unwrap_or_else(|errors| panic!("{errors}"));
    Arc::new(Scanner::new(Arc::new(rules)))
});

/// Decodes whole, in two parts, and as the standard library does. The first byte is the encoding, the second where the
/// text is cut.
pub fn encoding(input: &[u8]) {
    let (encoding, mark) = Encoding::detect(input);
    assert!(mark <= input.len(), "{encoding:?}");
    let Some((&[which, cut], raw)) = input.split_first_chunk::<2>() else { return };
    let encoding = if which & 1 == 0 { Encoding::Utf16Le } else { Encoding::Utf16Be };
    let decode = |parts: &[&[u8]]| {
        let mut decoder = Utf16Decoder::new(encoding).unwrap();
        let mut text = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            assert_eq!(decoder.decode(part, at + 1 == parts.len(), &mut text), part.len());
        }
        text
    };
    let whole = decode(&[raw]);
    let (first, second) = raw.split_at(usize::from(cut).min(raw.len()));
    assert_eq!(decode(&[first, second]), whole, "a text that comes in parts is the same text");
    let units = raw.chunks_exact(2).map(|unit| match encoding {
        Encoding::Utf16Be => u16::from_be_bytes([unit[0], unit[1]]),
        _ => u16::from_le_bytes([unit[0], unit[1]]),
    });
    let mut expected: String =
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    let is_odd = raw.len() % 2 == 1;
    expected.extend(is_odd.then_some(char::REPLACEMENT_CHARACTER));
    assert_eq!(String::from_utf8(whole).as_deref(), Ok(expected.as_str()));
    assert_eq!(utf16_units(expected.as_bytes()), (raw.len() as u64).div_ceil(2));
}

/// Scans whole and in chunks, which must give the same. The first byte is the size of chunks.
pub fn scan(input: &[u8]) {
    let Some((&size, text)) = input.split_first() else { return };
    let mut scratch = Scratch::new();
    let mut whole = Vec::new();
    SCANNER.scan(&Chunk::whole(text, b""), &mut scratch, &mut whole);
    for found in &whole {
        assert!(found.span.end <= text.len() && found.span.start <= found.span.end);
    }
    // A few chunks: each is scanned with all that is around it.
    let size = (usize::from(size) * 16 + 16).max(text.len() / 4);
    assert_eq!(scan_in_chunks(text, size, &mut scratch), whole, "in chunks of {size} bytes");
}

fn scan_in_chunks(text: &[u8], size: usize, scratch: &mut Scratch) -> Vec<Match> {
    let mut all = Vec::new();
    for start in (0..text.len()).step_by(size) {
        let end = (start + size).min(text.len());
        let from = start.saturating_sub(LOOKBEHIND);
        let to = (end + LOOKAHEAD).min(text.len());
        let mut found = Vec::new();
        SCANNER.scan(&Chunk::unnamed(&text[from..to], start - from..end - from), scratch, &mut found);
        for found in &mut found {
            found.span = found.span.start + from..found.span.end + from;
        }
        all.append(&mut found);
    }
    all
}

/// New bytes per chunk in the scan core: few, so that records lie across chunks.
const CHUNK_SIZE: usize = 512;

static CORE: LazyLock<ScanCore> = LazyLock::new(|| {
    let config = CoreConfig { chunk_size: CHUNK_SIZE, ..CoreConfig::for_threads(1) };
    ScanCore::new(config, FingerprintKey::new([7; 32])).unwrap()
});

/// Runs an object through the scan core, as a file of this name. The first byte chooses the name.
pub fn separated(input: &[u8]) {
    const NAMES: [&str; 3] = ["o.csv", "o.tsv", "o.txt"];
    let Some((&which, bytes)) = input.split_first() else { return };
    let name = NAMES[usize::from(which) % NAMES.len()];
    let source = Arc::new(OneObject { name, bytes: bytes.to_vec() });
    let (done, totals) = channel();
    let sink = Arc::new(Totals(Mutex::new(done)));
    let limits = Limits {
        max_depth: 4,
        max_entries: 100,
        max_unpacked_bytes: 1 << 20,
        max_inflation: 1000,
        max_buffered: 1 << 20,
    };
    let options = PacketOptions { min_score: Score(0), occurrence_cap: 10, limits, reveal: false };
    CORE.submit(Packet {
        source,
        sink,
        scanner: Arc::clone(&SCANNER),
        options,
        kind: KindSlot::default(),
        moved: Moved::default(),
    });
    let totals = totals.recv().unwrap();
    assert_eq!((totals.objects, totals.failure), (1, None));
}

struct OneObject {
    name: &'static str,
    bytes: Vec<u8>,
}

impl ObjectSource for OneObject {
    fn enumerate(
        &self,
        cursor: &mut EnumCursor,
        _: usize,
        out: &mut Vec<ObjectDescriptor>,
    ) -> Result<(), ObjectError> {
        out.push(ObjectDescriptor { path: ObjectKey::new(self.name), ..ObjectDescriptor::default() });
        *cursor = EnumCursor::Done;
        Ok(())
    }

    fn open(&self, _: &ObjectDescriptor) -> Result<Opened, ObjectError> {
        let reader = Box::new(Cursor::new(self.bytes.clone()));
        let size = self.bytes.len() as u64;
        Ok(Opened::Bytes(OpenBytes::seekable(reader, Arc::new(self.bytes.clone()), Some(size))))
    }
}

/// Waits for the end of a packet.
struct Totals(Mutex<Sender<PacketTotals>>);

impl ResultSink for Totals {
    fn findings(&self, findings: Vec<FindingDraft>) {
        assert!(!findings.is_empty());
    }

    fn object(&self, _: ObjectReport) {}

    fn packet_done(&self, totals: PacketTotals) {
        // Nobody waits any more only if the target panicked.
        let _ = self.0.lock().send(totals);
    }
}
