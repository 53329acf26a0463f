//! Bzip2.

use bzip2::{Decompress, Status};

use super::{Codec, Compressor, Step};
use crate::error::ContentError;
use crate::format::{Definition, Inside};

pub(crate) static FORMAT: Definition = Definition {
    name: "bzip2",
    begins: b"B",
    recognise: is_bzip2,
    recognise_end: None,
    inside: Inside::Stream(&BZIP2),
};

pub(crate) static BZIP2: Compressor =
    Compressor { new: || Ok(Box::new(Decompress::new(false))), begins_another: Some(is_bzip2) };

fn is_bzip2(head: &[u8]) -> bool {
    const BLOCK: [u8; 6] = [0x31, 0x41, 0x59, 0x26, 0x53, 0x59];
    const END: [u8; 6] = [0x17, 0x72, 0x45, 0x38, 0x50, 0x90];
    head.starts_with(b"BZh")
        && head.len() >= 10
        && matches!(head[3], b'1'..=b'9')
        && (head[4..10] == BLOCK || head[4..10] == END)
}

impl Codec for Decompress {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Step {
        let (consumed, produced) = (self.total_in(), self.total_out());
        let end = match self.decompress(input, out) {
            Ok(status) => Ok(status == Status::StreamEnd),
            Err(error) => Err(ContentError::damaged(format!("damaged bzip2 data: {error}"))),
        };
        Step {
            consumed: (self.total_in() - consumed) as usize,
            produced: (self.total_out() - produced) as usize,
            end,
        }
    }
}
