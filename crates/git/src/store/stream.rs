//! Objects too large to be held, inflated as they are read.

use std::io::{self, Read};
use std::sync::Arc;

use domesday_content::ObjectError;
use flate2::{Decompress, FlushDecompress, Status};

use super::file::StoreFile;
use crate::error::GitError;

/// Deflated bytes read at once.
const INPUT_LEN: usize = 64 << 10;

/// A deflated stream in a file, from a place in it to its end.
pub(super) struct InflateReader {
    file: Arc<StoreFile>,
    state: Decompress,
    input: Box<[u8]>,
    from: usize,
    to: usize,
    next: u64,
    ended: bool,
    /// Bytes that must still come; more are an error, and so are fewer. `None` until that is known.
    left: Option<u64>,
}

impl InflateReader {
    pub fn new(file: Arc<StoreFile>, offset: u64, size: Option<u64>) -> InflateReader {
        InflateReader {
            file,
            state: Decompress::new(true),
            input: vec![0; INPUT_LEN].into_boxed_slice(),
            from: 0,
            to: 0,
            next: offset,
            ended: false,
            left: size,
        }
    }

    /// Says how much must still come, once the object's own head has told it.
    pub fn expect(&mut self, size: u64) {
        self.left = Some(size);
    }

    fn inflate(&mut self, buf: &mut [u8]) -> Result<usize, GitError> {
        loop {
            if self.from == self.to {
                (self.from, self.to) = (0, self.file.read_at(&mut self.input, self.next)?);
                self.next += self.to as u64;
                if self.to == 0 {
                    return Err(self.file.corrupt("an object is cut short"));
                }
            }
            let (before_in, before_out) = (self.state.total_in(), self.state.total_out());
            let input = &self.input[self.from..self.to];
            let status = self.state.decompress(input, buf, FlushDecompress::None);
            let status = status.map_err(|_| self.file.corrupt("an object does not inflate"))?;
            let (taken, made) = (self.state.total_in() - before_in, self.state.total_out() - before_out);
            self.from += taken as usize;
            if let Some(left) = &mut self.left {
                let rest = left.checked_sub(made);
                *left = rest.ok_or_else(|| self.file.corrupt("an object is larger than it says"))?;
            }
            match status {
                Status::StreamEnd => self.ended = true,
                _ if made == 0 && taken == 0 && self.from < self.to => {
                    return Err(self.file.corrupt("an object does not inflate"));
                }
                _ if made == 0 => continue,
                _ => {}
            }
            return Ok(made as usize);
        }
    }
}

impl Read for InflateReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let outcome = match self.left {
            _ if buf.is_empty() => Ok(0),
            Some(left) if self.ended && left > 0 => {
                Err(self.file.corrupt("an object is smaller than it says"))
            }
            _ if self.ended => Ok(0),
            _ => self.inflate(buf),
        };
        outcome.map_err(|error| io::Error::other(ObjectError::from(error)))
    }
}
