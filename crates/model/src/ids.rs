//! Identifiers. A newtype each, so that a task id cannot be handed where a unit id is meant.
//!
//! Rows that a store numbers itself carry an `i64`; ids that a client must be able to make up before
//! it reaches the store (master jobs, processes) are 128 random bits.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

macro_rules! row_id {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

row_id! {
    /// A child job: one node group's share of a master job.
    JobId,
    /// One unit of claimable work.
    TaskId,
    /// One container (directory, page, schema) listed by a task.
    UnitId,
    /// A place that is scanned.
    DatasourceId,
    /// The enumeration of one data source within one job.
    EnumerationSessionId,
    /// One commit of an enumeration session.
    BatchId,
    /// A point from which something goes on.
    CheckpointId,
    /// Random per claim of a task, so that a worker that lost its claim can never pass for the one that has it.
    ClaimId,
}

/// The text of a 128-bit id was not 32 hexadecimal digits.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not an id: expected 32 hexadecimal digits")]
pub struct BadId(String);

macro_rules! wide_id {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; 16]);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_hex(f, &self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                parse_hex(text).map($name).ok_or_else(|| BadId(text.to_owned()))
            }
        }
    )*};
}

wide_id! {
    /// The user's request. Made up by the client, so that repeating a request names the same job.
    MasterJobId,
    /// One start of an orchestrator or worker process.
    ProcessId,
    /// Hash of (data source, object key, nested path, rule, value fingerprint): the same finding keeps
    /// its id in every job.
    FindingId,
    /// Content hash of a rule set.
    RuleSetHash,
    /// A real thing that is scanned, the same in every job.
    ScanTargetId,
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

fn parse_hex(text: &str) -> Option<[u8; 16]> {
    let mut out = [0; 16];
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    for (byte, pair) in out.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_ids_survive_their_text_form() {
        let id = MasterJobId([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 254, 255]);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!("abc".parse::<MasterJobId>().is_err());
        assert!("zz0102030405060708090a0b0c0dfeff".parse::<MasterJobId>().is_err());
    }
}
