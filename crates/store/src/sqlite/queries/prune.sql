-- Removing what is old, in steps.
--
-- A master job that is taken up gets another id in the first step, which nobody knows: whoever asks for it by
-- the id it had finds nothing at once, and what is left of it is found again by the next step.

-- name: insert_pruned_master
INSERT INTO master_jobs (id, request_key, description, created_at, pruned_at)
SELECT randomblob(16), x'', '', created_at, now_ms() FROM master_jobs WHERE id = ?1
RETURNING id;

-- name: units_to_prune
SELECT id FROM task_units WHERE job_id = ?1 LIMIT ?2;

-- name: prune_records
DELETE FROM task_output_records
WHERE (unit_id, sequence) IN (
    SELECT r.unit_id, r.sequence
    FROM json_each(?1) u
    JOIN task_output_records r ON r.unit_id = u.value
    LIMIT ?2);

-- name: prune_skips
DELETE FROM task_unit_skips
WHERE (unit_id, reason) IN (
    SELECT s.unit_id, s.reason
    FROM json_each(?1) u
    JOIN task_unit_skips s ON s.unit_id = u.value
    LIMIT ?2);

-- name: prune_units
DELETE FROM task_units WHERE id IN (SELECT u.value FROM json_each(?1) u LIMIT ?2);

-- name: prune_checkpoints
DELETE FROM checkpoints WHERE target IN (SELECT 'session:' || id FROM enumeration_sessions WHERE job_id = ?1 LIMIT ?2);

-- name: prune_untraced
DELETE FROM untraced_objects
WHERE (session_id, object_key) IN (
    SELECT o.session_id, o.object_key
    FROM enumeration_sessions s
    JOIN untraced_objects o ON o.session_id = s.id
    WHERE s.job_id = ?1
    LIMIT ?2);

-- name: prune_staged_results
DELETE FROM staged_results
WHERE (task_id, claim_id, sequence) IN (
    SELECT s.task_id, s.claim_id, s.sequence
    FROM json_each(?1) t
    JOIN staged_results s ON s.task_id = t.value
    LIMIT ?2);

-- name: prune_object_checkpoints
DELETE FROM object_checkpoints
WHERE (task_id, object_key_hash, number) IN (
    SELECT c.task_id, c.object_key_hash, c.number
    FROM json_each(?1) t
    JOIN object_checkpoints c ON c.task_id = t.value
    LIMIT ?2);

-- name: prune_tasks
DELETE FROM tasks WHERE id IN (SELECT t.value FROM json_each(?1) t LIMIT ?2);

-- Events come in the order of time, or nearly so: only the first are looked at.
-- name: prune_old_events
DELETE FROM events
WHERE id IN (
    SELECT e.id
    FROM (SELECT id, created_at FROM events ORDER BY id LIMIT ?2) e
    WHERE e.created_at < ?1);
