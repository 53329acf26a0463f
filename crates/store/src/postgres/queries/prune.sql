-- Removing what is old, in steps.
--
-- A master job that is taken up gets another id in the first step, which nobody knows: whoever asks for it by
-- the id it had finds nothing at once, and what is left of it is found again by the next step.

-- One after the other.
-- name: lock_prune
SELECT pg_advisory_xact_lock(hashtextextended('domesday prune', 0));

-- Whoever tries its tasks again holds this, too.
-- name: lock_prunable
SELECT 1 FROM master_jobs WHERE id = $1 FOR UPDATE;

-- name: still_ended
SELECT NOT EXISTS (
    SELECT 1 FROM jobs
    WHERE master_job_id = $1 AND status NOT IN ('COMPLETED', 'PARTIALLY_COMPLETED', 'FAILED', 'CANCELLED'));

-- name: insert_pruned_master
INSERT INTO master_jobs (id, request_key, description, created_at, pruned_at)
SELECT uuid_send(gen_random_uuid()), '', '', created_at, now_ms() FROM master_jobs WHERE id = $1
RETURNING id;

-- By the indexes that there are.
-- name: units_to_prune
(SELECT id FROM task_units WHERE job_id = $1 AND status = 'COMMITTED' LIMIT $2)
UNION ALL
(SELECT id FROM task_units WHERE job_id = $1 AND status = 'FAILED' LIMIT $2)
UNION ALL
(SELECT id FROM task_units WHERE job_id = $1 AND status = 'STAGING' LIMIT $2)
LIMIT $2;

-- name: prune_records
DELETE FROM task_output_records
WHERE (unit_id, sequence) IN (
    SELECT r.unit_id, r.sequence
    FROM unnest($1::bigint[]) AS u (id)
    JOIN task_output_records r ON r.unit_id = u.id
    LIMIT $2);

-- name: prune_skips
DELETE FROM task_unit_skips
WHERE (unit_id, reason) IN (
    SELECT s.unit_id, s.reason
    FROM unnest($1::bigint[]) AS u (id)
    JOIN task_unit_skips s ON s.unit_id = u.id
    LIMIT $2);

-- name: prune_units
DELETE FROM task_units WHERE id IN (SELECT id FROM unnest($1::bigint[]) AS u (id) LIMIT $2);

-- name: prune_untraced
DELETE FROM untraced_objects
WHERE (session_id, sha256(object_key)) IN (
    SELECT o.session_id, sha256(o.object_key)
    FROM enumeration_sessions s
    JOIN untraced_objects o ON o.session_id = s.id
    WHERE s.job_id = $1
    LIMIT $2);

-- name: prune_staged_findings
DELETE FROM staged_findings
WHERE (task_id, claim_id, sequence) IN (
    SELECT s.task_id, s.claim_id, s.sequence
    FROM unnest($1::bigint[]) AS t (id)
    JOIN staged_findings s ON s.task_id = t.id
    LIMIT $2);

-- name: prune_staged_objects
DELETE FROM staged_objects
WHERE (task_id, claim_id, sequence) IN (
    SELECT s.task_id, s.claim_id, s.sequence
    FROM unnest($1::bigint[]) AS t (id)
    JOIN staged_objects s ON s.task_id = t.id
    LIMIT $2);

-- name: prune_staged_tables
DELETE FROM staged_tables
WHERE (task_id, claim_id, sequence) IN (
    SELECT s.task_id, s.claim_id, s.sequence
    FROM unnest($1::bigint[]) AS t (id)
    JOIN staged_tables s ON s.task_id = t.id
    LIMIT $2);

-- name: prune_object_checkpoints
DELETE FROM object_checkpoints
WHERE (task_id, object_key_hash, number) IN (
    SELECT c.task_id, c.object_key_hash, c.number
    FROM unnest($1::bigint[]) AS t (id)
    JOIN object_checkpoints c ON c.task_id = t.id
    LIMIT $2);

-- name: prune_tasks
DELETE FROM tasks WHERE id IN (SELECT id FROM unnest($1::bigint[]) AS t (id) LIMIT $2);

-- Events come in the order of time, or nearly so: only the first are looked at.
-- name: prune_old_events
DELETE FROM events
WHERE number IN (
    SELECT e.number
    FROM (SELECT number, created_at FROM events ORDER BY number LIMIT $2) e
    WHERE e.created_at < $1);
