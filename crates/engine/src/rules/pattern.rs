//! What a rule's regex allows, told from its syntax tree: whether the engine can promise to find every
//! match of it in bounded pieces, and where its value is.

use regex_syntax::ast::{self, Ast, RepetitionKind, RepetitionRange};
use regex_syntax::hir::{Class, Hir, HirKind, Look};

use super::budget::cost_of;
use super::run::Run;
use crate::MAX_MATCH_LEN;

/// The name of the capture group that holds the sensitive value.
const VALUE_GROUP: &str = "value";

/// Parts of a regex with its repetitions written out, at most, so that compiling it is quick and cannot fail.
pub const EXPANDED_MAX: usize = 200_000;

/// Bytes of a regex, at most: a class of Unicode takes a thousand times as much once it is parsed.
const TEXT_MAX: usize = 16 * 1024;

/// A regex that may be used.
pub struct Pattern {
    /// For the budget of all rules.
    pub cost: usize,
    pub hir: Hir,
    pub max_len: usize,
    /// The index of the group that holds the value, if there is one.
    pub value_group: Option<usize>,
    /// What every match contains.
    pub run: Option<Run>,
}

/// Reads a regex as every rule's is read: bytes, ASCII classes; `(?u)` opts in to Unicode.
pub fn read(regex: &str) -> Result<Hir, String> {
    if regex.len() > TEXT_MAX {
        return Err(format!("it is longer than {TEXT_MAX} bytes"));
    }
    let mut parser = regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build();
    parser.parse(regex).map_err(|error| one_line(&error))
}

/// Refuses, with the remedy, what cannot be searched in bounded windows of a chunk.
pub fn parse(regex: &str) -> Result<Pattern, String> {
    let hir = read(regex).map_err(|error| format!("regex does not parse: {error}"))?;
    let properties = hir.properties();
    let Some(max_len) = properties.maximum_len() else {
        return Err(match unbounded(regex) {
            Some(op) => format!("regex has no maximum length: bound the repetition `{op}`"),
            None => "regex can never match: correct it".to_owned(),
        });
    };
    if max_len > MAX_MATCH_LEN {
        return Err(format!("regex can match {max_len} bytes: shorten it to at most {MAX_MATCH_LEN}"));
    }
    if properties.minimum_len().unwrap_or(0) == 0 {
        return Err("regex can match nothing at all: require at least one byte".to_owned());
    }
    if properties.look_set().iter().any(|look| matches!(look, Look::Start | Look::End)) {
        return Err("regex asks for the start or end of the whole text, which a chunk cannot know: \
                    use line anchors, `(?m)^` and `(?m)$`"
            .to_owned());
    }
    if expanded_size(&hir) > EXPANDED_MAX {
        return Err("regex is too large once its repetitions are written out: simplify it".to_owned());
    }
    Ok(Pattern { cost: cost_of(&hir), value_group: value_group(&hir), max_len, run: Run::of(&hir), hir })
}

/// Whether a regex that parses can be compiled quickly, however long its matches may be.
pub fn is_small(regex: &str) -> bool {
    read(regex).is_ok_and(|hir| expanded_size(&hir) <= EXPANDED_MAX)
}

/// The last line of a parser's message, which is drawn over several, holds the reason.
fn one_line(error: &regex_syntax::Error) -> String {
    let message = error.to_string();
    let last = message.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

/// About how many parts an automaton of `hir` has.
pub fn expanded_size(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(Class::Bytes(_)) => 1,
        HirKind::Class(Class::Unicode(class)) => 4 * class.ranges().len(),
        HirKind::Repetition(repetition) => {
            let rounds = repetition.max.unwrap_or(repetition.min).max(1) as usize;
            rounds.saturating_mul(expanded_size(&repetition.sub))
        }
        kind => kind.subs().iter().fold(1, |sum: usize, sub| sum.saturating_add(expanded_size(sub))),
    }
}

fn value_group(hir: &Hir) -> Option<usize> {
    match hir.kind() {
        HirKind::Capture(capture) if capture.name.as_deref() == Some(VALUE_GROUP) => {
            Some(capture.index as usize)
        }
        kind => kind.subs().iter().find_map(value_group),
    }
}

/// The text of the first repetition without an upper bound.
fn unbounded(regex: &str) -> Option<String> {
    struct Finder<'r>(&'r str, Option<String>);

    impl ast::Visitor for Finder<'_> {
        type Output = Option<String>;
        type Err = ();

        fn finish(self) -> Result<Option<String>, ()> {
            Ok(self.1)
        }

        fn visit_pre(&mut self, node: &Ast) -> Result<(), ()> {
            let Ast::Repetition(repetition) = node else { return Ok(()) };
            let endless = matches!(
                repetition.op.kind,
                RepetitionKind::ZeroOrMore
                    | RepetitionKind::OneOrMore
                    | RepetitionKind::Range(RepetitionRange::AtLeast(_))
            );
            if endless && self.1.is_none() {
                let span = repetition.op.span;
                self.1 = self.0.get(span.start.offset..span.end.offset).map(str::to_owned);
            }
            Ok(())
        }
    }

    let ast = ast::parse::Parser::new().parse(regex).ok()?;
    ast::visit(&ast, Finder(regex, None)).ok()?
}
