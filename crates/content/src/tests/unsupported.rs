//! Formats that are recognised and not read: by their first bytes, and whether they are encrypted.

use super::*;
use crate::{ReadAt, UnsupportedFormat, recognise};

/// What bytes are, from a file and from a stream of which all was read.
fn check(bytes: &[u8]) -> Option<(&'static str, bool)> {
    let told = |format: UnsupportedFormat| (format.name(), format.is_encrypted());
    let file = recognise(&bytes[..bytes.len().min(64 << 10)], Some(&bytes.to_vec() as &dyn ReadAt)).map(told);
    let stream = recognise(bytes, None).map(|format| told(format.seen_with(bytes)));
    assert_eq!(file, stream, "a stream is what a file is");
    file
}

fn open(name: &'static str) -> Option<(&'static str, bool)> {
    Some((name, false))
}

fn locked(name: &'static str) -> Option<(&'static str, bool)> {
    Some((name, true))
}

/// A signature with the rest of a head behind it.
fn head(signature: &[u8]) -> Vec<u8> {
    [signature, &[0; 600]].concat()
}

#[test]
fn formats_are_known_by_their_first_bytes() {
    let lzma = b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff\0\x31";
    let cpio = [&b"070701"[..], &[b'0'; 104], b"name"].concat();
    let cases: &[(&[u8], &'static str)] = &[
        (b"{\\rtf1\\ansi", "rtf"),
        (b"7z\xbc\xaf\x27\x1c", "7z"),
        (b"MSCF\0\0\0\0", "cab"),
        (b"!<arch>\ndebian-binary   ", "deb"),
        (b"!<arch>\nlib.o/", "ar"),
        (b"\xed\xab\xee\xdb\x03\0", "rpm"),
        (b"\x04\x22\x4d\x18\x64\x40", "lz4"),
        (lzma, "lzma"),
        (b"\x1f\x9d\x90", "compress"),
        (&cpio, "cpio"),
        (b"PAR1\x15\x04", "parquet"),
        (b"Obj\x01\x04", "avro"),
        (b"ORC\x0a\x0b", "orc"),
        (b"ARROW1\0\0", "arrow"),
        (b"!BDN\x12\x34\x56\x78SM", "pst"),
        (b"Rar!\x1a\x07\0", "rar"),
        (b"Rar!\x1a\x07\x01\0", "rar"),
        (b"PGDMP\x01\x0e\0", "pg_dump"),
    ];
    for (signature, name) in cases {
        assert_eq!(check(&head(signature)), open(name), "{name}");
    }
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:\
        4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";
    assert_eq!(check(pointer), open("git_lfs_pointer"));
    assert_eq!(check(&head(pointer)), None, "it is no whole one");
    let mut image = vec![0; 40 << 10];
    image[0x8000..0x8006].copy_from_slice(b"\x01CD001");
    assert_eq!(check(&image), open("iso9660"));
}

#[test]
fn texts_that_begin_alike_are_texts() {
    let texts: &[&[u8]] = &[
        b"",
        b"%",
        b"PAR1 is a format of columns",
        b"ORCs and elves\n",
        b"FEA1 and FEA2\n",
        b"PGDMP is what pg_dump writes",
        b"{\\rtfish",
        b"070701 is not a header",
        b"]\0\0",
        b"Object store\n",
        b"// %PDF-1.7 is how they begin",
        b"\x1f\x9d\xff",
        b"KDMV\n",
        b"   7z\xbc\xaf\x27\x1c is said with blanks before it",
    ];
    for text in texts {
        assert_eq!(check(text), None, "{:?}", String::from_utf8_lossy(text));
    }
}

/// A PDF with so many bytes before its trailer.
fn pdf(len: usize, trailer: &str) -> Vec<u8> {
    let body = format!("%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n{}\n", "x".repeat(len));
    format!("{body}xref\n0 1\ntrailer\n{trailer}\nstartxref\n{}\n%%EOF\n", body.len()).into_bytes()
}

#[test]
fn a_pdf_says_in_its_trailer_that_it_is_encrypted() {
    for len in [0, 200 << 10] {
        assert_eq!(check(&pdf(len, "<< /Size 1 /Root 1 0 R >>")), open("pdf"));
        assert_eq!(check(&pdf(len, "<< /Size 1 /Encrypt 12 0 R /Root 1 0 R >>")), locked("pdf"));
        assert_eq!(check(&pdf(len, "<</Encrypt<</Filter/Standard>>/Size 1>>")), locked("pdf"));
        assert_eq!(check(&pdf(len, "<< /Size 1 /EncryptMetadata false >>")), open("pdf"));
        assert_eq!(check(&pdf(len, "<< /Size 1 /Title (about /Encrypt) >>")), open("pdf"));
    }
    // The trailer is where the end refers to, far from both ends.
    let begin = [&b"%PDF-1.5\n"[..], &vec![b'x'; 100 << 10]].concat();
    let stream = b"9 0 obj << /Type /XRef /Encrypt 8 0 R >> stream\n";
    let end = format!("\nendstream\nstartxref\n{}\n%%EOF", begin.len());
    let far = [&begin, &stream[..], &vec![b'y'; 200 << 10], end.as_bytes()].concat();
    assert_eq!(check(&far), locked("pdf"));
    assert_eq!(check(&[b"\xef\xbb\xbf\r\n", &pdf(0, "<< >>")[..]].concat()), open("pdf"));
    assert_eq!(check(b"%PDF-1.4\n% cut off, startxref 99999999999999999999"), open("pdf"));
}

/// A compound file: an allocation table, a stream that begins with these bytes, and streams of these names in a
/// directory of two sectors or more.
fn compound(stream: &[u8], names: &[&str]) -> Vec<u8> {
    const END: u32 = 0xffff_fffe;
    let mut header = vec![0; 512];
    header[..8].copy_from_slice(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1");
    header[26] = 3;
    header[30] = 9;
    header[48..52].copy_from_slice(&2u32.to_le_bytes());
    let names: Vec<&str> = ["Root Entry", "a", "b", "c"].iter().chain(names).copied().collect();
    let directory = names.len().div_ceil(4) as u32;
    let mut table = vec![0xff; 512];
    for sector in 2..2 + directory {
        let next = if sector + 1 < 2 + directory { sector + 1 } else { END };
        table[4 * sector as usize..][..4].copy_from_slice(&next.to_le_bytes());
    }
    let mut bytes = [header, table, stream.to_vec()].concat();
    bytes.resize(3 * 512, 0);
    for name in names {
        let mut entry = vec![0; 128];
        let units: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        entry[..units.len()].copy_from_slice(&units);
        entry[64] = units.len() as u8 + 2;
        entry[116] = 1;
        bytes.extend(entry);
    }
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

#[test]
fn a_compound_file_is_what_its_directory_says() {
    let word = |flags: u8| [&[0xec, 0xa5, 0xc1, 0, 0, 0, 0, 0, 0, 0, 0, flags][..], &[0; 20]].concat();
    let record = |kind: u8, len: u8| {
        [&[kind, if kind == 9 { 8 } else { 0 }, len, 0][..], &vec![1; len.into()]].concat()
    };
    assert_eq!(check(&compound(&word(0x02), &["WordDocument"])), open("doc"));
    assert_eq!(check(&compound(&word(0x01), &["WordDocument"])), locked("doc"));
    assert_eq!(check(&compound(&[record(9, 16), record(0x42, 2)].concat(), &["Workbook"])), open("xls"));
    assert_eq!(check(&compound(&[record(9, 16), record(0x2f, 6)].concat(), &["Workbook"])), locked("xls"));
    assert_eq!(check(&compound(b"", &["d", "PowerPoint Document"])), open("ppt"));
    assert_eq!(check(&compound(b"", &["__properties_version1.0"])), open("msg"));
    assert_eq!(check(&compound(b"", &["EncryptionInfo", "EncryptedPackage"])), locked("ooxml"));
    assert_eq!(check(&compound(b"", &["whatever"])), open("ole2"));
}

#[test]
fn a_hostile_compound_file_ends() {
    // Its directory is a circle, its table is nowhere, or it is cut anywhere.
    let mut circle = compound(b"", &["d", "e", "f", "g", "h"]);
    circle[512 + 4 * 3..][..4].copy_from_slice(&2u32.to_le_bytes());
    assert_eq!(check(&circle), open("ole2"));
    let whole = compound(b"", &["Workbook"]);
    for len in (8..whole.len()).step_by(7) {
        assert!(check(&whole[..len]).is_some());
        let mut noise = whole.clone();
        noise[8..len].fill(0xfe);
        assert!(check(&noise).is_some());
    }
}

#[test]
fn archives_that_are_encrypted_say_so() {
    let seven = |end: &[u8]| {
        let mut bytes = b"7z\xbc\xaf\x27\x1c\0\x04....".to_vec();
        bytes.extend(5u64.to_le_bytes());
        bytes.extend((end.len() as u64).to_le_bytes());
        bytes.extend(b"....entry");
        [&bytes, end].concat()
    };
    assert_eq!(check(&seven(b"\x17\x06\x21\x03\x01\x01\0")), open("7z"));
    assert_eq!(check(&seven(b"\x17\x06\x24\x06\xf1\x07\x01\0")), locked("7z"));
    assert_eq!(check(b"Rar!\x1a\x07\x01\0....\x21\x04\0\0\0\0\0\0\0"), locked("rar"));
    assert_eq!(check(b"Rar!\x1a\x07\x01\0....\x0b\x01\x05\0\0\0\0\0\0"), open("rar"));
    let four = |flags: u8, file: u8| {
        [&b"Rar!\x1a\x07\0..\x73"[..], &[flags, 0, 13, 0, 0, 0, 0, 0, 0, 0], b"..\x74", &[file, 0x80, 0, 0]]
            .concat()
    };
    assert_eq!(check(&four(0, 0)), open("rar"));
    assert_eq!(check(&four(0x80, 0)), locked("rar"));
    assert_eq!(check(&four(0, 4)), locked("rar"));
    assert_eq!(check(&head(b"PARE")), locked("parquet"));
}

/// What an archive of these entries is, once they were met, from a file and from a stream.
fn document(entries: &[(&str, &str)]) -> Option<(&'static str, bool)> {
    use std::io::Write;
    let mut writer = ::zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        writer.start_file(*name, ::zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    let bytes = writer.finish().unwrap().into_inner();
    let [file, stream] = [seekable(&bytes), streamed(&bytes)].map(|input| {
        let Ok((_, Unwrapped::Archive(mut archive))) = unwrap(input, None, &Budget::new(LIMITS, None), 0)
        else {
            panic!("a zip is an archive");
        };
        let mut met = 0;
        while let Some(entry) = archive.next_entry() {
            let mut content = String::new();
            entry.unwrap().input.into_read().read_to_string(&mut content).unwrap();
            assert_eq!(content, entries[met].1, "what was looked at is read all the same");
            met += 1;
        }
        assert_eq!(met, entries.len());
        archive.document().map(|format| (format.name(), format.is_encrypted()))
    });
    assert_eq!(file, stream);
    file
}

#[test]
fn office_documents_are_known_by_their_entries() {
    let odt = "application/vnd.oasis.opendocument.text";
    let manifest = "META-INF/manifest.xml";
    assert_eq!(
        document(&[("_rels/.rels", ""), ("word/document.xml", "<w/>"), ("[Content_Types].xml", "")]),
        open("docx")
    );
    assert_eq!(document(&[("[Content_Types].xml", ""), ("xl/workbook.xml", "")]), open("xlsx"));
    assert_eq!(document(&[("mimetype", odt), ("content.xml", "<o/>"), (manifest, "<m/>")]), open("odt"));
    let locked_manifest = format!("<m>{}<manifest:encryption-data/></m>", " ".repeat(20_000));
    assert_eq!(document(&[("mimetype", odt), (manifest, &locked_manifest)]), locked("odt"));
    assert_eq!(document(&[("Index/Document.iwa", "")]), open("iwork"));
    assert_eq!(document(&[("mimetype", "application/epub+zip"), ("a.xhtml", "")]), None);
    assert_eq!(document(&[("[Content_Types].xml", ""), ("lib/net/a.dll", "")]), None, "a package of code");
    assert_eq!(document(&[("META-INF/MANIFEST.MF", ""), ("word/A.class", "")]), None);
}
