//! Checkpoints inside of very large objects, kept under the first task that the object was given to: each claim finds
//! what those before it wrote, and so do the halves of a task that was split.
//!
//! Crash argument: a checkpoint is one row, written under the fence, with all that is to be known of its part. A claim
//! reads them when no other can write any more, and goes on after the last one. What they say was found becomes visible
//! with all other results of the task, by the claim that completes it.

use domesday_model::{ObjectCheckpoint, ObjectKey};

use super::rows::get;
use super::transaction::{Tx, params};
use super::{PostgresStore, Result, queries, tasks};
use crate::queries::statement;
use crate::types::*;
use crate::values::{checkpoints, to_json};

pub(super) async fn save(
    tx: &mut Tx<'_>,
    claim: &Claim,
    key: &ObjectKey,
    checkpoint: &ObjectCheckpoint,
) -> Result<()> {
    const DROP: &str = statement(queries::RESULTS, "drop_object_checkpoints");
    const INSERT: &str = statement(queries::RESULTS, "insert_object_checkpoint");
    const PROGRESS: &str = statement(queries::TASKS, "note_progress");
    let origin = tasks::fence(tx, claim).await?.origin.0;
    let hash = ObjectKey::hash128(&key.0).to_vec();
    let is_new = checkpoint.number > 0 || tx.change(DROP, params![origin, hash.clone()]).await? == 0;
    tx.run(INSERT, params![origin, hash, i64::from(checkpoint.number), to_json(checkpoint)?]);
    // A scan that starts over makes progress when it has come farther than its first checkpoint.
    if is_new {
        tx.run(PROGRESS, params![claim.task.0]);
    }
    Ok(())
}

pub(super) async fn of_objects(
    store: &PostgresStore,
    claim: &Claim,
    keys: &[ObjectKey],
) -> Result<Vec<Vec<ObjectCheckpoint>>> {
    const BODIES: &str = statement(queries::RESULTS, "object_checkpoints");
    let mut of_each = Vec::with_capacity(keys.len());
    // Very large objects are few.
    for key in keys {
        let params = params![claim.task.0, ObjectKey::hash128(&key.0).to_vec()];
        let rows = store.read(BODIES, params).await?;
        let bodies = rows.iter().map(|row| get(row, 0)).collect::<Result<Vec<String>>>()?;
        of_each.push(checkpoints(bodies.iter().map(String::as_str)));
    }
    Ok(of_each)
}
