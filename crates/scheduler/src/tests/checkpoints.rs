//! A very large object whose scan goes on at any of its checkpoints gives what one scan of it gives.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domesday_engine::{LOOKAHEAD, LOOKBEHIND};
use domesday_model::{ObjectCheckpoint, Reason};
use proptest::prelude::*;

use super::pieces::{CHUNK, Placed, survey, text};
use super::support::*;

const DISTANCE: u64 = 7_000;

fn utf16(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

/// Without its checkpoints.
fn whole(placed: Placed) -> Outcome {
    survey(1).run(placed.body())
}

fn numbers(checkpoints: &[ObjectCheckpoint]) -> Vec<u32> {
    checkpoints.iter().map(|checkpoint| checkpoint.number).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn a_scan_that_goes_on_at_any_checkpoint_gives_the_same(
        seed: u64,
        threads in 1usize..4,
        chunk in 300usize..3000,
        is_near: bool,
        is_utf16: bool,
        cap in prop_oneof![Just(3), Just(usize::MAX)],
    ) {
        let text = if is_utf16 { utf16(&text(seed)) } else { text(seed) };
        let with = |known: &[ObjectCheckpoint]| survey(threads).chunk(chunk).cap(cap).checkpoints(DISTANCE, known);
        let expected = survey(1).cap(cap).run(Placed::new(text.clone(), is_near).body());
        let (recorded, _, all) = with(&[]).run_recorded(Placed::new(text.clone(), is_near).body());
        prop_assert!(recorded == expected && !expected.findings.is_empty());
        prop_assert_eq!(numbers(&all), Vec::from_iter(0..all.len() as u32));
        prop_assert!(all.len() >= 3, "{} checkpoints", all.len());
        for known in 1..=all.len() {
            let (known, place) = (&all[..known], all[known - 1].offset);
            let between = Arc::new(AtomicU64::new(0));
            let count = Arc::clone(&between);
            let placed = Placed::new(text.clone(), is_near).on_read(move |_, offset| {
                // Its head is looked at, and the context before the checkpoint.
                let (head, context) = (chunk + LOOKBEHIND + LOOKAHEAD, 2 * (LOOKBEHIND as u64 + 1));
                let is_between = (head as u64..place - context).contains(&offset);
                count.fetch_add(u64::from(is_between), Ordering::Relaxed);
            });
            let (outcome, _, more) = with(known).run_recorded(placed.body());
            prop_assert_eq!(&outcome.findings, &expected.findings);
            prop_assert!(outcome == expected);
            prop_assert_eq!(between.load(Ordering::Relaxed), 0, "what was scanned is not read again");
            prop_assert_eq!(numbers(&more), Vec::from_iter(known.len() as u32..(known.len() + more.len()) as u32));
            // And so does the scan after that.
            let both = [known, &more].concat();
            prop_assert!(with(&both).run(Placed::new(text.clone(), is_near).body()) == expected);
        }
    }
}

#[test]
fn another_version_starts_over() {
    let placed = || Placed::new(text(3), true);
    let expected = whole(placed());
    let (_, _, all) = survey(2).checkpoints(DISTANCE, &[]).run_recorded(placed().body());
    let changed = |change: &dyn Fn(&mut Vec<ObjectCheckpoint>)| {
        let mut known = all.clone();
        change(&mut known);
        let (outcome, _, more) = survey(2).checkpoints(DISTANCE, &known).run_recorded(placed().body());
        assert!(outcome == expected);
        assert_eq!(numbers(&more), numbers(&all));
    };
    changed(&|known| known[1].of.marks = Default::default());
    changed(&|known| known[0].of.size += 1);
    changed(&|known| known[2].of.engine += 1);
    changed(&|known| drop(known.remove(1)));
    changed(&|known| known[0].found[0].rule = "no-such-rule".to_owned());
}

#[test]
fn an_object_that_says_no_version_has_no_checkpoints() {
    let placed = Placed::new(text(4), true);
    placed.marks.store(0, Ordering::SeqCst);
    assert_eq!(survey(2).checkpoints(DISTANCE, &[]).run_recorded(placed.body()).2, []);
}

#[test]
fn what_may_have_changed_meanwhile_is_not_told() {
    for near in [true, false] {
        let placed = Placed::new(text(5), near).on_read(|placed, offset| {
            if offset > 45_000 {
                placed.marks.store(2, Ordering::SeqCst);
            }
        });
        let (_, _, told) = survey(1).checkpoints(DISTANCE, &[]).run_recorded(placed.body());
        // What is read from there on begins with the context before it.
        let read_before = 45_000 + (LOOKBEHIND + CHUNK) as u64;
        let offsets: Vec<u64> = told.iter().map(|checkpoint| checkpoint.offset).collect();
        assert!(!told.is_empty() && offsets.iter().all(|offset| *offset <= read_before), "{offsets:?}");
    }
}

#[test]
fn nothing_is_told_behind_what_cannot_be_read() {
    for near in [true, false] {
        let mut placed = Placed::new(text(6), near);
        placed.broken_from = 45_000;
        let (outcome, _, told) = survey(2).checkpoints(DISTANCE, &[]).run_recorded(placed.body());
        assert_eq!(outcome.reported(), [("o0".to_owned(), "partial", Some(Reason::ReadError))]);
        assert!(told.iter().all(|checkpoint| checkpoint.offset <= 45_000), "{told:?}");
    }
}

#[test]
fn a_file_of_separated_values_has_none() {
    let rows: String = (0..9_000).map(|n| format!("{n},name {n},{}\n", n * 7)).collect();
    let csv = format!("id,name,number\n{rows}");
    let placed = Placed::new(csv, true);
    let survey = survey(2).suffix(".csv").checkpoints(DISTANCE, &[]);
    let (outcome, _, told) = survey.run_recorded(placed.body());
    assert_eq!((outcome.tables.len(), told.len()), (1, 0));
}
