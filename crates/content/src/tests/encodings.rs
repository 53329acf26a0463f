//! Text encodings.

use proptest::prelude::*;

use super::fixtures::noise;
use crate::{Encoding, Utf16Decoder, utf16_units};

fn encode(units: &[u16], encoding: Encoding) -> Vec<u8> {
    let bytes =
        |unit: &u16| if encoding == Encoding::Utf16Be { unit.to_be_bytes() } else { unit.to_le_bytes() };
    units.iter().flat_map(bytes).collect()
}

fn decode(raw: &[u8], encoding: Encoding, chunk: usize) -> Vec<u8> {
    let mut decoder = Utf16Decoder::new(encoding).unwrap();
    let mut out = Vec::new();
    let mut taken = 0;
    for chunk in raw.chunks(chunk) {
        taken += decoder.decode(chunk, false, &mut out);
    }
    taken += decoder.decode(&[], true, &mut out);
    assert_eq!(taken, raw.len());
    out
}

#[test]
fn marks_decide() {
    assert_eq!(Encoding::detect(b"\xef\xbb\xbfhello"), (Encoding::Bytes, 3));
    assert_eq!(Encoding::detect(b"\xff\xfeh\0"), (Encoding::Utf16Le, 2));
    assert_eq!(Encoding::detect(b"\xfe\xff\0h"), (Encoding::Utf16Be, 2));
    assert_eq!(Encoding::detect(b"\xff\xfe\0\0h\0\0\0"), (Encoding::Bytes, 0));
    assert_eq!(Encoding::detect(b""), (Encoding::Bytes, 0));
    assert_eq!(Encoding::Utf16Le.name(), Some("utf-16le"));
    assert_eq!(Encoding::Bytes.name(), None);
    assert!(Utf16Decoder::new(Encoding::Bytes).is_none());
}

#[test]
fn text_without_a_mark_is_guessed_and_binaries_are_not() {
    let text: Vec<u16> =
        "[Einstellungen]\r\nSchlüssel=hunter2 – “geheim”\r\nNoch eine Zeile.".encode_utf16().collect();
    for encoding in [Encoding::Utf16Le, Encoding::Utf16Be] {
        assert_eq!(Encoding::detect(&encode(&text, encoding)), (encoding, 0));
    }
    let elf =
        [&b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0\x60\x10\0\0\0\0\0\0"[..], &[0; 100]]
            .concat();
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x04\0\0\0\x03\0\x08\x06\0\0\0";
    let words: Vec<u8> = (0..200u16).flat_map(|number| (number % 50).to_le_bytes()).collect();
    let text = b"nothing but ASCII, which has no zeros at all";
    for bytes in [&elf[..], png, &words, text, &noise(600), &[0; 600], b"a\0b\0"] {
        assert_eq!(Encoding::detect(bytes), (Encoding::Bytes, 0));
    }
}

proptest! {
    #[test]
    fn decoding_is_the_standard_librarys(
        units in proptest::collection::vec(
            prop_oneof![any::<u16>(), 0xd800u16..0xe000, 0u16..0x80], 0..60),
        odd in any::<bool>(),
        big in any::<bool>(),
        chunk in 1usize..7,
    ) {
        let encoding = if big { Encoding::Utf16Be } else { Encoding::Utf16Le };
        let mut raw = encode(&units, encoding);
        let mut expected: String =
            char::decode_utf16(units.iter().copied()).map(|unit| unit.unwrap_or('\u{fffd}')).collect();
        prop_assert_eq!(utf16_units(expected.as_bytes()), units.len() as u64);
        if odd {
            raw.push(b'x');
            expected.push('\u{fffd}');
        }
        let whole = decode(&raw, encoding, usize::MAX);
        prop_assert_eq!(&whole, expected.as_bytes());
        prop_assert_eq!(decode(&raw, encoding, chunk), whole);
    }
}
