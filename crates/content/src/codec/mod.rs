//! Decompressors behind one face: a file each. The libraries' own reader types drop what a failing call had already
//! produced, and read beyond the end of their stream; [`Unpacker`] does neither.

pub(crate) mod bzip2;
pub(crate) mod deflate;
pub(crate) mod xz;
pub(crate) mod zstd;

use std::io::{self, BufRead, Read};

use crate::error::ContentError;
use crate::format::HEAD_LEN;
use crate::source::Source;

/// A way to pack bytes.
pub(crate) struct Compressor {
    pub new: fn() -> io::Result<Box<dyn Codec>>,
    /// Whether what follows a stream is another one that belongs to it, as `cat a.gz b.gz` makes them.
    /// `None` where nothing but one stream is ever packed so.
    pub begins_another: Option<fn(&[u8]) -> bool>,
}

/// The decoder of one stream.
pub(crate) trait Codec: Send {
    /// Decodes some of `input` into `out`. A call that fails has still said what it consumed and produced.
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Step;
}

/// What one step did, however it ended.
pub(crate) struct Step {
    pub consumed: usize,
    pub produced: usize,
    /// Whether the stream ended here.
    pub end: Result<bool, ContentError>,
}

enum State {
    /// Inside a stream.
    Within(Box<dyn Codec>),
    /// After a stream: another one may follow.
    Between,
    Ended,
    Failed(ContentError),
}

/// Unpacks a stream, or several one after another, from a source that it never reads too far.
pub(crate) struct Unpacker {
    compressor: &'static Compressor,
    /// Whether streams that follow the first belong to it.
    several: bool,
    state: State,
    consumed: u64,
}

impl Unpacker {
    pub(crate) fn new(compressor: &'static Compressor, several: bool) -> Self {
        let state = match (compressor.new)() {
            Ok(codec) => State::Within(codec),
            Err(error) => State::Failed(ContentError::unsupported(format!("no decoder: {error}"))),
        };
        Unpacker { compressor, several, state, consumed: 0 }
    }

    /// Packed bytes taken from the source so far.
    pub(crate) fn consumed(&self) -> u64 {
        self.consumed
    }

    pub(crate) fn read_from(&mut self, source: &mut dyn Feed, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            match &mut self.state {
                State::Ended => return Ok(0),
                State::Failed(error) => return Err(error.clone().into_io()),
                State::Between => self.state = self.begin_next(source)?,
                State::Within(codec) => {
                    // Output may still wait in the codec when the source has no more, or failed.
                    let (input, failure) = match source.fill_buf() {
                        Ok(input) => (input, None),
                        Err(error) => (&[][..], Some(error)),
                    };
                    let available = input.len();
                    let step = codec.step(input, out);
                    source.consume(step.consumed);
                    self.consumed += step.consumed as u64;
                    match step.end {
                        Ok(true) => self.state = if self.several { State::Between } else { State::Ended },
                        Err(error) => self.state = State::Failed(error),
                        Ok(false) if step.produced > 0 || step.consumed > 0 => {}
                        Ok(false) => {
                            if let Some(error) = failure {
                                return Err(error);
                            }
                            let how = if available == 0 { "ends early" } else { "makes no sense" };
                            let detail = format!("the compressed data {how}");
                            self.state = State::Failed(ContentError::damaged(detail));
                        }
                    }
                    if step.produced > 0 {
                        return Ok(step.produced);
                    }
                }
            }
        }
    }

    /// What comes after a stream: padding of zeros, another stream, the end, or bytes that are neither.
    fn begin_next(&self, source: &mut dyn Feed) -> io::Result<State> {
        loop {
            let here = source.fill_buf()?;
            let zeros = here.iter().take_while(|&&byte| byte == 0).count();
            match (here.len(), zeros) {
                (0, _) => return Ok(State::Ended),
                (_, 0) => break,
                _ => source.consume(zeros),
            }
        }
        let another = self.compressor.begins_another.is_some_and(|begins| begins(source.peek(HEAD_LEN)));
        Ok(if another {
            State::Within((self.compressor.new)()?)
        } else {
            State::Failed(ContentError::damaged("bytes after the end of the compressed data were not read"))
        })
    }
}

/// What an [`Unpacker`] takes its packed bytes from.
pub(crate) trait Feed: BufRead {
    /// The next `len` bytes without taking them, fewer at the end.
    fn peek(&mut self, len: usize) -> &[u8];
}

impl Feed for Source {
    fn peek(&mut self, len: usize) -> &[u8] {
        Source::peek(self, len)
    }
}

/// The unpacked bytes of a source of its own.
pub(crate) struct Unpacked {
    source: Source,
    unpacker: Unpacker,
}

impl Unpacked {
    pub(crate) fn new(source: Source, compressor: &'static Compressor) -> Self {
        let several = compressor.begins_another.is_some();
        Unpacked { source, unpacker: Unpacker::new(compressor, several) }
    }
}

impl Read for Unpacked {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.unpacker.read_from(&mut self.source, out)
    }
}
