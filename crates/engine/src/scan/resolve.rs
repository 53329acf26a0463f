//! Which of overlapping matches stays: one, the most specific.
//!
//! Two steps, each local, so that the result is the same in every chunk: first goes a match that holds a better one
//! within, or that a better one overlaps in part; then one that lies within a better one that stayed. Whatever goes, a
//! better match over some of the same bytes has been seen; picking matches from left to right would depend on where
//! the chunk begins.
//!
//! The better one is the more specific, if it is more than doubtful: first a secret that is known by its own form; then
//! a secret that is told by what stands beside it, or a value with a proof such as a check digit; then the rest, so that
//! a password before `@` and a host is no mail address. Among equals the higher score decides, then the longer span.

use std::cmp::Reverse;

use domesday_model::{Category, Score};

use super::Match;
use crate::rules::Rule;

/// From this score on what is more specific displaces what is less. Something doubtful must not: it would take a
/// finding out of sight.
pub const SPECIFIC_MIN: Score = Score::MEDIUM;

/// How specific a rule is by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    Other,
    /// A secret that is told by what stands beside it.
    Secret,
    /// A secret that is known by its own form.
    OwnForm,
}

/// Tag of the rules that know a secret by a name beside it.
const GENERIC: &str = "generic";
/// Tags of rules that know a secret by where it stands, if they have no other.
const PLACES: &[&str] = &["code", "command-line", "configuration", "credential-file", "header", "url"];

impl Kind {
    pub fn of(rule: &Rule) -> Kind {
        let tags = || rule.tags.iter().map(String::as_str);
        let by_place = !rule.tags.is_empty() && tags().all(|tag| PLACES.contains(&tag));
        match rule.category {
            Category::Secret if by_place || tags().any(|tag| tag == GENERIC) => Kind::Secret,
            Category::Secret => Kind::OwnForm,
            _ => Kind::Other,
        }
    }
}

/// Bytes of the longest match that displaces another, or is displaced, by overlapping it in part. Whether it is depends
/// on what overlaps the other one in turn, and no further: that is within reach of a chunk.
const PARTLY_MAX: usize = 256;

const _: () = assert!(2 * PARTLY_MAX <= crate::MAX_MATCH_LEN);

/// Leaves what stays, in order of spans; `dropped` is told what goes, and for which other.
pub fn resolve(
    matches: &mut Vec<Match>,
    kind: impl Fn(u32) -> Kind,
    mut dropped: impl FnMut(&Match, &Match),
) {
    if matches.len() < 2 {
        return;
    }
    matches.sort_by_key(|found| (found.span.start, Reverse(found.span.end), found.rule));
    let rank = |found: &Match| {
        let proven = if found.reasons.has_proof() { Kind::Secret } else { Kind::Other };
        let kind = if found.score >= SPECIFIC_MIN { kind(found.rule).max(proven) } else { Kind::Other };
        (kind, found.score, found.span.len(), Reverse((found.rule, found.span.start)))
    };
    let all = &matches[..];
    let better = |i: usize| move |&other: &usize| rank(&all[other]) > rank(&all[i]);
    let best = |&a: &usize, &b: &usize| rank(&all[a]).cmp(&rank(&all[b]));
    let held: Vec<_> = (0..all.len()).map(|i| held(all, i).filter(better(i)).max_by(best)).collect();
    let is_beaten = |i: usize| held[i].is_some() || partly(all, i).any(|other| better(i)(&other));
    let beaten: Vec<bool> = (0..all.len()).map(is_beaten).collect();
    // What is beaten itself beats nothing by overlapping it in part: of three in a row the last would go for nothing.
    let overlapped = |i| partly(all, i).filter(better(i)).filter(|&other| !beaten[other]).max_by(best);
    let displaced = (0..all.len()).map(|i| held[i].or_else(|| overlapped(i))).collect();
    drop_displaced(matches, displaced, &mut dropped);

    let all = &matches[..];
    let mut reach = Reach::default();
    let mut holder = |i| reach.advance(all, i).into_iter().find(|&outer| rank(&all[outer]) > rank(&all[i]));
    let displaced = (0..all.len()).map(&mut holder).collect();
    drop_displaced(matches, displaced, &mut dropped);
}

/// Drops each match that has another in its place.
fn drop_displaced(
    matches: &mut Vec<Match>,
    displaced: Vec<Option<usize>>,
    dropped: &mut impl FnMut(&Match, &Match),
) {
    for (found, by) in matches.iter().zip(&displaced) {
        if let Some(by) = by {
            dropped(found, &matches[*by]);
        }
    }
    let mut displaced = displaced.into_iter();
    matches.retain(|_| displaced.next().flatten().is_none());
}

/// The matches that lie within match `i`, or are of the same span.
fn held(matches: &[Match], i: usize) -> impl Iterator<Item = usize> {
    let span = matches[i].span.clone();
    let (start, end) = (span.start, span.end);
    let after = (i + 1..matches.len())
        .take_while(move |&next| matches[next].span.start < end)
        .filter(move |&next| matches[next].span.end <= end);
    let same = (0..i)
        .rev()
        .take_while(move |&other| matches[other].span.start == start)
        .filter(move |&other| matches[other].span == span);
    after.chain(same)
}

/// The matches that share bytes with match `i`, neither within the other. An encoding has no exact edges, so decoded
/// ones are left out.
fn partly(matches: &[Match], i: usize) -> impl Iterator<Item = usize> {
    let is_short = |found: &Match| found.span.len() <= PARTLY_MAX && found.decoded.is_none();
    let (start, end) = (matches[i].span.start, matches[i].span.end);
    let before = (0..i)
        .rev()
        .take_while(move |&other| matches[other].span.start + PARTLY_MAX > start)
        .filter(move |&other| matches[other].span.start < start)
        .filter(move |&other| (start + 1..end).contains(&matches[other].span.end));
    let after = (i + 1..matches.len())
        .take_while(move |&next| matches[next].span.start < end)
        .filter(move |&next| matches[next].span.start > start && matches[next].span.end > end);
    let candidates = is_short(&matches[i]).then(|| before.chain(after));
    candidates.into_iter().flatten().filter(move |&other| is_short(&matches[other]))
}

/// The matches before the current one that may still hold it.
#[derive(Default)]
struct Reach {
    open: Vec<usize>,
}

impl Reach {
    /// Those that hold match `i` within; called for each match in order.
    fn advance(&mut self, matches: &[Match], i: usize) -> Vec<usize> {
        let span = matches[i].span.clone();
        self.open.retain(|&open| matches[open].span.end > span.start);
        let holders = self.open.iter().copied().filter(|&open| matches[open].span.end >= span.end).collect();
        self.open.push(i);
        holders
    }
}
