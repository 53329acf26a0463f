//! Archives and compressors, and formats that are only recognised.

use std::io::{Cursor, Read};
use std::sync::Arc;

use domesday_content::{
    Budget, ContentError, Format, HEAD_LEN, Input, Limits, Unwrapped, detect_seekable, recognise, unwrap,
};

/// Bytes read at a time.
const READ_LEN: usize = 16 << 10;

/// Small, so that what exceeds a limit does so within one input.
const LIMITS: Limits = Limits {
    max_depth: 6,
    max_entries: 1_000,
    max_unpacked_bytes: 8 << 20,
    max_inflation: 1000,
    max_buffered: 4 << 20,
};

pub fn any(input: &[u8]) {
    explore_both(input, None);
}

pub fn zip(input: &[u8]) {
    explore_both(input, format("zip"));
}

pub fn tar(input: &[u8]) {
    explore_both(input, format("tar"));
}

fn format(name: &str) -> Option<Format> {
    let known = Format::all().find(|format| format.name() == name);
    assert!(known.is_some(), "no format is called {name}");
    known
}

/// The first byte chooses the compressor.
pub fn compressed(input: &[u8]) {
    const FORMATS: [&str; 4] = ["gzip", "bzip2", "xz", "zstd"];
    let Some((&which, rest)) = input.split_first() else { return };
    explore_both(rest, format(FORMATS[usize::from(which) % FORMATS.len()]));
}

/// A format must be named the same whether the bytes can be read at any place or not, unless the end decides.
pub fn unsupported(input: &[u8]) {
    let bytes = input.to_vec();
    let begin = &input[..input.len().min(READ_LEN)];
    for any in [None, Some(&bytes as &dyn domesday_content::ReadAt)] {
        if let Some(format) = recognise(begin, any) {
            assert!(!format.name().is_empty());
            let seen = format.seen_with(input);
            assert!(
                seen.is_encrypted() || !format.is_encrypted(),
                "more bytes cannot make it less encrypted"
            );
        }
    }
    let head = &input[..input.len().min(HEAD_LEN)];
    let _ = detect_seekable(head, &bytes);
}

/// Opens everything there is, as of a file and as of a stream, and holds it to the budget.
fn explore_both(bytes: &[u8], format: Option<Format>) {
    let seekable = Input::Seekable(Arc::new(bytes.to_vec()));
    let stream = Input::Stream(Box::new(Cursor::new(bytes.to_vec())));
    for input in [seekable, stream] {
        let budget = Budget::new(LIMITS, None);
        let mut found = Found::default();
        visit(input, format, &budget, 0, &mut found);
        assert!(budget.buffered() == 0, "memory that was held is released");
        assert!(found.files <= LIMITS.max_entries + 1);
        // Entries of a tar are not unpacked, only found: they come on top, once for each tar around.
        let of_tars = u64::from(LIMITS.max_depth) * bytes.len() as u64;
        assert!(
            found.bytes <= LIMITS.max_unpacked_bytes + of_tars + READ_LEN as u64,
            "{} bytes",
            found.bytes
        );
    }
}

/// How much came out of one object.
#[derive(Default)]
struct Found {
    files: u64,
    bytes: u64,
}

fn visit(input: Input, format: Option<Format>, budget: &Arc<Budget>, depth: u32, found: &mut Found) {
    let Ok((_, unwrapped)) = unwrap(input, format, budget, depth) else { return };
    match unwrapped {
        Unwrapped::Plain(mut reader) => {
            found.files += 1;
            let mut chunk = [0; READ_LEN];
            loop {
                match reader.read(&mut chunk) {
                    Ok(0) => break,
                    Ok(len) => found.bytes += len as u64,
                    Err(error) => {
                        assert!(
                            ContentError::from_io(&error).is_some(),
                            "every error carries its reason: {error}"
                        );
                        break;
                    }
                }
            }
        }
        Unwrapped::Tables(file) => {
            found.files += 1;
            drop(file.tables());
        }
        Unwrapped::Archive(mut archive) => {
            while let Some(next) = archive.next_entry() {
                if let Ok(entry) = next {
                    visit(entry.input, None, budget, entry.depth, found);
                }
            }
            assert!(archive.next_entry().is_none(), "an archive that ended stays ended");
            let _ = archive.document();
        }
    }
}
