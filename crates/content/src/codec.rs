//! Decompressors behind one face. The libraries' own reader types drop what a failing call had already
//! produced, and read beyond the end of their stream; [`Unpacker`] does neither.

use std::io::{self, BufRead, Read};

use flate2::FlushDecompress;
use zstd::stream::raw::{DParameter, InBuffer, Operation, OutBuffer};

use crate::detect::{Format, HEAD_LEN, detect};
use crate::error::ContentError;
use crate::source::Source;

/// Memory that an xz stream may ask for, bytes; the strongest preset asks for half of it.
const XZ_MEMORY_MAX: u64 = 136 << 20;
/// Window that a zstd frame may ask for, as a power of two: what `--ultra -22` writes (128 MiB).
const ZSTD_WINDOW_LOG_MAX: u32 = 27;
const DEFLATE_WINDOW_BITS: u8 = 15;

enum Codec {
    Flate(flate2::Decompress),
    Bzip2(bzip2::Decompress),
    Xz(liblzma::stream::Stream),
    Zstd { raw: zstd::stream::raw::Decoder<'static>, hint: usize, pending: bool },
}

/// What one step did, however it ended.
struct Step {
    consumed: usize,
    produced: usize,
    end: Result<bool, ContentError>,
}

impl Codec {
    fn new(packing: Packing) -> io::Result<Codec> {
        Ok(match packing {
            Packing::Deflate => Codec::Flate(flate2::Decompress::new(false)),
            Packing::Format(Format::Bzip2) => Codec::Bzip2(bzip2::Decompress::new(false)),
            Packing::Format(Format::Xz) => {
                Codec::Xz(liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY_MAX, 0)?)
            }
            Packing::Format(Format::Zstd) => {
                let mut raw = zstd::stream::raw::Decoder::new()?;
                raw.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX))?;
                Codec::Zstd { raw, hint: 1, pending: false }
            }
            Packing::Format(_) => Codec::Flate(flate2::Decompress::new_gzip(DEFLATE_WINDOW_BITS)),
        })
    }

    /// Decodes some of `input` into `out`; `end` says whether the stream ended here.
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Step {
        match self {
            Codec::Flate(raw) => {
                let (i, o) = (raw.total_in(), raw.total_out());
                let end = match raw.decompress(input, out, FlushDecompress::None) {
                    Ok(status) => Ok(status == flate2::Status::StreamEnd),
                    Err(error) => Err(ContentError::damaged(format!("damaged deflate data: {error}"))),
                };
                Step {
                    consumed: (raw.total_in() - i) as usize,
                    produced: (raw.total_out() - o) as usize,
                    end,
                }
            }
            Codec::Bzip2(raw) => {
                let (i, o) = (raw.total_in(), raw.total_out());
                let end = match raw.decompress(input, out) {
                    Ok(status) => Ok(status == bzip2::Status::StreamEnd),
                    Err(error) => Err(ContentError::damaged(format!("damaged bzip2 data: {error}"))),
                };
                Step {
                    consumed: (raw.total_in() - i) as usize,
                    produced: (raw.total_out() - o) as usize,
                    end,
                }
            }
            Codec::Xz(raw) => {
                use liblzma::stream::{Action, Error, Status};
                let (i, o) = (raw.total_in(), raw.total_out());
                let end = match raw.process(input, out, Action::Run) {
                    Ok(status) => Ok(status == Status::StreamEnd),
                    Err(Error::MemLimit | Error::Mem | Error::Options) => Err(ContentError::unsupported(
                        "an xz stream that asks for too much memory or for unknown filters",
                    )),
                    Err(error) => Err(ContentError::damaged(format!("damaged xz data: {error}"))),
                };
                Step {
                    consumed: (raw.total_in() - i) as usize,
                    produced: (raw.total_out() - o) as usize,
                    end,
                }
            }
            Codec::Zstd { raw, hint, pending } => {
                // The library forgets the output of a call that fails. So it gets one block at a time,
                // and none while output of the last block still waits: a failing call has no output.
                let whole = input;
                let input = if *pending { &[] } else { whole };
                let block = &input[..input.len().min((*hint).max(1))];
                let (mut from, mut to) = (InBuffer::around(block), OutBuffer::around(&mut *out));
                let result = raw.run(&mut from, &mut to);
                if std::mem::take(pending) && to.pos() == 0 && matches!(result, Ok(1..)) {
                    // Nothing waited after all.
                    return self.step(whole, out);
                }
                let (consumed, produced) = (from.pos(), to.pos());
                let end = match result {
                    Ok(next) => {
                        *hint = next;
                        *pending = next > 0 && produced == to.capacity();
                        Ok(next == 0)
                    }
                    Err(error) => {
                        let text = error.to_string();
                        Err(if text.contains("memory") || text.contains("ictionary") {
                            ContentError::unsupported(format!("zstd data: {text}"))
                        } else {
                            ContentError::damaged(format!("damaged zstd data: {text}"))
                        })
                    }
                };
                Step { consumed, produced, end }
            }
        }
    }
}

/// How bytes are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// Deflate without any frame, as in zip.
    Deflate,
    /// One of the compressors.
    Format(Format),
}

enum State {
    /// Inside a stream.
    Within(Codec),
    /// After a stream: another one may follow.
    Between,
    Ended,
    Failed(ContentError),
}

/// Unpacks a stream, or several one after another, from a source that it never reads too far.
pub(crate) struct Unpacker {
    packing: Packing,
    /// Whether streams that follow the first belong to it, as `cat a.gz b.gz` makes them.
    several: bool,
    state: State,
    consumed: u64,
}

impl Unpacker {
    pub(crate) fn new(packing: Packing, several: bool) -> Self {
        let state = match Codec::new(packing) {
            Ok(codec) => State::Within(codec),
            Err(error) => State::Failed(ContentError::unsupported(format!("no decoder: {error}"))),
        };
        Unpacker { packing, several, state, consumed: 0 }
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
        let head = source.peek(HEAD_LEN);
        let same = match self.packing {
            Packing::Deflate => false,
            Packing::Format(Format::Zstd) => {
                matches!(head, [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
            }
            Packing::Format(format) => detect(head) == Some(format),
        };
        Ok(if same {
            State::Within(Codec::new(self.packing)?)
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
    pub(crate) fn new(source: Source, packing: Packing) -> Self {
        // Nothing but one stream of deflate is ever put into a frame that does without its own end mark.
        let several = packing != Packing::Deflate;
        Unpacked { source, unpacker: Unpacker::new(packing, several) }
    }
}

impl Read for Unpacked {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.unpacker.read_from(&mut self.source, out)
    }
}
