//! Zstandard.

use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::{Codec, Compressor, Step};
use crate::error::ContentError;
use crate::format::{Definition, Inside};

/// Window that a frame may ask for, as a power of two: what `--ultra -22` writes (128 MiB).
const WINDOW_LOG_MAX: u32 = 27;

pub(crate) static FORMAT: Definition = Definition {
    name: "zstd",
    // A frame, or one that is skipped.
    begins: b"\x28\x50\x51\x52\x53\x54\x55\x56\x57\x58\x59\x5a\x5b\x5c\x5d\x5e\x5f",
    recognise: is_zstd,
    recognise_end: None,
    inside: Inside::Stream(&ZSTD),
};

pub(crate) static ZSTD: Compressor =
    Compressor { new: || Ok(Box::new(Frames::new()?)), begins_another: Some(begins_frame) };

fn is_zstd(mut head: &[u8]) -> bool {
    // Skippable frames belong to other formats as well: a frame of zstd must be seen behind them.
    while let Some((&[0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d], rest)) = head.split_first_chunk::<8>() {
        let len = u32::from_le_bytes([a, b, c, d]) as usize;
        head = rest.get(len..).unwrap_or(&[]);
    }
    head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) && head.get(4).is_some_and(|descriptor| descriptor & 8 == 0)
}

/// Whether a frame begins here, or one that is skipped.
fn begins_frame(head: &[u8]) -> bool {
    matches!(head, [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

struct Frames {
    raw: Decoder<'static>,
    hint: usize,
    pending: bool,
}

impl Frames {
    fn new() -> std::io::Result<Frames> {
        let mut raw = Decoder::new()?;
        raw.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))?;
        Ok(Frames { raw, hint: 1, pending: false })
    }
}

impl Codec for Frames {
    fn step(&mut self, whole: &[u8], out: &mut [u8]) -> Step {
        // The library forgets the output of a call that fails. So it gets one block at a time,
        // and none while output of the last block still waits: a failing call has no output.
        let input = if self.pending { &[] } else { whole };
        let block = &input[..input.len().min(self.hint.max(1))];
        let (mut from, mut to) = (InBuffer::around(block), OutBuffer::around(&mut *out));
        let result = self.raw.run(&mut from, &mut to);
        if std::mem::take(&mut self.pending) && to.pos() == 0 && matches!(result, Ok(1..)) {
            // Nothing waited after all.
            return self.step(whole, out);
        }
        let (consumed, produced) = (from.pos(), to.pos());
        let end = match result {
            Ok(next) => {
                self.hint = next;
                self.pending = next > 0 && produced == to.capacity();
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
