//! Which of overlapping matches stays. Two rules, each local, so that the result is the same in every
//! chunk: a match that holds a better one within goes first, then one that lies within a better one that
//! stayed. Matches that only partly overlap both stay. Whatever goes, a better match over some of the
//! same bytes has been seen; picking matches from left to right would depend on where the chunk begins.

use std::cmp::Reverse;

use super::Match;

/// Leaves what stays, in order of spans.
pub fn resolve(matches: &mut Vec<Match>) {
    matches.sort_by_key(|found| (found.span.start, Reverse(found.span.end), found.rule));
    drop_marked(matches, |matches, i| {
        let outer = &matches[i];
        within(matches, i).any(|inner| better(inner, outer))
            || same_start_before(matches, i).any(|inner| inner.span == outer.span && better(inner, outer))
    });
    let mut reach = Reach::default();
    drop_marked(matches, |matches, i| reach.advance(matches, i).any(|outer| better(outer, &matches[i])));
}

fn drop_marked(matches: &mut Vec<Match>, mut dropped: impl FnMut(&[Match], usize) -> bool) {
    let marks: Vec<bool> = (0..matches.len()).map(|i| dropped(matches, i)).collect();
    let mut marks = marks.into_iter();
    matches.retain(|_| !marks.next().unwrap_or(false));
}

fn better(a: &Match, b: &Match) -> bool {
    let rank = |found: &Match| (found.score, found.span.len(), Reverse(found.rule));
    rank(a) > rank(b)
}

/// The matches after `i` in order that lie within it.
fn within(matches: &[Match], i: usize) -> impl Iterator<Item = &Match> {
    let end = matches[i].span.end;
    matches[i + 1..]
        .iter()
        .take_while(move |next| next.span.start < end)
        .filter(move |next| next.span.end <= end)
}

fn same_start_before(matches: &[Match], i: usize) -> impl Iterator<Item = &Match> {
    let start = matches[i].span.start;
    matches[..i].iter().rev().take_while(move |other| other.span.start == start)
}

/// The matches before the current one that may still hold it.
#[derive(Default)]
struct Reach {
    open: Vec<usize>,
}

impl Reach {
    /// Those that hold match `i` within; called for each match in order.
    fn advance<'m>(&mut self, matches: &'m [Match], i: usize) -> impl Iterator<Item = &'m Match> + use<'m> {
        let span = matches[i].span.clone();
        self.open.retain(|&open| matches[open].span.end > span.start);
        let holders: Vec<usize> =
            self.open.iter().copied().filter(|&open| matches[open].span.end >= span.end).collect();
        self.open.push(i);
        holders.into_iter().map(|open| &matches[open])
    }
}
