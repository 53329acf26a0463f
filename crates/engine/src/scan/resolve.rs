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

/// What makes a match the better one.
type Rank = (Kind, Score, usize, Reverse<(u32, usize)>);

/// Leaves what stays, in order of spans; `dropped` is told what goes, and for which other.
pub fn resolve(
    matches: &mut Vec<Match>,
    kind: impl Fn(u32) -> Kind,
    mut dropped: impl FnMut(&Match, &Match),
) {
    if matches.is_sorted_by(|a, b| a.span.end <= b.span.start) {
        return;
    }
    sort(matches);
    let rank = |found: &Match| {
        let proven = if found.reasons.has_proof() { Kind::Secret } else { Kind::Other };
        let kind = if found.score >= SPECIFIC_MIN { kind(found.rule).max(proven) } else { Kind::Other };
        (kind, found.score, found.span.len(), Reverse((found.rule, found.span.start)))
    };
    drop_displaced(matches, rank, by_held_or_overlapping, &mut dropped);
    drop_displaced(matches, rank, by_holding, &mut dropped);
}

/// By where they begin, the longest first.
fn sort(matches: &mut [Match]) {
    let key = |found: &Match| (found.span.start, Reverse(found.span.end), found.rule);
    if matches.is_sorted_by_key(|found| found.span.start) {
        // As they come from one text: only those that begin together may have to change places.
        matches.chunk_by_mut(|a, b| a.span.start == b.span.start).for_each(|group| group.sort_by_key(key));
    } else {
        matches.sort_by_key(key);
    }
}

/// For each match, the better one that lies within it or overlaps it in part.
fn by_held_or_overlapping(all: &[Match], ranks: &[Rank]) -> Vec<Option<usize>> {
    let better = |i: usize| move |other: &usize| ranks[*other] > ranks[i];
    let best = |a: &usize, b: &usize| ranks[*a].cmp(&ranks[*b]);
    let held: Vec<_> = (0..all.len()).map(|i| held(all, i).filter(better(i)).max_by(best)).collect();
    let is_beaten = |i: usize| held[i].is_some() || partly(all, i).any(|other| better(i)(&other));
    let beaten: Vec<bool> = (0..all.len()).map(is_beaten).collect();
    // What is beaten itself beats nothing by overlapping it in part: of three in a row the last would go for nothing.
    let overlapped = |i| partly(all, i).filter(better(i)).filter(|&other| !beaten[other]).max_by(best);
    (0..all.len()).map(|i| held[i].or_else(|| overlapped(i))).collect()
}

/// For each match, the first better one that it lies within.
fn by_holding(all: &[Match], ranks: &[Rank]) -> Vec<Option<usize>> {
    // The matches before the current one that may still hold it.
    let mut open: Vec<usize> = Vec::new();
    let mut holder = |i: usize| {
        let span = &all[i].span;
        open.retain(|&before| all[before].span.end > span.start);
        let holds = |before: &usize| all[*before].span.end >= span.end && ranks[*before] > ranks[i];
        let holder = open.iter().copied().find(holds);
        open.push(i);
        holder
    };
    (0..all.len()).map(&mut holder).collect()
}

/// Drops each match that has another in its place, which is told for those that overlap each other at a time: most
/// overlap none.
fn drop_displaced(
    matches: &mut Vec<Match>,
    rank: impl Fn(&Match) -> Rank,
    displaced_in: impl Fn(&[Match], &[Rank]) -> Vec<Option<usize>>,
    dropped: &mut impl FnMut(&Match, &Match),
) {
    let mut is_displaced = vec![false; matches.len()];
    let mut start = 0;
    while start < matches.len() {
        let group = &matches[start..][..overlapping(&matches[start..])];
        if group.len() > 1 {
            let ranks: Vec<Rank> = group.iter().map(&rank).collect();
            for (i, by) in displaced_in(group, &ranks).into_iter().enumerate() {
                if let Some(by) = by {
                    dropped(&group[i], &group[by]);
                    is_displaced[start + i] = true;
                }
            }
        }
        start += group.len();
    }
    let mut is_displaced = is_displaced.into_iter();
    matches.retain(|_| is_displaced.next() != Some(true));
}

/// How many of the first matches overlap each other, one with the next of them.
fn overlapping(matches: &[Match]) -> usize {
    let mut end = 0;
    let goes_on = |(i, found): &(usize, &Match)| {
        let goes_on = *i == 0 || found.span.start < end;
        end = end.max(found.span.end);
        goes_on
    };
    matches.iter().enumerate().take_while(goes_on).count()
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
