//! The detection engine: bytes in, findings out.
//!
//! Cheapest first: one pass over a chunk for triggers (`prefilter`), a regex in a small window around
//! each (`scan`), validators and scoring last. Every decision about a match reads only the bytes from
//! [`LOOKBEHIND`] before its start to [`LOOKAHEAD`] after, never anything relative to the edges of the
//! chunk; so an object scanned in chunks gives exactly the matches of the whole, once each.
//!
//! This crate must not know files, SQL or jobs.

mod builtin;
mod decode;
mod examples;
mod parts;
mod prefilter;
mod rules;
mod scan;
mod scoring;
pub mod validators;

pub use examples::check_examples;
pub use rules::{
    Class, Context, Ground, Lead, Literal, Patterns, Rule, RuleError, RuleErrors, RuleSet, RuleSource, Shape,
    Trigger, Validator,
};
pub use scan::{Chunk, Decoded, Explained, Match, Scanner, Scratch, Silent, Stretch, Traces, Verdict};
pub use scoring::{Evidence, Evidences, PathKind, Weighed, Weight};

/// Which findings the same bytes and rules give. Raised with every change that may give others, so that what an
/// earlier version scanned is scanned again.
pub const VERSION: u32 = 3;

/// Bytes of the longest match. A rule whose regex can match more is refused: long material is found by
/// its head.
pub const MAX_MATCH_LEN: usize = 2 * 1024;

/// Bytes around a value in which context words may count, at most.
pub const CONTEXT_MAX: usize = 512;

/// Bytes beside a match that may be read for context words, ignore comments, shapes and boundaries.
const MARGIN: usize = 2 * 1024;

/// Bytes before the start of a match that the engine may read. A match may start up to one match length
/// before its value; one that overlaps it, and may displace it, another; and the window in which that one
/// is searched begins up to a third before its trigger.
pub const LOOKBEHIND: usize = 3 * MAX_MATCH_LEN + MARGIN;

/// Bytes after the start of a match that the engine may read, by the same count.
pub const LOOKAHEAD: usize = 3 * MAX_MATCH_LEN + MARGIN;
