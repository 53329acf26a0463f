//! A stream with a little buffer in front of it that parsers can look into before they take.
//!
//! An error of the stream is kept until the bytes before it are used up, so that everything readable
//! comes out first.

use std::io::{self, BufRead, Read};

use crate::error::ContentError;
use crate::format::HEAD_LEN;

/// Size of the buffer in front of a stream, bytes; no caller peeks at more.
const BUFFER_LEN: usize = 32 << 10;

pub(crate) struct Source {
    inner: Box<dyn Read + Send>,
    buffer: Box<[u8]>,
    /// What of the buffer is filled and not yet consumed.
    from: usize,
    to: usize,
    end: End,
}

/// How the stream behind the buffer stands. A failure is told as it came once, and in our words after.
enum End {
    Open,
    Eof,
    Failed(Option<io::Error>, ContentError),
}

impl Source {
    pub(crate) fn new(inner: Box<dyn Read + Send>) -> Self {
        Self::sized(inner, BUFFER_LEN as u64)
    }

    /// With a buffer no larger than the stream is known to be.
    pub(crate) fn sized(inner: Box<dyn Read + Send>, size: u64) -> Self {
        let buffer = vec![0; size.clamp(HEAD_LEN as u64, BUFFER_LEN as u64) as usize].into_boxed_slice();
        Source { inner, buffer, from: 0, to: 0, end: End::Open }
    }

    /// The next `len` bytes without taking them; fewer when the stream ends or fails before.
    pub(crate) fn peek(&mut self, len: usize) -> &[u8] {
        debug_assert!(len <= self.buffer.len());
        if self.buffer.len() - self.from < len {
            self.buffer.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        while self.to - self.from < len && matches!(self.end, End::Open) {
            self.fetch();
        }
        &self.buffer[self.from..self.to.min(self.from + len)]
    }

    fn fetch(&mut self) {
        match self.inner.read(&mut self.buffer[self.to..]) {
            Ok(0) => self.end = End::Eof,
            Ok(got) => self.to += got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                let again = ContentError::from(&error);
                self.end = End::Failed(Some(error), again);
            }
        }
    }

    /// Why the stream failed, once all bytes before that are taken.
    pub(crate) fn failure(&mut self) -> Option<io::Error> {
        match &mut self.end {
            End::Failed(first, again) => Some(first.take().unwrap_or_else(|| again.clone().into_io())),
            _ => None,
        }
    }

    /// Why a peek came back short: the stream's own error, or that it ended where it must not.
    pub(crate) fn shortfall(&mut self, what: &str) -> ContentError {
        match self.failure() {
            Some(error) => error.into(),
            None => ContentError::damaged(format!("the archive ends inside {what}")),
        }
    }

    /// Takes exactly `len` bytes.
    pub(crate) fn take_exact(&mut self, len: usize, what: &str) -> Result<Vec<u8>, ContentError> {
        let mut out = Vec::new();
        match self.by_ref().take(len as u64).read_to_end(&mut out) {
            Ok(got) if got == len => Ok(out),
            Ok(_) => Err(self.shortfall(what)),
            Err(error) => Err(error.into()),
        }
    }

    /// Passes over `len` bytes, or as many as there are; how many were missing.
    pub(crate) fn skip(&mut self, mut len: u64) -> io::Result<u64> {
        while len > 0 {
            let step = (self.fill_buf()?.len() as u64).min(len);
            if step == 0 {
                break;
            }
            self.consume(step as usize);
            len -= step;
        }
        Ok(len)
    }
}

impl BufRead for Source {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
            while self.to == 0 && matches!(self.end, End::Open) {
                self.fetch();
            }
            if self.to == 0
                && let Some(error) = self.failure()
            {
                return Err(error);
            }
        }
        Ok(&self.buffer[self.from..self.to])
    }

    fn consume(&mut self, len: usize) {
        self.from = (self.from + len).min(self.to);
    }
}

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        // A large read past an empty buffer needs no copy through it.
        if self.from == self.to && out.len() >= self.buffer.len() && matches!(self.end, End::Open) {
            return match self.inner.read(out) {
                Ok(got) => {
                    self.end = if got == 0 { End::Eof } else { End::Open };
                    Ok(got)
                }
                Err(error) => {
                    if error.kind() != io::ErrorKind::Interrupted {
                        self.end = End::Failed(None, ContentError::from(&error));
                    }
                    Err(error)
                }
            };
        }
        let len = self.fill_buf()?.read(out)?;
        self.consume(len);
        Ok(len)
    }
}
