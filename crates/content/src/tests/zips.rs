//! Zip: its methods, its odd corners, and archives without a usable directory.

use domesday_model::Reason;

use super::fixtures::*;
use super::*;
use crate::detect_seekable;

fn three() -> Vec<Member> {
    vec![Member::new("a", 8, &noise(3000)), Member::new("b", 0, b"stored"), Member::new("c", 8, b"packed")]
}

#[test]
fn all_methods_are_read() {
    let data = [noise(10_000), vec![b'-'; 100_000]].concat();
    for method in [0, 8, 12, 93, 95] {
        let found = explore_both(&zip_of(&[Member::new("f", method, &data), Member::new("g", method, b"")]));
        assert_eq!(found.contents(), [("!f", data.as_slice()), ("!g", b"")], "method {method}");
        assert_eq!(found.errors, []);
    }
}

#[test]
fn two_entries_of_one_name_are_two() {
    let bytes = zip_of(&[Member::new("same", 8, b"first"), Member::new("same", 0, b"second")]);
    assert_eq!(explore_both(&bytes).contents(), [("!same", &b"first"[..]), ("!same", b"second")]);
}

#[test]
fn one_entry_that_cannot_be_read_leaves_the_others() {
    let mut encrypted = Member::new("locked", 8, b"x");
    encrypted.flags = 1;
    let mut aes = Member::new("aes", 0, b"x");
    aes.method = 99;
    let mut implode = Member::new("old", 0, b"x");
    implode.method = 6;
    let mut wrong = Member::new("wrong", 8, b"all of it");
    wrong.crc ^= 1;
    let mut short = Member::new("short", 8, b"all of it");
    short.size += 1;
    let bytes = zip_of(&[encrypted, aes, implode, wrong, short, Member::new("fine", 8, b"fine")]);
    let found = explore_both(&bytes);
    assert_eq!(
        found.contents(),
        [("!wrong", &b"all of it"[..]), ("!short", b"all of it"), ("!fine", b"fine")]
    );
    let errors: Vec<_> = found.errors.iter().map(|(path, reason)| (path.as_str(), *reason)).collect();
    assert_eq!(
        errors,
        [
            ("!locked", Reason::Encrypted),
            ("!aes", Reason::Encrypted),
            ("!old", Reason::UnsupportedArchive),
            ("!wrong", Reason::DamagedArchive),
            ("!short", Reason::DamagedArchive),
        ]
    );
}

#[test]
fn links_are_passed_over_and_names_need_not_be_text() {
    let mut link = Member::new("link", 0, b"/etc/passwd");
    link.mode = 0o120777;
    let mut odd = Member::new("", 8, b"odd");
    odd.name = b"\xff\xfe/..".to_vec();
    let budget = Budget::new(LIMITS, None);
    let bytes = zip_of(&[link, Member::new("dir/", 0, b""), odd]);
    let Ok((_, Unwrapped::Archive(mut archive))) = unwrap(seekable(&bytes), None, &budget, 0) else {
        panic!("a zip was expected")
    };
    assert!(archive.independent());
    let entry = archive.next_entry().unwrap().unwrap();
    assert_eq!((entry.name.as_slice(), entry.ordinal, entry.size), (&b"\xff\xfe/.."[..], 2, Some(3)));
    assert!(archive.next_entry().is_none());
}

#[test]
fn zip64_and_prefixed_archives_open() {
    let mut members = three();
    members.iter_mut().for_each(|member| member.zip64 = true);
    let expected = explore_both(&zip_of(&three()));
    assert_eq!(expected.files.len(), 3);
    let zip64 = zip_of(&members);
    assert_eq!(explore_both(&zip64), expected);
    for bytes in [zip64, zip_of(&three())] {
        let program = [b"#!/bin/sh\nexec java -jar $0\n".to_vec(), bytes].concat();
        assert_eq!(detect_seekable(&program, &program).unwrap(), format("zip"));
        assert_eq!(explore(seekable(&program), &Budget::new(LIMITS, None)), expected);
        let commented = [program, b"PK\x05\x06 in a comment, and more after it".to_vec()].concat();
        assert_eq!(explore(seekable(&commented), &Budget::new(LIMITS, None)), expected);
    }
    let script = b"#!/bin/sh\necho PK\n".to_vec();
    assert_eq!(detect_seekable(&script, &script).unwrap(), None);
}

#[test]
fn a_lost_directory_is_replaced_by_a_walk() {
    for flags in [0, DESCRIBED_AFTER] {
        let mut members = three();
        members[0].flags = flags;
        members[2].flags = flags;
        let whole = zip_of(&members);
        let expected = explore_both(&whole).files;
        let data_len: usize = members.iter().map(|member| member.local().len()).sum();
        let found = explore_both(&whole[..data_len]);
        assert_eq!(found.files, expected);
        assert_eq!(found.reasons(), [Reason::DamagedArchive], "and the loss is told");

        // A directory that goes wrong after its first record: the rest is walked, nothing comes twice.
        let mut broken = whole.clone();
        let second = data_len + members[0].central(0).len();
        broken[second..second + 4].fill(b'?');
        let found = explore_both(&broken);
        assert_eq!(found.files, expected);
        assert_eq!(found.reasons(), [Reason::DamagedArchive]);
    }
}

#[test]
fn a_nested_zip_too_large_to_hold_is_read_as_it_comes() {
    let mut members = three();
    members[0] = Member::new("a", 8, &noise(400_000));
    members[2].flags = DESCRIBED_AFTER;
    members.push(Member::new("d", 93, &noise(1000)));
    let mut unsized_entry = Member::new("e", 0, b"where does it end");
    unsized_entry.flags = DESCRIBED_AFTER;
    let packed = gzip(&zip_of(&members));
    let expected = explore_both(&packed);
    assert_eq!((expected.files.len(), expected.errors.len()), (4, 0));

    let small = Limits { max_buffered: 100_000, ..LIMITS };
    let budget = Budget::new(small, None);
    assert_eq!(explore(seekable(&packed), &budget), expected);
    assert_eq!(budget.buffered(), 0, "memory is given back");

    members.insert(1, unsized_entry);
    let found = explore(seekable(&gzip(&zip_of(&members))), &Budget::new(small, None));
    assert_eq!(found.files, expected.files);
    assert_eq!(found.reasons(), [Reason::ByteLimit, Reason::DamagedArchive]);
    assert_eq!(found.errors[0].0, "<gzip>!e");
}

#[test]
fn an_unread_entry_of_unknown_length_is_passed_over() {
    let mut members = three();
    members[0].flags = DESCRIBED_AFTER;
    let budget = Budget::new(Limits { max_buffered: 0, ..LIMITS }, None);
    let Ok((_, Unwrapped::Archive(mut archive))) = unwrap(streamed(&zip_of(&members)), None, &budget, 0)
    else {
        panic!("a zip was expected")
    };
    assert!(!archive.independent());
    let names: Vec<_> =
        std::iter::from_fn(|| archive.next_entry()).map(|entry| entry.unwrap().name).collect();
    assert_eq!(names, [b"a", b"b", b"c"]);
}

#[test]
fn a_part_of_a_split_archive_is_refused_by_name() {
    let mut bytes = zip_of(&three());
    let end = bytes.len() - 22;
    bytes[end + 4] = 1;
    let found = explore_both(&bytes);
    assert_eq!(found, Found { files: vec![], errors: vec![(String::new(), Reason::UnsupportedArchive)] });
}

#[test]
fn the_directory_may_have_a_comment_a_gap_and_a_wrapped_count() {
    let members: Vec<_> = (0..70_000).map(|at| Member::new(&format!("{at}"), 0, b"")).collect();
    let budget = Budget::new(LIMITS, None);
    let Ok((_, Unwrapped::Archive(mut archive))) = unwrap(seekable(&zip_of(&members)), None, &budget, 0)
    else {
        panic!("a zip was expected")
    };
    assert_eq!(std::iter::from_fn(|| archive.next_entry()).filter(Result::is_ok).count(), 70_000);

    let (local, central) = (three()[1].local(), three()[1].central(0));
    let end = zip_end(1, central.len() as u64, local.len() as u64, false);
    let gap = [local, central, noise(100), end].concat();
    assert_eq!(explore_both(&gap), Found { files: vec![("!b".into(), b"stored".to_vec())], errors: vec![] });
}
