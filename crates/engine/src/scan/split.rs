//! Where the value is in a match, told without asking the regex again. Most rules are made of what stands before the
//! value, the value in a group, and what stands behind it; and mostly no byte of the value can be taken for one of the
//! others: a password within quotes has no quote. Then a match can be split in one way only, and a look at its bytes
//! tells which. Groups of a regex cost many times as much.
//!
//! It must say nothing where there might be two ways.

use std::ops::Range;

use regex_syntax::hir::{Class, Hir, HirKind};

use crate::rules::gate::ByteSet;

/// How the matches of a regex are split.
pub struct Split {
    /// What the value is made of.
    value: ByteSet,
    start: Start,
    end: End,
}

enum Start {
    /// So many bytes behind the start of the match.
    At(usize),
    /// Behind the first byte of a set, and what follows it of another.
    Behind(ByteSet, ByteSet),
    /// Behind the last byte before the end that the value cannot have.
    BackTo,
}

enum End {
    /// So many bytes before the end of the match.
    At(usize),
    /// Before all bytes at the end that are of a set.
    Before(ByteSet),
    /// Before the first byte behind the start that the value cannot have.
    OnTo,
    /// That of the match, if the value can have all bytes up to it: so many, at most. Otherwise it is not known.
    All(usize),
}

impl Split {
    /// For the value in `group`, if there is one way only.
    pub fn of(hir: &Hir, group: usize) -> Option<Split> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let value = find(hir, group, &mut before, &mut after)?;
        value.properties().minimum_len().filter(|len| *len > 0)?;
        let bytes = bytes_of([value])?;
        let start = match fixed_len(&before) {
            Some(len) => Start::At(len),
            None if edge(&before, Edge::Last)?.is_apart_from(bytes) => Start::BackTo,
            None => behind(&before, bytes)?,
        };
        let end = match fixed_len(&after) {
            Some(len) => End::At(len),
            None if bytes_of(after.iter().copied())?.is_apart_from(edge(&[value], Edge::Last)?) => {
                End::Before(bytes_of(after)?)
            }
            None if !matches!(start, Start::BackTo) && edge(&after, Edge::First)?.is_apart_from(bytes) => {
                End::OnTo
            }
            // The value takes what it can: so if that is all, nothing is left for what stands behind it.
            None if is_greedy(value, bytes) && may_be_nothing(&after) => {
                End::All(value.properties().maximum_len()?)
            }
            None => return None,
        };
        Some(Split { value: bytes, start, end })
    }

    /// The value in the match at `span`, if it can be told.
    pub fn value(&self, bytes: &[u8], span: Range<usize>) -> Option<Range<usize>> {
        let text = &bytes[span.clone()];
        let known_end = match &self.end {
            End::At(len) => text.len() - len,
            End::Before(others) => behind_last(text, |byte| !others.contains(byte)),
            End::OnTo | End::All(_) => text.len(),
        };
        let start = match &self.start {
            Start::At(len) => *len,
            Start::Behind(marks, then) => {
                let mark = text.iter().position(|&byte| marks.contains(byte)).map_or(0, |at| at + 1);
                mark + text[mark..].iter().take_while(|&&byte| then.contains(byte)).count()
            }
            Start::BackTo => behind_last(&text[..known_end], |byte| !self.value.contains(byte)),
        };
        let end = match &self.end {
            End::OnTo => start + text[start..].iter().take_while(|&&byte| self.value.contains(byte)).count(),
            End::All(max) if known_end > start + max => return None,
            End::All(_) if !text[start..].iter().all(|&byte| self.value.contains(byte)) => return None,
            _ => known_end,
        };
        Some(span.start + start..span.start + end)
    }
}

/// Whether it ends with as many bytes of a set as there are, behind so many others of that set as must be.
fn is_greedy(value: &Hir, bytes: ByteSet) -> bool {
    let parts = match value.kind() {
        HirKind::Concat(parts) => &parts[..],
        _ => std::slice::from_ref(value),
    };
    let Some((last, others)) = parts.split_last() else { return false };
    let HirKind::Repetition(repetition) = last.kind() else { return false };
    let is_class = matches!(repetition.sub.kind(), HirKind::Class(_));
    let all = bytes_of([&*repetition.sub]);
    repetition.greedy
        && is_class
        && all.is_some_and(|all| bytes.is_within(all))
        && fixed_len(&others.iter().collect::<Vec<_>>()).is_some()
}

/// Whether the parts may be empty wherever a match ends with them: what they ask of their place is asked at their end.
fn may_be_nothing(parts: &[&Hir]) -> bool {
    let is_look = |part: &&&Hir| matches!(part.kind(), HirKind::Look(_));
    let looks = parts.iter().rev().take_while(is_look).count();
    parts[..parts.len() - looks]
        .iter()
        .all(|part| part.properties().look_set().is_empty() && part.properties().minimum_len() == Some(0))
}

/// Behind the last byte that is `wanted`, or at the start of the text.
fn behind_last(text: &[u8], wanted: impl Fn(u8) -> bool) -> usize {
    text.iter().rposition(|&byte| wanted(byte)).map_or(0, |at| at + 1)
}

/// The content of the group, with the parts of a match before and behind it.
fn find<'h>(
    hir: &'h Hir,
    group: usize,
    before: &mut Vec<&'h Hir>,
    after: &mut Vec<&'h Hir>,
) -> Option<&'h Hir> {
    match hir.kind() {
        HirKind::Capture(capture) if capture.index as usize == group => Some(&capture.sub),
        HirKind::Capture(capture) => find(&capture.sub, group, before, after),
        HirKind::Concat(parts) => {
            let at = parts.iter().position(|part| has_group(part, group))?;
            before.extend(&parts[..at]);
            let value = find(&parts[at], group, before, after);
            after.extend(&parts[at + 1..]);
            value
        }
        _ => None,
    }
}

fn has_group(hir: &Hir, group: usize) -> bool {
    match hir.kind() {
        HirKind::Capture(capture) => capture.index as usize == group || has_group(&capture.sub, group),
        kind => kind.subs().iter().any(|sub| has_group(sub, group)),
    }
}

/// The bytes of parts that are always as many.
fn fixed_len(parts: &[&Hir]) -> Option<usize> {
    let len = |part: &&Hir| {
        let (min, max) = (part.properties().minimum_len()?, part.properties().maximum_len()?);
        (min == max).then_some(min)
    };
    parts.iter().map(len).sum()
}

/// Every byte that some match of the parts has; `None` if they have characters of several.
fn bytes_of<'h>(parts: impl IntoIterator<Item = &'h Hir>) -> Option<ByteSet> {
    let mut bytes = ByteSet::EMPTY;
    for part in parts {
        match part.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => bytes.add(literal.0.iter().copied().collect()),
            HirKind::Class(Class::Bytes(class)) => {
                bytes.add(class.iter().flat_map(|range| range.start()..=range.end()).collect());
            }
            HirKind::Class(Class::Unicode(_)) => return None,
            kind => bytes.add(bytes_of(kind.subs())?),
        }
    }
    Some(bytes)
}

#[derive(Clone, Copy)]
enum Edge {
    First,
    Last,
}

/// Every byte that a match of the parts may begin or end with.
fn edge(parts: &[&Hir], which: Edge) -> Option<ByteSet> {
    let mut bytes = ByteSet::EMPTY;
    for at in 0..parts.len() {
        let part = match which {
            Edge::First => parts[at],
            Edge::Last => parts[parts.len() - 1 - at],
        };
        bytes.add(edge_of(part, which)?);
        if part.properties().minimum_len().is_some_and(|len| len > 0) {
            break;
        }
    }
    Some(bytes)
}

fn edge_of(hir: &Hir, which: Edge) -> Option<ByteSet> {
    match hir.kind() {
        HirKind::Literal(literal) => {
            let byte = match which {
                Edge::First => literal.0.first(),
                Edge::Last => literal.0.last(),
            };
            Some(byte.copied().into_iter().collect())
        }
        HirKind::Capture(capture) => edge_of(&capture.sub, which),
        HirKind::Repetition(repetition) => edge_of(&repetition.sub, which),
        HirKind::Concat(parts) => edge(&parts.iter().collect::<Vec<_>>(), which),
        HirKind::Alternation(branches) => branches.iter().try_fold(ByteSet::EMPTY, |mut all, branch| {
            all.add(edge_of(branch, which)?);
            Some(all)
        }),
        _ => bytes_of([hir]),
    }
}

/// The last of the parts that is one byte of a kind which stands nowhere before it, if nothing that follows it can be
/// taken for the value.
fn behind(parts: &[&Hir], value: ByteSet) -> Option<Start> {
    let is_mark = |part: &&Hir| fixed_len(&[part]) == Some(1);
    let at = parts.iter().rposition(is_mark)?;
    let (marks, then) = (bytes_of([parts[at]])?, bytes_of(parts[at + 1..].iter().copied())?);
    let is_first = bytes_of(parts[..at].iter().copied())?.is_apart_from(marks);
    (is_first && then.is_apart_from(value)).then_some(Start::Behind(marks, then))
}
