//! Truncated, corrupted and made-up archives: no panic, an end, and everything before the damage.

use std::sync::LazyLock;

use domesday_model::Reason;
use proptest::prelude::*;

use super::fixtures::*;
use super::*;

fn samples() -> &'static [Vec<u8>] {
    static SAMPLES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(make_samples);
    &SAMPLES
}

fn make_samples() -> Vec<Vec<u8>> {
    let mut described = Member::new("described", 8, b"some text, some text");
    described.flags = DESCRIBED_AFTER;
    let mut wide = Member::new("wide", 95, &noise(100));
    wide.zip64 = true;
    let members = [
        described,
        wide,
        Member::new("z", 93, &noise(200)),
        Member::new("b", 12, b"bz"),
        Member::new("s", 0, b"s"),
    ];
    let small_zip = zip_of(&members);
    let small_tar = [
        tar_meta(b'L', b"long/name\0"),
        tar_meta(b'x', b"10 path=p\n"),
        tar(&[("f", &noise(700)), ("g", b"g")]),
    ]
    .concat();
    vec![
        gzip(&small_tar),
        zstd(&gzip(b"twice packed")),
        xz(&noise(300)),
        bzip2(&small_zip),
        zip(&[("in.tar", &small_tar), ("in.zip", &small_zip)]),
        small_zip,
        small_tar,
    ]
}

#[test]
fn a_truncated_stream_gives_its_prefix_and_the_reason() {
    let content = noise(200_000);
    for pack in [gzip as fn(&[u8]) -> Vec<u8>, bzip2, xz, zstd] {
        let packed = pack(&content);
        for cut in [packed.len() / 3, packed.len() / 2, packed.len() - 5, packed.len() - 1] {
            let found = explore_both(&packed[..cut]);
            assert_eq!(found.reasons(), [Reason::DamagedArchive]);
            assert!(content.starts_with(&found.files[0].1));
        }
    }
    // Deflate gives out all that its bytes tell; what it packs in blocks comes in blocks.
    let packed = gzip(&content);
    assert!(explore_both(&packed[..packed.len() - 8]).files[0].1 == content);
    let packed = zstd(&content);
    assert!(explore_both(&packed[..packed.len() - 5]).files[0].1.len() >= 128 << 10);
}

#[test]
fn damage_inside_a_stream_keeps_what_came_before_it() {
    let content: Vec<u8> = noise(600_000).iter().map(|byte| byte % 61 + b'0').collect();
    for pack in [gzip as fn(&[u8]) -> Vec<u8>, zstd] {
        let mut packed = pack(&content);
        let len = packed.len();
        packed.truncate(len - 50_000);
        packed.extend([0xff; 50_000]);
        let found = explore_both(&packed);
        assert_eq!(found.reasons(), [Reason::DamagedArchive]);
        let (got, lost) = (&found.files[0].1, 200_000);
        assert!(got.len() + lost >= content.len(), "{} of {}", got.len(), content.len());
        let sound = got.len().min(content.len() - lost);
        assert!(got[..sound] == content[..sound]);
    }
}

#[test]
fn a_truncated_archive_gives_the_entries_before() {
    let files: Vec<(String, Vec<u8>)> =
        (0..5).map(|at| (format!("{at}"), noise(25_000)[at * 5000..][..4000].to_vec())).collect();
    let borrowed: Vec<(&str, &[u8])> =
        files.iter().map(|(name, data)| (name.as_str(), data.as_slice())).collect();
    for archive in [tar(&borrowed), zip(&borrowed), gzip(&tar(&borrowed)), gzip(&zip(&borrowed))] {
        let whole = explore_both(&archive);
        assert_eq!((whole.files.len(), whole.errors.len()), (5, 0));
        let found = explore_both(&archive[..archive.len() * 7 / 10]);
        assert!(
            !found.files.is_empty() && found.reasons().iter().all(|&reason| reason == Reason::DamagedArchive)
        );
        assert!(!found.errors.is_empty());
        assert_eq!(found.files[..3], whole.files[..3]);
        for (path, bytes) in &found.files {
            let (_, content) = whole.files.iter().find(|(name, _)| name == path).unwrap();
            assert!(content.starts_with(bytes));
        }
    }
}

#[test]
fn a_wrong_tar_header_ends_the_archive_with_the_reason() {
    let mut archive = tar(&[("a", b"1"), ("b", b"2")]);
    archive[1024] ^= 1;
    let found = explore_both(&archive);
    assert_eq!(found.contents(), [("!a", &b"1"[..])]);
    assert_eq!(found.reasons(), [Reason::DamagedArchive]);
}

#[test]
fn every_truncation_ends_and_says_so() {
    for sample in samples() {
        let whole = explore_both(sample);
        assert_eq!(whole.errors, []);
        for cut in 0..sample.len() {
            let found = explore(seekable(&sample[..cut]), &Budget::new(LIMITS, None));
            let (opened, complete) =
                (found.files.iter().any(|(path, _)| !path.is_empty()), found.files == whole.files);
            assert!(
                !opened || !found.errors.is_empty() || complete,
                "cut at {cut} of {} is not told",
                sample.len()
            );
        }
    }
}

#[test]
fn an_unreadable_object_is_a_read_error() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is gone"))
        }
    }
    let archive = gzip(&tar(&[("a", &noise(50_000)), ("b", b"2")]));
    let half = Cursor::new(archive[..archive.len() / 2].to_vec());
    let budget = Budget::new(LIMITS, None);
    let input = Input::Stream(Box::new(half.chain(Failing)));
    let Ok((_, Unwrapped::Archive(mut opened))) = unwrap(input, None, &budget, 0) else {
        panic!("a tar was expected")
    };
    let mut bytes = Vec::new();
    let error = opened.next_entry().unwrap().unwrap().input.into_read().read_to_end(&mut bytes).unwrap_err();
    assert!(noise(50_000).starts_with(&bytes) && bytes.len() > 20_000);
    assert_eq!(ContentError::from(error).reason(), Reason::ReadError);
    let error = opened.next_entry().unwrap().err().unwrap();
    assert!(error.fatal() && error.reason() == Reason::ReadError);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever the damage: an end, no panic, and no more than the budget.
    #[test]
    fn corruption_never_escapes_the_budget(
        which in 0usize..7,
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in proptest::option::of(any::<prop::sample::Index>()),
        small in any::<bool>(),
    ) {
        let mut bytes = samples()[which].clone();
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let limits = Limits {
            max_entries: 20,
            max_unpacked_bytes: 8000,
            max_buffered: if small { 0 } else { 1 << 20 },
            ..LIMITS
        };
        for input in [seekable(&bytes), streamed(&bytes)] {
            let budget = Budget::new(limits, None);
            let found = explore(input, &budget);
            let total: u64 = found.files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
            // Entries of a tar are not unpacked, only found: they come on top, once for each tar around.
            prop_assert!(total <= 8000 + 2 * bytes.len() as u64);
            prop_assert!(found.files.len() <= 20);
            prop_assert_eq!(budget.buffered(), 0);
        }
    }

    #[test]
    fn noise_is_never_a_problem(head in 0usize..7, bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let sample = &samples()[head];
        let bytes = [&sample[..sample.len().min(64)], &bytes].concat();
        let found = explore(seekable(&bytes), &Budget::new(LIMITS, None));
        prop_assert!(found.files.len() + found.errors.len() > 0);
    }
}
