//! Deflate, bare as in zip and framed as gzip.

use flate2::{Decompress, FlushDecompress, Status};

use super::{Codec, Compressor, Step};
use crate::error::ContentError;
use crate::format::{Definition, Inside};

const WINDOW_BITS: u8 = 15;

pub(crate) static GZIP_FORMAT: Definition = Definition {
    name: "gzip",
    begins: &[0x1f],
    recognise: is_gzip,
    recognise_end: None,
    inside: Inside::Stream(&GZIP),
};

static GZIP: Compressor =
    Compressor { new: || Ok(Box::new(Decompress::new_gzip(WINDOW_BITS))), begins_another: Some(is_gzip) };

/// Deflate without any frame. Whatever frames it says where it ends.
pub(crate) static DEFLATE: Compressor =
    Compressor { new: || Ok(Box::new(Decompress::new(false))), begins_another: None };

fn is_gzip(head: &[u8]) -> bool {
    const EXTRA_FIELDS: u8 = 0b0001_1110;
    let Some(&[0x1f, 0x8b, 8, flags, ..]) = head.first_chunk::<10>() else { return false };
    // Three flags are reserved; and where data follows at once, so is one of the four block types.
    let block_type = head.get(10).map_or(0, |byte| byte >> 1 & 3);
    flags & 0xe0 == 0 && (flags & EXTRA_FIELDS != 0 || block_type != 3)
}

impl Codec for Decompress {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Step {
        let (consumed, produced) = (self.total_in(), self.total_out());
        let end = match self.decompress(input, out, FlushDecompress::None) {
            Ok(status) => Ok(status == Status::StreamEnd),
            Err(error) => Err(ContentError::damaged(format!("damaged deflate data: {error}"))),
        };
        Step {
            consumed: (self.total_in() - consumed) as usize,
            produced: (self.total_out() - produced) as usize,
            end,
        }
    }
}
