//! Tables as objects of bytes, so that the suite of all connectors holds for databases, too: levels are
//! directories, a table or a range of rows is a file of its rows, a line each, values separated by tabs.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use domesday_connector::{Connector, ConnectorError, Listing, ReadAhead};
use domesday_content::{ObjectError, OpenTable};
use domesday_model::{ListedObject, ObjectKey, RecordKind, ResumePolicy, RowBatch, UnitRecord};
use domesday_scheduler::{OpenBytes, Opened};

/// What listings said of objects, as the book keeps it.
pub(super) type Book = Arc<Mutex<BTreeMap<ObjectKey, Box<str>>>>;

pub(super) struct AsFiles {
    pub connector: Arc<dyn Connector>,
    pub book: Book,
}

#[async_trait]
impl Connector for AsFiles {
    fn resume_policy(&self, container: &ObjectKey) -> ResumePolicy {
        self.connector.resume_policy(container)
    }

    async fn list(
        &self,
        container: &ObjectKey,
        resume_point: Option<&str>,
    ) -> Result<Box<dyn Listing>, ConnectorError> {
        let listing = self.connector.list(container, resume_point).await?;
        Ok(Box::new(Files { listing, container: container.clone(), book: Arc::clone(&self.book) }))
    }

    fn open(&self, object: &ListedObject) -> Result<Opened, ObjectError> {
        self.connector.open(&self.as_table(object)).map(file)
    }

    fn read_ahead(&self, objects: &Arc<[ListedObject]>) -> Option<Box<dyn ReadAhead>> {
        let tables = objects.iter().map(|object| self.as_table(object)).collect();
        Some(Box::new(FilesAhead(self.connector.read_ahead(&tables)?)))
    }

    async fn test(&self) -> Result<usize, ConnectorError> {
        self.connector.test().await
    }
}

impl AsFiles {
    /// The object as it was listed before it was made a file.
    fn as_table(&self, object: &ListedObject) -> ListedObject {
        let metadata = self.book.lock().unwrap().get(&object.key).cloned();
        ListedObject { kind: RecordKind::Table, metadata, ..object.clone() }
    }
}

struct FilesAhead(Box<dyn ReadAhead>);

impl ReadAhead for FilesAhead {
    fn open(&self, index: usize) -> Result<Opened, ObjectError> {
        self.0.open(index).map(file)
    }
}

struct Files {
    listing: Box<dyn Listing>,
    container: ObjectKey,
    book: Book,
}

#[async_trait]
impl Listing for Files {
    async fn next_batch(&mut self, max: usize) -> Result<Vec<UnitRecord>, ConnectorError> {
        let mut records = self.listing.next_batch(max).await?;
        for record in &mut records {
            if let Some(metadata) = record.metadata.take() {
                self.book.lock().unwrap().insert(self.container.join(&record.name), metadata);
            }
            if record.kind.is_container() {
                record.kind = RecordKind::Directory;
            } else if record.kind.is_rows() {
                record.kind = RecordKind::File;
            }
        }
        Ok(records)
    }

    fn resume_point(&self) -> Option<String> {
        self.listing.resume_point()
    }
}

fn file(opened: Opened) -> Opened {
    let table = opened.into_rows().unwrap();
    let batch = RowBatch::new(table.shape.columns.len());
    Opened::Bytes(OpenBytes::stream(Box::new(Lines { table, batch, line: io::Cursor::default() }), None))
}

struct Lines {
    table: OpenTable,
    batch: RowBatch,
    line: io::Cursor<Vec<u8>>,
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.line.position() == self.line.get_ref().len() as u64 {
            self.batch.clear();
            self.table.rows.fill(&mut self.batch).map_err(io::Error::other)?;
            let value = |row: usize| {
                let values = self.batch.columns.iter().map(move |column| column.get(row).unwrap_or(b"NULL"));
                [values.collect::<Vec<_>>().join(&b'\t'), b"\n".to_vec()].concat()
            };
            self.line = io::Cursor::new((0..self.batch.rows()).flat_map(value).collect());
        }
        self.line.read(buffer)
    }
}
