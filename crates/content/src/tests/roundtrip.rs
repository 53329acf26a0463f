//! Each format, and formats in formats.

use std::io::Write;

use domesday_model::Reason;

use super::fixtures::*;
use super::*;
use crate::detect;

const SECRET: &[u8] = b"token = hunter2\n";

#[test]
fn compressors_are_transparent() {
    let large = noise(300_000);
    for (name, pack) in [("gzip", gzip as fn(&[u8]) -> Vec<u8>), ("bzip2", bzip2), ("xz", xz), ("zstd", zstd)]
    {
        for content in [&b""[..], SECRET, &large, &vec![b'x'; 1 << 20]] {
            let found = explore_both(&pack(content));
            assert_eq!(found.contents(), [(format!("<{name}>").as_str(), content)]);
            assert_eq!(found.errors, []);
        }
    }
}

#[test]
fn concatenated_streams_are_one_and_padding_is_nothing() {
    for (name, pack) in [("gzip", gzip as fn(&[u8]) -> Vec<u8>), ("bzip2", bzip2), ("xz", xz), ("zstd", zstd)]
    {
        let two = [pack(b"one "), pack(b""), pack(b"two"), vec![0; 8]].concat();
        let found = explore_both(&two);
        assert_eq!(found.contents(), [(format!("<{name}>").as_str(), &b"one two"[..])]);
        assert_eq!(found.errors, []);

        let trailing = [pack(b"one"), b"garbage".to_vec()].concat();
        let found = explore_both(&trailing);
        assert_eq!(found.files[0].1, b"one");
        assert_eq!(found.reasons(), [Reason::DamagedArchive], "{name}: what was not read is told");
    }
}

#[test]
fn skippable_zstd_frames_are_skipped() {
    let skippable = [0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    let packed = [&skippable[..], &zstd(b"a"), &skippable, &zstd(b"b")].concat();
    assert_eq!(explore_both(&packed).contents(), [("<zstd>", &b"ab"[..])]);
}

#[test]
fn plain_bytes_come_back_whole() {
    for content in [&b""[..], b"x", SECRET, &noise(100_000)] {
        let found = explore_both(content);
        assert_eq!(found.contents(), [("", content)]);
        assert_eq!(found.errors, []);
    }
}

#[test]
fn any_nesting_opens() {
    let inner = zip(&[("app/.env", SECRET)]);
    let tar_gz = gzip(&tar(&[("readme", b"hello"), ("inner.zip", &inner)]));
    let outer = zip(&[("src/config.tar.gz", &tar_gz), ("notes.txt.bz2", &bzip2(SECRET))]);
    let wrapped = zstd(&xz(&outer));
    let found = explore_both(&wrapped);
    assert_eq!(
        found.contents(),
        [
            ("<zstd><xz>!src/config.tar.gz<gzip>!readme", &b"hello"[..]),
            ("<zstd><xz>!src/config.tar.gz<gzip>!inner.zip!app/.env", SECRET),
            ("<zstd><xz>!notes.txt.bz2<bzip2>", SECRET),
        ]
    );
    assert_eq!(found.errors, []);
}

#[test]
fn what_other_programs_write_is_read() {
    let mut writer = ::zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = ::zip::write::SimpleFileOptions::default();
    writer.add_directory("dir", options).unwrap();
    writer.start_file("dir/packed", options.compression_method(::zip::CompressionMethod::Deflated)).unwrap();
    writer.write_all(SECRET).unwrap();
    writer.start_file("dir/stored", options.compression_method(::zip::CompressionMethod::Stored)).unwrap();
    writer.write_all(b"as it is").unwrap();
    let bytes = writer.finish().unwrap().into_inner();
    let found = explore_both(&bytes);
    assert_eq!(found.contents(), [("!dir/packed", SECRET), ("!dir/stored", &b"as it is"[..])]);
    assert_eq!(found.errors, []);
}

#[test]
fn tar_names_and_sizes_come_from_where_they_are() {
    let long = "d/".repeat(300) + "file";
    let pax = |key: &str, value: &str| {
        let body = format!(" {key}={value}\n");
        let mut len = body.len();
        while len != body.len() + len.to_string().len() {
            len = body.len() + len.to_string().len();
        }
        format!("{len}{body}").into_bytes()
    };
    let mut base256 = [0u8; 12];
    base256[0] = 0x80;
    base256[11] = 5;
    let pax_records = [pax("mtime", "1.5"), pax("path", "ünïcode/naïve"), pax("size", "6")].concat();
    let archive = [
        tar_meta(b'L', format!("{long}\0").as_bytes()),
        tar_file("short", b"gnu"),
        tar_meta(b'g', &pax("comment", "for all")),
        tar_meta(b'x', &pax_records),
        tar_member(b"ascii", b'0', b"00000000000\0", b"sized!"),
        tar_member(b"big", b'0', &base256, b"five!"),
        tar_member(b"old", 0, b"00000000002\0", b"v7"),
        tar_member(b"dir/", b'5', b"00000000000\0", b""),
        tar_member(b"link", b'2', b"00000000000\0", b""),
        tar_member(b"last", b'0', b"00000000004\0", b"last"),
        TAR_END.to_vec(),
    ]
    .concat();
    let found = explore_both(&archive);
    assert_eq!(
        found.contents(),
        [
            (format!("!{long}").as_str(), &b"gnu"[..]),
            ("!ünïcode/naïve", b"sized!"),
            ("!big", b"five!"),
            ("!old", b"v7"),
            ("!last", b"last"),
        ]
    );
    assert_eq!(found.errors, []);
}

#[test]
fn what_is_not_a_file_takes_an_ordinal() {
    let archive = [
        tar_member(b"dir/", b'5', b"00000000000\0", b""),
        tar_file("a", b"1"),
        tar_member(b"fifo", b'6', b"00000000000\0", b""),
        tar_file("a", b"2"),
        TAR_END.to_vec(),
    ]
    .concat();
    let budget = Budget::new(LIMITS, None);
    let Ok((_, Unwrapped::Archive(mut opened))) = unwrap(seekable(&archive), format("tar"), &budget, 0)
    else {
        panic!("a tar was expected")
    };
    assert!(opened.independent());
    let entries: Vec<_> = std::iter::from_fn(|| opened.next_entry()).map(Result::unwrap).collect();
    let names: Vec<_> =
        entries.iter().map(|entry| (entry.name.as_slice(), entry.ordinal, entry.depth)).collect();
    assert_eq!(names, [(&b"a"[..], 1, 1), (b"a", 3, 1)]);
    let contents: Vec<Vec<u8>> = entries
        .into_iter()
        .rev()
        .map(|entry| {
            let mut out = Vec::new();
            entry.input.into_read().read_to_end(&mut out).unwrap();
            out
        })
        .collect();
    assert_eq!(contents, [b"2", b"1"], "in any order");
}

#[test]
fn entries_of_a_stream_may_be_left_unread() {
    let archive = tar(&[("a", &noise(5000)), ("b", b"read")]);
    let budget = Budget::new(LIMITS, None);
    let Ok((_, Unwrapped::Archive(mut opened))) = unwrap(streamed(&archive), None, &budget, 0) else {
        panic!("a tar was expected")
    };
    assert!(!opened.independent());
    let first = opened.next_entry().unwrap().unwrap();
    let mut second = opened.next_entry().unwrap().unwrap().input.into_read();
    assert!(first.input.into_read().read(&mut [0; 10]).is_err(), "too late for the first");
    let mut out = Vec::new();
    second.read_to_end(&mut out).unwrap();
    assert_eq!(out, b"read");
}

#[test]
fn containers_are_told_from_what_resembles_them() {
    assert_eq!(detect(&zip(&[("a", b"b")])), format("zip"));
    assert_eq!(detect(&zip(&[])), format("zip"));
    assert_eq!(detect(&tar(&[("a", b"b")])), format("tar"));
    assert_eq!(detect(&gzip(b"")), format("gzip"));
    assert_eq!(detect(&bzip2(b"")), format("bzip2"));
    assert_eq!(detect(&bzip2(b"x")), format("bzip2"));
    assert_eq!(detect(&xz(b"")), format("xz"));
    assert_eq!(detect(&zstd(b"")), format("zstd"));
    assert_eq!(detect(&sqlite(100)), format("sqlite"));
    let mut v7 = tar(&[("a", b"b")]);
    v7[257..265].fill(0);
    let sum: u32 = v7[..148].iter().chain(&v7[156..512]).map(|&byte| u32::from(byte)).sum::<u32>() + 8 * 32;
    v7[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    assert_eq!(detect(&v7), format("tar"), "by its checksum alone");
    let mut wrong = tar(&[("a", b"b")]);
    wrong[0] = b'z';
    for not in [
        &b""[..],
        b"PK",
        b"PK\x03\x04 is how a zip begins, says this text",
        b"\x1f\x8b\x08\xff\0\0\0\0\0\0",
        b"BZh9 is a name",
        b"\xfd7zXZ",
        b"(\xb5/\xfd\x08",
        &wrong,
        &[0; 1024],
        &[b' '; 1024],
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0",
        b"SQLite format 3\0 is how a database begins",
        &sqlite(100)[..20],
    ] {
        assert_eq!(detect(not), None, "{:?}", &not[..not.len().min(20)]);
    }
    for start in 0..2000 {
        assert_eq!(detect(&noise(3000)[start..]), None);
    }
}

#[test]
fn heads_known_beforehand_are_not_looked_at_again() {
    let budget = Budget::new(LIMITS, Some(100));
    let opened = unwrap(streamed(&gzip(SECRET)), format("gzip"), &budget, 0).unwrap();
    assert_eq!(opened.0, ["gzip"]);
    let refused = unwrap(seekable(b"no xz"), format("xz"), &budget, 0).unwrap().1;
    let Unwrapped::Plain(mut reader) = refused else { panic!("a damaged stream is still a stream") };
    let error = reader.read(&mut [0; 8]).unwrap_err();
    assert_eq!(ContentError::from_io(&error).unwrap().reason(), Reason::DamagedArchive);
}

/// The head of a database, and zeros.
fn sqlite(len: usize) -> Vec<u8> {
    let mut bytes = b"SQLite format 3\0\x10\0\x01\x01\0\x40\x20\x20".to_vec();
    bytes.resize(len, 0);
    bytes
}

#[test]
fn a_database_comes_whole_wherever_it_is_and_as_bytes_where_it_cannot_be_held() {
    let database = sqlite(200_000);
    assert_eq!(explore_both(&database).contents(), [("<database>", &database[..])]);
    assert_eq!(explore_both(&gzip(&database)).contents(), [("<gzip><database>", &database[..])]);
    assert_eq!(explore_both(&tar(&[("d", &database)])).contents(), [("!d<database>", &database[..])]);

    let small = Limits { max_buffered: 100_000, ..LIMITS };
    let found = |input| explore(input, &Budget::new(small, None));
    assert_eq!(found(seekable(&database)).contents(), [("<database>", &database[..])], "nothing is held");
    assert_eq!(found(streamed(&database)).contents(), [("", &database[..])]);
    assert_eq!(found(seekable(&zip(&[("d", &database)]))).contents(), [("!d", &database[..])]);

    let shallow = Budget::new(Limits { max_depth: 1, ..LIMITS }, None);
    let found = explore(seekable(&gzip(&database)), &shallow);
    assert_eq!((found.contents(), found.errors.len()), (vec![("<gzip>", &database[..])], 0));
}
