//! The arithmetic of an evaluation: which findings answer which labels, precision, recall and F1, and how far they
//! may be off by chance. Pure; it must not know rules, types or files.
//!
//! An interval is a bootstrap over texts, not over spans: the spans of one text are right or wrong together.

use std::ops::{AddAssign, Range};

use crate::crash::random::Random;

/// Samples that an interval is computed from.
const RESAMPLES: usize = 1_000;
/// So many of a hundred samples lie inside of an interval.
const INSIDE_PERCENT: usize = 95;
/// The same for every interval, so that the same findings give the same figures.
const SEED: u64 = 5;
/// Spans that share at least this much of what they cover together mean the same value.
pub const HALF: f64 = 0.5;

/// What one text, or many, say about one type.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    pub texts: u64,
    pub labelled: u64,
    pub found: u64,
    /// Labels answered by a finding with the same span.
    pub exact: u64,
    /// Labels answered by a finding that overlaps by [`HALF`].
    pub half: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.texts += other.texts;
        self.labelled += other.labelled;
        self.found += other.found;
        self.exact += other.exact;
        self.half += other.half;
    }
}

impl Counts {
    pub fn sum(of: &[Counts]) -> Counts {
        let mut sum = Counts::default();
        of.iter().for_each(|counts| sum += *counts);
        sum
    }

    pub fn precision(&self) -> Option<f64> {
        ratio(self.half, self.found)
    }

    pub fn recall(&self) -> Option<f64> {
        ratio(self.half, self.labelled)
    }

    pub fn f1(&self) -> Option<f64> {
        ratio(2 * self.half, self.labelled + self.found)
    }

    pub fn f1_exact(&self) -> Option<f64> {
        ratio(2 * self.exact, self.labelled + self.found)
    }

    /// Texts in which something was found that should not have been, of all.
    pub fn wrong_share(&self) -> Option<f64> {
        ratio(self.found - self.half, self.texts)
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A figure, computed of counts.
pub type Figure = fn(&Counts) -> Option<f64>;

/// Between which values each figure lies in 95 of 100 samples drawn, with replacement, from `texts`. `None` where a
/// figure has no value for them.
pub fn intervals<const N: usize>(texts: &[Counts], figures: [Figure; N]) -> [Option<(f64, f64)>; N] {
    let mut random = Random::new(SEED);
    let mut values = [const { Vec::new() }; N];
    for _ in 0..RESAMPLES {
        let mut sum = Counts::default();
        texts.iter().for_each(|_| sum += random.pick(texts));
        for (values, figure) in values.iter_mut().zip(figures) {
            values.extend(figure(&sum));
        }
    }
    values.map(inside)
}

/// The least and the greatest value when what lies outside is left off at both ends.
fn inside(mut values: Vec<f64>) -> Option<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let outside = values.len() * (100 - INSIDE_PERCENT) / 200;
    Some((*values.get(outside)?, *values.get(values.len().checked_sub(1 + outside)?)?))
}

/// What two spans share, of what they cover together.
pub fn overlap(a: &Range<usize>, b: &Range<usize>) -> f64 {
    let shared = a.end.min(b.end).saturating_sub(a.start.max(b.start));
    let together = a.end.max(b.end) - a.start.min(b.start);
    if together == 0 { 0.0 } else { shared as f64 / together as f64 }
}

/// Pairs labels with findings that overlap by at least `least`: each with one at most, the closest pairs first.
pub fn pairs(labels: &[Range<usize>], found: &[Range<usize>], least: f64) -> Vec<(usize, usize)> {
    let all = (0..labels.len()).flat_map(|label| (0..found.len()).map(move |finding| (label, finding)));
    let mut near: Vec<(f64, usize, usize)> = all
        .map(|(label, finding)| (overlap(&labels[label], &found[finding]), label, finding))
        .filter(|(shared, ..)| *shared >= least)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (_, label, finding) in near {
        if !pairs.iter().any(|pair| pair.0 == label || pair.1 == finding) {
            pairs.push((label, finding));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(labelled: u64, found: u64, exact: u64, half: u64) -> Counts {
        Counts { texts: 1, labelled, found, exact, half }
    }

    #[test]
    fn figures_are_those_of_the_textbook() {
        let counts = counts(10, 8, 4, 6);
        assert_eq!(counts.precision(), Some(0.75));
        assert_eq!(counts.recall(), Some(0.6));
        assert_eq!(counts.f1(), Some(12.0 / 18.0));
        assert_eq!(counts.f1_exact(), Some(8.0 / 18.0));
        let (precision, recall) = (0.75, 0.6);
        let harmonic: f64 = 2.0 * precision * recall / (precision + recall);
        assert!((counts.f1().unwrap() - harmonic).abs() < 1e-12);
    }

    #[test]
    fn nothing_labelled_and_nothing_found_has_no_figures() {
        let none = Counts { texts: 3, ..Counts::default() };
        assert_eq!((none.precision(), none.recall(), none.f1()), (None, None, None));
        assert_eq!(none.wrong_share(), Some(0.0));
        assert_eq!(counts(2, 0, 0, 0).f1(), Some(0.0));
    }

    #[test]
    fn overlap_is_intersection_over_union() {
        assert_eq!(overlap(&(0..10), &(0..10)), 1.0);
        assert_eq!(overlap(&(0..10), &(0..5)), 0.5);
        assert_eq!(overlap(&(0..10), &(5..15)), 5.0 / 15.0);
        assert_eq!(overlap(&(0..5), &(5..10)), 0.0);
        assert_eq!(overlap(&(0..5), &(7..10)), 0.0);
        assert_eq!(overlap(&(4..4), &(4..4)), 0.0);
    }

    #[test]
    fn a_finding_answers_one_label_and_a_label_is_answered_once() {
        let check =
            |labels: &[(usize, usize)], found: &[(usize, usize)], least, expect: &[(usize, usize)]| {
                let spans =
                    |of: &[(usize, usize)]| of.iter().map(|&(start, end)| start..end).collect::<Vec<_>>();
                assert_eq!(pairs(&spans(labels), &spans(found), least), expect);
            };
        // Two findings on one label: one of them is too much.
        check(&[(0, 10)], &[(0, 6), (0, 10)], HALF, &[(0, 1)]);
        // One finding over two labels: one of them is missed.
        check(&[(0, 10), (10, 20)], &[(0, 20)], HALF, &[(0, 0)]);
        // The closest pair first, so that the other label keeps its own.
        check(&[(0, 10), (4, 14)], &[(4, 14), (0, 8)], HALF, &[(1, 0), (0, 1)]);
        check(&[(0, 10)], &[(0, 4)], HALF, &[]);
        check(&[(0, 10)], &[(0, 9)], 1.0, &[]);
    }

    #[test]
    fn intervals_are_the_same_every_time_and_hold_the_figure() {
        let texts: Vec<Counts> = (0..100).map(|i| counts(1, 1, 0, u64::from(i % 5 > 0))).collect();
        let first = intervals(&texts, [Counts::f1, Counts::f1_exact]);
        assert_eq!(first, intervals(&texts, [Counts::f1, Counts::f1_exact]));
        let (low, high) = first[0].unwrap();
        assert!(low < 0.8 && 0.8 < high, "{low} {high}");
        // Of a share of 0.8 in 100, the deviation is 0.04.
        assert!((0.68..0.78).contains(&low) && (0.82..0.92).contains(&high), "{low} {high}");
        assert_eq!(first[1], Some((0.0, 0.0)));
    }

    #[test]
    fn more_texts_give_a_narrower_interval() {
        let texts = |count: u64| (0..count).map(|i| counts(1, 1, 0, i % 2)).collect::<Vec<_>>();
        let f1 = |texts: &[Counts]| intervals(texts, [Counts::f1])[0];
        let width = |count: u64| f1(&texts(count)).map(|(low, high)| high - low).unwrap();
        assert!(width(400) < width(40));
        assert_eq!(f1(&[]), None);
        assert_eq!(f1(&[counts(1, 1, 1, 1)]), Some((1.0, 1.0)));
    }
}
