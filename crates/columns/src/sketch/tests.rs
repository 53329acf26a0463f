//! Sketches against the values they stand for.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;

/// A column of values that are numbers, some with marks, counted and kept as a scan does.
fn sketch_of(values: &[u32]) -> ColumnSketch {
    let key = SketchKey([7; 16]);
    let rules: Vec<Arc<str>> = ["a-rule", "b-rule", "c-rule"].map(Arc::from).into();
    let mut sketch = ColumnSketch::default();
    for value in values {
        let hash = key.hash(&value.to_le_bytes());
        sketch.values += 1;
        let marks: Vec<_> = (0..value % 3)
            .map(|rule| Mark { rule: Arc::clone(&rules[rule as usize]), facts: Facts((value % 7) as u8) })
            .collect();
        if sketch.wants(hash) {
            sketch
                .add(hash, Value { len: value % 100, words: (value % 5) as u8, marks: marks.clone().into() });
        }
        for mark in &marks {
            sketch.tally(&mark.rule).cells += 1;
            sketch.offer_example(&mark.rule, Kept::new(hash, &value.to_string(), "****"), value % 2 == 0);
        }
    }
    sketch
}

fn merged(parts: &[&ColumnSketch]) -> ColumnSketch {
    let mut all = ColumnSketch::default();
    parts.iter().for_each(|part| all.merge(part));
    all
}

fn values() -> impl Strategy<Value = Vec<u32>> {
    // More than the sample holds, with repetitions.
    prop::collection::vec(0u32..4_000, 0..3_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn merging_is_independent_of_order_and_grouping(a in values(), b in values(), c in values()) {
        let all: Vec<u32> = [&a[..], &b, &c].concat();
        let (whole, a, b, c) = (sketch_of(&all), sketch_of(&a), sketch_of(&b), sketch_of(&c));
        prop_assert_eq!(&merged(&[&a, &b, &c]), &whole);
        prop_assert_eq!(&merged(&[&c, &a, &b]), &whole);
        prop_assert_eq!(&merged(&[&a, &merged(&[&b, &c])]), &whole);
        let twice = merged(&[&a, &a]);
        prop_assert_eq!(&twice.sample, &a.sample);
        prop_assert_eq!(twice.values, 2 * a.values);
    }

    #[test]
    fn what_is_encoded_comes_back(values in values()) {
        let sketch = sketch_of(&values);
        let bytes = sketch.encode();
        prop_assert_eq!(ColumnSketch::decode(&bytes), Some(sketch));
        prop_assert!(bytes.len() <= 64 * 1024, "{} bytes", bytes.len());
    }

    #[test]
    fn hostile_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let versioned = [&[1][..], &bytes].concat();
        for bytes in [&bytes, &versioned] {
            if let Some(sketch) = ColumnSketch::decode(bytes) {
                prop_assert!(sketch.sample.len() <= SAMPLE_MAX);
                prop_assert_eq!(ColumnSketch::decode(&sketch.encode()), Some(sketch));
            }
        }
    }

    #[test]
    fn bytes_that_were_changed_do_no_harm(
        values in prop::collection::vec(0u32..500, 0..300),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = sketch_of(&values).encode();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Some(mut sketch) = ColumnSketch::decode(&bytes) {
            sketch.merge(&sketch.clone());
            sketch.distinct();
        }
        bytes.truncate(at);
        prop_assert_eq!(ColumnSketch::decode(&bytes), None);
    }
}

#[test]
fn counts_that_the_bytes_cannot_hold_are_not_believed() {
    // Four counts, then four thousand million rules.
    assert_eq!(ColumnSketch::decode(&[1, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f]), None);
    assert_eq!(ColumnSketch::decode(&[]), None);
    assert_eq!(ColumnSketch::decode(&[2, 0, 0, 0, 0, 0, 0, 0]), None);
    assert_eq!(ColumnSketch::decode(&[1, 0, 0, 0, 0, 0, 0, 0]), Some(ColumnSketch::default()));
    let huge = [&[1][..], &[0xff; 9], &[1], &[0xff; 9], &[1], &[0, 0, 0, 0, 0]].concat();
    let mut sketch = ColumnSketch::decode(&huge).unwrap();
    sketch.merge(&sketch.clone());
    assert_eq!(sketch.values, u64::MAX);
}

#[test]
fn distinct_values_are_counted_and_then_estimated() {
    assert_eq!(sketch_of(&[1, 2, 2, 3, 3, 3]).distinct(), 3);
    let many: Vec<u32> = (0..50_000).collect();
    let estimate = sketch_of(&many).distinct();
    assert!((45_000..=50_000).contains(&estimate), "{estimate}");
}

#[test]
fn a_sketch_tells_apart_keys() {
    let (a, b) = (SketchKey([1; 16]), SketchKey([2; 16]));
    assert_ne!(a.hash(b"ann.lee@corp-mail.org"), b.hash(b"ann.lee@corp-mail.org"));
}
