//! Enumeration sessions: how a listing that was cut short goes on.

/// What a connector does with a unit that was being listed when its worker died.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResumePolicy {
    /// List again and leave out what is already staged, by `object_key_hash` (directories).
    ExcludeStaged,
    /// Go on from the last page's resume point (cursors of paged listings). Each page is committed, and its
    /// objects are scanned, before the next is asked for.
    FromResumePoint,
    /// List again and leave out what earlier pages have (histories of git). As with resume points each page is
    /// committed, and its objects are scanned, while listing goes on; but nothing is asked of the order, which may
    /// be another one by then.
    ExcludeListed,
    /// Clear what is staged and list again (database levels).
    ClearAndRelist,
}
