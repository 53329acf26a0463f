//! Where bytes come from: readable at any offset, or only once from front to back.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use domesday_model::VersionMarks;

use crate::budget::Budget;
use crate::error::ContentError;

/// Bytes readable at any offset: a file, a buffer.
pub trait ReadAt: Send + Sync {
    /// Reads some bytes at `offset`; 0 exactly at or beyond the end.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    fn size(&self) -> io::Result<u64>;

    /// Whether reading at any place costs as little as reading on: of what is far away it does not.
    fn is_near(&self) -> bool {
        false
    }

    /// All bytes, if they lie in memory as they are.
    fn in_memory(&self) -> Option<&[u8]> {
        None
    }

    /// What tells this version of the bytes from the next one, as it is at this moment; `None` where the source has
    /// nothing that does. Costs a system call: asked only of what is very large.
    fn marks(&self) -> io::Result<Option<VersionMarks>> {
        Ok(None)
    }

    /// The bytes from an offset to the end, where reading on is cheaper than reading at each place.
    fn sequential(&self, _offset: u64) -> Option<Box<dyn Read + Send>> {
        None
    }

    /// Where on this machine a file is that has these bytes and no others. The path passes through no link; whoever
    /// opens it must follow none, because another file may take the place. Costs system calls: asked only of what is
    /// read by its path.
    fn local_path(&self) -> Option<PathBuf> {
        None
    }
}

/// Bytes to look into.
pub enum Input {
    Seekable(Arc<dyn ReadAt>),
    Stream(Box<dyn Read + Send>),
}

impl Input {
    /// The bytes from front to back.
    pub fn into_read(self) -> Box<dyn Read + Send> {
        match self {
            Input::Seekable(bytes) => Input::read_from(bytes, 0),
            Input::Stream(stream) => stream,
        }
    }

    /// The bytes from an offset to the end.
    pub fn read_from(bytes: Arc<dyn ReadAt>, offset: u64) -> Box<dyn Read + Send> {
        Box::new(Cursor::new(bytes, offset))
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|from| self.get(from..)).unwrap_or(&[]);
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

impl ReadAt for Vec<u8> {
    fn is_near(&self) -> bool {
        true
    }

    fn in_memory(&self) -> Option<&[u8]> {
        Some(self)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.as_slice().read_at(buf, offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

impl<T: ReadAt + ?Sized> ReadAt for Arc<T> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        (**self).read_at(buf, offset)
    }

    fn size(&self) -> io::Result<u64> {
        (**self).size()
    }

    fn is_near(&self) -> bool {
        (**self).is_near()
    }

    fn in_memory(&self) -> Option<&[u8]> {
        (**self).in_memory()
    }

    fn marks(&self) -> io::Result<Option<VersionMarks>> {
        (**self).marks()
    }

    fn sequential(&self, offset: u64) -> Option<Box<dyn Read + Send>> {
        (**self).sequential(offset)
    }

    fn local_path(&self) -> Option<PathBuf> {
        (**self).local_path()
    }
}

#[cfg(unix)]
impl ReadAt for File {
    fn is_near(&self) -> bool {
        true
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buf, offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn marks(&self) -> io::Result<Option<VersionMarks>> {
        use std::os::unix::fs::MetadataExt;
        let now = self.metadata()?;
        let nanoseconds =
            |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        Ok(Some(VersionMarks {
            mtime_ns: nanoseconds(now.mtime(), now.mtime_nsec()),
            ctime_ns: nanoseconds(now.ctime(), now.ctime_nsec()),
            inode: now.ino(),
            tag: None,
        }))
    }

    fn local_path(&self) -> Option<PathBuf> {
        use std::os::fd::AsRawFd;
        use std::os::unix::fs::MetadataExt;
        // The kernel's own answer: that of a file without a name is a path where this file is not.
        let path = std::fs::read_link(format!("/proc/self/fd/{}", self.as_raw_fd())).ok()?;
        let (there, here) = (std::fs::symlink_metadata(&path).ok()?, self.metadata().ok()?);
        ((there.dev(), there.ino()) == (here.dev(), here.ino())).then_some(path)
    }
}

/// Fills `buf` from `offset`; fewer bytes only at the end.
pub(crate) fn read_full_at(bytes: &dyn ReadAt, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buf.len() {
        let Some(at) = offset.checked_add(filled as u64) else { break };
        match bytes.read_at(&mut buf[filled..], at) {
            Ok(0) => break,
            Ok(got) => filled += got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Reads from an offset on.
pub(crate) struct Cursor {
    bytes: Arc<dyn ReadAt>,
    offset: u64,
}

impl Cursor {
    pub(crate) fn new(bytes: Arc<dyn ReadAt>, offset: u64) -> Self {
        Cursor { bytes, offset }
    }
}

impl Read for Cursor {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let got = self.bytes.read_at(buf, self.offset)?;
        self.offset += got as u64;
        Ok(got)
    }
}

/// A part of other bytes. Where those end before it does, reading says so instead of ending early.
pub(crate) struct Section {
    bytes: Arc<dyn ReadAt>,
    start: u64,
    len: u64,
}

impl Section {
    pub(crate) fn new(bytes: Arc<dyn ReadAt>, start: u64, len: u64) -> Self {
        Section { bytes, start, len }
    }
}

impl ReadAt for Section {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = self.len.saturating_sub(offset).min(buf.len() as u64) as usize;
        if left == 0 {
            return Ok(0);
        }
        let got = match self.start.checked_add(offset) {
            Some(at) => self.bytes.read_at(&mut buf[..left], at)?,
            None => 0,
        };
        if got == 0 {
            return Err(ContentError::damaged("the archive ends inside this entry").into_io());
        }
        Ok(got)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len)
    }
}

/// A nested archive held in memory. In pieces, so that growing never needs twice the memory; each piece
/// is reserved in the budget before it is allocated.
pub(crate) struct Held {
    pieces: Vec<Box<[u8]>>,
    len: u64,
    budget: Arc<Budget>,
}

impl Held {
    /// Unit in which memory is reserved and allocated, bytes.
    pub(crate) const PIECE: usize = 64 << 10;

    pub(crate) fn new(budget: &Arc<Budget>) -> Self {
        Held { pieces: Vec::new(), len: 0, budget: Arc::clone(budget) }
    }

    /// Reads on until the stream ends (`true`) or the budget for memory is used up (`false`). An error of
    /// the stream comes back beside what was read before it.
    pub(crate) fn fill(&mut self, stream: &mut dyn Read) -> (bool, Option<io::Error>) {
        loop {
            let within = (self.len % Self::PIECE as u64) as usize;
            if within == 0 {
                if !self.budget.try_hold(Self::PIECE as u64) {
                    return (false, None);
                }
                self.pieces.push(vec![0; Self::PIECE].into_boxed_slice());
            }
            let piece = self.pieces.last_mut().expect("a piece was pushed when the last one was full");
            match stream.read(&mut piece[within..]) {
                Ok(0) => return (true, None),
                Ok(got) => self.len += got as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (true, Some(error)),
            }
        }
    }
}

impl Held {
    /// What is held, then the rest of the stream it came from.
    pub(crate) fn then(self, rest: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        Box::new(Cursor::new(Arc::new(self), 0).chain(rest))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.release((self.pieces.len() * Self::PIECE) as u64);
    }
}

impl ReadAt for Held {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset >= self.len {
            return Ok(0);
        }
        let (piece, within) = (offset / Self::PIECE as u64, (offset % Self::PIECE as u64) as usize);
        let len = buf.len().min(Self::PIECE - within).min((self.len - offset) as usize);
        buf[..len].copy_from_slice(&self.pieces[piece as usize][within..within + len]);
        Ok(len)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len)
    }
}

/// The end of a stream that failed.
pub(crate) struct Broken(Option<io::Error>);

impl Broken {
    pub(crate) fn with(error: io::Error) -> Box<dyn Read + Send> {
        Box::new(Broken(Some(error)))
    }
}

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match self.0.take() {
            Some(error) => Err(error),
            None => Ok(0),
        }
    }
}
