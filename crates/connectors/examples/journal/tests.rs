//! The suite on journals, and what only they promise.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use domesday_connector::conformance::{Fixture, Refused};
use domesday_connector::{Connector, Surroundings};
use domesday_model::{ListedObject, ObjectKey, Reason};
use tempfile::TempDir;

use super::*;

struct JournalFile(TempDir);

impl JournalFile {
    fn path(&self) -> PathBuf {
        self.0.path().join("journal")
    }

    /// The key of what is written at this place.
    fn write(&self, at: SeekFrom, text: &str) -> ObjectKey {
        let mut file = OpenOptions::new().write(true).open(self.path()).unwrap();
        let offset = file.seek(at).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        ObjectKey::new(offset.to_string())
    }
}

fn connector(path: &Path) -> Arc<dyn Connector> {
    registry().create(KIND, &serde_json::json!({ "path": path }), &Surroundings::default()).unwrap()
}

#[async_trait]
impl Fixture for JournalFile {
    async fn connector(&self) -> Arc<dyn Connector> {
        connector(&self.path())
    }

    fn objects(&self) -> BTreeMap<ObjectKey, Vec<u8>> {
        let mut offset = 0;
        let mut objects = BTreeMap::new();
        for line in fs::read_to_string(self.path()).unwrap().split_inclusive('\n') {
            objects.insert(ObjectKey::new(offset.to_string()), line.trim_end().as_bytes().to_vec());
            offset += line.len();
        }
        objects
    }

    async fn change(&self) -> Option<ObjectKey> {
        Some(self.write(SeekFrom::Start(0), "FIRST"))
    }

    async fn remove(&self) -> Option<ObjectKey> {
        let last =
            self.objects().into_keys().max_by_key(|key| key.to_string().parse::<u64>().unwrap()).unwrap();
        File::options()
            .write(true)
            .open(self.path())
            .unwrap()
            .set_len(last.to_string().parse().unwrap())
            .unwrap();
        Some(last)
    }

    async fn add(&self) -> Option<ObjectKey> {
        Some(self.write(SeekFrom::End(0), "one more\n"))
    }

    async fn with_bad_credential(&self) -> Option<Refused> {
        None
    }

    async fn with_flaky_reads(&self) -> Option<Arc<dyn Connector>> {
        None
    }

    async fn large(&self, objects: u64) -> Option<(Arc<dyn Connector>, u64)> {
        let path = self.0.path().join(format!("large-{objects}"));
        let mut file = BufWriter::new(File::create(&path).unwrap());
        for index in 0..objects {
            writeln!(file, "line {index}").unwrap();
        }
        file.flush().unwrap();
        Some((connector(&path), objects))
    }
}

async fn new() -> Arc<dyn Fixture> {
    let file = JournalFile(tempfile::tempdir().unwrap());
    fs::write(file.path(), "first\nsecond\n\nfourth line\nfifth\n").unwrap();
    Arc::new(file)
}

domesday_connector::conformance_tests!(new);

#[tokio::test]
async fn a_line_that_is_too_long_is_left_out_and_one_without_an_end_waits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    fs::write(&path, format!("a\n{}\nb\nunfinished", "x".repeat(3 << 20))).unwrap();
    let connector = connector(&path);
    let mut listing = connector.list(&ObjectKey::default(), None).await.unwrap();
    let records = listing.next_batch(10).await.unwrap();
    let reasons: Vec<Option<Reason>> = records.iter().map(|record| record.reason).collect();
    assert_eq!(reasons, [None, Some(Reason::TooLarge), None]);
    assert_eq!(listing.resume_point(), None);
    // Keys of another version of the file lead to nothing, not to parts of lines.
    for key in ["1", "3", "9999999", "-1"] {
        let error = connector.open(&ListedObject::by_key(ObjectKey::new(key))).err().unwrap();
        assert_eq!(error.reason, Reason::Vanished, "{key}");
    }
}
