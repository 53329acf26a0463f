//! Kind `journal`: a file that programs append lines to, each line an object.
//!
//! A line's key is where it begins, so that any worker can open it, and a listing that was cut short goes on at
//! the next one. What is appended while it is listed is listed too, or by the next listing.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use domesday_connector::{
    Connector, ConnectorError, ConnectorFactory, Listing, Surroundings, parse_configuration,
};
use domesday_content::ObjectError;
use domesday_model::{ListedObject, ObjectKey, Reason, RecordKind, ResumePolicy, UnitRecord, VersionMarks};
use domesday_scheduler::{OpenBytes, Opened};
use serde::Deserialize;

/// The kind, as data sources name it.
pub const KIND: &str = "journal";
/// Bytes of a line, at most: a line is held in memory. A longer one is left out, with its reason.
const LINE_LEN_MAX: u64 = 1 << 20;

/// The configuration of a `journal` data source. Its fields' comments are their manual.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JournalConfig {
    /// The absolute path of the file.
    path: PathBuf,
}

/// Makes connectors of kind `journal`.
pub struct JournalFactory;

impl ConnectorFactory for JournalFactory {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn create(
        &self,
        configuration: &serde_json::Value,
        _: &Surroundings,
    ) -> Result<Arc<dyn Connector>, ConnectorError> {
        let JournalConfig { path } = parse_configuration(KIND, configuration)?;
        if !path.is_absolute() {
            let detail = "field `path`: must be an absolute path".to_owned();
            return Err(ConnectorError::Configuration { kind: KIND, detail });
        }
        Ok(Arc::new(Journal { path }))
    }
}

struct Journal {
    path: PathBuf,
}

#[async_trait]
impl Connector for Journal {
    fn resume_policy(&self, _: &ObjectKey) -> ResumePolicy {
        ResumePolicy::FromResumePoint
    }

    async fn list(
        &self,
        container: &ObjectKey,
        resume_point: Option<&str>,
    ) -> Result<Box<dyn Listing>, ConnectorError> {
        if !container.as_bytes().is_empty() {
            let detail = format!("a journal has no container `{container}`");
            return Err(ConnectorError::Container { reason: Reason::Vanished, detail });
        }
        let offset = resume_point.map_or(Ok(0), str::parse).map_err(|_| ConnectorError::Container {
            reason: Reason::Changed,
            detail: "the resume point is not one of this kind".to_owned(),
        })?;
        let lines = Lines::from(&self.path, offset).map_err(|error| ConnectorError::io("list", &error))?;
        Ok(Box::new(JournalListing { lines, is_over: false }))
    }

    fn open(&self, object: &ListedObject) -> Result<Opened, ObjectError> {
        let key = &object.key;
        let gone = || ObjectError::new(Reason::Vanished, format!("no line begins at `{key}`"));
        let offset = str::from_utf8(key.as_bytes()).ok().and_then(|text| text.parse().ok());
        let line = Lines::at(&self.path, offset.ok_or_else(gone)?)?;
        let line = line.map_or(Ok(None), |mut lines| lines.next())?.ok_or_else(gone)?;
        let content = line.content.ok_or_else(|| ObjectError::new(Reason::TooLarge, "the line has grown"))?;
        let (size, random) = (Some(content.len() as u64), Arc::new(content.clone()));
        Ok(Opened::Bytes(OpenBytes::seekable(Box::new(Cursor::new(content)), random, size)))
    }
}

struct JournalListing {
    lines: Lines,
    is_over: bool,
}

#[async_trait]
impl Listing for JournalListing {
    async fn next_batch(&mut self, max: usize) -> Result<Vec<UnitRecord>, ConnectorError> {
        let mut records = Vec::new();
        while records.len() < max && !self.is_over {
            match self.lines.next().map_err(|error| ConnectorError::io("list", &error))? {
                Some(line) => records.push(line.record()),
                None => self.is_over = true,
            }
        }
        Ok(records)
    }

    fn resume_point(&self) -> Option<String> {
        (!self.is_over).then(|| self.lines.offset.to_string())
    }
}

struct Line {
    offset: u64,
    /// `None` when it is too long.
    content: Option<Vec<u8>>,
}

impl Line {
    fn record(self) -> UnitRecord {
        let name = self.offset.to_string().into_bytes();
        match self.content {
            Some(content) => UnitRecord {
                kind: RecordKind::File,
                name,
                size: content.len() as u64,
                // What changes exactly when the line does.
                marks: VersionMarks::tagged(&content),
                reason: None,
                metadata: None,
            },
            None => UnitRecord {
                kind: RecordKind::Skipped,
                name,
                size: 0,
                marks: VersionMarks::default(),
                reason: Some(Reason::TooLarge),
                metadata: None,
            },
        }
    }
}

/// The lines of a file from some place on. One that has no end yet is still being written, and is none.
struct Lines {
    reader: BufReader<File>,
    /// Where the next line begins.
    offset: u64,
}

impl Lines {
    fn from(path: &Path, offset: u64) -> io::Result<Lines> {
        let mut reader = BufReader::new(File::open(path)?);
        reader.seek(SeekFrom::Start(offset))?;
        Ok(Lines { reader, offset })
    }

    /// The same, if a line begins there: the file may be another one by now.
    fn at(path: &Path, offset: u64) -> io::Result<Option<Lines>> {
        let mut lines = Lines::from(path, offset.saturating_sub(1))?;
        let mut before = [b'\n'];
        if offset > 0 && lines.reader.read(&mut before)? == 0 {
            return Ok(None);
        }
        lines.offset = offset;
        Ok((before == *b"\n").then_some(lines))
    }

    fn next(&mut self) -> io::Result<Option<Line>> {
        let offset = self.offset;
        let mut content = Vec::new();
        self.reader.by_ref().take(LINE_LEN_MAX).read_until(b'\n', &mut content)?;
        self.offset += content.len() as u64;
        if content.pop_if(|last| *last == b'\n').is_some() {
            return Ok(Some(Line { offset, content: Some(content) }));
        }
        let rest = self.reader.skip_until(b'\n')? as u64;
        self.offset += rest;
        Ok((rest > 0).then_some(Line { offset, content: None }))
    }
}
