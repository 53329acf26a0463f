//! Tables as objects of bytes, so that the suite of all connectors holds for databases, too: levels are
//! directories, a table or a range of rows is a file of its rows, a line each, values separated by tabs.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use domesday_connector::{Connector, ConnectorError, Listing, ReadAhead, Request};
use domesday_model::{ObjectKey, RecordKind, ResumePolicy, UnitRecord, VersionMarks};
use domesday_scheduler::{ObjectError, OpenObject, OpenTable, RowBatch};

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

    fn open(&self, object: &ObjectKey) -> Result<OpenObject, ObjectError> {
        let metadata = self.book.lock().unwrap().get(object).cloned();
        let request = Request { key: object.clone(), size: 0, marks: VersionMarks::default(), metadata };
        self.connector.open_table(&request).map(file)
    }

    fn read_ahead(&self, objects: &[Request]) -> Option<Box<dyn ReadAhead>> {
        let book = self.book.lock().unwrap();
        let with_metadata =
            |request: &Request| Request { metadata: book.get(&request.key).cloned(), ..request.clone() };
        let objects: Vec<Request> = objects.iter().map(with_metadata).collect();
        Some(Box::new(FilesAhead(self.connector.read_ahead(&objects)?)))
    }

    async fn test(&self) -> Result<usize, ConnectorError> {
        self.connector.test().await
    }
}

struct FilesAhead(Box<dyn ReadAhead>);

impl ReadAhead for FilesAhead {
    fn open(&self, index: usize) -> Result<OpenObject, ObjectError> {
        self.0.open_table(index).map(file)
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

fn file(table: OpenTable) -> OpenObject {
    let batch = RowBatch::new(table.shape.columns.len());
    OpenObject {
        reader: Box::new(Lines { table, batch, line: io::Cursor::default() }),
        random: None,
        size: None,
    }
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
