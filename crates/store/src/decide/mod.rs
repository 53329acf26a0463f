//! What follows from what the book says: the decisions that both backends share. Pure: a backend reads the rows,
//! asks here, and writes the answer in the same transaction.

pub(crate) mod configuring;
pub(crate) mod fan_out;
pub(crate) mod fleet;
pub(crate) mod jobs;
pub(crate) mod packing;
pub(crate) mod pages;
pub(crate) mod prior;
pub(crate) mod retry;
pub(crate) mod sessions;
pub(crate) mod targets;
pub(crate) mod tasks;
pub(crate) mod units;
