//! Kind `stdin`: the one object that is piped in. It can be read once, by one process, so a scan of it
//! never resumes; what was read can be kept in memory, to show the values in it.

use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use domesday_connector::{Connector, ConnectorError, ConnectorFactory, Description, Listing, Surroundings};
use domesday_content::ObjectError;
use domesday_model::{ListedObject, ObjectKey, Reason, RecordKind, ResumePolicy, UnitRecord, VersionMarks};
use domesday_scheduler::{OpenBytes, Opened};
use parking_lot::Mutex;

/// The kind, as data sources name it.
pub const KIND: &str = "stdin";
/// The object's key, and how it is shown.
const NAME: &str = "stdin";
/// Bytes of standard input kept for a second reading; a longer one is not kept at all.
const KEPT_BYTES_MAX: usize = 256 << 20;

/// Makes the connector of kind `stdin`. Its clones know what the others have read.
#[derive(Clone, Default)]
pub struct StdinFactory {
    taken: Arc<AtomicBool>,
    kept: Option<Arc<Mutex<Kept>>>,
}

impl StdinFactory {
    /// Keeps what is read, so that it can be read again.
    pub fn keeping() -> StdinFactory {
        StdinFactory { kept: Some(Arc::default()), ..StdinFactory::default() }
    }
}

impl ConnectorFactory for StdinFactory {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn create(&self, _: &serde_json::Value, _: &Surroundings) -> Result<Arc<dyn Connector>, ConnectorError> {
        Ok(Arc::new(Stdin(self.clone())))
    }

    fn describe(&self) -> Description {
        Description {
            about: "what is piped in",
            exclude: None,
            max_file_size: None,
            is_standard_input: true,
            is_repeatable: false,
            ..Description::default()
        }
    }
}

struct Stdin(StdinFactory);

#[async_trait]
impl Connector for Stdin {
    fn resume_policy(&self, _: &ObjectKey) -> ResumePolicy {
        ResumePolicy::ClearAndRelist
    }

    async fn list(&self, _: &ObjectKey, _: Option<&str>) -> Result<Box<dyn Listing>, ConnectorError> {
        Ok(Box::new(OneObject(true)))
    }

    fn open(&self, _: &ListedObject) -> Result<Opened, ObjectError> {
        let reader: Box<dyn Read + Send> = match (self.0.taken.swap(true, Ordering::Relaxed), &self.0.kept) {
            (false, None) => Box::new(io::stdin()),
            (false, Some(kept)) => Box::new(Keeping { input: io::stdin(), kept: Arc::clone(kept) }),
            (true, kept) => match kept.as_ref().and_then(|kept| kept.lock().whole()) {
                Some(bytes) => Box::new(Cursor::new(bytes)),
                None => {
                    let error = "standard input can be read only once; pipe it in again";
                    return Err(ObjectError::new(Reason::ReadError, error));
                }
            },
        };
        Ok(Opened::Bytes(OpenBytes::stream(reader, None)))
    }
}

/// What was read so far, and whether that is all.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    overflowed: bool,
    ended: bool,
}

impl Kept {
    fn add(&mut self, read: &[u8]) {
        self.ended |= read.is_empty();
        self.overflowed |= self.bytes.len() + read.len() > KEPT_BYTES_MAX;
        if self.overflowed {
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(read);
        }
    }

    fn whole(&self) -> Option<Vec<u8>> {
        (self.ended && !self.overflowed).then(|| self.bytes.clone())
    }
}

/// Reads, and keeps what was read.
struct Keeping<R> {
    input: R,
    kept: Arc<Mutex<Kept>>,
}

impl<R: Read> Read for Keeping<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buf)?;
        if !buf.is_empty() {
            self.kept.lock().add(&buf[..read]);
        }
        Ok(read)
    }
}

struct OneObject(bool);

#[async_trait]
impl Listing for OneObject {
    async fn next_batch(&mut self, _: usize) -> Result<Vec<UnitRecord>, ConnectorError> {
        let record = || UnitRecord {
            kind: RecordKind::File,
            name: NAME.into(),
            size: 0,
            marks: VersionMarks::default(),
            reason: None,
            metadata: None,
        };
        Ok(std::mem::take(&mut self.0).then(record).into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use domesday_connector::conformance::{Fixture, Refused, broken, listing, resuming};

    use super::*;

    /// Standard input, of which only listings can be tried: it is this process's own.
    struct Input;

    #[async_trait]
    impl Fixture for Input {
        async fn connector(&self) -> Arc<dyn Connector> {
            Arc::new(Stdin(StdinFactory::default()))
        }

        fn objects(&self) -> BTreeMap<ObjectKey, Vec<u8>> {
            BTreeMap::from([(ObjectKey::new(NAME), Vec::new())])
        }

        async fn change(&self) -> Option<ObjectKey> {
            None
        }

        async fn remove(&self) -> Option<ObjectKey> {
            None
        }

        async fn with_bad_credential(&self) -> Option<Refused> {
            None
        }

        async fn with_flaky_reads(&self) -> Option<Arc<dyn Connector>> {
            None
        }

        async fn large(&self, _: u64) -> Option<(Arc<dyn Connector>, u64)> {
            None
        }

        fn missing_container(&self) -> Option<ObjectKey> {
            None
        }

        fn lists_sizes(&self) -> bool {
            false
        }
    }

    #[test]
    fn its_listing_is_a_listing() {
        let new = || async { Arc::new(Input) as Arc<dyn Fixture> };
        assert_eq!(broken(listing::CASES, new), Vec::<&str>::new());
        assert_eq!(broken(resuming::CASES, new), Vec::<&str>::new());
    }

    #[test]
    fn what_is_read_is_kept_whole_or_not_at_all() {
        let kept = Arc::new(Mutex::new(Kept::default()));
        let mut keeping = Keeping { input: &b"some text"[..], kept: Arc::clone(&kept) };
        let mut head = [0; 4];
        keeping.read_exact(&mut head).unwrap();
        assert_eq!(kept.lock().whole(), None, "not at its end yet");
        keeping.read_to_end(&mut Vec::new()).unwrap();
        assert_eq!(kept.lock().whole().as_deref(), Some(&b"some text"[..]));

        let kept = Arc::new(Mutex::new(Kept::default()));
        let input = io::repeat(b'x').take(KEPT_BYTES_MAX as u64 + 1);
        io::copy(&mut Keeping { input, kept: Arc::clone(&kept) }, &mut io::sink()).unwrap();
        assert_eq!(kept.lock().whole(), None);
        assert!(kept.lock().bytes.is_empty(), "too much to keep");
    }
}
