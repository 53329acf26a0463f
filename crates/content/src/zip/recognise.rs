//! What is taken for a zip: by its first bytes, or by the directory at the end of what carries one.

use std::io;

use super::record::find_end;
use crate::input::ReadAt;

/// How executables and scripts begin, which carry a zip at their end when they unpack themselves.
const CARRIERS: [&[u8]; 3] = [b"MZ", b"\x7fELF", b"#!"];

/// Zip methods by number that are in use, whether readable here or not.
fn zip_method_known(method: u16) -> bool {
    matches!(method, 0..=20 | 93..=99)
}

pub(super) fn is_zip(head: &[u8]) -> bool {
    let head = match head.first_chunk::<4>() {
        // Marks of a split archive that came to fit one part.
        Some(b"PK\x07\x08" | b"PK00") => &head[4..],
        _ => head,
    };
    match head.first_chunk::<10>() {
        Some(local) if local.starts_with(b"PK\x03\x04") => {
            local[4] < 100 && zip_method_known(u16::from_le_bytes([local[8], local[9]]))
        }
        // The end record of an empty archive: no entries, no directory.
        _ => head.starts_with(b"PK\x05\x06") && head.len() >= 22 && head[4..20].iter().all(|&b| b == 0),
    }
}

/// Whether the bytes are an executable or a script with a zip at its end.
pub(super) fn is_carrier(head: &[u8], bytes: &dyn ReadAt) -> io::Result<bool> {
    Ok(CARRIERS.iter().any(|magic| head.starts_with(magic)) && find_end(bytes)?.is_some())
}
