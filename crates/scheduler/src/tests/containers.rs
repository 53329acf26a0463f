//! Objects inside objects.

use domesday_model::Reason;

use super::support::*;

/// Three archives in one another, a key at each level.
fn nest(pack: impl Fn(Vec<u8>) -> Vec<u8>) -> Vec<u8> {
    let inner = pack(tar(&[("c.txt", key(3).as_bytes()), ("c2.txt", key(4).as_bytes())]));
    let middle = pack(tar(&[("b.txt", key(2).as_bytes()), ("inner", &inner)]));
    pack(tar(&[("a.txt", key(1).as_bytes()), ("middle", &middle), ("z.txt", key(5).as_bytes())]))
}

const NESTED: [&str; 5] =
    ["o0!/a.txt", "o0!/middle!/b.txt", "o0!/middle!/inner!/c.txt", "o0!/middle!/inner!/c2.txt", "o0!/z.txt"];

#[test]
fn nesting_three_deep_completes_with_one_permit() {
    for threads in [1, 3] {
        for body in [
            Body::bytes(nest(|archive| archive)),
            Body::stream(nest(|archive| archive)),
            Body::bytes(nest(|archive| gzip(&archive))),
            Body::stream(nest(|archive| gzip(&archive))),
        ] {
            for capacity in [1, 64] {
                let outcome = Survey::new(threads).frontier(capacity).run(vec![body.clone()]);
                assert_eq!(outcome.places(), NESTED);
                assert_eq!(outcome.reports, []);
                assert_eq!((outcome.totals.objects, outcome.totals.nested_objects), (1, 7));
            }
        }
    }
}

#[test]
fn entries_of_many_chunks_and_entries_after_them_are_whole() {
    let mut big = noise(20 * (domesday_engine::LOOKAHEAD + domesday_engine::LOOKBEHIND));
    big.extend_from_slice(format!(" {}", key(1)).as_bytes());
    let archive = tar(&[("big", &big), ("small", key(2).as_bytes())]);
    for body in [Body::bytes(archive.clone()), Body::stream(archive.clone()), Body::bytes(gzip(&archive))] {
        for buffers in [0, 4] {
            let mut survey = Survey::new(2).chunk(512);
            survey.config.buffer_count = buffers;
            let outcome = survey.run(vec![body.clone()]);
            assert_eq!(outcome.places(), ["o0!/big", "o0!/small"]);
            assert_eq!(outcome.findings[0].span.start, big.len() as u64 - key(1).len() as u64);
        }
    }
}

#[test]
fn a_truncated_archive_is_partial_and_what_was_before_counts() {
    let mut archive = tar(&[("a", key(1).as_bytes()), ("b", &noise(4000))]);
    archive.truncate(1024 + 512 + 1000);
    for body in [Body::bytes(archive.clone()), Body::stream(archive)] {
        let outcome = Survey::new(1).run(vec![body, Body::bytes(key(2))]);
        assert_eq!(outcome.places(), ["o0!/a", "o1"]);
        let reported = outcome.reported();
        assert!(!reported.is_empty(), "the damage is reported");
        for (location, status, reason) in reported {
            assert!(location.starts_with("o0") && status == "partial", "{location} {status}");
            assert_eq!(reason, Some(Reason::DamagedArchive));
        }
    }
}

#[test]
fn limits_are_shared_by_all_that_is_nested_and_reported_where_they_bite() {
    let mut survey = Survey::new(2);
    survey.options.limits.max_depth = 2;
    let outcome = survey.run(vec![Body::bytes(nest(|archive| archive))]);
    assert_eq!(outcome.places(), ["o0!/a.txt", "o0!/middle!/b.txt", "o0!/z.txt"]);
    assert_eq!(outcome.reported(), [("o0!/middle!/inner".to_owned(), "failed", Some(Reason::DepthLimit))]);

    let mut survey = Survey::new(1);
    survey.options.limits.max_entries = 2;
    let outcome = survey.run(vec![Body::bytes(tar(&[("a", b"x"), ("b", b"x"), ("c", b"x")]))]);
    assert_eq!(outcome.reported(), [("o0".to_owned(), "partial", Some(Reason::EntryLimit))]);
    assert_eq!(outcome.totals.nested_objects, 2);
}
