//! Readers that the fetch puts around a source's own: one that notices an object changing under it,
//! and one that turns UTF-16 into UTF-8.

use std::io::{self, Read};
use std::sync::Arc;

use domesday_content::{Input, ObjectError, ReadAt, Utf16Decoder};
use domesday_model::Reason;

use crate::packet::Moved;

/// How far an object may grow beyond its size at open before the rest is left, if twice that size is
/// less: 64 MiB. A log that is written faster than it is read must not be read for ever.
pub(crate) const GROWTH_MAX: u64 = 64 << 20;

/// An object's bytes with the size it had when opened. An object that ends before that size, or goes on
/// beyond `max(2 × size, size + GROWTH_MAX)`, ends in the reason [`Reason::Changed`]; what was read
/// before stands. An object of unknown size is read to its end.
pub(crate) struct SizedReader {
    inner: Box<dyn Read + Send>,
    size: Option<u64>,
    seen: u64,
    /// Asked for the size unless the first read proves it.
    unproven: Option<Arc<dyn ReadAt>>,
    /// Counts bytes as they come: a buffer of a slow source may take long to fill.
    moved: Option<Moved>,
}

impl SizedReader {
    pub(crate) fn new(inner: Box<dyn Read + Send>, size: Option<u64>) -> Self {
        SizedReader { inner, size, seen: 0, unproven: None, moved: None }
    }

    /// An object whose size may be the one that was listed. A first read that brings just as much, with room for
    /// more, proves it; otherwise `object` is asked, which costs a system call that small files can do without.
    pub(crate) fn proven_by(mut self, object: Option<Arc<dyn ReadAt>>) -> Self {
        self.unproven = object.filter(|_| self.size.is_some());
        self
    }

    /// Counts what is read.
    pub(crate) fn counted_by(mut self, moved: &Moved) -> Self {
        self.moved = Some(moved.clone());
        self
    }

    /// What an object that can be read at any place has from `offset` on.
    pub(crate) fn resumed(bytes: Arc<dyn ReadAt>, size: u64, offset: u64) -> Self {
        let on = bytes.sequential(offset).unwrap_or_else(|| Input::read_from(bytes, offset));
        SizedReader { seen: offset, ..SizedReader::new(on, Some(size)) }
    }

    /// Bytes of unknown size.
    pub(crate) fn unbounded(inner: impl Read + Send + 'static) -> Self {
        SizedReader::new(Box::new(inner), None)
    }

    /// The size at open, once something was read.
    pub(crate) fn size(&self) -> Option<u64> {
        self.size
    }

    /// Reads until `buf` is full or the object ends. A short read that reaches the size at open is the
    /// end: asking again would cost a system call for every small file. A size of 0 says nothing, for
    /// generated files have it too.
    pub(crate) fn fill(&mut self, buf: &mut [u8]) -> Filled {
        let mut len = 0;
        while len < buf.len() {
            let room = buf.len() - len;
            match self.read(&mut buf[len..]) {
                Ok(0) => return Filled { len, end: End::Reached },
                Ok(got) => {
                    len += got;
                    if got < room && self.size.is_some_and(|size| size > 0 && self.seen >= size) {
                        return Filled { len, end: End::Reached };
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Filled { len, end: End::Flawed(error.into()) },
            }
        }
        Filled { len, end: End::NotYet }
    }
}

impl Read for SizedReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if let Some(size) = self.size
            && self.seen > size.saturating_mul(2).max(size.saturating_add(GROWTH_MAX))
        {
            return Err(changed(format!("grew while it was read, from {size} bytes; the rest was left")));
        }
        let got = self.inner.read(buf);
        if let Some(object) = self.unproven.take() {
            let is_proof = |&got: &usize| 0 < got && got < buf.len() && self.size == Some(got as u64);
            if !got.as_ref().is_ok_and(is_proof) {
                self.size = Some(object.size()?);
            }
        }
        let got = got?;
        self.seen += got as u64;
        if let Some(moved) = &self.moved {
            moved.add(got as u64);
        }
        match self.size {
            Some(size) if got == 0 && !buf.is_empty() && self.seen < size => {
                Err(changed(format!("shrank while it was read, from {size} to {} bytes", self.seen)))
            }
            _ => Ok(got),
        }
    }
}

fn changed(detail: String) -> io::Error {
    io::Error::other(ObjectError::new(Reason::Changed, detail))
}

/// What a read brought.
pub(crate) struct Filled {
    pub(crate) len: usize,
    pub(crate) end: End,
}

pub(crate) enum End {
    /// The buffer is full; there may be more.
    NotYet,
    Reached,
    /// Nothing more can be read, and the object is not whole.
    Flawed(ObjectError),
}

/// Raw bytes decoded at once: 32 KiB.
const RAW_LEN: usize = 32 << 10;

/// UTF-16 as UTF-8.
pub(crate) struct Utf16Reader<R> {
    inner: R,
    decoder: Utf16Decoder,
    raw: Box<[u8]>,
    text: Vec<u8>,
    /// What of `text` was handed out.
    taken: usize,
    ended: bool,
}

impl<R: Read> Utf16Reader<R> {
    pub(crate) fn new(inner: R, decoder: Utf16Decoder) -> Self {
        let raw = crate::buffer::new_buffer(RAW_LEN);
        Utf16Reader { inner, decoder, raw, text: Vec::new(), taken: 0, ended: false }
    }
}

impl<R: Read> Read for Utf16Reader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.text.len() && !self.ended {
            let got = self.inner.read(&mut self.raw)?;
            self.text.clear();
            self.taken = 0;
            self.ended = got == 0;
            self.decoder.decode(&self.raw[..got], self.ended, &mut self.text);
        }
        let len = buf.len().min(self.text.len() - self.taken);
        buf[..len].copy_from_slice(&self.text[self.taken..self.taken + len]);
        self.taken += len;
        Ok(len)
    }
}
