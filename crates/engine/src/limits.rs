//! How much text one match may cover, and how much around it the engine may read. A module of its own, so that the build
//! script has the same bounds when it checks rules.

/// Bytes of the longest match. A rule whose regex can match more is refused: long material is found by
/// its head.
pub const MAX_MATCH_LEN: usize = 2 * 1024;

/// Bytes around a value in which context words may count, at most.
pub const CONTEXT_MAX: usize = 512;

/// Bytes beside a match that may be read for context words, ignore comments, shapes and boundaries.
pub const MARGIN: usize = 2 * 1024;

/// Bytes before the start of a match that the engine may read. A match may start up to one match length
/// before its value; one that overlaps it, and may displace it, another; and the window in which that one
/// is searched begins up to a third before its trigger.
pub const LOOKBEHIND: usize = 3 * MAX_MATCH_LEN + MARGIN;

/// Bytes after the start of a match that the engine may read, by the same count.
pub const LOOKAHEAD: usize = 3 * MAX_MATCH_LEN + MARGIN;
