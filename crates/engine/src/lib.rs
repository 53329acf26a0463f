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
mod limits;
mod parts;
mod prefilter;
mod rules;
mod scan;
mod scoring;
pub mod validators;

pub use examples::check_examples;
use limits::MARGIN;
pub use limits::{CONTEXT_MAX, LOOKAHEAD, LOOKBEHIND, MAX_MATCH_LEN};
pub use rules::{
    Class, Context, Ground, Lead, Literal, Patterns, Rule, RuleError, RuleErrors, RuleSet, RuleSource, Shape,
    Trigger, Validator,
};
pub use scan::{
    Chunk, CopiedRange, Decoded, Explained, Match, ReusableHits, Scanner, Scratch, Silent, Verdict,
};
pub use scoring::{Evidence, Evidences, PathKind, Weighed, Weight};

/// What a scan says of the same bytes with the same rules: its findings, and the formats that are read or recognised.
/// Raised with every change of these, so that what an earlier version scanned is scanned again.
pub const VERSION: u32 = 6;
