//! Tar, read block by block: ustar, GNU (long names, old sparse), pax (path and size) and old v7.
//!
//! On seekable input each entry is a section of it, independent of all others; on a stream the entries
//! share the stream, and only the newest can be read. Sparse files come out as stored: their holes have
//! no content. Nothing is charged to the budget but entries, as a tar never unpacks to more than it is.

mod header;

use std::io::{self, Read};
use std::sync::Arc;

use crate::archive::{Entry, EntryReader, Ordinals};
use crate::budget::Budget;
use crate::error::ContentError;
use crate::format::{Definition, Inside};
use crate::input::{Input, ReadAt, Section, read_full_at};
use crate::source::Source;

use header::{BLOCK, Header, Pax, is_header, until_nul};
use parking_lot::Mutex;

/// Long names and pax records of one entry, bytes each. Real ones are a few kilobytes.
const META_BYTES_MAX: u64 = 1 << 20;

pub(crate) static FORMAT: Definition = Definition {
    name: "tar",
    begins: &[],
    recognise: is_header,
    recognise_end: None,
    inside: Inside::Entries(|input, budget, depth| Ok(Box::new(Tar::new(input, budget, depth)?))),
};

struct Tar {
    blocks: Blocks,
    budget: Arc<Budget>,
    depth: u32,
    ordinals: Ordinals,
    /// What lies before the next header: data that no entry's reader will take, and the padding after it.
    data_left: u64,
    padding: u64,
    /// A block of zeros was seen: the archive may end here, or another one may follow.
    end_mark: bool,
}

impl EntryReader for Tar {
    fn next_file(&mut self) -> Result<Option<Entry>, ContentError> {
        self.read_file()
    }

    fn independent(&self) -> bool {
        matches!(self.blocks, Blocks::Seek { .. })
    }
}

/// Headers that describe the entry after them: long names and link names, old long names, pax records.
fn is_meta(typeflag: u8) -> bool {
    matches!(typeflag, b'L' | b'K' | b'N' | b'x' | b'X' | b'g')
}

/// What long-name and pax headers said of the entry that follows them.
#[derive(Default)]
struct Meta {
    name: Option<Vec<u8>>,
    pax: Option<Pax>,
}

impl Tar {
    fn new(input: Input, budget: &Arc<Budget>, depth: u32) -> Result<Tar, ContentError> {
        let blocks = match input {
            Input::Seekable(bytes) => Blocks::Seek { size: bytes.size()?, bytes, offset: 0 },
            Input::Stream(stream) => Blocks::Stream(Arc::new(Mutex::new(Shared {
                source: Source::new(stream),
                owner: None,
                left: 0,
            }))),
        };
        let budget = Arc::clone(budget);
        Ok(Tar {
            blocks,
            budget,
            depth,
            ordinals: Ordinals::default(),
            data_left: 0,
            padding: 0,
            end_mark: false,
        })
    }

    fn read_file(&mut self) -> Result<Option<Entry>, ContentError> {
        let mut meta = Meta::default();
        while let Some(block) = self.next_header()? {
            let Some(header) = Header::parse(&block) else {
                let what =
                    if self.end_mark { "bytes after the end of the tar archive" } else { "a tar header" };
                return Err(ContentError::damaged(format!("{what}: the checksum is wrong")));
            };
            self.end_mark = false;
            // Records speak of the entry, not of the other headers that describe it.
            let described = if is_meta(header.typeflag()) { None } else { meta.pax.as_ref() };
            let Some(size) = described.and_then(|pax| pax.size).or_else(|| header.size()) else {
                return Err(ContentError::damaged("a tar header without a readable size"));
            };
            self.expect_data(size);
            match header.typeflag() {
                b'L' => meta.name = Some(until_nul(&self.metadata(size)?).to_vec()),
                b'x' => {
                    let records = self.metadata(size)?;
                    let pax = Pax::parse(&records);
                    meta.pax = Some(pax.ok_or_else(|| ContentError::damaged("unreadable pax records"))?);
                }
                // The others tell of links or of all entries.
                typeflag if is_meta(typeflag) => {}
                typeflag => {
                    let ordinal = self.ordinals.next()?;
                    self.budget.take_entry()?;
                    let pax = std::mem::take(&mut meta.pax);
                    let linked_with_data = typeflag == b'1' && pax.is_some() && size > 0;
                    let name =
                        pax.and_then(|pax| pax.path).or(meta.name.take()).unwrap_or_else(|| header.name());
                    if typeflag == b'S' {
                        self.skip_sparse_map(header.sparse_continues())?;
                    }
                    let directory = name.ends_with(b"/") && size == 0;
                    match typeflag {
                        // Of these, the size says nothing about data.
                        b'1'..=b'6' if !linked_with_data => self.expect_data(0),
                        b'D' | b'V' => {}
                        _ if directory => {}
                        _ => return Ok(Some(self.entry(name, ordinal, size))),
                    }
                }
            }
        }
        Ok(None)
    }

    /// The next block that is not an end mark; `None` at the end.
    fn next_header(&mut self) -> Result<Option<[u8; BLOCK]>, ContentError> {
        self.blocks.leave(self.data_left, self.padding)?;
        self.expect_data(0);
        loop {
            let mut block = [0; BLOCK];
            match self.blocks.read(&mut block)? {
                BLOCK if block.iter().all(|&byte| byte == 0) => self.end_mark = true,
                BLOCK => return Ok(Some(block)),
                0 if self.end_mark => return Ok(None),
                // Programs that write in other units than blocks leave a part of one at the end.
                len if self.end_mark && block[..len].iter().all(|&byte| byte == 0) => return Ok(None),
                _ => return Err(ContentError::damaged("the tar archive has no end mark: it is truncated")),
            }
        }
    }

    fn expect_data(&mut self, size: u64) {
        self.data_left = size;
        self.padding = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
    }

    /// The data of a header that describes the next one.
    fn metadata(&mut self, size: u64) -> Result<Vec<u8>, ContentError> {
        if size > META_BYTES_MAX {
            let detail = format!("a tar entry with more than {META_BYTES_MAX} bytes of name or pax records");
            return Err(ContentError::unsupported(detail));
        }
        let mut data = vec![0; size as usize];
        let got = self.blocks.read(&mut data)?;
        if got < data.len() {
            return Err(ContentError::damaged("the archive ends inside a tar header"));
        }
        self.data_left = 0;
        Ok(data)
    }

    fn skip_sparse_map(&mut self, mut continues: bool) -> Result<(), ContentError> {
        const CONTINUES_AT: usize = 504;
        while continues {
            let mut block = [0; BLOCK];
            if self.blocks.read(&mut block)? < BLOCK {
                return Err(ContentError::damaged("the archive ends inside a tar header"));
            }
            continues = block[CONTINUES_AT] != 0;
        }
        Ok(())
    }

    fn entry(&mut self, name: Vec<u8>, ordinal: u32, size: u64) -> Entry {
        let input = match &self.blocks {
            Blocks::Seek { bytes, offset, .. } => {
                Input::Seekable(Arc::new(Section::new(Arc::clone(bytes), *offset, size)))
            }
            Blocks::Stream(shared) => {
                let mut state = shared.lock();
                (state.owner, state.left) = (Some(ordinal), std::mem::take(&mut self.data_left));
                Input::Stream(Box::new(StreamedEntry { shared: Arc::clone(shared), ordinal }))
            }
        };
        Entry { name, ordinal, size: Some(size), depth: self.depth, input }
    }
}

/// Where the blocks come from.
enum Blocks {
    Seek { bytes: Arc<dyn ReadAt>, offset: u64, size: u64 },
    Stream(Arc<Mutex<Shared>>),
}

/// The stream under all entries. Only one reads at a time, so the lock is never waited for in earnest.
struct Shared {
    source: Source,
    /// The entry that may read, by ordinal, and what is left of it.
    owner: Option<u32>,
    left: u64,
}

impl Blocks {
    /// Fills `buf`; fewer bytes only at the end.
    fn read(&mut self, buf: &mut [u8]) -> Result<usize, ContentError> {
        match self {
            Blocks::Seek { bytes, offset, .. } => {
                let got = read_full_at(&**bytes, buf, *offset)?;
                *offset += got as u64;
                Ok(got)
            }
            Blocks::Stream(shared) => {
                let mut filled = 0;
                let mut shared = shared.lock();
                while filled < buf.len() {
                    match shared.source.read(&mut buf[filled..])? {
                        0 => break,
                        got => filled += got,
                    }
                }
                Ok(filled)
            }
        }
    }

    /// Passes over the current entry's data (what its reader left of it) and the padding after it.
    fn leave(&mut self, data: u64, padding: u64) -> Result<(), ContentError> {
        match self {
            Blocks::Seek { offset, size, .. } => {
                let end = offset.checked_add(data).filter(|end| *end <= *size);
                let end = end.ok_or_else(|| ContentError::damaged("the archive ends inside an entry"))?;
                *offset = end.saturating_add(padding).min(*size);
                Ok(())
            }
            Blocks::Stream(shared) => {
                let mut shared = shared.lock();
                shared.owner = None;
                let left = std::mem::take(&mut shared.left).saturating_add(data);
                if shared.source.skip(left)? > 0 {
                    return Err(ContentError::damaged("the archive ends inside an entry"));
                }
                // An archive cut after the last byte of data lost none; its missing end mark is told.
                shared.source.skip(padding)?;
                Ok(())
            }
        }
    }
}

/// The newest entry of a streamed tar.
struct StreamedEntry {
    shared: Arc<Mutex<Shared>>,
    ordinal: u32,
}

impl Read for StreamedEntry {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut shared = self.shared.lock();
        if shared.owner != Some(self.ordinal) {
            return Err(io::Error::other(
                "an entry of a streamed archive was read after the next was asked for",
            ));
        }
        let len = shared.left.min(out.len() as u64) as usize;
        if len == 0 {
            return Ok(0);
        }
        let got = shared.source.read(&mut out[..len])?;
        if got == 0 {
            return Err(ContentError::damaged("the archive ends inside this entry").into_io());
        }
        shared.left -= got as u64;
        Ok(got)
    }
}
