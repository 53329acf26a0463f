//! Xz.

use liblzma::stream::{Action, Error, Status, Stream};

use super::{Codec, Compressor, Step};
use crate::error::ContentError;
use crate::format::{Definition, Inside};

/// Memory that a stream may ask for, bytes; the strongest preset asks for half of it.
const MEMORY_MAX: u64 = 136 << 20;

pub(crate) static FORMAT: Definition = Definition {
    name: "xz",
    begins: &[0xfd],
    recognise: is_xz,
    recognise_end: None,
    inside: Inside::Stream(&XZ),
};

pub(crate) static XZ: Compressor = Compressor {
    new: || Ok(Box::new(Stream::new_stream_decoder(MEMORY_MAX, 0)?)),
    begins_another: Some(is_xz),
};

fn is_xz(head: &[u8]) -> bool {
    // The stream flags after the magic number have 12 reserved bits.
    head.starts_with(b"\xfd7zXZ\0\0") && head.get(7).is_some_and(|check| check & 0xf0 == 0)
}

impl Codec for Stream {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Step {
        let (consumed, produced) = (self.total_in(), self.total_out());
        let end = match self.process(input, out, Action::Run) {
            Ok(status) => Ok(status == Status::StreamEnd),
            Err(Error::MemLimit | Error::Mem | Error::Options) => Err(ContentError::unsupported(
                "an xz stream that asks for too much memory or for unknown filters",
            )),
            Err(error) => Err(ContentError::damaged(format!("damaged xz data: {error}"))),
        };
        Step {
            consumed: (self.total_in() - consumed) as usize,
            produced: (self.total_out() - produced) as usize,
            end,
        }
    }
}
