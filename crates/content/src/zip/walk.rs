//! A zip read along its local headers: for streams, and where the directory is lost.
//!
//! The entries share the stream, and only the newest can be read. Where bytes make no sense, the walk goes
//! on at the next header that does, and says at the end that something was passed over.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use domesday_model::Reason;
use parking_lot::Mutex;

use super::entry::Check;
use super::recognise::is_zip;
use super::record::{CENTRAL, DESCRIPTOR, END, END64, LOCAL, LOCAL_LEN, Method, Record, le32, le64};
use crate::budget::{Budget, Meter};
use crate::codec::{Feed, Unpacker};
use crate::error::ContentError;
use crate::input::Input;
use crate::source::Source;

/// Unit in which the rest of an unread entry is unpacked to find its end, bytes.
const DRAIN_LEN: usize = 16 << 10;
/// Longest descriptor after an entry's data (64-bit sizes), and the usual one, signature included, bytes.
const DESCRIPTOR_WIDE_LEN: usize = 24;
const DESCRIPTOR_LEN: usize = 16;
const EMPTY_DESCRIPTOR: [u8; DESCRIPTOR_LEN] = *b"PK\x07\x08\0\0\0\0\0\0\0\0\0\0\0\0";
const SPLIT_MARK: [u8; 4] = *b"PK00";

pub(super) struct Walk {
    shared: Arc<Mutex<Shared>>,
    ending: Ending,
}

/// What the end of the walk means.
pub(super) enum Ending {
    /// The directory is expected there: the archive is whole.
    Directory,
    /// The directory is lost, which is told when all entries were. If `known`, the first entry of the walk
    /// came out already.
    Damaged { known: bool, damage: ContentError },
}

/// The stream under all entries. Only one reads at a time, so the lock is never waited for in earnest.
struct Shared {
    source: Source,
    current: Option<Current>,
    /// Bytes were passed over that belong to no entry.
    gap: bool,
    /// The stream ended before a directory.
    truncated: bool,
}

impl Walk {
    pub(super) fn new(source: Source, ending: Ending) -> Self {
        let shared = Shared { source, current: None, gap: false, truncated: false };
        Walk { shared: Arc::new(Mutex::new(shared)), ending }
    }

    /// The next local header; `None` at the directory.
    pub(super) fn next_record(&mut self, budget: &Arc<Budget>) -> Result<Option<Record>, ContentError> {
        let shared = &mut *self.shared.lock();
        if let Ending::Damaged { known, .. } = &mut self.ending
            && std::mem::take(known)
        {
            shared.next_record(budget)?;
        }
        let next = shared.next_record(budget)?;
        match &self.ending {
            _ if next.is_some() => Ok(next),
            Ending::Damaged { damage, .. } => Err(damage.clone()),
            Ending::Directory if shared.truncated => {
                Err(ContentError::damaged("the zip archive is truncated"))
            }
            Ending::Directory if shared.gap => {
                Err(ContentError::damaged("parts of the zip archive make no sense"))
            }
            Ending::Directory => Ok(None),
        }
    }

    /// The content of the entry whose header was just read.
    pub(super) fn open(&self, record: &Record, ordinal: u32) -> Result<Input, ContentError> {
        match &mut self.shared.lock().current {
            Some(current) if current.unpacker.is_some() || current.left.is_some() => {
                current.ordinal = Some(ordinal);
                Ok(Input::Stream(Box::new(StreamedEntry { shared: Arc::clone(&self.shared), ordinal })))
            }
            // Nothing tells where it ends but the directory.
            _ => {
                let error = match self.ending {
                    Ending::Directory => {
                        let detail =
                            "an entry stored without its size, in a nested archive too large to hold";
                        ContentError::fatal_for(Reason::ByteLimit, detail)
                    }
                    Ending::Damaged { .. } => ContentError::damaged("an entry stored without its size"),
                };
                Err(error.only(&record.name, ordinal))
            }
        }
    }
}

impl Shared {
    fn next_record(&mut self, budget: &Arc<Budget>) -> Result<Option<Record>, ContentError> {
        self.leave()?;
        if !self.seek_header()? {
            return Ok(None);
        }
        let (_, variable) = Record::local_lengths(self.source.peek(LOCAL_LEN));
        let whole = self.source.take_exact(LOCAL_LEN + variable, "a local header")?;
        let record = Record::local(&whole[..LOCAL_LEN], &whole[LOCAL_LEN..]);
        let empty = record.packed == 0 && self.source.peek(EMPTY_DESCRIPTOR.len()) == EMPTY_DESCRIPTOR;
        self.current = Some(Current::new(&record, empty, budget));
        Ok(Some(record))
    }

    /// Goes to the end of the current entry, read or not.
    fn leave(&mut self) -> Result<(), ContentError> {
        let Some(mut current) = self.current.take().filter(|current| !current.ended) else { return Ok(()) };
        if let Some(left) = current.left {
            return match self.source.skip(left)? {
                0 => Ok(()),
                _ => Err(ContentError::damaged("the archive ends inside an entry")),
            };
        }
        let mut scratch = [0; DRAIN_LEN];
        while current.unpacker.is_some() {
            match current.read(&mut self.source, &mut scratch).map_err(ContentError::from) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.reason() == Reason::DamagedArchive => {
                    self.gap = true;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Goes to the next local header; `false` when the directory or the end comes first.
    fn seek_header(&mut self) -> Result<bool, ContentError> {
        loop {
            let head = self.source.peek(DESCRIPTOR_WIDE_LEN + 4);
            let at = |offset: usize| head.get(offset..).and_then(|rest| rest.first_chunk::<4>()).copied();
            let known = |offset: usize| at(offset).is_some_and(|s| [LOCAL, CENTRAL, END, END64].contains(&s));
            let passed = match at(0) {
                None => {
                    if let Some(error) = self.source.failure() {
                        return Err(error.into());
                    }
                    self.truncated = true;
                    return Ok(false);
                }
                Some(LOCAL) if is_zip(head) => {
                    if self.source.peek(LOCAL_LEN).len() == LOCAL_LEN {
                        return Ok(true);
                    }
                    return Err(self.source.shortfall("a local header"));
                }
                Some(CENTRAL | END | END64) => return Ok(false),
                // A descriptor after data that was passed over, or the mark of a split archive.
                Some(DESCRIPTOR | SPLIT_MARK) => {
                    [4, DESCRIPTOR_LEN, DESCRIPTOR_WIDE_LEN].into_iter().find(|&len| known(len))
                }
                Some(_) => None,
            };
            match passed {
                Some(len) => self.source.consume(len),
                None => {
                    self.gap = true;
                    let here = self.source.fill_buf()?;
                    let next = here.iter().skip(1).position(|&byte| byte == LOCAL[0]);
                    let len = next.map_or(here.len(), |at| at + 1);
                    self.source.consume(len);
                }
            }
        }
    }
}

/// The entry that can be read.
struct Current {
    /// Of whoever may read it.
    ordinal: Option<u32>,
    /// Packed bytes left, when their number is known.
    left: Option<u64>,
    /// `None` for stored data.
    unpacker: Option<Unpacker>,
    described_after: bool,
    check: Check,
    meter: Meter,
    /// Data, and descriptor if there is one, are behind us.
    ended: bool,
}

impl Current {
    fn new(record: &Record, empty: bool, budget: &Arc<Budget>) -> Self {
        let described_after = record.described_after;
        let unpacker = match record.method {
            Method::Packed(compressor) => Some(Unpacker::new(compressor, false)),
            _ => None,
        };
        // A size may be wrong when a descriptor follows; packed data tells its end by itself.
        let sized = !described_after || (unpacker.is_none() && (empty || record.packed > 0));
        let promised = (!described_after).then_some((record.crc, record.size));
        Current {
            ordinal: None,
            left: sized.then_some(record.packed),
            unpacker,
            described_after,
            check: Check::new(promised),
            meter: Meter::new(budget),
            ended: false,
        }
    }

    fn read(&mut self, source: &mut Source, out: &mut [u8]) -> io::Result<usize> {
        if self.ended || out.is_empty() {
            return Ok(0);
        }
        let got = match (&mut self.unpacker, &mut self.left) {
            (Some(unpacker), Some(left)) => unpacker.read_from(&mut Limited { source, left }, out)?,
            (Some(unpacker), None) => unpacker.read_from(source, out)?,
            (None, left) => {
                let mut nothing = 0;
                Limited { source, left: left.as_mut().unwrap_or(&mut nothing) }.read(out)?
            }
        };
        if got == 0 {
            self.finish(source).map_err(ContentError::into_io)?;
        }
        self.check.update(&out[..got]);
        self.meter.pass(got)
    }

    fn finish(&mut self, source: &mut Source) -> Result<(), ContentError> {
        let rest = self.left.take().unwrap_or(0);
        self.ended = true;
        if source.skip(rest)? > 0 {
            return Err(ContentError::damaged("the archive ends inside this entry"));
        }
        if self.described_after {
            let packed = self.unpacker.as_ref().map_or(self.check.size(), Unpacker::consumed);
            let (crc, len) = read_descriptor(source.peek(DESCRIPTOR_WIDE_LEN), packed, self.check.size())
                .ok_or_else(|| ContentError::damaged("the entry does not end as it should"))?;
            source.consume(len);
            self.check.promise(crc, self.check.size());
        }
        self.check.verify()
    }
}

/// The checksum in a descriptor and the descriptor's length: with or without a signature, with numbers of
/// 32 or 64 bits. Only the sizes, which are known by now, tell which.
fn read_descriptor(head: &[u8], packed: u64, size: u64) -> Option<(u32, usize)> {
    let signature = if head.starts_with(&DESCRIPTOR) { 4 } else { 0 };
    let fields = &head[signature..];
    if fields.len() >= 20 && (le64(fields, 4), le64(fields, 12)) == (packed, size) {
        Some((le32(fields, 0), signature + 20))
    } else if fields.len() >= 12 && (le32(fields, 4), le32(fields, 8)) == (packed as u32, size as u32) {
        Some((le32(fields, 0), signature + 12))
    } else {
        None
    }
}

/// A source that ends after so many bytes.
struct Limited<'a> {
    source: &'a mut Source,
    left: &'a mut u64,
}

impl Limited<'_> {
    fn cut(len: usize, left: u64) -> usize {
        left.min(len as u64) as usize
    }
}

impl BufRead for Limited<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if *self.left == 0 {
            return Ok(&[]);
        }
        let here = self.source.fill_buf()?;
        Ok(&here[..Self::cut(here.len(), *self.left)])
    }

    fn consume(&mut self, len: usize) {
        self.source.consume(len);
        *self.left -= len as u64;
    }
}

impl Read for Limited<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = Self::cut(out.len(), *self.left);
        let got = self.source.read(&mut out[..len])?;
        if got == 0 && len > 0 {
            return Err(ContentError::damaged("the archive ends inside this entry").into_io());
        }
        *self.left -= got as u64;
        Ok(got)
    }
}

impl Feed for Limited<'_> {
    fn peek(&mut self, len: usize) -> &[u8] {
        self.source.peek(Self::cut(len, *self.left))
    }
}

/// The newest entry of a walked zip.
struct StreamedEntry {
    shared: Arc<Mutex<Shared>>,
    ordinal: u32,
}

impl Read for StreamedEntry {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let Shared { source, current, .. } = &mut *self.shared.lock();
        match current {
            Some(current) if current.ordinal == Some(self.ordinal) => current.read(source, out),
            _ => {
                Err(io::Error::other("an entry of a streamed archive was read after the next was asked for"))
            }
        }
    }
}
