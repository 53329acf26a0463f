//! Bytes as letters that addresses, names of files and JSON have as they are: base64 for addresses, without padding.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let held =
            three.iter().fold(0u32, |held, byte| held << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for at in 0..=three.len() {
            out.push(char::from(LETTERS[(held >> (18 - 6 * at)) as usize & 63]));
        }
    }
    out
}

/// `None` for what [`encode`] would not have made.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for four in text.as_bytes().chunks(4) {
        let digit = |letter: &u8| LETTERS.iter().position(|known| known == letter).map(|digit| digit as u32);
        let held = four.iter().try_fold(0u32, |held, letter| Some(held << 6 | digit(letter)?))?;
        let held = held << (6 * (4 - four.len()));
        let len = four.len() - 1;
        if len == 0 || held & (0xff_ffff >> (8 * len)) != 0 {
            return None;
        }
        out.extend_from_slice(&held.to_be_bytes()[1..=len]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_nothing_else_is_read() {
        let bytes: Vec<u8> = (0..=255).collect();
        for len in 0..bytes.len() {
            let text = encode(&bytes[..len]);
            assert_eq!(decode(&text).as_deref(), Some(&bytes[..len]), "{text}");
        }
        assert_eq!(encode(b"\xfb\xff\xfe"), "-__-");
        for wrong in ["A", "AB", "AAAAA", "A=", "AA+A", "\u{e9}"] {
            assert_eq!(decode(wrong).filter(|_| wrong != "AA"), None, "{wrong}");
        }
    }
}
