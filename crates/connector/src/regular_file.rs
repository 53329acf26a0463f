//! A file of the file system as an object.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use domesday_content::{ObjectError, ReadAt};
use domesday_model::{Reason, VersionMarks};
use domesday_scheduler::OpenBytes;

/// What was opened as a file. Its size is told only if it is one: something else may have been put in its place since
/// it was listed.
pub struct RegularFile(File);

impl RegularFile {
    pub fn new(file: File) -> RegularFile {
        RegularFile(file)
    }

    /// With the size that it has now.
    pub fn open(self) -> Result<OpenBytes, ObjectError> {
        let size = self.size()?;
        Ok(self.open_listed(size))
    }

    /// With the size that was listed, without asking whether it still has that and is a file: whoever reads it sees
    /// that, or asks for its size.
    pub fn open_listed(self, size: u64) -> OpenBytes {
        let file = Arc::new(self);
        OpenBytes::seekable(Box::new(Reader(Arc::clone(&file))), file, Some(size))
    }
}

impl ReadAt for RegularFile {
    fn is_near(&self) -> bool {
        self.0.is_near()
    }

    fn local_path(&self) -> Option<PathBuf> {
        self.0.local_path()
    }

    fn marks(&self) -> io::Result<Option<VersionMarks>> {
        self.0.marks()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buf, offset)
    }

    fn size(&self) -> io::Result<u64> {
        let metadata = self.0.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other(ObjectError::new(Reason::Changed, "no longer a regular file")));
        }
        Ok(metadata.len())
    }
}

/// A file's bytes from first to last, through a handle that others read at any place.
struct Reader(Arc<RegularFile>);

impl Read for Reader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (&self.0.0).read(buf)
    }
}
