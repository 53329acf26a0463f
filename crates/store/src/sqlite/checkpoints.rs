//! Checkpoints inside of very large objects, kept under the first task that the object was given to: each claim finds
//! what those before it wrote, and so do the halves of a task that was split.
//!
//! Crash argument: a checkpoint is one row, written under the fence, with all that is to be known of its part. A claim
//! reads them when no other can write any more, and goes on after the last one. What they say was found becomes visible
//! with all other results of the task, by the claim that completes it.

use domesday_model::{ObjectCheckpoint, ObjectKey};
use rusqlite::{Connection, params};

use super::rows::Statements;
use super::{Result, queries};
use crate::decide::tasks::FencedTask;
use crate::queries::statement;
use crate::types::*;
use crate::values::{checkpoints, to_json};

pub(super) fn save(
    c: &Connection,
    claim: &Claim,
    task: FencedTask,
    key: &ObjectKey,
    checkpoint: &ObjectCheckpoint,
) -> Result<()> {
    const DROP: &str = statement(queries::RESULTS, "drop_object_checkpoints");
    const INSERT: &str = statement(queries::RESULTS, "insert_object_checkpoint");
    const PROGRESS: &str = statement(queries::TASKS, "note_progress");
    let hash = ObjectKey::hash128(&key.0);
    let is_new = checkpoint.number > 0 || c.change(DROP, params![task.origin.0, hash])? == 0;
    c.change(INSERT, params![task.origin.0, hash, checkpoint.number, to_json(checkpoint)?])?;
    // A scan that starts over makes progress when it has come farther than its first checkpoint.
    if is_new {
        c.change(PROGRESS, [claim.task.0])?;
    }
    Ok(())
}

pub(super) fn of_objects(
    c: &Connection,
    claim: &Claim,
    keys: &[ObjectKey],
) -> Result<Vec<Vec<ObjectCheckpoint>>> {
    const BODIES: &str = statement(queries::RESULTS, "object_checkpoints");
    let of_one = |key: &ObjectKey| {
        let bodies: Vec<String> = c.all(BODIES, params![claim.task.0, ObjectKey::hash128(&key.0)])?;
        Ok(checkpoints(bodies.iter().map(String::as_str)))
    };
    keys.iter().map(of_one).collect()
}
