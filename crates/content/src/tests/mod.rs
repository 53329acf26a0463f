//! Tests of the crate as its users see it: whole archives in, files and reasons out.

mod encodings;
mod fixtures;
mod hostile;
mod limits;
mod roundtrip;
mod unsupported;
mod zips;

use std::io::{Cursor, Read};
use std::sync::Arc;

use domesday_model::Reason;

use crate::{Budget, ContentError, Format, Input, Limits, Unwrapped, unwrap};

const LIMITS: Limits = Limits {
    max_depth: 16,
    max_entries: 100_000,
    max_unpacked_bytes: 1 << 30,
    max_inflation: 1000,
    max_buffered: 64 << 20,
};

/// Everything that came out of one object.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// `outer!inner` with `<chain>` for compressors, and the bytes that were readable.
    files: Vec<(String, Vec<u8>)>,
    errors: Vec<(String, Reason)>,
}

impl Found {
    fn contents(&self) -> Vec<(&str, &[u8])> {
        self.files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())).collect()
    }

    fn reasons(&self) -> Vec<Reason> {
        self.errors.iter().map(|(_, reason)| *reason).collect()
    }
}

fn seekable(bytes: &[u8]) -> Input {
    Input::Seekable(Arc::new(bytes.to_vec()))
}

fn streamed(bytes: &[u8]) -> Input {
    Input::Stream(Box::new(Cursor::new(bytes.to_vec())))
}

/// Opens everything there is, in order.
fn explore(input: Input, budget: &Arc<Budget>) -> Found {
    let mut found = Found::default();
    visit(input, budget, 0, String::new(), &mut found);
    found
}

fn visit(input: Input, budget: &Arc<Budget>, depth: u32, path: String, found: &mut Found) {
    let (chain, unwrapped) = match unwrap(input, None, budget, depth) {
        Ok(opened) => opened,
        Err(error) => return found.errors.push((path, error.reason())),
    };
    let path = chain.iter().fold(path, |path, name| format!("{path}<{name}>"));
    match unwrapped {
        Unwrapped::Plain(mut reader) => {
            let mut bytes = Vec::new();
            if let Err(error) = reader.read_to_end(&mut bytes) {
                let reason = ContentError::from_io(&error).expect("every error carries its reason").reason();
                found.errors.push((path.clone(), reason));
            }
            found.files.push((path, bytes));
        }
        Unwrapped::Tables(file) => {
            let mut whole = Vec::new();
            Input::Seekable(Arc::clone(file.bytes())).into_read().read_to_end(&mut whole).unwrap();
            found.files.push((format!("{path}<database>"), whole));
        }
        Unwrapped::Archive(mut archive) => {
            while let Some(next) = archive.next_entry() {
                match next {
                    Ok(entry) => {
                        let inner = format!("{path}!{}", String::from_utf8_lossy(&entry.name));
                        visit(entry.input, budget, entry.depth, inner, found);
                    }
                    Err(error) => {
                        let name = error.entry().map(|step| String::from_utf8_lossy(&step.name).into_owned());
                        found.errors.push((format!("{path}!{}", name.unwrap_or_default()), error.reason()));
                    }
                }
            }
            assert!(archive.next_entry().is_none(), "an archive that ended stays ended");
        }
    }
}

/// The format of that name.
pub(super) fn format(name: &str) -> Option<Format> {
    let known = Format::all().find(|format| format.name() == name);
    assert!(known.is_some(), "no format is called {name}");
    known
}

/// The same object from a file and from a stream.
fn explore_both(bytes: &[u8]) -> Found {
    let whole = explore(seekable(bytes), &Budget::new(LIMITS, None));
    let stream = explore(streamed(bytes), &Budget::new(LIMITS, None));
    assert_eq!(whole, stream, "a stream must give what a file gives");
    whole
}
