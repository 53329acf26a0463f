-- Sessions, batches and checkpoints, as people look at them.

-- name: batch
SELECT id, session_id, status, checkpoint, expected_items, items_processed, error_details, started_at, completed_at
FROM enumeration_batches
WHERE id = ?1;

-- name: batches
SELECT id, session_id, status, checkpoint, expected_items, items_processed, error_details, started_at, completed_at
FROM enumeration_batches
WHERE session_id = ?1 AND id < ?2
ORDER BY id DESC
LIMIT ?3;

-- name: checkpoint_of
SELECT id, target, data, updated_at FROM checkpoints WHERE target = ?1;

-- name: delete_checkpoint
DELETE FROM checkpoints WHERE target = ?1;

-- name: save_checkpoint
INSERT INTO checkpoints (target, data, updated_at)
VALUES (?1, ?2, now_ms())
ON CONFLICT (target) DO UPDATE SET data = excluded.data, updated_at = excluded.updated_at
RETURNING id;
