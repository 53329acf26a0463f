-- Sessions, batches, checkpoints, units and their records.

-- name: resume_stopped_sessions
UPDATE enumeration_sessions
SET status = 'IN_PROGRESS', failure_reason = NULL, last_update = now_ms()
WHERE job_id = ?1 AND status = 'STALLED'
  AND (CAST(?2 AS text) IS NULL OR datasource_id = (SELECT d.id FROM datasources d WHERE d.name = ?2));

-- name: session_of_datasource
SELECT s.id FROM enumeration_sessions s
JOIN datasources d ON d.id = s.datasource_id
WHERE s.job_id = ?1 AND d.name = ?2;

-- name: insert_batch
INSERT INTO enumeration_batches
    (session_id, status, checkpoint, expected_items, items_processed, error_details, started_at, completed_at)
VALUES (?1, ?2, ?3, ?4, ?4, ?5, now_ms(), now_ms());

-- name: end_session
UPDATE enumeration_sessions
SET status = ?2, failure_reason = ?3, completed_at = now_ms(), last_update = now_ms()
WHERE id = ?1;

-- name: add_unit_totals
UPDATE task_units
SET records = records + ?2, containers = containers + ?3, objects = objects + ?4, skipped = skipped + ?5,
    unchanged = unchanged + ?6, bytes = bytes + ?7
WHERE id = ?1;

-- name: commit_staged_unit
UPDATE task_units
SET status = 'COMMITTED',
    fanned_out = CASE WHEN containers = 0 THEN 1 ELSE 0 END + CASE WHEN objects = 0 THEN 2 ELSE 0 END
WHERE id = ?1 AND task_id = ?2 AND status = 'STAGING';

-- name: unit_is_committed
SELECT EXISTS (SELECT 1 FROM task_units WHERE id = ?1 AND task_id = ?2 AND status = 'COMMITTED');

-- name: staged_hashes
SELECT object_key_hash FROM task_output_records
WHERE unit_id = ?1 AND substr(object_key_hash, 1, 1) >= ?2 AND substr(object_key_hash, 1, 1) <= ?3;

-- name: fail_open_units
UPDATE task_units SET status = 'FAILED', reason = 'read_error', detail = 'the task was cancelled', fanned_out = 3
WHERE job_id = ?1 AND status = 'STAGING';

-- name: fail_open_units_of_task
UPDATE task_units SET status = 'FAILED', reason = 'read_error', detail = ?2, fanned_out = 3
WHERE task_id = ?1 AND status = 'STAGING';
