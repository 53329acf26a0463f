//! The kinds of task: how each is run and completed.

pub(crate) mod classify;
pub(crate) mod enumerate;
pub(crate) mod trace;
